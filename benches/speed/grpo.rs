//! A whole step of GRPO: responses to a batch of prompts, a reward, one update.

use std::time::Instant;

use candle_core::Tensor;
use parallel_r1::engine::{Request, SamplingParams, Trace};
use parallel_r1::train::advantage::{ScaleRewards, advantages};
use parallel_r1::train::batch::{MicroBatch, Sequence};
use parallel_r1::train::loss::{ActionData, Clip, policy_loss, response_weights};
use parallel_r1::train::recipe::LossType;

use super::case::Case;
use super::train::Learner;
use super::{Done, Result, Work, sample};

const CLIP: Clip = Clip { epsilon_low: 0.2, epsilon_high: 0.2, dual: None, beta: 0.0 };

/// Steps on the same prompts with other seeds.
pub(super) struct Grpo {
    learner: Learner,
    requests: Vec<Request>,
    params: SamplingParams,
    tokens: usize,
}

impl Grpo {
    pub(super) fn new(case: &Case) -> Result<Self> {
        let learner = Learner::new(case)?;
        let requests = sample::requests(case, learner.decoder.config().vocab_size);
        Ok(Self {
            learner,
            requests,
            params: sample::sequential(case.response),
            tokens: case.useful_tokens(),
        })
    }
}

/// A number that differs within a group: advantages that are all 0 would spare the update.
fn reward(trace: &Trace) -> f32 {
    (trace.response().iter().map(|&token| u64::from(token)).sum::<u64>() % 17) as f32
}

impl Work for Grpo {
    fn round(&mut self) -> Result<Done> {
        let start = Instant::now();
        self.params.seed += 1;
        let learner = &mut self.learner;
        let (groups, _) =
            sample::generate(&learner.decoder, &learner.controls, &self.requests, &self.params, &mut ())?;
        let sampled_after = start.elapsed().as_secs_f64();
        let traces: Vec<&Trace> = groups.iter().flatten().collect();
        let sequences: Vec<Sequence> = traces.iter().map(|&trace| Sequence::from(trace)).collect();
        let actions: Vec<usize> = sequences.iter().map(Sequence::actions).collect();
        let weights = response_weights(LossType::Dapo, &actions, self.params.max_response_tokens);
        let rewards = |group: &Vec<Trace>| group.iter().map(|trace| Some(reward(trace))).collect::<Vec<_>>();
        let rewards: Vec<Vec<Option<f32>>> = groups.iter().map(rewards).collect();
        let advantages = advantages(&rewards, ScaleRewards::Group).concat();
        let mut notes = learner.step(&sequences, |micro: &MicroBatch, log_probs: &Tensor| {
            let each = |values: &[f32]| micro.actions().iter().map(|a| values[a.sequence]).collect();
            let old = micro.actions().iter().map(|a| traces[a.sequence].logprobs[a.token]).collect();
            let data =
                ActionData { advantages: each(&advantages), old, reference: None, weights: each(&weights) };
            policy_loss(log_probs, &data, CLIP)
        })?;
        learner.release();
        notes["seconds_rollout"] = sampled_after.into();
        Ok(Done { units: self.tokens, notes })
    }
}
