//! What a generation leaves behind: rows, refused answers, and an account of all of them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::budget::Spent;
use super::super::check::{Fault, Repair};

/// How many examples of a thing are named.
const EXAMPLES: usize = 5;

/// A demonstration as it is written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Names the row: the problem's id, `#` and the sample; the problem's id alone where it is assembled.
    pub id: String,
    /// The problem's text.
    pub problem: String,
    /// Its gold answer.
    pub answer: String,
    /// Where the problem comes from.
    pub source: String,
    /// How hard it is, where known.
    pub level: Option<String>,
    /// The demonstration.
    pub response: String,
    /// Who answered.
    pub teacher: String,
    /// The samples that it is made of.
    pub samples: Vec<usize>,
    /// Who summarised an assembled demonstration: the `teacher` or the `template`.
    pub summary: Option<&'static str>,
    /// What was repaired.
    pub repairs: Vec<Repair>,
    /// Tokens that the teacher wrote for it.
    pub tokens: u64,
    /// What they and their prompts cost.
    pub cost: f64,
}

/// An answer that is no demonstration, as it is written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refused {
    /// Names it as [`Row::id`].
    pub id: String,
    /// The problem's text.
    pub problem: String,
    /// Its gold answer.
    pub answer: String,
    /// Why not: kinds of faults, or `no_block`, `block_in_solution`, `too_few_solutions`, `assembled_rejected`,
    /// `not_kept`, `duplicate`, `failed`.
    pub reasons: Vec<String>,
    /// The faults with their places.
    pub faults: Vec<Fault>,
    /// The answer after its repairs, or null where there is none.
    pub response: Option<String>,
    /// Why there is none.
    pub failed: Option<String>,
}

/// How often something was found, and where.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Count {
    /// How often.
    pub count: usize,
    /// The first ids.
    pub examples: Vec<String>,
}

/// The account of a generation.
///
/// `wanted = accepted + rejected + failed + unanswered`. Without assembly `accepted = rows + not_kept + duplicates`; with it
/// `problems = assembled + too_few_solutions + assembled_rejected` and `assembled = rows + duplicates`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Problems that were asked.
    pub problems: usize,
    /// Rows that repeated one of them.
    pub repeated: usize,
    /// Problems whose gold answer can't be read.
    pub unreadable: Count,
    /// Problems that are in an evaluation set, and so were not asked.
    pub contaminated: Count,
    /// Answers that were wanted.
    pub wanted: usize,
    /// Those that passed the checks.
    pub accepted: usize,
    /// Those that did not.
    pub rejected: usize,
    /// Questions whose every try failed.
    pub failed: Count,
    /// Questions that were not asked, or not to the end.
    pub unanswered: usize,
    /// Why answers were rejected. One may have several reasons.
    pub reasons: BTreeMap<String, Count>,
    /// What was repaired.
    pub repairs: BTreeMap<String, usize>,
    /// Demonstrations made of several solutions.
    pub assembled: usize,
    /// Problems with too few different solutions to assemble.
    pub too_few_solutions: Count,
    /// Assembled demonstrations that did not pass the checks.
    pub assembled_rejected: Count,
    /// Summaries that the teacher wrote and that passed the checks.
    pub summaries_by_teacher: usize,
    /// Demonstrations beyond those that are kept of a problem.
    pub not_kept: usize,
    /// Demonstrations that say what another one says.
    pub duplicates: Count,
    /// Rows that were written.
    pub rows: usize,
    /// Whether nothing is missing.
    pub complete: bool,
    /// What all of it took.
    pub spent: Spent,
}

impl Count {
    /// Counts these.
    pub(super) fn of(ids: &[String]) -> Self {
        let mut count = Self::default();
        ids.iter().for_each(|id| count.add(id));
        count
    }

    /// Counts one more.
    pub(super) fn add(&mut self, id: &str) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(id.into());
        }
    }
}
