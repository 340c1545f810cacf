//! A benchmark: K responses to each problem, and what they say about the model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::consolidate::{Answered, Consolidation};
use super::means::Means;
use super::rollout::{Rollout, RolloutError, rollouts};
use super::row::{ProblemResult, judged, ks};
use super::stats::{self, Interval};
use crate::data::Problem;
use crate::engine::{EngineOptions, Observer, SamplingParams, Trace};
use crate::model::Pretrained;

/// Resamples of the bootstrap.
pub(super) const RESAMPLES: usize = 1000;

/// Results over a set of problems. Rates are from 0 to 1, token counts are means per answer; intervals are the 95 %
/// bootstrap intervals over problems.
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
    /// How sure `mean_at_k` is.
    pub interval: Option<Interval>,
    /// Share of problems with at least one right response among K.
    pub pass_at_k: f64,
    /// How sure `pass_at_k` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_interval: Option<Interval>,
    /// Share of problems whose most frequent answer is right.
    pub maj_at_k: f64,
    /// How sure `maj_at_k` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maj_interval: Option<Interval>,
    /// pass@k for the powers of two up to K, and for K: estimated without bias from the K samples.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pass_at: BTreeMap<usize, f64>,
    /// maj@k for the same k: the mean over sets of k of the K samples.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub maj_at: BTreeMap<usize, f64>,
    /// What the responses are like.
    #[serde(flatten)]
    pub means: Means,
    /// How the votes went, if each answer is the winner of a vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidation: Option<Consolidation>,
    /// `mean_at_k` by the level of the problem, where there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_level: BTreeMap<String, f64>,
    /// Each problem whose gold answer could be read, for [comparisons](super::compare()).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<ProblemResult>,
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

/// The statistics of judged responses, one group a problem.
pub fn summarise(problems: &[Problem], groups: &[Vec<Rollout>], samples: usize) -> Evaluation {
    let answers: Vec<Vec<Answered>> =
        groups.iter().map(|group| group.iter().map(Answered::response).collect()).collect();
    statistics(problems, &answers, groups.iter().flatten(), samples)
}

/// The statistics of judged answers, one list a problem, and of the responses behind them.
pub(super) fn statistics<'a>(
    problems: &[Problem],
    answers: &[Vec<Answered>],
    responses: impl Iterator<Item = &'a Rollout> + Clone,
    samples: usize,
) -> Evaluation {
    let (rows, majorities): (Vec<ProblemResult>, Vec<BTreeMap<usize, f64>>) =
        problems.iter().zip(answers).filter_map(|(problem, answers)| judged(problem, answers)).unzip();
    let each = |value: &dyn Fn(&ProblemResult) -> f64| rows.iter().map(value).collect::<Vec<f64>>();
    let (means, majority) = (each(&ProblemResult::mean_at_k), each(&|row| row.majority));
    let pass = each(&|row| row.pass_at(row.samples).unwrap_or(0.0));
    let average = |values: &[f64]| stats::mean(values).unwrap_or(0.0);
    let interval = |values: &[f64]| stats::bootstrap_interval(values, 0.95, RESAMPLES, 0);
    let pass_at =
        |k| Some((k, stats::mean(&rows.iter().filter_map(|row| row.pass_at(k)).collect::<Vec<_>>())?));
    let maj_at = |k| {
        Some((k, stats::mean(&majorities.iter().filter_map(|at| at.get(&k).copied()).collect::<Vec<_>>())?))
    };
    Evaluation {
        problems: rows.len(),
        skipped: problems.len() - rows.len(),
        samples,
        mean_at_k: average(&means),
        interval: interval(&means),
        pass_at_k: average(&pass),
        pass_interval: interval(&pass),
        maj_at_k: average(&majority),
        maj_interval: interval(&majority),
        pass_at: ks(samples).filter_map(pass_at).collect(),
        maj_at: ks(samples).filter_map(maj_at).collect(),
        means: Means::of(responses),
        consolidation: None,
        by_level: by_level(&rows),
        rows,
    }
}

fn by_level(rows: &[ProblemResult]) -> BTreeMap<String, f64> {
    let mut levels: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in rows {
        if let Some(level) = &row.level {
            levels.entry(level.clone()).or_default().push(row.mean_at_k());
        }
    }
    if levels.len() < 2 {
        return BTreeMap::new();
    }
    levels.into_iter().filter_map(|(level, values)| Some((level, stats::mean(&values)?))).collect()
}
