//! One random attempt at a Countdown task: sound arithmetic whose last operation aims at the target.
//!
//! Attempts are honest on purpose. A model that only ever sees searches that succeed learns to
//! invent arithmetic that hits the target; one that sees sound attempts, right and wrong, learns to
//! compute and to look.

use std::fmt;

use rand::seq::{IndexedRandom, index};
use rand::{Rng, RngExt};

use super::{LARGEST, Task};

/// How often an attempt with three values left looks for an operation that hits the target at once
/// and leaves the third unused. With more left it goes on: a single product that happens to hit
/// would make a task of four numbers a task of two.
const EARLY: f64 = 0.25;

/// One operation with its result, the larger operand first: each operation has one way to be
/// written, so a model needn't guess between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// The larger operand.
    pub left: u32,
    /// One of `+ - * /`.
    pub op: char,
    /// The smaller operand.
    pub right: u32,
    /// What it gives: 1 to 999.
    pub result: u32,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}={}", self.left, self.op, self.right, self.result)
    }
}

/// The operations allowed on two numbers; there is always one.
fn steps(a: u32, b: u32) -> impl Iterator<Item = Step> {
    let (left, right) = (a.max(b), a.min(b));
    let quotient = if right > 1 && left.is_multiple_of(right) { left / right } else { 0 };
    [('+', left + right), ('-', left - right), ('*', left * right), ('/', quotient)]
        .into_iter()
        .filter(|(_, result)| (1..=LARGEST).contains(result))
        .map(move |(op, result)| Step { left, op, right, result })
}

fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |j| (0..j).map(move |i| (i, j)))
}

/// The operations allowed on any two of the values.
fn all_steps(values: &[u32]) -> impl Iterator<Item = Step> {
    pairs(values.len()).flat_map(|(i, j)| steps(values[i], values[j]))
}

/// The values once those at `i < j` have become `result`.
fn after(values: &[u32], (i, j): (usize, usize), result: u32) -> Vec<u32> {
    let mut next = values.to_vec();
    next.swap_remove(j);
    next[i] = result;
    next
}

/// A line of a search: steps, and whether the last one gives the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The operations in order.
    pub steps: Vec<Step>,
    /// Whether it reaches the target.
    pub right: bool,
}

impl Attempt {
    /// The steps without the mark, as results and answers restate them: `12+3=15;15*3=45`. Attempts part their steps by
    /// commas, so a restated line is no attempt that lacks its mark.
    pub fn restated(&self) -> String {
        super::join(&self.steps, ";")
    }

    /// The steps in a fixed order: equal for attempts that do the same in another order.
    pub fn canonical(&self) -> Vec<Step> {
        let mut steps = self.steps.clone();
        steps.sort_unstable();
        steps
    }
}

impl fmt::Display for Attempt {
    /// The steps and their mark: `12+3=15,15*3=45 ok`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", super::join(&self.steps, ","), if self.right { "ok" } else { "no" })
    }
}

/// One attempt: random operations on random numbers, then the operation on the last two that comes
/// nearest to the target. Now and then it stops one operation early, if that hits the target.
pub fn attempt(task: &Task, rng: &mut impl Rng) -> Attempt {
    let mut values = task.numbers.clone();
    let mut done = Vec::new();
    while values.len() > 2 {
        if values.len() == 3
            && rng.random_bool(EARLY)
            && nearest(&values, task.target, rng).result == task.target
        {
            break;
        }
        let drawn = index::sample_array::<_, 2>(rng, values.len());
        let [i, j] = drawn.expect("there are more than two values");
        let pair = (i.min(j), i.max(j));
        let step = choose(&steps(values[i], values[j]).collect::<Vec<_>>(), rng);
        values = after(&values, pair, step.result);
        done.push(step);
    }
    let last = nearest(&values, task.target, rng);
    done.push(last);
    Attempt { steps: done, right: last.result == task.target }
}

/// The operation whose result is nearest to the target, ties by chance.
fn nearest(values: &[u32], target: u32, rng: &mut impl Rng) -> Step {
    let steps: Vec<Step> = all_steps(values).collect();
    let distance = |step: &Step| step.result.abs_diff(target);
    let least = steps.iter().map(distance).min();
    let best: Vec<Step> = steps.into_iter().filter(|s| Some(distance(s)) == least).collect();
    choose(&best, rng)
}

fn choose(steps: &[Step], rng: &mut impl Rng) -> Step {
    *steps.choose(rng).expect("two numbers always have an allowed operation")
}

/// The probability that one [`attempt`] is right, exactly: the mean over all its choices. Zero
/// means that no attempt can solve the task. Takes time exponential in the numbers: for five it is
/// under a millisecond, for seven it would be minutes.
pub fn chance(task: &Task) -> f64 {
    chance_from(&task.numbers, task.target)
}

fn chance_from(values: &[u32], target: u32) -> f64 {
    let hit = values.len() <= 3 && all_steps(values).any(|step| step.result == target);
    if values.len() <= 2 {
        return f64::from(u8::from(hit));
    }
    let later = mean(pairs(values.len()).map(|(i, j)| {
        mean(steps(values[i], values[j]).map(|step| chance_from(&after(values, (i, j), step.result), target)))
    }));
    if hit { EARLY + (1.0 - EARLY) * later } else { later }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    sum / n
}

/// The share of `n` independent attempts that are right: what [`chance`] is the limit of.
pub fn success_rate(task: &Task, rng: &mut impl Rng, n: usize) -> f64 {
    mean((0..n).map(|_| f64::from(u8::from(attempt(task, rng).right))))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::oracle::judge;
    use super::super::{Tier, problems};
    use super::*;
    use crate::data::Split;

    fn tasks(tier: Tier, n: usize) -> Vec<Task> {
        let rows = problems(tier, Split::Train, 5, n).unwrap();
        rows.iter().map(|row| row.problem.parse().unwrap()).collect()
    }

    #[test]
    fn attempts_are_sound_and_marked_honestly() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for tier in Tier::ALL {
            for task in tasks(tier, 30) {
                for _ in 0..30 {
                    let found = attempt(&task, &mut rng);
                    assert_eq!(judge(&found.to_string(), &task), found.right);
                    let unused = task.numbers().len() - 1 - found.steps.len();
                    assert!(unused == 0 || unused == 1 && found.right, "{found} of {task}");
                }
            }
        }
    }

    /// A task for which everything can be counted by hand.
    #[test]
    fn the_chance_counts_all_choices() {
        let chance = |text: &str| chance(&text.parse().unwrap());
        assert_eq!(chance("2 5 = 10"), 1.0);
        assert_eq!(chance("2 5 = 11"), 0.0);
        // Whichever two meet first, their product leads on: one operation of three.
        assert!((chance("2 5 7 = 70") - 1.0 / 3.0).abs() < 1e-12);
        // 9-5 hits at once. Without that look, each pair has one operation of three that leads on:
        // 9-5=4 and 4*1, 9*1=9 and 9-5, 5*1=5 and 9-5.
        assert!((chance("1 5 9 = 4") - (EARLY + (1.0 - EARLY) / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn the_success_rate_tends_to_the_chance() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for tier in Tier::ALL {
            for task in tasks(tier, 3) {
                let (exact, n) = (chance(&task), 4000);
                let spread = (exact * (1.0 - exact) / f64::from(n)).sqrt();
                let rate = success_rate(&task, &mut rng, n as usize);
                assert!((rate - exact).abs() < 5.0 * spread, "{task}: {rate} against {exact}");
            }
        }
    }

    #[test]
    fn the_same_steps_in_another_order_are_the_same_attempt() {
        let step = |left, op, right, result| Step { left, op, right, result };
        let steps = vec![step(9, '+', 1, 10), step(8, '*', 3, 24), step(24, '-', 10, 14)];
        let mut swapped = steps.clone();
        swapped.swap(0, 1);
        let [a, b] = [steps, swapped].map(|steps| Attempt { steps, right: false });
        assert_eq!(a.canonical(), b.canonical());
        assert_eq!(b.to_string(), "8*3=24,9+1=10,24-10=14 no");
    }
}
