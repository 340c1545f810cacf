//! Mixtures of Countdown tiers, drawn from a seed.

use std::collections::HashSet;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Split, Task, Tier, draw, join};
use crate::data::{DataError, Problem, Result};

/// The tiers that a stage draws from, as a recipe writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountdownSource {
    /// The tiers in the mixture.
    pub tiers: Vec<Tier>,
    /// One weight a tier; equal shares without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f32>>,
}

impl CountdownSource {
    /// An endless stream of tasks, the same for the same arguments. Tasks may come again.
    pub fn tasks(&self, split: Split, seed: u64) -> Result<impl Iterator<Item = (Tier, Task)> + use<>> {
        let tiers = self.weighted()?;
        // ChaCha8: the same numbers on every machine and in every release, unlike `StdRng`.
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Ok(std::iter::repeat_with(move || {
            let tier = pick(&tiers, &mut rng);
            (tier, draw(tier, split, &mut rng))
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
                return Err(DataError::Exhausted {
                    generator: format!("Countdown (tiers {}, {split:?})", join(&self.tiers, ", ")),
                    found: problems.len(),
                    wanted: n,
                });
            };
            problems.push(task.problem(tier));
        }
        Ok(problems)
    }

    fn weighted(&self) -> Result<Vec<(Tier, f64)>> {
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

/// `n` different tasks of one tier, the same for the same arguments.
pub fn problems(tier: Tier, split: Split, seed: u64, n: usize) -> Result<Vec<Problem>> {
    CountdownSource { tiers: vec![tier], weights: None }.problems(split, seed, n)
}

fn pick(tiers: &[(Tier, f64)], rng: &mut impl Rng) -> Tier {
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
    fn the_same_seed_gives_the_same_problems_each_once() {
        for tier in Tier::ALL {
            let rows = problems(tier, Split::Train, 1, 150).unwrap();
            assert_eq!(rows, problems(tier, Split::Train, 1, 150).unwrap());
            assert_ne!(rows, problems(tier, Split::Train, 2, 150).unwrap());
            assert_eq!(rows[..50], problems(tier, Split::Train, 1, 50).unwrap());
            let (ids, texts): (HashSet<&str>, HashSet<&str>) =
                rows.iter().map(|row| (row.id.as_str(), row.problem.as_str())).unzip();
            assert_eq!((ids.len(), texts.len()), (150, 150));
        }
    }

    /// Pins the generator: a change here makes every shipped number incomparable.
    #[test]
    fn the_first_problem_is_fixed() {
        let rows = problems(Tier::Four, Split::Test, 0, 1).unwrap();
        let row = serde_json::to_string(&rows[0]).unwrap();
        assert_eq!(
            row,
            r#"{"id":"countdown-2-2-8-9=21","problem":"2 2 8 9 = 21","answer":"21","source":"countdown","level":"4"}"#
        );
    }

    #[test]
    fn training_and_test_share_no_numbers_whatever_the_tier() {
        let numbers = |split| -> HashSet<Vec<u32>> {
            let tiers = [Tier::Four, Tier::FourHard];
            let rows = tiers.map(|tier| problems(tier, split, 3, 300).unwrap()).concat();
            let tasks = rows.iter().map(|row| row.problem.parse::<Task>().unwrap());
            tasks.map(|task| task.numbers().to_vec()).collect()
        };
        assert!(numbers(Split::Train).is_disjoint(&numbers(Split::Test)));
    }

    #[test]
    fn a_mixture_keeps_its_weights() {
        let recipe = "tiers = [\"3\", \"4\", \"4-hard\"]\nweights = [3, 1, 0]";
        let source: CountdownSource = toml::from_str(recipe).unwrap();
        let rows = source.problems(Split::Train, 1, 800).unwrap();
        let of = |tier: Tier| rows.iter().filter(move |row| row.level.as_deref() == Some(tier.name()));
        assert!((540..=660).contains(&of(Tier::Three).count()));
        assert_eq!(of(Tier::FourHard).count(), 0);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let error = |recipe: &str| {
            let source: CountdownSource = toml::from_str(recipe).unwrap();
            source.problems(Split::Train, 1, 1).unwrap_err().to_string()
        };
        assert_eq!(error("tiers = []"), "field `tiers`: expected at least one tier, got none");
        for weights in ["[1]", "[1, -1]", "[0, 0]", "[1, nan]"] {
            let text = error(&format!("tiers = [\"3\", \"4\"]\nweights = {weights}"));
            assert!(text.starts_with("field `weights`: expected one weight a tier"), "{text}");
        }
        let unknown = toml::from_str::<CountdownSource>("tiers = [\"6\"]").unwrap_err().to_string();
        assert!(unknown.contains("`3`, `4`, `4-hard`, `5`"), "{unknown}");
    }

    #[test]
    fn a_tier_that_is_exhausted_says_so() {
        let error = problems(Tier::Three, Split::Test, 1, 1_000_000).unwrap_err().to_string();
        assert!(error.starts_with("Countdown (tiers 3, Test): expected 1000000 different"), "{error}");
    }
}
