//! A chain written out, an operation a line, with one slip on purpose if asked.
//!
//! ```text
//! 47+385=432
//! 432*6=2592
//! 2592-96=2496
//! ```

use std::fmt::Write;
use std::ops::Range;

use rand::Rng;
use rand::seq::IndexedRandom;

use super::{Operation, Task};

/// A chain written out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Working {
    /// One line an operation, each with its end.
    pub text: String,
    /// What came out.
    pub result: u32,
    /// The bytes of the result that is wrong on purpose. What follows builds on it and is right in itself.
    pub slip: Option<Range<usize>>,
}

/// Writes a chain out. `slips_at` is the index of an operation whose result shall be wrong; where no wrong result leaves
/// a chain that can go on, it is right all the same.
pub fn work(task: &Task, slips_at: Option<usize>, rng: &mut impl Rng) -> Working {
    let mut working = Working { text: String::new(), result: task.first(), slip: None };
    for (i, &operation) in task.operations().iter().enumerate() {
        let exact =
            operation.apply(working.result).expect("a chain stays in range, and slips leave one that does");
        let wrong = match slips_at {
            Some(at) if at == i => wrong_results(exact, &task.operations()[i + 1..]).choose(rng).copied(),
            _ => None,
        };
        // Writing to a string cannot fail.
        let _ = write!(working.text, "{}{}{}=", working.result, operation.op, operation.operand);
        let start = working.text.len();
        working.result = wrong.unwrap_or(exact);
        let _ = write!(working.text, "{}", working.result);
        working.slip = wrong.map(|_| start..working.text.len()).or(working.slip.take());
        working.text.push('\n');
    }
    working
}

/// Results as a careless hand writes them: a single digit is off by one, with its carry. Only those on which the rest of
/// the chain can build.
fn wrong_results(exact: u32, rest: &[Operation]) -> Vec<u32> {
    let places = (0..4).map(|place| 10u32.pow(place)).take_while(|unit| *unit <= exact);
    let near = places.flat_map(|unit| [exact.checked_sub(unit), exact.checked_add(unit)]).flatten();
    let goes_on = |&wrong: &u32| {
        let sound = Operation { op: '+', operand: 0 }.apply(wrong);
        rest.iter().try_fold(sound?, |value, operation| operation.apply(value))
    };
    near.filter(|wrong| goes_on(wrong).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::{Arithmetic, Tier};
    use super::*;
    use crate::data::Split;
    use crate::data::family::Family;

    #[test]
    fn a_chain_by_hand() {
        let task: Task = "((47+385)*6)-96".parse().unwrap();
        let working = work(&task, None, &mut ChaCha8Rng::seed_from_u64(1));
        assert_eq!(working.text, "47+385=432\n432*6=2592\n2592-96=2496\n");
        assert_eq!((working.result, working.slip), (2496, None));
    }

    #[test]
    fn wrong_results_by_hand() {
        assert_eq!(wrong_results(432, &[]), [431, 433, 422, 442, 332, 532]);
        let less = Operation { op: '-', operand: 430 };
        assert_eq!(wrong_results(432, &[less]), [431, 433, 442, 532]);
        assert_eq!(wrong_results(1, &[]), [2]);
        assert_eq!(wrong_results(9999, &[]), [9998, 9989, 9899, 8999]);
    }

    proptest! {
        /// Read back without the code that wrote them: each line but the slip's is true and takes up the one before.
        #[test]
        fn one_line_is_wrong_and_the_rest_builds_on_it(seed: u64, tier in 0..Tier::ALL.len(), at in 0..7usize) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let task = Arithmetic::draw(Tier::ALL[tier], Split::Train, &mut rng);
            let working = work(&task, Some(at), &mut rng);
            let (mut before, mut false_lines) = (i64::from(task.first()), vec![]);
            for (line, operation) in working.text.lines().zip(task.operations()) {
                let (term, result) = line.split_once('=').unwrap();
                prop_assert_eq!(term, format!("{before}{}{}", operation.op, operation.operand));
                let operand = i64::from(operation.operand);
                let exact = match operation.op { '+' => before + operand, '-' => before - operand, _ => before * operand };
                before = result.parse().unwrap();
                if before != exact {
                    false_lines.push(result);
                }
            }
            prop_assert_eq!(before, i64::from(working.result));
            let slip = working.slip.clone().map(|bytes| &working.text[bytes]);
            prop_assert_eq!(false_lines, slip.into_iter().collect::<Vec<_>>());
            prop_assert!(working.slip.is_some() || at >= task.operations().len() || working.result == task.value());
        }
    }
}
