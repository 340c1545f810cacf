//! Judges answers: does this response end in the gold answer?
//!
//! ```text
//! response ── extract ──> answer as text ── parse ──> Answer ──┐
//!                                                              ├── compare ──> verdict, reason
//! gold ───────────────────────────────────── parse ──> Answer ─┘
//! ```
//! [`verify`] judges a response, [`equal`] two answers, [`group`] many answers at once. Each has a form
//! with [`Options`] that returns a [`Report`]: the verdict, why, and what was read.
//!
//! ```
//! use parallel_r1_verify::{Options, Verdict, equal, group, verify, verify_with};
//!
//! assert_eq!(verify("1/2", "so it is \\boxed{0.5}"), Verdict::Correct);
//! assert_eq!(equal("x^2-1", "(x-1)(x+1)"), Verdict::Correct);
//! assert_eq!(group(&["0.5", "2", "\\frac{1}{2}"]), [0, 1, 0]); // votes
//! let report = verify_with("5", "The answer is 6.", &Options::default());
//! assert_eq!(report.extracted.as_deref(), Some("6")); // with the reason and both answers as read
//! ```
//!
//! Nothing here panics or takes long: lengths, nesting, digits, exponents and work are bounded, and what
//! is beyond the bounds is [`Verdict::Undecided`], never correct.

#![forbid(unsafe_code)]

pub mod answer;
pub mod cases;
pub mod compare;
pub mod countdown;
mod extract;
mod group;
pub mod parse;

use std::fmt;

use answer::Answer;
use compare::Outcome;
use parse::ParseError;

pub use extract::{Candidate, Kind, Kinds, extract, extract_with};
pub use group::group;

/// What the judge says about a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The answer equals the gold one.
    Correct,
    /// It does not, or there is none.
    Incorrect,
    /// One of the two is too large to be compared. Not accepted.
    Undecided,
    /// The gold answer can't be read, so nothing can be said: skip the row.
    UnreadableGold,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Correct => "correct",
            Verdict::Incorrect => "incorrect",
            Verdict::Undecided => "undecided",
            Verdict::UnreadableGold => "unreadable gold",
        })
    }
}

/// How to judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which kinds of text may hold an answer.
    pub kinds: Kinds,
    /// When two answers are equal.
    pub compare: compare::Options,
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in words; empty if correct.
    pub reason: String,
    /// The answer as the response states it; `None` if it states none.
    pub extracted: Option<String>,
    /// The gold answer as read; `None` if it can't be.
    pub gold: Option<Answer>,
    /// The response's answer as read; `None` if it can't be.
    pub answer: Option<Answer>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.as_str() {
            "" => write!(f, "{}", self.verdict),
            reason => write!(f, "{}: {reason}", self.verdict),
        }
    }
}

/// Compares the last answer that a whole response states with the gold one.
pub fn verify(gold: &str, response: &str) -> Verdict {
    verify_with(gold, response, &Options::default()).verdict
}

/// [`verify`] with options and reasons.
pub fn verify_with(gold: &str, response: &str, options: &Options) -> Report {
    let gold = match read_gold(gold) {
        Ok(gold) => gold,
        Err(error) => return unreadable(&error),
    };
    let mut first = None;
    for candidate in extract_with(response, options.kinds) {
        let report = against(&gold, &candidate.text, options);
        // A statement that can't be read gives way to the next likely one.
        if report.answer.is_some() || report.verdict == Verdict::Undecided {
            return report;
        }
        first = first.or(Some(report));
    }
    first.unwrap_or_else(|| Report {
        verdict: Verdict::Incorrect,
        reason: "no answer found".to_owned(),
        extracted: None,
        gold: Some(gold),
        answer: None,
    })
}

/// Compares two answers (not whole responses).
pub fn equal(gold: &str, answer: &str) -> Verdict {
    equal_with(gold, answer, &Options::default()).verdict
}

/// [`equal`] with options and reasons.
pub fn equal_with(gold: &str, answer: &str, options: &Options) -> Report {
    match read_gold(gold) {
        Ok(gold) => against(&gold, &extract::gold(answer), options),
        Err(error) => unreadable(&error),
    }
}

/// Compares an answer's text with a gold answer that has been read.
fn against(gold: &Answer, text: &str, options: &Options) -> Report {
    let (answer, outcome) = match parse::answer(text) {
        Ok(answer) => {
            let outcome = compare::equal(gold, &answer, &options.compare);
            (Some(answer), outcome)
        }
        Err(error @ ParseError::TooLarge { .. }) => {
            return report(Verdict::Undecided, error.to_string(), Some(text), Some(gold), None);
        }
        Err(error) => {
            let reason = format!("the answer {error}");
            return report(Verdict::Incorrect, reason, Some(text), Some(gold), None);
        }
    };
    let (verdict, reason) = match outcome {
        Outcome::Equal => (Verdict::Correct, ""),
        Outcome::Different(reason) => (Verdict::Incorrect, reason),
        Outcome::Undecided(reason) => (Verdict::Undecided, reason),
    };
    report(verdict, reason.to_owned(), Some(text), Some(gold), answer)
}

/// A gold may be a worked solution; then its boxed or marked answer counts.
fn read_gold(gold: &str) -> Result<Answer, ParseError> {
    parse::answer(&extract::gold(gold))
}

fn unreadable(error: &ParseError) -> Report {
    let verdict = match error {
        ParseError::TooLarge { .. } => Verdict::Undecided,
        _ => Verdict::UnreadableGold,
    };
    report(verdict, error.to_string(), None, None, None)
}

fn report(
    verdict: Verdict,
    reason: String,
    text: Option<&str>,
    gold: Option<&Answer>,
    answer: Option<Answer>,
) -> Report {
    Report { verdict, reason, extracted: text.map(str::to_owned), gold: gold.cloned(), answer }
}

/// How an answer is shown once it is read: one spelling for many ways of writing it.
///
/// Answers with one key are equal. Equal answers may have several keys (`x^2-1`, `(x-1)(x+1)`), so votes
/// are counted by [`group`]. What can't be read has the empty key.
pub fn key(answer: &str) -> String {
    parse::answer(answer).map_or_else(|_| String::new(), |answer| answer.to_string())
}

#[cfg(test)]
mod tests;
