//! Supervised fine-tuning on demonstrations.
//!
//! How it differs from the paper's SFT (arXiv 2509.07980, section 3; official code on verl):
//! 1. The loss covers actions only: what the engine forces (`<Path>`, the join) is not learned.
//! 2. Positions and structure come from the response alone; tags that the prompt mentions are text.
//! 3. Gradients are averaged over the actions of the whole step, whatever the micro-batches.
//! 4. Actions after a block (summary, answer) can weigh more (`summary_weight`).
//! 5. What a demonstration marks as wrong on purpose is shown, not learned.

use std::sync::Arc;
use std::time::Instant;

use candle_core::Tensor;

use super::batch::{MicroBatch, Sequence, columns, split};
use super::metrics::{StageId, StepMetrics};
use super::optim::AdamW;
use super::recipe::SftConfig;
use super::{Result, TrainError, curriculum::Session, demonstrations::Demonstrations};
use crate::model::{Gradients, Scored};
use crate::prompt::Controls;

/// Runs the stage from step `first` on (later than 0 after a resume).
pub fn sft(
    session: &mut Session,
    stage: &StageId,
    config: &SftConfig,
    optim: &mut AdamW,
    first: usize,
) -> Result<()> {
    let data = Demonstrations::open(&config.data)?;
    let controls = session.model.controls()?;
    let (seed, structure) = (stage.seed, session.structure);
    let mut gradients = Gradients::default();
    for step in first..stage.steps {
        let started = Instant::now();
        let batch = data.batch(seed, step, config.batch_size, &session.model, &controls, structure)?;
        if batch.sequences.is_empty() {
            let (refused, first) = (batch.refused, batch.first_fault.unwrap_or_default());
            return Err(TrainError::NoDemonstrations { stage: stage.name.clone(), refused, first });
        }
        let weights = action_weights(&batch.sequences, config.summary_weight, &controls);
        gradients.clear();
        let (mut loss, mut entropy, mut likelihood, mut actions) = (0.0, 0.0, 0.0, 0);
        for run in split(&batch.sequences, config.micro_batch_tokens) {
            let micro = MicroBatch::new(&batch.sequences, run)?.recomputing(config.recompute);
            let part = forward(session, &micro, &weights, &controls)?;
            loss += f64::from(part.loss.to_scalar::<f32>()?);
            part.scored.backward(&part.loss, &mut gradients)?;
            likelihood += part.log_probs.iter().map(|&x| f64::from(x)).sum::<f64>();
            entropy += part.entropies.iter().map(|&x| f64::from(x)).sum::<f64>();
            actions += part.log_probs.len();
        }
        let lr = config.optim.rate(step, stage.steps);
        let grad_norm = optim.step(&mut session.model.decoder, &gradients, &config.optim, lr)?;
        let tokens: usize = batch.sequences.iter().map(|s| s.tokens.len()).sum();
        let seconds = started.elapsed().as_secs_f64();
        let mut metrics = StepMetrics::new(stage, step);
        metrics.set("loss", loss);
        metrics.set("nll", -likelihood / actions as f64);
        metrics.set("entropy", entropy / actions as f64);
        metrics.set("grad_norm", grad_norm);
        metrics.set("lr", lr);
        metrics.set("sequences", batch.sequences.len() as f64);
        metrics.set("refused", batch.refused as f64);
        metrics.set("tokens", tokens as f64);
        metrics.set("tokens_per_second", tokens as f64 / seconds);
        metrics.set("seconds", seconds);
        if session.after_step(stage, &metrics, optim)? {
            break;
        }
    }
    Ok(())
}

struct Part<'a> {
    scored: Scored<'a>,
    loss: Tensor,
    log_probs: Vec<f32>,
    entropies: Vec<f32>,
}

/// Weighted negative log-likelihood of a micro-batch; the weights of a whole step sum to one.
fn forward<'a>(
    session: &'a Session,
    micro: &'a MicroBatch,
    weights: &[Vec<f32>],
    controls: &'a Arc<Controls>,
) -> Result<Part<'a>> {
    let scored = micro.score(&session.model.decoder, controls)?;
    let pairs = scored.pairs(); // [actions, 2]
    let weights: Vec<f32> = micro.actions().iter().map(|a| weights[a.sequence][a.token]).collect();
    let weights = Tensor::new(weights, pairs.device())?;
    let loss = (pairs.narrow(1, 0, 1)?.squeeze(1)? * weights)?.sum_all()?.neg()?;
    let (log_probs, entropies) = columns(pairs)?;
    Ok(Part { scored, loss, log_probs, entropies })
}

/// A weight for every token of every sequence: 0 for what is no action, `summary` after a block, 1 elsewhere, all
/// divided by their sum over the step.
fn action_weights(sequences: &[Sequence], summary: f32, controls: &Controls) -> Vec<Vec<f32>> {
    let weigh = |s: &Sequence| -> Vec<f32> {
        let late = s.after_block(controls);
        let weight = |(&action, late): (&bool, bool)| match (action, late) {
            (false, _) => 0.0,
            (true, true) => summary,
            (true, false) => 1.0,
        };
        s.sampled.iter().zip(late).map(weight).collect()
    };
    let mut weights: Vec<Vec<f32>> = sequences.iter().map(weigh).collect();
    let total: f64 = weights.iter().flatten().map(|&w| f64::from(w)).sum();
    weights.iter_mut().flatten().for_each(|w| *w = (f64::from(*w) / total.max(f64::MIN_POSITIVE)) as f32);
    weights
}
