//! Sequences to learn from, and micro-batches of them: packed, sized by tokens, prompts of a group shared.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{Result, Tensor};

use crate::engine::Trace;
use crate::kernels::Draw;
use crate::layout::{Layout, Member, Parsed, TargetError, Visibility, pack, targets};
use crate::model::{Batch, Decoder, Scored};
use crate::prompt::{AllowedSet, Control, Controls, Tag};

/// Tokens, their segments, and which of them were actions. All vectors have one entry a token.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Prompt and response.
    pub tokens: Vec<u32>,
    /// Their segments; the first is the prompt.
    pub layout: Layout,
    /// Which tokens are actions.
    pub sampled: Vec<bool>,
    /// The set that each action was drawn from.
    pub allowed: Vec<AllowedSet>,
    /// The temperature that each action was drawn at.
    pub temperatures: Vec<f32>,
}

impl From<Parsed> for Sequence {
    /// A demonstration: temperature 1.
    fn from(p: Parsed) -> Self {
        let temperatures = vec![1.0; p.tokens.len()];
        Self { tokens: p.tokens, layout: p.layout, sampled: p.sampled, allowed: p.allowed, temperatures }
    }
}

impl From<&Trace> for Sequence {
    fn from(t: &Trace) -> Self {
        Self {
            tokens: t.tokens.clone(),
            layout: t.layout.clone(),
            sampled: t.sampled.clone(),
            allowed: t.allowed.clone(),
            temperatures: t.temperatures.clone(),
        }
    }
}

impl Sequence {
    /// Number of actions.
    pub fn actions(&self) -> usize {
        self.sampled.iter().filter(|s| **s).count()
    }

    /// For each token, whether it follows a block without standing in one: summary and answer.
    pub fn after_block(&self, controls: &Controls) -> Vec<bool> {
        let prompt = self.layout.segments().first().map_or(0, |s| s.len);
        std::iter::repeat_n(false, prompt).chain(after_block(&self.tokens[prompt..], controls)).collect()
    }
}

/// For each token of a response, whether it follows a block without standing in one.
pub(super) fn after_block(response: &[u32], controls: &Controls) -> impl Iterator<Item = bool> {
    let (mut depth, mut closed) = (0usize, false);
    response.iter().map(move |&token| {
        match controls.which(token) {
            Some(Control::Tag(Tag::Parallel)) => depth += 1,
            Some(Control::Tag(Tag::EndParallel)) => (depth, closed) = (depth.saturating_sub(1), true),
            _ => {}
        }
        closed && depth == 0
    })
}

/// An action of a micro-batch: which sequence, and which of its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Index into the sequences that the micro-batch was made from.
    pub sequence: usize,
    /// Index into that sequence's tokens.
    pub token: usize,
}

/// Several sequences as one forward pass.
pub struct MicroBatch {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    visibility: Arc<Visibility>,
    /// Rows whose hidden state predicts an action, one an action.
    predictors: Vec<u32>,
    draws: Arc<Vec<Draw>>,
    actions: Vec<Action>,
    recompute: bool,
}

impl MicroBatch {
    /// Packs `sequences[range]`.
    pub fn new(sequences: &[Sequence], range: Range<usize>) -> std::result::Result<Self, TargetError> {
        let members: Vec<Member> = sequences[range.clone()]
            .iter()
            .map(|s| Member { tokens: &s.tokens, layout: &s.layout })
            .collect();
        let packed = pack(&members);
        let (mut predictors, mut draws, mut actions) = (Vec::new(), Vec::new(), Vec::new());
        for (member, sequence) in range.enumerate() {
            let s = &sequences[sequence];
            for target in targets(&s.layout, &s.sampled)? {
                let token = target.token;
                predictors.push(packed.index(member, target.predictor) as u32);
                draws.push(Draw {
                    token: s.tokens[token],
                    allowed: s.allowed[token],
                    temperature: s.temperatures[token],
                });
                actions.push(Action { sequence, token });
            }
        }
        Ok(Self {
            positions: packed.layout.positions(),
            visibility: Arc::new(packed.layout.visibility()),
            tokens: packed.tokens,
            predictors,
            draws: Arc::new(draws),
            actions,
            recompute: false,
        })
    }

    /// The same, which keeps little for its gradient and computes the rest again, where `recompute` says so.
    pub fn recomputing(self, recompute: bool) -> Self {
        Self { recompute, ..self }
    }

    /// Rows of the forward pass.
    pub fn rows(&self) -> usize {
        self.tokens.len()
    }

    /// The actions, in the order of the rows of [`MicroBatch::score`].
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Log-probability and entropy of every action, to be learned from.
    pub fn score<'a>(&'a self, decoder: &'a Decoder, controls: &'a Arc<Controls>) -> Result<Scored<'a>> {
        decoder.score(self.batch(controls))
    }

    /// The same without gradient, as vectors: (log-probabilities, entropies).
    pub fn log_probs_frozen(
        &self,
        decoder: &Decoder,
        controls: &Arc<Controls>,
    ) -> Result<(Vec<f32>, Vec<f32>)> {
        columns(&decoder.score_frozen(self.batch(controls))?)
    }

    fn batch<'a>(&'a self, controls: &'a Arc<Controls>) -> Batch<'a> {
        Batch {
            tokens: &self.tokens,
            positions: &self.positions,
            visibility: &self.visibility,
            predictors: &self.predictors,
            draws: &self.draws,
            controls,
            recompute: self.recompute,
        }
    }
}

/// The two columns of a `[n, 2]` tensor.
pub fn columns(pairs: &Tensor) -> Result<(Vec<f32>, Vec<f32>)> {
    let flat = pairs.flatten_all()?.to_vec1::<f32>()?;
    Ok(flat.chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip())
}

/// Cuts sequences, in order, into runs of at most `max_tokens` rows; a prompt that several neighbours share counts
/// once. A sequence that is longer by itself gets a run of its own.
pub fn split(sequences: &[Sequence], max_tokens: usize) -> Vec<Range<usize>> {
    let prompt = |i: usize| &sequences[i].tokens[..sequences[i].layout.segments()[0].len];
    let (mut runs, mut start, mut rows) = (Vec::new(), 0, 0);
    for (i, sequence) in sequences.iter().enumerate() {
        let whole = sequence.tokens.len();
        let shared = i > start && prompt(i) == prompt(i - 1);
        let more = if shared { whole - prompt(i).len() } else { whole };
        if i > start && rows + more > max_tokens {
            runs.push(start..i);
            (start, rows) = (i, whole);
        } else {
            rows += more;
        }
    }
    if start < sequences.len() {
        runs.push(start..sequences.len());
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Role, Structure, parse};

    #[test]
    fn summary_and_answer_follow_a_block_in_both_structures() {
        let controls =
            Controls { tags: Some([1, 2, 3, 4, 5, 6]), end: vec![0], newline: vec![7], path_rewind: 0 };
        // text <Parallel> <Path> text </Path> </Parallel> \n <Summary> text </Summary> text end
        let response = [9, 1, 3, 9, 4, 2, 7, 5, 9, 6, 9, 0];
        for structure in [Structure::PathWindow, Structure::Causal] {
            let parsed = parse(&[8, 8], &response, &controls, structure).unwrap();
            let late = Sequence::from(parsed).after_block(&controls);
            let want: Vec<bool> = (0..14).map(|i| i >= 2 + 5).collect();
            assert_eq!(late, want, "{structure:?}");
        }
    }

    fn sequence(prompt: &[u32], response: usize) -> Sequence {
        let mut layout = Layout::default();
        let root = layout.push(Role::Prompt, &[], prompt.len());
        layout.push(Role::Trunk, &[root], response);
        let n = prompt.len() + response;
        let mut tokens = prompt.to_vec();
        tokens.resize(n, 9);
        let sampled = (0..n).map(|i| i >= prompt.len()).collect();
        let allowed = vec![AllowedSet::ALL; n];
        Sequence { tokens, layout, sampled, allowed, temperatures: vec![1.0; n] }
    }

    #[test]
    fn runs_hold_at_most_so_many_rows_and_count_a_shared_prompt_once() {
        let group: Vec<Sequence> = (0..4).map(|_| sequence(&[1, 2, 3, 4], 5)).collect();
        assert_eq!(split(&group, 24), vec![0..4]);
        assert_eq!(split(&group, 23), vec![0..3, 3..4]);
        assert_eq!(split(&group, 1), vec![0..1, 1..2, 2..3, 3..4]);
        assert!(split(&[], 10).is_empty());
        assert_eq!(MicroBatch::new(&group, 0..4).expect("sound layouts").rows(), 24);
    }
}
