//! Long arithmetic: chains of sums, differences and products, written out operation by operation.
//!
//! The second embedded family, beside Countdown. There paths explore: each tries other first moves. Here the way is the
//! same for all, and what fails is care. Paths that don't see each other slip independently, so a summary that compares
//! their results can tell a slip from the rest, while a second try in one stream sees the first and may copy it. This
//! file says what a task is, `working.rs` writes one out, with a slip if asked, and `response.rs` makes demonstrations of
//! that.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::family::{Family, Source, Split};
use super::{DataError, Problem, Result};

mod response;
mod working;

pub use response::{IndependentOptions, RepeatedOptions, independent, repeated};
pub use working::{Working, work};

/// The `source` of arithmetic rows.
pub const SOURCE: &str = "arithmetic";

/// No value on the way is larger.
const LARGEST: u32 = 9999;

/// How long the chains are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Tier {
    /// Two operations.
    #[serde(rename = "chain-2")]
    Two,
    /// Three operations.
    #[serde(rename = "chain-3")]
    Three,
    /// Four operations.
    #[serde(rename = "chain-4")]
    Four,
    /// Five operations.
    #[serde(rename = "chain-5")]
    Five,
    /// Six operations.
    #[serde(rename = "chain-6")]
    Six,
    /// Seven operations.
    #[serde(rename = "chain-7")]
    Seven,
}

impl Tier {
    /// All tiers, from easy to hard.
    pub const ALL: [Tier; 6] = [Tier::Two, Tier::Three, Tier::Four, Tier::Five, Tier::Six, Tier::Seven];

    /// The name, as recipes and rows have it.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Two => "chain-2",
            Tier::Three => "chain-3",
            Tier::Four => "chain-4",
            Tier::Five => "chain-5",
            Tier::Six => "chain-6",
            Tier::Seven => "chain-7",
        }
    }

    fn operations(self) -> usize {
        match self {
            Tier::Two => 2,
            Tier::Three => 3,
            Tier::Four => 4,
            Tier::Five => 5,
            Tier::Six => 6,
            Tier::Seven => 7,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One operation of a chain and its second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// One of `+ - *`.
    pub op: char,
    /// From 1 to 999; of a product from 2 to 9.
    pub operand: u32,
}

impl Operation {
    /// What it makes of a value; `None` where that leaves the range 1 to 9999.
    pub fn apply(self, value: u32) -> Option<u32> {
        let result = match self.op {
            '+' => value.checked_add(self.operand),
            '-' => value.checked_sub(self.operand),
            _ => value.checked_mul(self.operand),
        };
        result.filter(|result| (1..=LARGEST).contains(result))
    }
}

/// A first value and what is done to it, one operation after the other: `((47+385)*6)-96`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    first: u32,
    operations: Vec<Operation>,
    value: u32,
}

impl Task {
    /// A chain of at least one operation whose values all lie from 1 to 9999.
    pub fn new(first: u32, operations: Vec<Operation>) -> Option<Self> {
        let sound = |o: &Operation| match o.op {
            '+' | '-' => (1..=999).contains(&o.operand),
            '*' => (2..=9).contains(&o.operand),
            _ => false,
        };
        let fits = (1..=LARGEST).contains(&first) && !operations.is_empty() && operations.iter().all(sound);
        let value = operations.iter().try_fold(first, |value, operation| operation.apply(value))?;
        fits.then_some(Self { first, operations, value })
    }

    /// The first value.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// What is done to it.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// What comes out.
    pub fn value(&self) -> u32 {
        self.value
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let depth = self.operations.len() - 1;
        write!(f, "{}{}", "(".repeat(depth), self.first)?;
        for (i, Operation { op, operand }) in self.operations.iter().enumerate() {
            write!(f, "{op}{operand}{}", if i < depth { ")" } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Task {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let flat: String = text.chars().filter(|c| !matches!(c, '(' | ')')).collect();
            let mut rest = flat.as_str();
            let number = |rest: &mut &str| {
                let (digits, behind) =
                    rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
                *rest = behind;
                digits.parse().ok()
            };
            let first = number(&mut rest)?;
            let mut operations = Vec::new();
            while let Some(op) = rest.chars().next() {
                rest = &rest[op.len_utf8()..];
                operations.push(Operation { op, operand: number(&mut rest)? });
            }
            // What is not written as a task writes itself (brackets elsewhere) would mean something else.
            Task::new(first, operations).filter(|task| task.to_string() == text)
        };
        parse().ok_or_else(|| DataError::Chain { got: text.into() })
    }
}

/// The family, for [`Source`].
#[derive(Clone, Debug, PartialEq)]
pub struct Arithmetic;

/// The tiers of long arithmetic that a stage draws from.
pub type ArithmeticSource = Source<Arithmetic>;

impl Family for Arithmetic {
    type Tier = Tier;
    type Task = Task;

    const NAME: &'static str = "Arithmetic";
    const TIERS: &'static [Tier] = &Tier::ALL;

    fn draw(tier: Tier, split: Split, rng: &mut impl Rng) -> Task {
        loop {
            let task = draw(tier, rng);
            if Split::of_bytes(task.to_string().bytes()) == split {
                return task;
            }
        }
    }

    fn problem(task: &Task, tier: Tier) -> Problem {
        Problem {
            id: format!("arithmetic-{task}"),
            problem: task.to_string(),
            answer: task.value.to_string(),
            source: SOURCE.into(),
            level: Some(tier.name().into()),
        }
    }
}

/// A chain drawn operation by operation; what would leave the range is drawn again.
fn draw(tier: Tier, rng: &mut impl Rng) -> Task {
    const OPERANDS: RangeInclusive<u32> = 11..=999;
    let first = rng.random_range(OPERANDS);
    let (mut value, mut operations) = (first, Vec::new());
    while operations.len() < tier.operations() {
        let operation = match rng.random_range(0..5) {
            0 | 1 => Operation { op: '+', operand: rng.random_range(OPERANDS) },
            2 | 3 => Operation { op: '-', operand: rng.random_range(OPERANDS) },
            _ => Operation { op: '*', operand: rng.random_range(2..=9) },
        };
        // A sum fits wherever a product does not, so this ends.
        if let Some(next) = operation.apply(value) {
            value = next;
            operations.push(operation);
        }
    }
    Task { first, operations, value }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn a_task_is_its_text_and_its_value() {
        for (text, value) in [("47+385", 432), ("(47+385)*6", 2592), ("((47+385)*6)-96", 2496)] {
            let task: Task = text.parse().unwrap();
            assert_eq!((task.to_string().as_str(), task.value()), (text, value));
        }
    }

    #[test]
    fn what_is_no_chain_is_refused() {
        for text in [
            "",
            "47",
            "47+",
            "+3",
            "47+385*6",
            "(47+385*6)",
            "5-5",
            "5-6",
            "2*10",
            "2*1",
            "9999+1",
            "4/2",
            "1+é",
        ] {
            let error = text.parse::<Task>().unwrap_err().to_string();
            assert!(error.starts_with("expected a chain like `((47+385)*6)-96`"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn drawn_tasks_have_the_length_of_their_tier_and_stay_in_range(seed: u64, tier in 0..Tier::ALL.len(), test: bool) {
            let (tier, split) = (Tier::ALL[tier], if test { Split::Test } else { Split::Train });
            let task = Arithmetic::draw(tier, split, &mut ChaCha8Rng::seed_from_u64(seed));
            prop_assert_eq!(task.operations().len(), tier.operations());
            prop_assert_eq!(Split::of_bytes(task.to_string().bytes()), split);
            prop_assert_eq!(&task.to_string().parse::<Task>().unwrap(), &task);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,20}") {
            let _ = text.parse::<Task>();
        }
    }
}
