//! Learning as one stream from what was sampled in concurrent paths (`fork = true`, causal arms).
//!
//! A causal model writes one path after the other, and each may see those before it. `fork` samples the paths at the
//! same time instead: they don't see each other, and the summary sees all of them, as in the path-window structure. The
//! response is then read as one causal stream, and that is what is learned. So the sampler (q) is not the policy that
//! is trained (p), and each action's advantage is weighed by
//!
//!   min(p / q, importance_cap),   p before the update,
//!
//! truncated importance sampling (Ionides 2008, as verl and TRL use it between engine and trainer). The ratio of the
//! clipped objective is to p, not to q. Tags that the engine forced are no actions, as ever.
//!
//! The official code re-reads the stream where paths join and samples the summary from that; here nothing is re-read, so
//! the summary, too, is weighed.

use std::sync::Arc;

use super::Result;
use super::batch::{MicroBatch, Sequence, split};
use super::grpo::Compared;
use super::metrics::StepMetrics;
use super::recipe::GrpoConfig;
use crate::layout::{Layout, Role};
use crate::model::Pretrained;
use crate::prompt::Controls;

/// The largest weight, as in verl's and TRL's examples.
const CAP: f32 = 2.0;

/// How far sampler and policy are apart, summed over actions.
#[derive(Debug, Default)]
pub(super) struct Forked {
    actions: usize,
    weight: f64,
    gap: f64,
}

impl Forked {
    /// The means.
    pub(super) fn report(&self, metrics: &mut StepMetrics) {
        let n = self.actions.max(1) as f64;
        metrics.set("importance_weight", self.weight / n);
        metrics.set("fork_gap", self.gap / n);
    }
}

/// Reads all responses as causal streams, and gives them old log-probabilities of the policy and importance weights.
/// What is then longer than the model's positions is left out.
pub(super) fn reread(
    batches: &mut [Compared],
    model: &Pretrained,
    controls: &Arc<Controls>,
    config: &GrpoConfig,
) -> Result<Forked> {
    let (mut forked, limit) = (Forked::default(), model.decoder.config().position_limit());
    for batch in batches {
        batch.leave_out_longer_than(limit);
        batch.sequences.iter_mut().for_each(as_one_stream);
        let mut importance: Vec<Vec<f32>> = batch.old.iter().map(|old| vec![1.0; old.len()]).collect();
        for run in split(&batch.sequences, config.micro_batch_tokens) {
            let micro = MicroBatch::new(&batch.sequences, run)?;
            let (policy, _) = micro.log_probs_frozen(&model.decoder, controls)?;
            for (action, policy) in micro.actions().iter().zip(policy) {
                let old = &mut batch.old[action.sequence][action.token];
                let weight = importance_weight(policy, *old, config.importance_cap.unwrap_or(CAP));
                forked.actions += 1;
                forked.weight += f64::from(weight);
                forked.gap += f64::from((policy - *old).abs());
                importance[action.sequence][action.token] = weight;
                *old = policy;
            }
        }
        batch.importance = Some(importance);
    }
    Ok(forked)
}

/// `min(p / q, cap)`, of log-probabilities.
fn importance_weight(policy: f32, sampler: f32, cap: f32) -> f32 {
    (policy - sampler).exp().min(cap)
}

/// The same tokens as prompt and one trunk.
fn as_one_stream(sequence: &mut Sequence) {
    let prompt = sequence.layout.segments().first().map_or(0, |segment| segment.len);
    let mut layout = Layout::default();
    let root = layout.push(Role::Prompt, &[], prompt);
    layout.push(Role::Trunk, &[root], sequence.tokens.len() - prompt);
    sequence.layout = layout;
}

impl Compared {
    fn leave_out_longer_than(&mut self, limit: usize) {
        let fits: Vec<bool> = self.sequences.iter().map(|s| s.tokens.len() <= limit).collect();
        let mut kept = fits.iter();
        self.sequences.retain(|_| kept.next() == Some(&true));
        let mut kept = fits.iter();
        self.advantages.retain(|_| kept.next() == Some(&true));
        let mut kept = fits.iter();
        self.old.retain(|_| kept.next() == Some(&true));
        let mut kept = fits.iter();
        self.credits.retain(|_| kept.next() == Some(&true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::AllowedSet;

    #[test]
    fn weights_are_ratios_up_to_the_cap() {
        for (policy, sampler, weight) in [(0.5f32, 0.5f32, 1.0), (0.2, 0.4, 0.5), (0.9, 0.1, 2.0)] {
            assert!((importance_weight(policy.ln(), sampler.ln(), 2.0) - weight).abs() < 1e-6);
        }
    }

    #[test]
    fn a_stream_has_its_tokens_in_text_order_and_what_is_too_long_is_left_out() {
        let mut layout = Layout::default();
        let root = layout.push(Role::Prompt, &[], 2);
        let trunk = layout.push(Role::Trunk, &[root], 1);
        let paths = [layout.push(Role::Path, &[trunk], 3), layout.push(Role::Path, &[trunk], 2)];
        layout.push(Role::Join, &paths, 4);
        let sequence = Sequence {
            tokens: (0..12).collect(),
            layout,
            sampled: vec![true; 12],
            allowed: vec![AllowedSet::ALL; 12],
            temperatures: vec![1.0; 12],
        };
        let mut batch = Compared {
            sequences: vec![sequence],
            advantages: vec![1.0],
            credits: vec![vec![0.0; 12]],
            old: vec![vec![0.0; 12]],
            importance: None,
        };
        batch.leave_out_longer_than(12);
        as_one_stream(&mut batch.sequences[0]);
        assert_eq!(batch.sequences[0].layout.positions(), (0..12).collect::<Vec<u32>>());
        assert_eq!(batch.sequences[0].layout.segments()[0].len, 2);
        batch.leave_out_longer_than(11);
        assert!(
            batch.sequences.is_empty()
                && batch.advantages.is_empty()
                && batch.old.is_empty()
                && batch.credits.is_empty()
        );
    }
}
