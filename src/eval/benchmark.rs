//! A benchmark: K responses to each problem, and what they say about the model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::means::Means;
use super::rollout::{Rollout, RolloutError, rollouts};
use super::stats::{self, Interval};
use crate::data::Problem;
use crate::engine::{EngineOptions, Observer, SamplingParams, Trace};
use crate::model::Pretrained;
use crate::reward::answer_keys;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;

/// Results over a set of problems. Rates are from 0 to 1, token counts are means per answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Evaluation {
    /// Problems whose gold answer could be read.
    pub problems: usize,
    /// Problems left out because it could not.
    pub skipped: usize,
    /// Responses to each problem, K.
    pub samples: usize,
    /// Mean accuracy over all responses.
    pub mean_at_k: f64,
    /// 95 % bootstrap interval of `mean_at_k` over problems.
    pub interval: Option<Interval>,
    /// Share of problems with at least one right response among K.
    pub pass_at_k: f64,
    /// Share of problems whose most frequent answer is right.
    pub maj_at_k: f64,
    /// Share of responses with at least one well-formed block.
    pub parallel_ratio: f64,
    /// Share of responses that follow the grammar of the tags.
    pub well_formed: f64,
    /// Share of responses cut by the budget.
    pub truncated: f64,
    /// Tokens of a response.
    pub total_tokens: f64,
    /// Tokens on its longest chain, which is what latency follows.
    pub critical_path_tokens: f64,
    /// Of the responses with a block: share in which some path is right (where the task lets it be known).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub some_path_right: Option<f64>,
    /// Of those: share whose answer is right too. Exploration fails in the first, consolidation in the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_right_given_path: Option<f64>,
    /// `mean_at_k` by the level of the problem, where there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_level: BTreeMap<String, f64>,
}

/// Tells `progress(done, total)` of each finished response.
struct Counter<'a> {
    done: usize,
    total: usize,
    progress: &'a mut dyn FnMut(usize, usize),
}

impl Observer for Counter<'_> {
    fn sample_done(&mut self, _: &Trace) {
        self.done += 1;
        (self.progress)(self.done, self.total);
    }
}

/// Samples K responses to each problem and judges them.
pub fn evaluate(
    model: &Pretrained,
    problems: &[Problem],
    samples: usize,
    params: &SamplingParams,
    options: EngineOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Evaluation, RolloutError> {
    let mut counter = Counter { done: 0, total: problems.len() * samples, progress };
    let (groups, _) = rollouts(model, problems, samples, 0, params, options, &mut counter)?;
    Ok(summarise(problems, &groups, samples))
}

/// The statistics of judged responses.
pub fn summarise(problems: &[Problem], groups: &[Vec<Rollout>], samples: usize) -> Evaluation {
    let readable = |group: &&(&Problem, &Vec<Rollout>)| group.1.iter().all(|r| r.judged.correct.is_some());
    let all: Vec<(&Problem, &Vec<Rollout>)> = problems.iter().zip(groups).collect();
    let kept: Vec<&(&Problem, &Vec<Rollout>)> = all.iter().filter(readable).collect();
    let means: Vec<f64> = kept.iter().filter_map(|(_, g)| stats::mean_at_k(&correct(g))).collect();
    let pass = kept.iter().filter_map(|(_, g)| {
        let right = correct(g).iter().filter(|c| **c).count();
        stats::pass_at_k(g.len(), right, g.len())
    });
    let majority = kept.iter().filter_map(|(problem, g)| {
        let responses: Vec<&str> = g.iter().map(|r| r.text.as_str()).collect();
        stats::maj_at_k(&answer_keys(problem, &responses), &correct(g))
    });
    let all_means = Means::of(groups.iter().flatten());
    Evaluation {
        problems: kept.len(),
        skipped: problems.len() - kept.len(),
        samples,
        mean_at_k: mean(means.iter().copied()),
        interval: stats::bootstrap_interval(&means, 0.95, RESAMPLES, 0),
        pass_at_k: mean(pass),
        maj_at_k: mean(majority),
        parallel_ratio: all_means.parallel_ratio,
        well_formed: all_means.well_formed,
        truncated: all_means.truncated,
        total_tokens: all_means.total_tokens,
        critical_path_tokens: all_means.critical_path_tokens,
        some_path_right: all_means.some_path_right,
        answer_right_given_path: all_means.answer_right_given_path,
        by_level: by_level(&kept, &means),
    }
}

fn correct(group: &[Rollout]) -> Vec<bool> {
    group.iter().map(|r| r.judged.correct == Some(true)).collect()
}

/// The mean, 0 of nothing.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    stats::mean(&values.collect::<Vec<_>>()).unwrap_or(0.0)
}

fn by_level(kept: &[&(&Problem, &Vec<Rollout>)], means: &[f64]) -> BTreeMap<String, f64> {
    let mut levels: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for ((problem, _), &m) in kept.iter().zip(means) {
        if let Some(level) = &problem.level {
            levels.entry(level.clone()).or_default().push(m);
        }
    }
    if levels.len() < 2 {
        return BTreeMap::new();
    }
    levels.into_iter().filter_map(|(level, values)| Some((level, stats::mean(&values)?))).collect()
}
