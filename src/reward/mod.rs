//! From what a response is to its score. No tensors and no traces: a reward sees [`Evidence`].
//!
//! A reward is a base and what is added to it. With c = the answer is right, n = blocks opened, f = all tags well
//! formed, and bonus b:
//!
//! | [`Base`]              | formula                                                        |
//! |-----------------------|----------------------------------------------------------------|
//! | `accuracy`            | c -> +1, else -1                                               |
//! | `accuracy_x_parallel` | c and n >= 1 and f -> +1, else -1                              |
//! | `tiered`              | c and n = 0 -> +1; c and n >= 1 and f -> b; else -1            |
//! | `alternating`         | per window of W steps: first `accuracy`, the last ones `tiered` |
//! | `external`            | the score that an [external command](External) gives           |
//!
//! The first four are those of "Parallel-R1: Towards Parallel Thinking via Reinforcement Learning",
//! <https://arxiv.org/abs/2509.07980>; `accuracy_x_parallel` is its stage on easy problems (RL 1),
//! `alternating` its S2. `tiered` alone is the component that S2 alternates with.
//!
//! A [`Bonus`] adds `weight x min(measure, cap) x exp(-step / decay)`, by default for right answers only:
//!
//! | [`Measure`]    | from 0 to 1                                                             |
//! |----------------|-------------------------------------------------------------------------|
//! | `format`       | n >= 1 and f                                                            |
//! | `likeness`     | B, mean pairwise BLEU of the paths; a negative weight asks for diversity |
//! | `first_word`   | pairs of paths that begin differently                                   |
//! | `efficiency`   | 1 - critical path / tokens                                              |
//! | `acceleration` | the same, capped at 0.2                                                 |
//! | `verification` | a later path or summary derives the answer again                        |
//! | `brevity`      | nothing said after the answer is settled                                |
//! | `clarity`      | steps separated, summaries that name what paths found, no repetition    |
//!
//! With a `wrong_weight`, wrong answers earn a bonus too. Published rewards do so (accuracy + 0.5 `format`; `efficiency`
//! with 0.4 and 0.1; accuracy +- 0.3 `likeness`); a policy can climb them without being right, so a recipe that has one
//! is warned about.
//!
//! The reward is named in the recipe, not in the data rows, so the same rows serve every stage.

mod accuracy;
mod bleu;
mod bonus;
mod brevity;
mod clarity;
mod diversity;
mod efficiency;
mod external;
mod parallel;
mod places;
mod schedule;
mod text;
mod verification;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::data::Problem;

pub use accuracy::{Judged, accuracy, answer_keys, judge};
pub use bleu::bleu;
pub use bonus::{Bonus, Measure};
pub use brevity::brevity;
pub use clarity::clarity;
pub use diversity::{first_word, likeness};
pub use efficiency::efficiency;
pub use external::{External, ExternalConfig, ExternalError, ExternalScore};
pub use parallel::{accuracy_x_parallel, some_path_right, tiered};
pub use schedule::{Base, Phase, RewardConfig, RewardError, RewardSchedule};
pub(crate) use text::{numbers, words};
pub use verification::verification;

/// A response as rewards see it.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What was asked.
    pub problem: &'a Problem,
    /// The response's text, tags included.
    pub response: &'a str,
    /// Whether it is right, and its shape.
    pub judged: Judged,
    /// Tokens of the response.
    pub total_tokens: usize,
    /// Tokens on its longest chain.
    pub critical_path_tokens: usize,
    /// What the external command says it is worth, where the recipe has one.
    pub score: Option<f32>,
}

impl Evidence<'_> {
    /// The ways in which the answer may be written: as the response states it, and, if that is right, as the gold has
    /// it.
    fn answers(&self) -> Vec<&str> {
        let gold = Some(self.problem.answer.trim()).filter(|_| self.judged.correct == Some(true));
        let stated = parallel_r1_verify::extract(self.response).map(str::trim);
        stated.into_iter().chain(gold).filter(|answer| !answer.is_empty()).collect()
    }
}

/// What a response earned, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The number that training maximises; 0 where `correct` is `None` (such a row is skipped).
    pub reward: f32,
    /// What the reward is made of, by name, for the metrics.
    pub parts: BTreeMap<&'static str, f32>,
    /// Whether the answer is right; `None` if the problem's gold answer can't be read.
    pub correct: Option<bool>,
    /// How many parallel blocks the response opened.
    pub blocks: usize,
    /// Whether its tags follow the grammar. A response without tags does.
    pub well_formed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn problem(text: &str, answer: &str) -> Problem {
        Problem {
            id: "test-0".into(),
            problem: text.into(),
            answer: answer.into(),
            source: "test".into(),
            level: None,
        }
    }

    /// A judged response of 100 tokens in one stream.
    pub(super) fn evidence<'a>(problem: &'a Problem, response: &'a str) -> Evidence<'a> {
        let judged = judge(problem, response);
        Evidence { problem, response, judged, total_tokens: 100, critical_path_tokens: 100, score: None }
    }

    #[test]
    fn the_gold_form_of_an_answer_counts_only_where_it_is_right() {
        let problem = problem("Half of one?", "0.5");
        assert_eq!(evidence(&problem, "Answer: 1/2").answers(), ["1/2", "0.5"]);
        assert_eq!(evidence(&problem, "Answer: 2").answers(), ["2"]);
        assert!(evidence(&problem, "who knows").answers().is_empty());
    }
}
