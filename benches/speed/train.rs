//! A training step: forward, backward, clipping, AdamW.

use std::sync::Arc;
use std::time::Instant;

use candle_core::Tensor;
use parallel_r1::model::Decoder;
use parallel_r1::prompt::Controls;
use parallel_r1::train::batch::{MicroBatch, Sequence, split};
use parallel_r1::train::optim::{AdamW, Gradients, OptimConfig};
use serde_json::{Value, json};

use super::case::Case;
use super::{Done, Result, Work, texts};

/// A model and its optimizer.
pub(super) struct Learner {
    pub(super) decoder: Decoder,
    pub(super) controls: Arc<Controls>,
    gradients: Gradients,
    optim: AdamW,
    config: OptimConfig,
    micro_batch_tokens: usize,
    recompute: bool,
}

impl Learner {
    pub(super) fn new(case: &Case) -> Result<Self> {
        Ok(Self {
            decoder: case.model()?,
            controls: Arc::default(),
            gradients: Gradients::default(),
            optim: AdamW::default(),
            config: OptimConfig::default(),
            micro_batch_tokens: case.micro_batch_tokens,
            recompute: case.recompute,
        })
    }

    /// Frees what a step needs and the rollouts before the next do not, as `train` does.
    pub(super) fn release(&mut self) {
        self.gradients = Gradients::default();
        self.decoder.release_memory();
    }

    /// One step on `sequences`; `loss` says what is made smaller, from the log-probabilities `[actions]`. Returns the
    /// seconds of its parts.
    pub(super) fn step(
        &mut self,
        sequences: &[Sequence],
        loss: impl Fn(&MicroBatch, &Tensor) -> candle_core::Result<Tensor>,
    ) -> Result<Value> {
        self.gradients.clear();
        let (mut forward, mut backward) = (0.0, 0.0);
        for run in split(sequences, self.micro_batch_tokens) {
            let start = Instant::now();
            let micro = MicroBatch::new(sequences, run)?.recomputing(self.recompute);
            let scored = micro.score(&self.decoder, &self.controls)?;
            let loss = loss(&micro, &scored.pairs().narrow(1, 0, 1)?.squeeze(1)?)?;
            forward += start.elapsed().as_secs_f64();
            let start = Instant::now();
            scored.backward(&loss, &mut self.gradients)?;
            backward += start.elapsed().as_secs_f64();
        }
        let start = Instant::now();
        self.optim.step(&mut self.decoder, &self.gradients, &self.config, self.config.lr)?;
        let update = start.elapsed().as_secs_f64();
        Ok(json!({"seconds_forward": forward, "seconds_backward": backward, "seconds_update": update}))
    }
}

/// Steps on the same sequences. The loss is the likelihood of each response times its advantage (1, and half of a group
/// less), which has the gradient of GRPO's at its first update.
pub(super) struct Training {
    learner: Learner,
    sequences: Vec<Sequence>,
    weights: Vec<f32>,
    tokens: usize,
}

impl Training {
    pub(super) fn new(case: &Case) -> Result<Self> {
        let learner = Learner::new(case)?;
        let sequences = texts::sequences(case, learner.decoder.config().vocab_size);
        let actions = (case.responses() * case.response) as f32;
        let sign = |i: usize| if case.group > 1 && i % 2 == 1 { -1.0 } else { 1.0 };
        let weights = (0..sequences.len()).map(|i| sign(i) / actions).collect();
        Ok(Self { learner, sequences, weights, tokens: case.useful_tokens() })
    }
}

impl Work for Training {
    fn round(&mut self) -> Result<Done> {
        let weights = &self.weights;
        let notes = self.learner.step(&self.sequences, |micro, log_probs| {
            let each: Vec<f32> = micro.actions().iter().map(|action| weights[action.sequence]).collect();
            (log_probs * Tensor::new(each, log_probs.device())?)?.sum_all()?.neg()
        })?;
        Ok(Done { units: self.tokens, notes })
    }
}
