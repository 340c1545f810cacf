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

use super::{LARGEST, Task, Term};

/// A slip on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slip {
    /// The result of the operation with this index is wrong.
    Result(usize),
    /// The term with this index, counted from where the working begins, is another one: a digit of it is misread, or it is
    /// one of the other terms once more.
    Term(usize),
}

/// A sum worked out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Working {
    /// One line an operation, each with its end.
    pub text: String,
    /// What came out.
    pub result: u32,
    /// The bytes of the result that is wrong on purpose, on which what follows builds; or from the wrong term to the end,
    /// since what follows does not say any more which term comes next.
    pub slip: Option<Range<usize>>,
}

/// Works a sum out from a term drawn by chance, with a slip if asked; where no slip leaves a sum that can go on, it is right
/// all the same.
pub fn work(task: &Task, slip: Option<Slip>, rng: &mut impl Rng) -> Working {
    let (terms, misread_at) = order(task, slip, rng);
    let slips_at = match slip {
        Some(Slip::Result(at)) => Some(at),
        _ => None,
    };
    let rest = terms.iter().map(|term| term.value()).sum();
    let mut pen = Pen { working: Working::default(), lines: 0, slips_at, rest, rng };
    let mut sum = None;
    for (i, term) in terms.iter().enumerate() {
        pen.rest -= term.value();
        let start = pen.working.text.len();
        let value = match term.factor {
            Some(_) => pen.line(format_args!("{term}"), term.value(), sum.unwrap_or(0)),
            None => term.value(),
        };
        // A product stands in a line of its own, another term in that of its sum, the first one in that of the second.
        let product = misread_at == Some(i) && term.factor.is_some();
        let plain = |at: usize| misread_at == Some(at) && terms[at].factor.is_none();
        pen.mark(start, product);
        sum = Some(match sum {
            Some(sum) => {
                let start = pen.working.text.len();
                let next = pen.line(format_args!("{sum}+{value}"), sum + value, 0);
                pen.mark(start, i == 1 && plain(0));
                pen.mark(start + sum.to_string().len() + 1, plain(i));
                next
            }
            None => value,
        });
    }
    let mut working = Working { result: sum.unwrap_or_default(), ..pen.working };
    if let Some(slip) = working.slip.as_mut().filter(|_| misread_at.is_some()) {
        slip.end = working.text.len();
    }
    working
}

/// The terms from one that is drawn by chance, round; and which of them is another one on purpose.
fn order(task: &Task, slip: Option<Slip>, rng: &mut impl Rng) -> (Vec<Term>, Option<usize>) {
    let start = rng.random_range(0..task.terms().len());
    let (behind, ahead) = task.terms().split_at(start);
    let mut terms = [ahead, behind].concat();
    let Some(Slip::Term(at)) = slip else { return (terms, None) };
    let misread = misread(task, terms[at], rng);
    misread.iter().for_each(|term| terms[at] = *term);
    (terms, misread.map(|_| at))
}

/// Another term as a careless eye takes it: one of the others once more, or one with another digit. None where the sum would
/// come out the same or too large.
fn misread(task: &Task, term: Term, rng: &mut impl Rng) -> Option<Term> {
    let others = task.terms().iter().copied();
    let digit = |(unit, digit): (u32, u32)| {
        let kept = term.number / (10 * unit) * (10 * unit) + term.number % unit;
        Term { number: kept + digit * unit, ..term }
    };
    let places = (0..3).map(|place| 10u32.pow(place)).take_while(|unit| *unit <= term.number);
    let digits = places.flat_map(|unit| (0..10).map(move |digit| (unit, digit))).map(digit);
    let as_long = |other: &Term| other.number.to_string().len() == term.number.to_string().len();
    let candidates: Vec<Term> = match rng.random_bool(0.5) {
        true => others.collect(),
        false => digits.filter(as_long).collect(),
    };
    let fits = |other: &Term| {
        other.is_sound()
            && other.value() != term.value()
            && task.value() - term.value() + other.value() <= LARGEST
    };
    candidates.into_iter().filter(fits).collect::<Vec<_>>().choose(rng).copied()
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

    /// Marks what is written from a byte on as wrong on purpose, if it is.
    fn mark(&mut self, start: usize, wrong: bool) {
        if wrong {
            self.working.slip = Some(start..self.working.text.len());
        }
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

    #[test]
    fn a_misread_term_by_hand() {
        let task: Task = "47*6+385+96".parse().unwrap();
        let mut seen = BTreeSet::new();
        for seed in 0..400 {
            let working = work(&task, Some(Slip::Term(1)), &mut ChaCha8Rng::seed_from_u64(seed));
            let slip = &working.text[working.slip.clone().unwrap()];
            let term = slip.split(['=', '+']).next().unwrap();
            seen.insert((working.text.lines().count(), term.to_string(), working.result));
        }
        // Begun at the product, the second term is 385: one of the others again, or with another digit.
        for (term, result) in [("47*6", 660), ("96", 474), ("185", 563), ("384", 762), ("395", 773)] {
            assert!(
                seen.iter().any(|(_, slip, got)| (slip.as_str(), *got) == (term, result)),
                "{term}: {seen:?}"
            );
        }
        // Begun at 96, it is the product.
        assert!(
            seen.contains(&(3, "57*6".into(), 823)) && seen.contains(&(2, "385".into(), 866)),
            "{seen:?}"
        );
    }

    proptest! {
        /// Only the marked term is none of the sum's, or is once too often; lines are true.
        #[test]
        fn a_misread_term_is_marked_and_lines_stay_true(seed: u64, tier in 0..Tier::ALL.len(), at in 0..2usize) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let task = Arithmetic::draw(Tier::ALL[tier], Split::Train, &mut rng);
            let working = work(&task, Some(Slip::Term(at)), &mut rng);
            for line in working.text.lines() {
                let (operation, result) = line.split_once('=').unwrap();
                let of = |text: &str| text.parse::<u32>().unwrap();
                let exact = match operation.split_once('*') {
                    Some((left, right)) => of(left) * of(right),
                    None => operation.split('+').map(of).sum(),
                };
                prop_assert_eq!(of(result), exact);
            }
            let Some(slip) = working.slip.clone() else { return Ok(()) };
            let value = |text: &str| text.split('*').map(|n| n.parse::<u32>().unwrap()).product::<u32>();
            // Put right, the sum comes out: some term makes up the difference.
            prop_assert_eq!(slip.end, working.text.len());
            let wrong = value(working.text[slip].split(['=', '+']).next().unwrap());
            prop_assert!(task.terms().iter().any(|term| working.result - wrong + term.value() == task.value()));
            prop_assert!(working.result != task.value() && working.result <= LARGEST);
        }

        /// Read back without the code that wrote them: each line but the slip's is true, and what is added are the sum so far
        /// and the next term, by its value as it was written.
        #[test]
        fn one_line_is_wrong_and_the_rest_builds_on_it(seed: u64, tier in 0..Tier::ALL.len(), at in 0..8usize) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let task = Arithmetic::draw(Tier::ALL[tier], Split::Train, &mut rng);
            let working = work(&task, Some(Slip::Result(at)), &mut rng);
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
