//! Countdown as a family: mixtures of its tiers, drawn from a seed.

use rand::Rng;

use super::{Task, Tier, draw};
use crate::data::family::{Family, Source, Split};
use crate::data::{Problem, Result};

/// The family, for [`Source`].
#[derive(Clone, Debug, PartialEq)]
pub struct Countdown;

/// The Countdown tiers that a stage draws from.
pub type CountdownSource = Source<Countdown>;

impl Family for Countdown {
    type Tier = Tier;
    type Task = Task;

    const NAME: &'static str = "Countdown";
    const TIERS: &'static [Tier] = &Tier::ALL;

    fn draw(tier: Tier, split: Split, rng: &mut impl Rng) -> Task {
        draw(tier, split, rng)
    }

    fn problem(task: &Task, tier: Tier) -> Problem {
        task.problem(tier)
    }
}

/// `n` different tasks of one tier, the same for the same arguments.
pub fn problems(tier: Tier, split: Split, seed: u64, n: usize) -> Result<Vec<Problem>> {
    CountdownSource::of(tier).problems(split, seed, n)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

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
