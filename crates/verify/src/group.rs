//! Classes of equal answers, for votes.

use crate::compare::{self, Options, Outcome};
use crate::{extract, parse};

/// The class of each answer: answers with one number are equal. Classes are numbered by their first
/// member; what can't be read is alone.
pub fn group(answers: &[&str]) -> Vec<usize> {
    let parsed: Vec<_> = answers.iter().map(|text| parse::answer(&extract::gold(text)).ok()).collect();
    let mut class: Vec<usize> = (0..answers.len()).collect();
    for i in 0..answers.len() {
        let same = |j: &usize| match (&parsed[*j], &parsed[i]) {
            (Some(a), Some(b)) => compare::equal(a, b, &Options::default()) == Outcome::Equal,
            _ => false,
        };
        if let Some(first) = (0..i).filter(|&j| class[j] == j).find(same) {
            class[i] = first;
        }
    }
    class
}
