//! A sum worked out, an operation a line, with one slip on purpose if asked. It begins at any of its terms and goes round:
//!
//! ```text
//! 47*6+385+96, from its second term
//!
//! 385+96=481
//! 47*6=282
//! 481+282=763
//! ```

use std::fmt::Write;
use std::ops::Range;

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::{LARGEST, Task};

/// A sum worked out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Working {
    /// One line an operation, each with its end.
    pub text: String,
    /// What came out.
    pub result: u32,
    /// The bytes of the result that is wrong on purpose. What follows builds on it and is right in itself.
    pub slip: Option<Range<usize>>,
}

/// Works a sum out from a term drawn by chance. `slips_at` is the index of an operation whose result shall be wrong; where
/// no wrong result leaves a sum that can go on, it is right all the same.
pub fn work(task: &Task, slips_at: Option<usize>, rng: &mut impl Rng) -> Working {
    let start = rng.random_range(0..task.terms().len());
    let (behind, ahead) = task.terms().split_at(start);
    let mut pen = Pen { working: Working::default(), lines: 0, slips_at, rest: task.value(), rng };
    let mut sum = None;
    for term in ahead.iter().chain(behind) {
        pen.rest -= term.value();
        let value = match term.factor {
            Some(_) => pen.line(format_args!("{term}"), term.value(), sum.unwrap_or(0)),
            None => term.value(),
        };
        sum = Some(match sum {
            Some(sum) => pen.line(format_args!("{sum}+{value}"), sum + value, 0),
            None => value,
        });
    }
    Working { result: sum.unwrap_or_default(), ..pen.working }
}

/// What writes the lines.
struct Pen<'a, R> {
    working: Working,
    lines: usize,
    slips_at: Option<usize>,
    /// What the terms that are still to come are worth.
    rest: u32,
    rng: &'a mut R,
}

impl<R: Rng> Pen<'_, R> {
    /// Writes an operation and what comes out of it, which is to be added to `sum`; returns what is written.
    fn line(&mut self, operation: std::fmt::Arguments, exact: u32, sum: u32) -> u32 {
        let wrong = match self.slips_at {
            Some(at) if at == self.lines => {
                wrong_results(exact, LARGEST - sum - self.rest).choose(self.rng).copied()
            }
            _ => None,
        };
        self.lines += 1;
        // Writing to a string cannot fail.
        let _ = write!(self.working.text, "{operation}=");
        let (start, result) = (self.working.text.len(), wrong.unwrap_or(exact));
        let _ = write!(self.working.text, "{result}");
        if wrong.is_some() {
            self.working.slip = Some(start..self.working.text.len());
        }
        self.working.text.push('\n');
        result
    }
}

/// Results as a careless hand writes them: a single digit is off by one, with its carry. Only those from 1 to `most`, on
/// which the rest of the sum can build.
fn wrong_results(exact: u32, most: u32) -> Vec<u32> {
    let places = (0..4).map(|place| 10u32.pow(place)).take_while(|unit| *unit <= exact);
    let near = places.flat_map(|unit| [exact.checked_sub(unit), exact.checked_add(unit)]).flatten();
    near.filter(|wrong| (1..=most).contains(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::{Arithmetic, Tier};
    use super::*;
    use crate::data::Split;
    use crate::data::family::Family;

    #[test]
    fn a_sum_by_hand() {
        let task: Task = "47*6+385+96".parse().unwrap();
        let texts: BTreeSet<String> =
            (0..50).map(|seed| work(&task, None, &mut ChaCha8Rng::seed_from_u64(seed)).text).collect();
        let by_hand = [
            "385+96=481\n47*6=282\n481+282=763\n",
            "47*6=282\n282+385=667\n667+96=763\n",
            "47*6=282\n96+282=378\n378+385=763\n",
        ];
        assert_eq!(texts, by_hand.map(String::from).into());
    }

    #[test]
    fn wrong_results_by_hand() {
        assert_eq!(wrong_results(432, LARGEST), [431, 433, 422, 442, 332, 532]);
        assert_eq!(wrong_results(432, 433), [431, 433, 422, 332]);
        assert_eq!(wrong_results(1, LARGEST), [2]);
        assert_eq!(wrong_results(9999, LARGEST), [9998, 9989, 9899, 8999]);
    }

    proptest! {
        /// Read back without the code that wrote them: each line but the slip's is true, and what is added are the sum so far
        /// and the next term, by its value as it was written.
        #[test]
        fn one_line_is_wrong_and_the_rest_builds_on_it(seed: u64, tier in 0..Tier::ALL.len(), at in 0..8usize) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let task = Arithmetic::draw(Tier::ALL[tier], Split::Train, &mut rng);
            let working = work(&task, Some(at), &mut rng);
            let (mut false_lines, mut hand) = (vec![], task.to_string().split('+').map(String::from).collect::<Vec<_>>());
            for line in working.text.lines() {
                let (operation, result) = line.split_once('=').unwrap();
                let (left, op, right) = match operation.split_once('*') {
                    Some((left, right)) => (left, '*', right),
                    None => operation.split_once('+').map(|(left, right)| (left, '+', right)).unwrap(),
                };
                let of = |text: &str| text.parse::<i64>().unwrap();
                let exact = if op == '*' { of(left) * of(right) } else { of(left) + of(right) };
                if of(result) != exact {
                    false_lines.push(result);
                }
                for used in if op == '*' { vec![operation] } else { vec![left, right] } {
                    let at = hand.iter().position(|term| term == used);
                    prop_assert!(at.is_some(), "{} in {} of {}", used, working.text, task);
                    hand.remove(at.unwrap());
                }
                hand.push(result.into());
            }
            prop_assert_eq!(hand, vec![working.result.to_string()]);
            prop_assert_eq!(working.text.lines().count(), task.operations());
            let slip = working.slip.clone().map(|bytes| &working.text[bytes]);
            prop_assert_eq!(false_lines, slip.into_iter().collect::<Vec<_>>());
            prop_assert!(working.slip.is_some() || at >= task.operations() || working.result == task.value());
            prop_assert!(working.result <= LARGEST);
        }
    }
}
