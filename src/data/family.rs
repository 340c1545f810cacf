//! Families of generated tasks: what they share, whatever a task is. Problems without number, with known answers, in
//! tiers of difficulty, and a wall between those for training and those for tests.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::ops::Range;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{DataError, Problem, Result};

/// Which side of the wall between training and test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Nine tenths of the tasks.
    Train,
    /// One tenth of the tasks; training never meets them.
    Test,
}

impl Split {
    /// The side on which something with these bytes stands, for ever.
    pub fn of_bytes(bytes: impl Iterator<Item = u8>) -> Split {
        if fnv1a(bytes).is_multiple_of(10) { Split::Test } else { Split::Train }
    }
}

/// FNV-1a, 64 bits. Written out because the split must never move: the standard library's hasher
/// may change with any release, and these five lines are fixed by the algorithm's definition.
fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A kind of generated task.
pub trait Family: Clone + fmt::Debug + PartialEq {
    /// How hard the tasks are. As text, its name in recipes and rows, of which no other family has one.
    type Tier: Copy + fmt::Debug + fmt::Display + PartialEq + Serialize + DeserializeOwned + 'static;
    /// A task.
    type Task: Clone + Eq + Hash + 'static;

    /// Its name in messages.
    const NAME: &'static str;

    /// All tiers, from easy to hard.
    const TIERS: &'static [Self::Tier];

    /// Draws a task of a tier, on one side of the wall.
    fn draw(tier: Self::Tier, split: Split, rng: &mut impl Rng) -> Self::Task;

    /// The task as a row for training and evaluation. Its id follows from its content, so the same task has the same
    /// id in every run.
    fn problem(task: &Self::Task, tier: Self::Tier) -> Problem;
}

/// A response, and where it is wrong on purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The response.
    pub text: String,
    /// Bytes of it that are wrong.
    pub slips: Vec<Range<usize>>,
}

/// The tiers that a stage draws from, as a recipe writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
pub struct Source<F: Family> {
    /// The tiers in the mixture.
    pub tiers: Vec<F::Tier>,
    /// One weight a tier; equal shares without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f32>>,
}

impl<F: Family> Source<F> {
    /// A single tier.
    pub fn of(tier: F::Tier) -> Self {
        Self { tiers: vec![tier], weights: None }
    }

    /// Each of its tiers alone.
    pub fn each(&self) -> impl Iterator<Item = Self> {
        self.tiers.iter().map(|&tier| Self::of(tier))
    }

    /// An endless stream of tasks, the same for the same arguments. Tasks may come again.
    pub fn tasks(
        &self,
        split: Split,
        seed: u64,
    ) -> Result<impl Iterator<Item = (F::Tier, F::Task)> + use<F>> {
        let tiers = self.weighted()?;
        // ChaCha8: the same numbers on every machine and in every release, unlike `StdRng`.
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Ok(std::iter::repeat_with(move || {
            let tier = pick(&tiers, &mut rng);
            (tier, F::draw(tier, split, &mut rng))
        }))
    }

    /// The first `n` different tasks of the stream, as rows.
    pub fn problems(&self, split: Split, seed: u64, n: usize) -> Result<Vec<Problem>> {
        /// So many tasks in a row that are all known: there are hardly others.
        const PATIENCE: usize = 10_000;
        let mut tasks = self.tasks(split, seed)?;
        let mut seen = HashSet::new();
        let mut problems = Vec::new();
        while problems.len() < n {
            let Some((tier, task)) =
                tasks.by_ref().take(PATIENCE).find(|(_, task)| seen.insert(task.clone()))
            else {
                let tiers: Vec<String> = self.tiers.iter().map(ToString::to_string).collect();
                return Err(DataError::Exhausted {
                    generator: format!("{} (tiers {}, {split:?})", F::NAME, tiers.join(", ")),
                    found: problems.len(),
                    wanted: n,
                });
            };
            problems.push(F::problem(&task, tier));
        }
        Ok(problems)
    }

    fn weighted(&self) -> Result<Vec<(F::Tier, f64)>> {
        let wrong = |field, expected, got| Err(DataError::Setting { field, expected, got });
        if self.tiers.is_empty() {
            return wrong("tiers", "at least one tier", "none".into());
        }
        let weights = self.weights.clone().unwrap_or_else(|| vec![1.0; self.tiers.len()]);
        let sound = weights.iter().all(|w| w.is_finite() && *w >= 0.0) && weights.iter().any(|w| *w > 0.0);
        if weights.len() != self.tiers.len() || !sound {
            let got = format!("{weights:?} for {} tiers", self.tiers.len());
            return wrong("weights", "one weight a tier, none negative, not all zero", got);
        }
        Ok(self.tiers.iter().copied().zip(weights.into_iter().map(f64::from)).collect())
    }
}

fn pick<T: Copy>(tiers: &[(T, f64)], rng: &mut impl Rng) -> T {
    let mut rest = rng.random::<f64>() * tiers.iter().map(|(_, weight)| weight).sum::<f64>();
    let chosen = tiers.iter().find(|(_, weight)| {
        rest -= weight;
        rest < 0.0
    });
    // Rounding may leave a crumb of `rest`, which then belongs to the last tier with a weight.
    let last = || tiers.iter().rfind(|(_, weight)| *weight > 0.0);
    chosen.or_else(last).expect("a checked mixture has a tier with a weight").0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv1a() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(fnv1a(text.bytes()), hash);
        }
    }
}
