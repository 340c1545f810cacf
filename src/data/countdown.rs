//! Countdown: combine some of the numbers with `+ - * /` to reach the target.
//!
//! The embedded default task: unlimited, verifiable, and a search by nature, so that branching can
//! pay. This file says what a task is, `source.rs` draws mixtures of them, `attempt.rs` tries to
//! solve one, and `response.rs` writes such searches down as demonstrations.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::family::Split;
use super::{DataError, Problem, Result};

mod attempt;
#[cfg(test)]
mod oracle;
mod response;
mod source;

pub use attempt::{Attempt, Step, attempt, chance, success_rate};
pub use response::{ParallelOptions, SequentialOptions, parallel, sequential};
pub use source::{Countdown, CountdownSource, problems};

/// The `source` of Countdown rows: any solution is right, not one gold value.
pub const SOURCE: &str = "countdown";

/// No number and no result is larger, so three digits are enough.
const LARGEST: u32 = 999;

/// How hard the tasks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Tier {
    /// Three numbers.
    #[serde(rename = "3")]
    Three,
    /// Four small numbers and a target with many ways to it.
    #[serde(rename = "4")]
    Four,
    /// Four numbers and a target with few ways to it.
    #[serde(rename = "4-hard")]
    FourHard,
    /// Five numbers.
    #[serde(rename = "5")]
    Five,
}

/// What the tasks of a tier look like.
struct Shape {
    count: usize,
    numbers: RangeInclusive<u32>,
    targets: RangeInclusive<u32>,
    /// The [`chance`] of one random attempt. Its lower end is above zero: every task is solvable.
    chance: RangeInclusive<f64>,
}

impl Tier {
    /// All tiers, from easy to hard.
    pub const ALL: [Tier; 4] = [Tier::Three, Tier::Four, Tier::FourHard, Tier::Five];

    /// The name, as recipes and rows have it.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Three => "3",
            Tier::Four => "4",
            Tier::FourHard => "4-hard",
            Tier::Five => "5",
        }
    }

    fn shape(self) -> Shape {
        let (count, numbers, targets, chance) = match self {
            Tier::Three => (3, 1..=20, 10..=100, f64::MIN_POSITIVE..=1.0),
            Tier::Four => (4, 1..=12, 10..=60, 0.12..=1.0),
            Tier::FourHard => (4, 1..=12, 10..=100, 0.02..=0.08),
            Tier::Five => (5, 1..=12, 10..=100, 0.01..=1.0),
        };
        Shape { count, numbers, targets, chance }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The side on which a set of numbers stands, whatever their order and the tier: training never meets the numbers of a
/// test task, in no order and with no target.
fn side(numbers: &[u32]) -> Split {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    Split::of_bytes(sorted.iter().flat_map(|n| n.to_le_bytes()))
}

/// Numbers and the target to reach; each number serves at most once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    numbers: Vec<u32>,
    target: u32,
}

impl Task {
    /// A task of at least two numbers, each from 1 to 999: so there is always something to do.
    pub fn new(numbers: Vec<u32>, target: u32) -> Option<Self> {
        let sound = numbers.len() >= 2 && numbers.iter().all(|n| (1..=LARGEST).contains(n));
        sound.then_some(Self { numbers, target })
    }

    /// The numbers; generated tasks have them in ascending order.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// What to reach.
    pub fn target(&self) -> u32 {
        self.target
    }

    /// The task as a row for training and evaluation. Its id follows from its content, so the same
    /// task has the same id in every run.
    pub fn problem(&self, tier: Tier) -> Problem {
        Problem {
            id: format!("countdown-{}={}", join(&self.numbers, "-"), self.target),
            problem: self.to_string(),
            answer: self.target.to_string(),
            source: SOURCE.into(),
            level: Some(tier.name().into()),
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", join(&self.numbers, " "), self.target)
    }
}

impl FromStr for Task {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (numbers, target) = text.split_once('=')?;
            let numbers: Vec<u32> =
                numbers.split_whitespace().map(|n| n.parse().ok()).collect::<Option<_>>()?;
            Task::new(numbers, target.trim().parse().ok()?)
        };
        parse().ok_or_else(|| DataError::Task { got: text.into() })
    }
}

fn join(items: &[impl ToString], separator: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}

/// Draws until a task fits the tier and the split. Each tier's shape is met by a good part of its
/// draws (a test counts on it), so this ends.
fn draw(tier: Tier, split: Split, rng: &mut impl Rng) -> Task {
    let shape = tier.shape();
    loop {
        let mut numbers: Vec<u32> =
            (0..shape.count).map(|_| rng.random_range(shape.numbers.clone())).collect();
        numbers.sort_unstable();
        let task = Task { numbers, target: rng.random_range(shape.targets.clone()) };
        if side(&task.numbers) == split && shape.chance.contains(&chance(&task)) {
            return task;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    proptest! {
        #[test]
        fn an_order_of_the_numbers_changes_nothing(
            mut numbers in proptest::collection::vec(1..=20u32, 2..6), seed: u64,
        ) {
            let split = side(&numbers);
            numbers.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
            prop_assert_eq!(side(&numbers), split);
        }

        #[test]
        fn a_task_is_its_text(numbers in proptest::collection::vec(1..=999u32, 2..6), target: u32) {
            let task = Task::new(numbers, target).unwrap();
            prop_assert_eq!(task.to_string().parse::<Task>().unwrap(), task);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,20}") {
            let _ = text.parse::<Task>();
        }
    }

    #[test]
    fn a_tenth_of_the_number_sets_is_for_the_test() {
        let (mut test, mut all) = (0, 0);
        for a in 1..=20u32 {
            for b in a..=20 {
                for c in b..=20 {
                    all += 1;
                    test += usize::from(side(&[a, b, c]) == Split::Test);
                }
            }
        }
        assert_eq!(all, 1540);
        assert!((100..=210).contains(&test), "{test} of {all}");
    }

    #[test]
    fn a_task_that_leaves_nothing_to_do_is_no_task() {
        for text in ["", "3 = 3", "0 3 = 3", "3 4", "3 x = 4", "3 1000 = 4", "3 4 = ", "-3 4 = 1"] {
            let error = text.parse::<Task>().unwrap_err().to_string();
            assert_eq!(error, format!("expected a Countdown task like `3 7 12 = 45`, got `{text}`"));
        }
    }

    /// The shapes must be easy to meet, or drawing would take for ever; and tiers of four numbers
    /// must differ in how hard they are.
    #[test]
    fn tiers_are_what_they_say() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut mean = |tier, split| {
            let tasks: Vec<Task> = (0..100).map(|_| draw(tier, split, &mut rng)).collect();
            for task in &tasks {
                let shape = tier.shape();
                assert_eq!(task.numbers().len(), shape.count);
                assert!(task.numbers().is_sorted());
                assert!(task.numbers().iter().all(|n| shape.numbers.contains(n)));
                assert!(shape.targets.contains(&task.target()));
                assert!(chance(task) > 0.0);
                assert_eq!(side(task.numbers()), split);
            }
            tasks.iter().map(chance).sum::<f64>() / 100.0
        };
        for split in [Split::Train, Split::Test] {
            assert!((0.15..0.25).contains(&mean(Tier::Four, split)));
            assert!(mean(Tier::FourHard, split) < 0.08);
            assert!((0.15..0.35).contains(&mean(Tier::Three, split)));
            assert!(mean(Tier::Five, split) > 0.01);
        }
    }
}
