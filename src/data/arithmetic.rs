//! Long arithmetic: sums of many terms, some of them products, written out operation by operation.
//!
//! The second embedded family, beside Countdown. There paths explore: each tries other first moves. Here any working leads
//! to the result, and what fails is care. A sum may be begun at any term, so workings differ in all that is on the way and
//! slip at other places: a summary that compares results can tell a slip from the rest. This file says what a task is,
//! `working.rs` writes one out, with a slip if asked, and `response.rs` makes demonstrations of that.

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
pub use working::{Slip, Working, work};

/// The `source` of arithmetic rows.
pub const SOURCE: &str = "arithmetic";

/// No value on the way is larger.
const LARGEST: u32 = 9999;

/// The share of terms that are products, where there is room for one.
const PRODUCTS: f64 = 0.2;

/// Terms that are drawn are at least two digits long; so are the numbers that a digit multiplies, and not longer, since
/// a product that is beyond a model would be wrong whichever way a sum is worked out.
const TERMS: RangeInclusive<u32> = 11..=999;
const FACTORS: RangeInclusive<u32> = 11..=99;

/// How many operations a sum takes, one after the other.
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

/// A term of a sum: a number, or a number times a digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// From 1 to 999.
    pub number: u32,
    /// From 2 to 9.
    pub factor: Option<u32>,
}

impl Term {
    /// What it is worth.
    pub fn value(self) -> u32 {
        self.number * self.factor.unwrap_or(1)
    }

    fn is_sound(&self) -> bool {
        (1..=999).contains(&self.number) && self.factor.is_none_or(|factor| (2..=9).contains(&factor))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.factor {
            Some(factor) => write!(f, "{}*{factor}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

/// A sum, some of whose terms are products: `47*6+385+96`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    terms: Vec<Term>,
    value: u32,
}

impl Task {
    /// A sum of at least two terms that comes to 9999 at most.
    pub fn new(terms: Vec<Term>) -> Option<Self> {
        let sound = terms.len() > 1 && terms.iter().all(Term::is_sound);
        let add = |sum: u32, term: &Term| sum.checked_add(term.value()).filter(|sum| *sum <= LARGEST);
        let value = if sound { terms.iter().try_fold(0, add)? } else { return None };
        Some(Self { terms, value })
    }

    /// What is added up.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// How many operations it takes: a sum each after the first term, and the products.
    pub fn operations(&self) -> usize {
        self.terms.len() - 1 + self.terms.iter().filter(|term| term.factor.is_some()).count()
    }

    /// What comes out.
    pub fn value(&self) -> u32 {
        self.value
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            write!(f, "{}{term}", if i > 0 { "+" } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Task {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self> {
        let term = |text: &str| {
            let (number, factor) = match text.split_once('*') {
                Some((number, factor)) => (number, Some(factor.parse().ok()?)),
                None => (text, None),
            };
            Some(Term { number: number.parse().ok()?, factor })
        };
        let terms = text.split('+').map(term).collect::<Option<Vec<Term>>>();
        // What is not written as a task writes itself (a number with a zero in front) is none.
        let task = terms.and_then(Task::new).filter(|task| task.to_string() == text);
        task.ok_or_else(|| DataError::Sum { got: text.into() })
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

/// A sum drawn term by term.
fn draw(tier: Tier, rng: &mut impl Rng) -> Task {
    loop {
        let (mut terms, mut left) = (Vec::new(), tier.operations());
        while left > 0 || terms.len() < 2 {
            // The first term needs no sum of its own.
            let sums = usize::from(!terms.is_empty());
            let product = left > sums && rng.random_bool(PRODUCTS);
            let factor = product.then(|| rng.random_range(2..=9));
            let number = rng.random_range(if product { FACTORS } else { TERMS });
            terms.push(Term { number, factor });
            left -= sums + usize::from(product);
        }
        if let Some(task) = Task::new(terms) {
            return task;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn a_task_is_its_text_and_its_value() {
        for (text, operations, value) in
            [("47+385", 1, 432), ("47+385*6", 2, 2357), ("47*6+385*2+96", 4, 1148), ("999*9+999+9", 3, 9999)]
        {
            let task: Task = text.parse().unwrap();
            assert_eq!(
                (task.to_string().as_str(), task.operations(), task.value()),
                (text, operations, value)
            );
        }
    }

    #[test]
    fn what_is_no_sum_is_refused() {
        for text in [
            "",
            "47",
            "47+",
            "+3",
            "47*6",
            "(47+385)*6",
            "5-4",
            "1+2*10",
            "1+2*1",
            "1+2*3*4",
            "9999+1",
            "999*9+999+10",
            "4/2",
            "1+é",
            "01+2",
            "+1+2",
            "0+2",
        ] {
            let error = text.parse::<Task>().unwrap_err().to_string();
            assert!(error.starts_with("expected a sum like `47*6+385+96`"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn drawn_tasks_have_the_length_of_their_tier_and_stay_in_range(seed: u64, tier in 0..Tier::ALL.len(), test: bool) {
            let (tier, split) = (Tier::ALL[tier], if test { Split::Test } else { Split::Train });
            let task = Arithmetic::draw(tier, split, &mut ChaCha8Rng::seed_from_u64(seed));
            prop_assert_eq!(task.operations(), tier.operations());
            prop_assert_eq!(Split::of_bytes(task.to_string().bytes()), split);
            prop_assert_eq!(&task.to_string().parse::<Task>().unwrap(), &task);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,20}") {
            let _ = text.parse::<Task>();
        }
    }
}
