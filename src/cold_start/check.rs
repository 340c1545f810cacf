//! What can be wrong with a demonstration, and where: its tags, its answer, its paths and summaries, its text.
//!
//! [`inspect`] names every fault of one response; [`mend`] first repairs what has only one reading, and says what it
//! did.

use serde::{Deserialize, Serialize};

use crate::data::Problem;

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
    /// All its faults, in the order of their places.
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

    /// Whether the response may teach: no fault, and known to be right.
    pub fn accepted(&self) -> bool {
        self.faults.is_empty() && self.correct == Some(true)
    }
}

impl FaultKind {
    /// Whether the tags break the grammar (rather than a limit or good sense).
    pub fn is_grammar(self) -> bool {
        self <= FaultKind::StrayTag
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
    let _ = options;
    Inspection {
        faults: Vec::new(),
        paths: Vec::new(),
        first_block: None,
        correct: crate::reward::judge(answer.problem, answer.response).correct,
    }
}

/// Repairs what has only one reading, then inspects the result.
pub fn mend(answer: &Answer, options: &CheckOptions) -> Mended {
    Mended { response: answer.response.to_owned(), repairs: Vec::new(), inspection: inspect(answer, options) }
}
