//! What evaluation and training both report of a set of rollouts.

use serde::{Deserialize, Serialize};

use super::rollout::Rollout;

/// Means over rollouts. Shares are from 0 to 1, counts are a response; `None` where nothing of the kind was there.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Means {
    /// Share of right answers, among those whose gold answer can be read.
    #[serde(skip)]
    pub accuracy: f64,
    /// Share of responses with at least one well-formed block.
    pub parallel_ratio: f64,
    /// Share of responses that follow the grammar of the tags.
    pub well_formed: f64,
    /// Share of responses cut by the budget.
    pub truncated: f64,
    /// Paths that were cut by their share of the budget, a response.
    pub cut_paths: f64,
    /// Tokens of a response.
    pub total_tokens: f64,
    /// Tokens on its longest chain, which is what latency follows.
    pub critical_path_tokens: f64,
    /// Share of the tokens that were forced, not sampled.
    pub forced: f64,
    /// Blocks of a response.
    pub blocks: f64,
    /// Paths of a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths_per_block: Option<f64>,
    /// Where the blocks of a response start, from 0 (its beginning) to 1 (its end).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_position: Option<f64>,
    /// How different the paths of a block are: 1 - BLEU, over all pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_diversity: Option<f64>,
    /// Share of these pairs whose first words differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_words_differ: Option<f64>,
    /// Of the responses with a block: share in which some path is right, where the task lets it be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub some_path_right: Option<f64>,
    /// Of those: share whose answer is right too. Exploration fails in the first, consolidation in the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_right_given_path: Option<f64>,
}

impl Means {
    /// The means of some rollouts; zero of none.
    pub fn of<'a>(rollouts: impl Iterator<Item = &'a Rollout> + Clone) -> Self {
        let share = |f: fn(&Rollout) -> f64| mean(rollouts.clone().map(f)).unwrap_or(0.0);
        let known = |f: fn(&Rollout) -> Option<f64>| mean(rollouts.clone().filter_map(f));
        let right = |r: &Rollout| Some(f64::from(r.judged.correct?));
        let found = rollouts.clone().filter(|r| r.path_right() == Some(true));
        let forced: usize = rollouts.clone().map(|r| r.trace.forced_tokens()).sum();
        let tokens: usize = rollouts.clone().map(|r| r.trace.response_tokens()).sum();
        let blocks: usize = rollouts.clone().map(|r| r.shape.blocks).sum();
        let paths: usize = rollouts.clone().map(|r| r.shape.paths).sum();
        Self {
            accuracy: mean(rollouts.clone().filter_map(right)).unwrap_or(0.0),
            parallel_ratio: share(|r| f64::from(r.judged.blocks > 0 && r.judged.well_formed)),
            well_formed: share(|r| f64::from(r.judged.well_formed)),
            truncated: share(|r| f64::from(r.trace.truncated())),
            cut_paths: share(|r| r.trace.cut_paths() as f64),
            total_tokens: share(|r| r.trace.response_tokens() as f64),
            critical_path_tokens: share(|r| r.trace.critical_path() as f64),
            forced: forced as f64 / tokens.max(1) as f64,
            blocks: share(|r| r.shape.blocks as f64),
            paths_per_block: (blocks > 0).then(|| paths as f64 / blocks as f64),
            block_position: known(|r| r.shape.position),
            path_diversity: known(|r| Some(1.0 - r.shape.path_bleu?)),
            first_words_differ: known(|r| r.shape.first_words_differ),
            some_path_right: known(|r| Some(f64::from(r.path_right()?))),
            answer_right_given_path: mean(found.filter_map(right)),
        }
    }

    /// All that is known, by name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("accuracy", Some(self.accuracy)),
            ("parallel_ratio", Some(self.parallel_ratio)),
            ("well_formed", Some(self.well_formed)),
            ("some_path_right", self.some_path_right),
            ("answer_right_given_path", self.answer_right_given_path),
            ("total_tokens", Some(self.total_tokens)),
            ("critical_path_tokens", Some(self.critical_path_tokens)),
            ("truncated", Some(self.truncated)),
            ("cut_paths", Some(self.cut_paths)),
            ("forced", Some(self.forced)),
            ("blocks", Some(self.blocks)),
            ("paths_per_block", self.paths_per_block),
            ("block_position", self.block_position),
            ("path_diversity", self.path_diversity),
            ("first_words_differ", self.first_words_differ),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// `None` of nothing.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    super::stats::mean(&values.collect::<Vec<_>>())
}
