//! What can be wrong with a demonstration, and where: its tags, its answer, its paths and summaries, its text.
//!
//! [`inspect`] names every fault of one response; [`mend`] first repairs what has only one reading, and says what it
//! did.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::Problem;
use crate::prompt::tags::outline;
use crate::reward::judge;

mod language;
mod paths;
mod repair;
mod report;
mod structure;
mod summaries;
mod text;

pub use report::{Examples, Report, check_file, clean_rows};

/// What the checks are to hold a response against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckOptions {
    /// The fewest paths of a block.
    pub min_paths: usize,
    /// How deep blocks may nest; 1 allows none inside a path.
    pub max_nesting: usize,
    /// The fewest characters of a response.
    pub min_chars: usize,
    /// The most characters of a response.
    pub max_chars: usize,
    /// Two paths of a block whose BLEU is at least this are one path told twice.
    pub duplicate_bleu: f64,
    /// Two paths of a block whose BLEU is at least this are worth a warning.
    pub similar_bleu: f64,
    /// The fewest words of a summary; a shorter one is trivial unless it states a value.
    pub min_summary_words: usize,
    /// Whether the response has to be in the problem's language.
    pub same_language: bool,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            min_paths: 2,
            max_nesting: 1,
            min_chars: 1,
            max_chars: 65_536,
            duplicate_bleu: 0.9,
            similar_bleu: 0.7,
            min_summary_words: 3,
            same_language: true,
        }
    }
}

/// A response with what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What was asked.
    pub problem: &'a Problem,
    /// The whole prompt with its instruction, where known: a response that repeats it repeats its tags.
    pub prompt: Option<&'a str>,
    /// The response, tags included, thinking parts removed.
    pub response: &'a str,
    /// Whether the teacher stopped at its limit (`finish_reason` is `length`) or its stream broke off.
    pub cut: bool,
}

impl<'a> Answer<'a> {
    /// A whole response of which no prompt is known.
    pub fn new(problem: &'a Problem, response: &'a str) -> Self {
        Self { problem, prompt: None, response, cut: false }
    }
}

/// The kinds of faults. Their names in rows and reports are in snake_case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A path isn't closed.
    UnclosedPath,
    /// A block isn't closed.
    UnclosedBlock,
    /// A summary isn't closed.
    UnclosedSummary,
    /// A closed block isn't followed by its summary.
    MissingSummary,
    /// A block without a path.
    EmptyBlock,
    /// A path outside a block.
    PathOutsideBlock,
    /// Text inside a block, outside its paths.
    TextInBlock,
    /// Text between `</Parallel>` and `<Summary>`.
    TextBeforeSummary,
    /// A tag that opens or closes nothing.
    StrayTag,
    /// A block with fewer paths than asked for.
    TooFewPaths,
    /// A block inside more paths than the limit.
    NestedTooDeep,
    /// A line of the prompt with tags in it, repeated.
    EchoedPrompt,
    /// No final answer.
    NoAnswer,
    /// The final answer isn't the gold one.
    WrongAnswer,
    /// A path without text.
    EmptyPath,
    /// A path refers to another path, which it can't see.
    PathReference,
    /// A path says what another path of its block says.
    NearDuplicatePaths,
    /// A summary without text.
    EmptySummary,
    /// A summary that says nothing.
    TrivialSummary,
    /// A summary whose result none of the paths has.
    ContradictingSummary,
    /// The response breaks off.
    Truncated,
    /// Fewer characters than asked for.
    TooShort,
    /// More characters than allowed.
    TooLong,
    /// Another language than the problem's.
    OtherLanguage,
    /// A warning: words that may refer to another path (`the first path`, `same as above`).
    LooseReference,
    /// A warning: two paths of a block in nearly the same words.
    SimilarPaths,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Where, in bytes of the response; its length for something that is missing at the end.
    pub at: usize,
    /// The text around that place, or what else explains it.
    pub text: String,
}

/// What one response is.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// All its faults and warnings, in the order of their places.
    pub faults: Vec<Fault>,
    /// How many paths each block has, in the order in which the blocks open; broken blocks count.
    pub paths: Vec<usize>,
    /// Where the first block starts, in bytes.
    pub first_block: Option<usize>,
    /// Whether the final answer is right; `None` where the gold answer can't be read.
    pub correct: Option<bool>,
}

impl Inspection {
    /// How many blocks there are, nested and broken ones too.
    pub fn blocks(&self) -> usize {
        self.paths.len()
    }

    /// Whether the tags follow the grammar.
    pub fn well_formed(&self) -> bool {
        !self.faults.iter().any(|fault| fault.kind.is_grammar())
    }

    /// Whether there is any fault of this kind.
    pub fn has(&self, kind: FaultKind) -> bool {
        self.faults.iter().any(|fault| fault.kind == kind)
    }

    /// Whether the response may teach: no fault, no warning, and known to be right.
    pub fn accepted(&self) -> bool {
        self.faults.is_empty() && self.correct == Some(true)
    }
}

impl FaultKind {
    /// Whether the tags break the grammar (rather than a limit or good sense).
    pub fn is_grammar(self) -> bool {
        self <= FaultKind::StrayTag
    }

    /// Whether it is only a suspicion: reported apart, and reason enough to leave out a row of new data.
    pub fn is_warning(self) -> bool {
        self >= FaultKind::LooseReference
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The kinds of repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairKind {
    /// White space between tags made what the engine writes there.
    Spacing,
    /// A tag spelled another way (`<path>`, `< Path >`) written as it should be.
    Spelling,
    /// A missing `</Path>` written before the tag that ends the path anyway.
    ClosedPath,
    /// A missing `</Parallel>` written between the last `</Path>` and `<Summary>`.
    ClosedBlock,
    /// A code fence around the whole response removed.
    Fence,
}

/// One repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// What was done.
    pub kind: RepairKind,
    /// Where, in bytes of the response as it was when the repair was made.
    pub at: usize,
}

/// A response after its repairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Mended {
    /// The repaired response; the same as before where nothing could be repaired.
    pub response: String,
    /// What was done, in order.
    pub repairs: Vec<Repair>,
    /// What the repaired response is.
    pub inspection: Inspection,
}

/// Names and locates every fault of a response.
pub fn inspect(answer: &Answer, options: &CheckOptions) -> Inspection {
    let outline = outline(answer.response);
    let correct = judge(answer.problem, answer.response).correct;
    let mut faults = structure::faults(answer.response, &outline, options);
    faults.extend(paths::faults(answer, &outline, options));
    faults.extend(summaries::faults(answer.response, &outline, options));
    faults.extend(text::faults(answer, &outline, options));
    faults.extend(text::wrong_answer(answer.response, correct));
    faults.extend(options.same_language.then(|| language::fault(answer)).flatten());
    faults.sort_by_key(|fault| (fault.at, fault.kind));
    Inspection {
        faults,
        paths: outline.blocks.iter().map(|block| block.paths.len()).collect(),
        first_block: outline.blocks.first().map(|block| block.range.start),
        correct,
    }
}

/// Repairs what has only one reading, then inspects the result.
pub fn mend(answer: &Answer, options: &CheckOptions) -> Mended {
    let (response, repairs) = repair::repair(answer.response);
    let inspection = inspect(&Answer { response: &response, ..*answer }, options);
    Mended { response, repairs, inspection }
}

impl Fault {
    /// A fault with the text around its place.
    pub fn new(kind: FaultKind, response: &str, at: usize) -> Self {
        Self { kind, at, text: around(response, at) }
    }
}

/// Up to forty characters on each side of a place, on one line.
fn around(text: &str, at: usize) -> String {
    const SIDE: usize = 40;
    let start = text[..at].char_indices().rev().nth(SIDE - 1).map_or(0, |(start, _)| start);
    let end = text[at..].char_indices().nth(SIDE).map_or(text.len(), |(end, _)| at + end);
    text[start..end].split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn problem(text: &str, answer: &str) -> Problem {
        Problem {
            id: "test-0".into(),
            problem: text.into(),
            answer: answer.into(),
            source: "test".into(),
            level: None,
        }
    }

    /// The kinds of faults of a response to a problem in English whose answer is 12.
    pub(super) fn kinds(response: &str) -> Vec<FaultKind> {
        let problem = problem("Ann has 5 apples and buys 7 more at the market. How many has she now?", "12");
        let inspection = inspect(&Answer::new(&problem, response), &CheckOptions::default());
        inspection.faults.into_iter().map(|fault| fault.kind).collect()
    }

    /// A sound demonstration with this block.
    pub(super) fn with_block(block: &str) -> String {
        format!("Let us count.\n<Parallel>{block}\nSo she has 12 apples.\nFinal Answer: 12")
    }

    #[test]
    fn a_sound_demonstration_has_no_fault() {
        let block = "<Path>Adding 5 and 7 gives 12.</Path><Path>Count on from 7: 8, 9, 10, 11, 12.</Path>\
            </Parallel>\n<Summary>Both paths give 12 apples.</Summary>";
        assert_eq!(kinds(&with_block(block)), []);
        assert_eq!(kinds("5 + 7 = 12.\nFinal Answer: 12"), []);
    }

    #[test]
    fn names_are_in_snake_case() {
        assert_eq!(FaultKind::UnclosedSummary.to_string(), "unclosed_summary");
        assert_eq!(serde_json::to_string(&FaultKind::LooseReference).unwrap(), "\"loose_reference\"");
        assert!(FaultKind::StrayTag.is_grammar() && !FaultKind::TooFewPaths.is_grammar());
        assert!(FaultKind::SimilarPaths.is_warning() && !FaultKind::OtherLanguage.is_warning());
    }

    proptest! {
        #[test]
        fn any_response_is_inspected(parts in proptest::collection::vec(
            prop_oneof![".{0,9}", "</?(Parallel|Path|Summary)>", "(as in )?path [0-9]\\.?", "< ?/?path ?[0-9]?>", "\\PC{0,3}"], 0..14)
        ) {
            let (response, problem) = (parts.concat(), problem("How many?", "3"));
            let answer = Answer { cut: parts.len() % 2 == 0, prompt: parts.last().map(String::as_str), ..Answer::new(&problem, &response) };
            let options = CheckOptions { max_chars: 60, ..CheckOptions::default() };
            let inspection = inspect(&answer, &options);
            prop_assert_eq!(inspection.well_formed(), crate::prompt::tags::check_text(&response).is_ok());
            prop_assert!(inspection.faults.iter().all(|fault| response.is_char_boundary(fault.at)));
            let mended = mend(&answer, &options);
            prop_assert_eq!(mended.repairs.is_empty(), mended.response == response);
            let again = mend(&Answer { response: &mended.response, ..answer }, &options);
            prop_assert_eq!(&again.response, &mended.response);
        }
    }
}
