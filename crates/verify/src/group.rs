//! Classes of equal answers, for votes.

use std::collections::HashMap;

use crate::answer::Answer;
use crate::compare::{self, Options, Outcome};
use crate::{extract, parse};

/// The class of each answer: answers with one number are equal. Classes are numbered by their first
/// member, with which the others are compared; what can't be read is alone with its like.
pub fn group(answers: &[&str]) -> Vec<usize> {
    let mut by_text: HashMap<&str, usize> = HashMap::new();
    let mut first: Vec<(usize, Answer)> = Vec::new();
    let mut class_of = |i: usize, text: &str| {
        let Ok(answer) = parse::answer(&extract::gold(text)) else { return i };
        let same = |class: &&(usize, Answer)| {
            compare::equal(&class.1, &answer, &Options::default()) == Outcome::Equal
        };
        if let Some((class, _)) = first.iter().find(same) {
            return *class;
        }
        first.push((i, answer));
        i
    };
    // Many votes are spelled alike.
    answers
        .iter()
        .enumerate()
        .map(|(i, text)| *by_text.entry(text).or_insert_with(|| class_of(i, text)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::group;

    #[test]
    fn equal_answers_are_one_class() {
        assert_eq!(group(&["0.5", "2", "\\frac{1}{2}", "x+1", "1+x", "2", "3"]), [0, 1, 0, 3, 3, 1, 6]);
        assert_eq!(group(&["", "5", ""]), [0, 1, 0]);
        assert_eq!(group(&[]), Vec::<usize>::new());
    }
}
