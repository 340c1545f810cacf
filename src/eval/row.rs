//! One problem's part of an evaluation, kept so that two evaluations can be compared problem by problem.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use super::consolidate::Answered;
use super::majority::expected_maj_at;
use super::stats::{self, mean};
use crate::data::Problem;
use crate::reward::answer_keys;

/// What became of one problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProblemResult {
    /// The problem.
    pub id: String,
    /// Of its text and its gold answer: equal for equal problems.
    pub fingerprint: String,
    /// How hard it is, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Responses.
    pub samples: usize,
    /// Right ones among them.
    pub right: usize,
    /// Whether their most frequent answer is right: 0 or 1, between for a draw.
    pub majority: f64,
    /// Tokens of a response, on average.
    pub total_tokens: f64,
    /// Tokens on its longest chain, on average.
    pub critical_path_tokens: f64,
}

impl ProblemResult {
    /// mean@k.
    pub fn mean_at_k(&self) -> f64 {
        self.right as f64 / self.samples.max(1) as f64
    }

    /// pass@k, for a k that is at most the number of samples.
    pub fn pass_at(&self, k: usize) -> Option<f64> {
        stats::pass_at_k(self.samples, self.right, k)
    }
}

/// A problem's result, and maj@k for some k. `None` if its gold answer can't be read, or without responses.
pub(super) fn judged(
    problem: &Problem,
    answers: &[Answered],
) -> Option<(ProblemResult, BTreeMap<usize, f64>)> {
    let correct = answers.iter().map(|answer| answer.correct).collect::<Option<Vec<bool>>>()?;
    let texts: Vec<&str> = answers.iter().map(|answer| answer.text).collect();
    let keys = answer_keys(problem, &texts);
    let majorities: BTreeMap<usize, f64> =
        ks(correct.len()).filter_map(|k| Some((k, expected_maj_at(&keys, &correct, k, 0)?))).collect();
    let over =
        |tokens: fn(&Answered) -> usize| mean(&answers.iter().map(|a| tokens(a) as f64).collect::<Vec<_>>());
    let result = ProblemResult {
        id: problem.id.clone(),
        fingerprint: fingerprint(problem),
        level: problem.level.clone(),
        samples: correct.len(),
        right: correct.iter().filter(|right| **right).count(),
        majority: majorities.last_key_value().map(|(_, &value)| value)?,
        total_tokens: over(|answer| answer.total_tokens)?,
        critical_path_tokens: over(|answer| answer.critical_path_tokens)?,
    };
    Some((result, majorities))
}

/// The k at which pass@k and maj@k are reported for n samples: the powers of two below n, and n.
pub(super) fn ks(n: usize) -> impl Iterator<Item = usize> {
    let powers = std::iter::successors(Some(1usize), |k| k.checked_mul(2));
    powers.take_while(move |&k| k < n).chain((n > 0).then_some(n))
}

/// 16 hexadecimal digits.
fn fingerprint(problem: &Problem) -> String {
    let text = format!("{}\0{}", problem.problem, problem.answer);
    format!("{:016x}", XxHash64::oneshot(0, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem() -> Problem {
        let text = |text: &str| text.to_owned();
        Problem { id: text("a"), problem: text("1 + 1?"), answer: text("2"), source: text("s"), level: None }
    }

    fn answered(text: &str, correct: Option<bool>) -> Answered<'_> {
        Answered { text, correct, total_tokens: text.len(), critical_path_tokens: 1 }
    }

    #[test]
    fn a_problem_by_hand() {
        let answers = [
            answered("Answer: 2", Some(true)),
            answered("Answer: 3", Some(false)),
            answered("Answer: 2.0", Some(true)),
        ];
        let (result, majorities) = judged(&problem(), &answers).unwrap();
        assert_eq!((result.samples, result.right, result.majority), (3, 2, 1.0));
        assert_eq!((result.total_tokens, result.critical_path_tokens), (29.0 / 3.0, 1.0));
        assert_eq!(result.pass_at(2), Some(1.0));
        // Two samples: {2, 3} and {3, 2} are draws, {2, 2} is not.
        assert_eq!(majorities, [(1, 2.0 / 3.0), (2, 2.0 / 3.0), (3, 1.0)].into());
    }

    #[test]
    fn without_a_readable_gold_there_is_no_result() {
        assert!(judged(&problem(), &[answered("Answer: 2", None)]).is_none());
        assert!(judged(&problem(), &[]).is_none());
    }

    /// On Countdown all right answers have the same value; what votes together is the same expression.
    #[test]
    fn countdown_votes_by_expression() {
        let task = Problem {
            problem: "3 5 12 = 45".into(),
            answer: "45".into(),
            source: crate::data::countdown::SOURCE.into(),
            ..problem()
        };
        let wrong = "Answer: 12+5=17,17*3=51";
        let answers = [
            answered("Answer: 12-3=9,9*5=45", Some(true)),
            answered("Answer: 5*(12-3)", Some(true)),
            answered(wrong, Some(false)),
            answered(wrong, Some(false)),
            answered(wrong, Some(false)),
        ];
        // Three against two of one expression. Grouped by value, all five would be of 45 and 51 alike.
        assert_eq!(judged(&task, &answers).unwrap().0.majority, 0.0);
        let ahead = [answers[0], answers[1], answers[2]];
        assert_eq!(judged(&task, &ahead).unwrap().0.majority, 1.0);
    }

    #[test]
    fn fingerprints_tell_problems_apart() {
        let other = Problem { answer: "3".into(), ..problem() };
        assert_ne!(fingerprint(&problem()), fingerprint(&other));
        // Stored in result files, so it must never move.
        assert_eq!(fingerprint(&problem()), "67680de14831ae33");
    }

    #[test]
    fn powers_of_two_and_all() {
        assert_eq!(ks(6).collect::<Vec<_>>(), [1, 2, 4, 6]);
        assert_eq!(ks(4).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!((ks(1).collect::<Vec<_>>(), ks(0).count()), (vec![1], 0));
    }
}
