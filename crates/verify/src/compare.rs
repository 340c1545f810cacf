//! Are two answers equal?

use crate::answer::Answer;

/// What may differ between judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many significant digits a decimal needs to stand for a value that it only rounds.
    pub precision: u32,
    /// Names of variables count: `f(x)` is not `f(y)`.
    pub strict: bool,
    /// An inequality as prediction may stand for the interval that the gold is. The other direction is
    /// always allowed.
    pub relation_for_set: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { precision: 6, strict: true, relation_for_set: true }
    }
}

/// What comparing says, with the reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The same answer.
    Equal,
    /// Not the same.
    Different(&'static str),
    /// Nothing can be said within the bounds.
    Undecided(&'static str),
}

/// Compares a gold answer with a prediction.
pub fn equal(gold: &Answer, prediction: &Answer, options: &Options) -> Outcome {
    let _ = options;
    if gold == prediction { Outcome::Equal } else { Outcome::Different("the texts differ") }
}
