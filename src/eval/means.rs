//! What evaluation and training both report of a set of rollouts.

use super::rollout::Rollout;

/// Means over rollouts. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// Share of right answers, among those whose gold answer can be read.
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
    /// Of the responses with a block: share in which some path is right, where the task lets it be known.
    pub some_path_right: Option<f64>,
    /// Of those: share whose answer is right too.
    pub answer_right_given_path: Option<f64>,
}

impl Means {
    /// The means of some rollouts; zero of none.
    pub fn of<'a>(rollouts: impl Iterator<Item = &'a Rollout> + Clone) -> Self {
        let share = |f: fn(&Rollout) -> f64| mean(rollouts.clone().map(f)).unwrap_or(0.0);
        let right = |r: &Rollout| Some(f64::from(r.judged.correct?));
        let found = rollouts.clone().filter(|r| r.path_right == Some(true));
        Self {
            accuracy: mean(rollouts.clone().filter_map(right)).unwrap_or(0.0),
            parallel_ratio: share(|r| f64::from(r.judged.blocks > 0 && r.judged.well_formed)),
            well_formed: share(|r| f64::from(r.judged.well_formed)),
            truncated: share(|r| f64::from(r.trace.truncated())),
            cut_paths: share(|r| r.trace.cut_paths() as f64),
            total_tokens: share(|r| r.trace.response_tokens() as f64),
            critical_path_tokens: share(|r| r.trace.critical_path() as f64),
            some_path_right: mean(rollouts.clone().filter_map(|r| Some(f64::from(r.path_right?)))),
            answer_right_given_path: mean(found.filter_map(right)),
        }
    }
}

/// `None` of nothing.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    super::stats::mean(&values.collect::<Vec<_>>())
}
