//! Judges answers: does this response end in the gold answer?
//!
//! ```text
//! response ── extract ──> its last stated answer ── normalise ──> one spelling ── answer ──> a form
//!                                                                                 (number, list, text)
//! gold ────────────────────────────────────────────────────────────────────────────────────> a form
//! ```
//! Two answers are equal when their forms are, and every form has one spelling, its [`key`]; so votes
//! group answers exactly as the judge would. Numbers are compared as exact rationals. Nothing here
//! panics or takes long: lengths, nesting, digits and exponents are bounded, and what is too large to
//! be read as a number is compared as text.

#![forbid(unsafe_code)]

pub mod answer;
pub mod compare;
mod form;
mod group;
pub mod parse;
pub mod countdown;
mod extract;
mod normalise;
mod number;

pub use extract::extract;
pub use group::group;

/// What the judge says about a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The answer equals the gold one.
    Correct,
    /// It does not, or there is none.
    Incorrect,
    /// The gold answer itself is empty or beyond the bounds, so nothing can be said: skip the row.
    UnreadableGold,
}

/// Compares two answers (not whole responses).
///
/// Percent signs, currency and units are dropped on both sides: problems name the unit, golds leave it
/// out or not at whim. So `28\%` equals `28`, not `0.28`.
pub fn equal(gold: &str, answer: &str) -> Verdict {
    match (read_gold(gold), form::read(answer)) {
        (None, _) => Verdict::UnreadableGold,
        (Some(gold), Some(answer)) if gold == answer => Verdict::Correct,
        _ => Verdict::Incorrect,
    }
}

/// Compares the last answer that a whole response states with the gold one.
pub fn verify(gold: &str, response: &str) -> Verdict {
    // An absent answer reads as the empty one, which equals no gold.
    equal(gold, extract(response).unwrap_or_default())
}

/// The one spelling of an answer: two answers are equal if and only if their keys are.
///
/// What can't be read (empty, or beyond the bounds) has the empty key.
pub fn key(answer: &str) -> String {
    form::read(answer).map_or_else(String::new, |form| form.to_string())
}

/// A gold may be a worked solution; then its boxed or marked answer counts.
fn read_gold(gold: &str) -> Option<form::Form> {
    let worked = gold.contains("\\boxed") || gold.contains("####");
    form::read(if worked { extract(gold).unwrap_or(gold) } else { gold })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn accepts_what_is_equal() {
        for (gold, response) in [
            ("72", "So she sold 48 + 24 = 72 clips.\n#### 72"),
            ("1234", "The answer is $1{,}234$."),
            ("\\frac{1}{2}", "Thus we get \\boxed{0.5}."),
            ("\\frac12", "\\boxed{\\dfrac{2}{4}}"),
            ("18", "**Final Answer:** $18.00 per day"),
            ("3.5", "Hence the value is $3\\frac{1}{2}$."),
            ("-10/9", "-\\frac{10}{9}"),
            ("28\\%", "About 28 percent"),
            ("90^\\circ", "the angle is $\\boxed{90}$ degrees"),
            ("\\left( 3, \\frac{\\pi}{2} \\right)", "we find $\\boxed{(3,\\frac{\\pi}{2})}$"),
            ("(0.5,1]", "\\boxed{\\left(\\tfrac12, 1\\right]}"),
            ("\\text{Evelyn}", "The fastest one is \\boxed{\\text{evelyn}}."),
            ("(C)", "The answer is C."),
            ("k = 7", "Answer: 7"),
            ("We add: $20+22=42$. The answer is $\\boxed{42}$.", "42"),
            ("\\{2,1\\}", "\\boxed{\\{1, 2\\}}"),
        ] {
            assert_eq!(verify(gold, response), Verdict::Correct, "{gold} / {response}");
        }
    }

    #[test]
    fn refuses_what_differs() {
        for (gold, response) in [
            ("72", "The answer is 71, not 72 as some say."),
            ("2", "AZYUK2A"),
            ("12:00", "\\boxed{1:00}"),
            ("(0,1)", "\\boxed{(1,0)}"),
            ("(0,1)", "\\boxed{[0,1]}"),
            ("2", "\\boxed{2x}"),
            ("2", "\\boxed{2\\pi}"),
            ("0.28", "28\\%"),
            ("0.333", "\\frac{1}{3}"),
            ("5", "Put the answer in \\boxed{}."),
            ("5", ""),
        ] {
            assert_eq!(verify(gold, response), Verdict::Incorrect, "{gold} / {response}");
        }
    }

    #[test]
    fn an_unreadable_gold_is_never_correct() {
        let endless = "9".repeat(1 << 20);
        for gold in ["", "  ", "$$", "{}", endless.as_str()] {
            assert_eq!(verify(gold, gold), Verdict::UnreadableGold);
            assert_eq!(verify(gold, "5"), Verdict::UnreadableGold);
        }
    }

    proptest! {
        #[test]
        fn never_panics(gold in ".{0,60}", response in "(\\PC|\\$|\\\\boxed\\{|\\\\frac|[{}0-9,. ]|answer is|\\*\\*|\n){0,60}") {
            verify(&gold, &response);
            verify(&response, &response);
        }

        #[test]
        fn equality_is_equality_of_keys(a in ANSWER, b in ANSWER) {
            prop_assert_eq!(equal(&a, &b) == Verdict::Correct, !key(&a).is_empty() && key(&a) == key(&b));
        }

        #[test]
        fn an_answer_equals_itself_in_a_box(a in ANSWER) {
            prop_assume!(!key(&a).is_empty());
            let boxed = format!("Therefore we get $\\boxed{{{a}}}$, as promised.");
            prop_assert_eq!(verify(&a, &boxed), Verdict::Correct);
        }

        #[test]
        fn spacing_and_sizes_of_brackets_do_not_matter(a in -99i32..99, b in 1i32..99) {
            let tight = format!("(\\frac{{{a}}}{{{b}}},{b})");
            let wide = format!("$\\left( \\dfrac {{ {a} }} {{{b}}} , \\, {b} \\right)$");
            prop_assert_eq!(equal(&tight, &wide), Verdict::Correct);
        }
    }

    const ANSWER: &str =
        "-?[0-9]{1,4}(\\.[0-9]{1,2})?|\\\\frac\\{[1-9]\\}\\{[1-9]\\}|[1-9]/[1-9]|[a-e]\\^2|\\([0-9],[0-9]\\)";
}
