//! Problems to learn from. Which ones a step takes depends on the seed and the step alone.

use super::Result;
use super::demonstrations::epoch_indices;
use super::recipe::ProblemData;
use crate::data::countdown::{CountdownSource, Split};
use crate::data::{Problem, load_problems};

/// Where problems come from.
pub enum Problems {
    /// Countdown tasks of the training split, drawn anew for each step.
    Countdown(CountdownSource),
    /// The rows of a file, shuffled once an epoch.
    Rows(Vec<Problem>),
}

impl Problems {
    /// Opens the data of a stage (checked by [`Recipe::parse`](super::recipe::Recipe::parse)).
    pub fn open(data: &ProblemData) -> Result<Self> {
        if let Some(file) = &data.file {
            let mut rows = load_problems(file)?;
            rows.truncate(data.limit.unwrap_or(usize::MAX));
            return Ok(Self::Rows(rows));
        }
        Ok(Self::Countdown(
            data.countdown.clone().unwrap_or(CountdownSource { tiers: vec![], weights: None }),
        ))
    }

    /// The `n` problems of a draw; a step's first draw and its resampling rounds have numbers of their own.
    pub fn draw(&self, seed: u64, number: usize, n: usize) -> Result<Vec<Problem>> {
        match self {
            Self::Countdown(source) => {
                Ok(source.problems(Split::Train, seed.wrapping_add(number as u64), n)?)
            }
            Self::Rows(rows) => {
                Ok(epoch_indices(rows.len(), seed, number * n, n).map(|i| rows[i].clone()).collect())
            }
        }
    }
}
