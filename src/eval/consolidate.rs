//! Sample-level consolidation: N samples of a problem vote, the winner is the answer.
//!
//! The samples of a vote run at the same time and stop as soon as the rest can't change the outcome. So an answer costs
//! the tokens of all its samples, and takes as long as its longest one.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::benchmark::{Evaluation, statistics};
use super::rollout::{Rollout, RolloutError, rollouts};
use super::stats::mean;
use crate::data::Problem;
use crate::engine::vote::{Vote, decided, vote};
use crate::engine::{EngineOptions, Observer, SamplingParams, Trace};
use crate::model::Pretrained;
use crate::reward::answer_keys;

/// An answer as a benchmark counts it: one response, or the winner of a vote.
#[derive(Clone, Copy)]
pub(super) struct Answered<'a> {
    pub(super) text: &'a str,
    pub(super) correct: Option<bool>,
    pub(super) total_tokens: usize,
    pub(super) critical_path_tokens: usize,
}

impl<'a> Answered<'a> {
    /// A response.
    pub(super) fn response(rollout: &'a Rollout) -> Self {
        Self {
            text: &rollout.text,
            correct: rollout.judged.correct,
            total_tokens: rollout.trace.response_tokens(),
            critical_path_tokens: rollout.trace.critical_path(),
        }
    }
}

/// How the votes went, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Consolidation {
    /// Samples of a vote, at most.
    pub votes: usize,
    /// Samples that were finished before the vote was decided.
    pub finished: f64,
    /// Share of the finished samples that agree with the winner.
    pub agreement: f64,
    /// Share of votes without any readable answer, so that confidence decided.
    pub by_confidence: f64,
    /// Tokens that an answer cost: of finished samples and of those that were stopped.
    pub spent_tokens: f64,
}

/// How sure the model was of a response: the mean log-probability of the tokens that it chose.
pub fn confidence(trace: &Trace) -> f32 {
    let actions = trace.sampled.iter().filter(|sampled| **sampled).count();
    (trace.logprob() / actions.max(1) as f64) as f32
}

/// `samples` answers to each problem, each the winner of a vote among up to `votes` samples.
///
/// The evaluation counts an answer's tokens over all finished samples of its vote, and its critical path as that of the
/// longest; everything else is of the winners.
pub fn consolidate(
    model: &Pretrained,
    problems: &[Problem],
    samples: usize,
    votes: usize,
    params: &SamplingParams,
    options: EngineOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Evaluation, RolloutError> {
    let asked: Vec<Problem> =
        problems.iter().flat_map(|problem| std::iter::repeat_n(problem.clone(), samples)).collect();
    let mut ballots = Ballots { model, problems: &asked, votes, polls: HashMap::new(), done: 0, progress };
    let (groups, stats) = rollouts(model, &asked, votes, 0, params, options, &mut ballots)?;
    let mut groups = groups.into_iter();
    let decided: Vec<Vec<Decided>> = problems
        .iter()
        .map(|problem| groups.by_ref().take(samples).filter_map(|group| decide(problem, group)).collect())
        .collect();
    let all: Vec<&Decided> = decided.iter().flatten().collect();
    let consolidation = Consolidation::of(&all, votes, stats.sampled_tokens + stats.forced_tokens);
    let answers: Vec<Vec<Answered>> =
        decided.iter().map(|each| each.iter().map(Decided::answered).collect()).collect();
    let winners = all.iter().map(|decided| &decided.winner);
    Ok(Evaluation { consolidation: Some(consolidation), ..statistics(problems, &answers, winners, samples) })
}

impl Consolidation {
    /// Of some votes of up to `votes` samples, which took `tokens` together.
    fn of(all: &[&Decided], votes: usize, tokens: u64) -> Self {
        let over = |value: fn(&Decided) -> f64| {
            mean(&all.iter().map(|decided| value(decided)).collect::<Vec<_>>()).unwrap_or(0.0)
        };
        Self {
            votes,
            finished: over(|decided| decided.finished as f64),
            agreement: over(|decided| decided.vote.agreement),
            by_confidence: over(|decided| f64::from(decided.vote.by_confidence)),
            spent_tokens: tokens as f64 / all.len().max(1) as f64,
        }
    }
}

/// The outcome of a vote.
struct Decided {
    vote: Vote,
    winner: Rollout,
    finished: usize,
    total_tokens: usize,
    critical_path_tokens: usize,
}

impl Decided {
    fn answered(&self) -> Answered<'_> {
        Answered {
            total_tokens: self.total_tokens,
            critical_path_tokens: self.critical_path_tokens,
            ..Answered::response(&self.winner)
        }
    }
}

/// Counts the votes of finished samples; `None` of none.
fn decide(problem: &Problem, mut group: Vec<Rollout>) -> Option<Decided> {
    let texts: Vec<&str> = group.iter().map(|rollout| rollout.text.as_str()).collect();
    let confidences: Vec<f32> = group.iter().map(|rollout| confidence(&rollout.trace)).collect();
    let vote = vote(&answer_keys(problem, &texts), &confidences)?;
    let lengths = || group.iter().map(|rollout| rollout.trace.critical_path());
    Some(Decided {
        finished: group.len(),
        total_tokens: group.iter().map(|rollout| rollout.trace.response_tokens()).sum(),
        critical_path_tokens: lengths().max().unwrap_or(0),
        winner: group.swap_remove(vote.winner),
        vote,
    })
}

/// Counts while samples end, and stops a vote once it is decided.
struct Ballots<'a> {
    model: &'a Pretrained,
    /// The problem of each request.
    problems: &'a [Problem],
    votes: usize,
    polls: HashMap<u64, Poll>,
    done: usize,
    progress: &'a mut dyn FnMut(usize, usize),
}

/// The vote on one request.
#[derive(Default)]
struct Poll {
    texts: Vec<String>,
    decided: bool,
}

impl Observer for Ballots<'_> {
    fn sample_done(&mut self, trace: &Trace) {
        // A text that can't be decoded votes for nothing here; judging says why.
        let text = self.model.tokenizer.decode(trace.response()).unwrap_or_default();
        self.polls.entry(trace.request).or_default().texts.push(text);
    }

    /// Several samples may end in one pass, so this may be asked again after the vote is decided.
    fn wants(&mut self, request: u64) -> bool {
        let poll = self.polls.entry(request).or_default();
        if poll.decided {
            return false;
        }
        let texts: Vec<&str> = poll.texts.iter().map(String::as_str).collect();
        let vote = vote(&answer_keys(&self.problems[request as usize], &texts), &[]);
        let counts: Vec<usize> = vote.iter().flat_map(|vote| &vote.counts).map(|(_, votes)| *votes).collect();
        poll.decided = decided(&counts, self.votes.saturating_sub(texts.len()));
        if poll.decided {
            poll.texts.clear();
            self.done += 1;
            (self.progress)(self.done, self.problems.len());
        }
        !poll.decided
    }
}
