//! From what a response is to its score. No tensors and no traces: a reward sees a [`Judged`] response.
//!
//! With c = the answer is right, n = blocks opened, f = all tags well formed, and bonus b:
//!
//! | [`RewardConfig`]      | formula                                                        |
//! |-----------------------|----------------------------------------------------------------|
//! | `accuracy`            | c -> +1, else -1                                               |
//! | `accuracy_x_parallel` | c and n >= 1 and f -> +1, else -1                              |
//! | `tiered`              | c and n = 0 -> +1; c and n >= 1 and f -> b; else -1            |
//! | `alternating`         | per window of W steps: first `accuracy`, the last ones `tiered` |
//!
//! They are those of "Parallel-R1: Towards Parallel Thinking via Reinforcement Learning",
//! <https://arxiv.org/abs/2509.07980>; `accuracy_x_parallel` is its stage on easy problems (RL 1),
//! `alternating` its S2. `tiered` alone is the component that S2 alternates with.
//!
//! The reward is named in the recipe, not in the data rows, so the same rows serve every stage.

mod accuracy;
mod bleu;
mod parallel;
mod schedule;

use std::collections::BTreeMap;

use serde::Serialize;

pub use accuracy::{Judged, accuracy, answer_keys, judge};
pub use bleu::bleu;
pub(crate) use bleu::words;
pub use parallel::{accuracy_x_parallel, some_path_right, tiered};
pub use schedule::{RewardConfig, RewardError};

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
