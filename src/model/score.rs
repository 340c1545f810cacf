//! Log-probabilities that can be learned from: a forward pass, and the gradients of a loss on what it found.
//!
//! The loss is composed of candle's operations on one small tensor, a pair of numbers an action. What lies below, the
//! network and its head, is one fused pass where the model is plain (f32 on the CPU, no adapter), and candle's graph of
//! the same network elsewhere.

use std::sync::Arc;

use candle_core::{Result, Tensor, Var};

use super::Decoder;
use super::fused::Pass;
use super::gradients::Gradients;
use crate::kernels::{self, Draw};
use crate::layout::Visibility;
use crate::prompt::Controls;

/// A packed sequence, and what is to be scored in it.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// One a row.
    pub tokens: &'a [u32],
    /// One a row.
    pub positions: &'a [u32],
    /// Which rows a row sees.
    pub visibility: &'a Arc<Visibility>,
    /// The row whose hidden state predicts an action, one an action.
    pub predictors: &'a [u32],
    /// What was drawn, one an action.
    pub draws: &'a Arc<Vec<Draw>>,
    /// The control tokens.
    pub controls: &'a Arc<Controls>,
    /// Keep only each layer's input and compute the rest again for the gradient: less memory, a third more time.
    pub recompute: bool,
}

/// The scores of a batch.
pub struct Scored<'a> {
    decoder: &'a Decoder,
    pairs: Var,
    tape: Tape<'a>,
}

enum Tape<'a> {
    Fused(Box<Pass<'a>>),
    /// The same scores, tracked.
    Graph(Tensor),
}

impl Scored<'_> {
    /// Log-probability and entropy of every action, `[actions, 2]`: what a loss is made of.
    pub fn pairs(&self) -> &Tensor {
        self.pairs.as_tensor()
    }

    /// Adds the gradients of `loss`, a scalar made of [`Scored::pairs`], to those of the model's variables.
    pub fn backward(self, loss: &Tensor, gradients: &mut Gradients) -> Result<()> {
        let of_pairs = loss.backward()?.remove(&self.pairs);
        let Some(of_pairs) = of_pairs else { candle_core::bail!("the loss does not depend on the scores") };
        match self.tape {
            Tape::Fused(pass) => pass.backward(&of_pairs, gradients),
            Tape::Graph(pairs) => {
                gradients.add(self.decoder, &(pairs * of_pairs.detach())?.sum_all()?.backward()?)
            }
        }
    }
}

impl Decoder {
    /// Scores a batch, to be learned from.
    pub fn score<'a>(&'a self, batch: Batch<'a>) -> Result<Scored<'a>> {
        if self.is_plain() {
            let mut pass = Pass::new(self, batch, true)?;
            let pairs = Var::from_vec(pass.forward()?, (batch.draws.len(), 2), self.device())?;
            return Ok(Scored { decoder: self, pairs, tape: Tape::Fused(Box::new(pass)) });
        }
        self.score_by_graph(batch)
    }

    fn score_by_graph<'a>(&'a self, batch: Batch<'a>) -> Result<Scored<'a>> {
        let (hidden, head) = self.trained(batch.tokens, batch.positions, batch.visibility)?;
        let tracked = read_out(&hidden, &head, batch)?;
        let pairs = Var::from_tensor(&tracked.detach())?;
        Ok(Scored { decoder: self, pairs, tape: Tape::Graph(tracked) })
    }

    /// Log-probability and entropy of every action, `[actions, 2]`, without gradient.
    pub fn score_frozen(&self, batch: Batch) -> Result<Tensor> {
        if self.is_plain() {
            let pairs = Pass::new(self, batch, false)?.forward()?;
            return Tensor::from_vec(pairs, (batch.draws.len(), 2), self.device());
        }
        let hidden = self.hidden(batch.tokens, batch.positions, batch.visibility, None)?;
        read_out(&hidden, &self.head()?, batch)
    }
}

fn read_out(hidden: &Tensor, head: &Tensor, batch: Batch) -> Result<Tensor> {
    let ids = Tensor::from_slice(batch.predictors, batch.predictors.len(), hidden.device())?;
    kernels::log_prob(&hidden.index_select(&ids, 0)?, head, batch.draws, batch.controls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Role};
    use crate::model::{Config, Family};
    use crate::prompt::AllowedSet;

    /// A prompt, two paths and a join, and a second prompt with an answer.
    fn layout() -> Layout {
        let mut layout = Layout::default();
        let prompt = layout.push(Role::Prompt, &[], 9);
        let paths = [3, 40].map(|len| layout.push(Role::Path, &[prompt], len));
        layout.push(Role::Join, &paths, 5);
        let other = layout.push(Role::Prompt, &[], 2);
        layout.push(Role::Trunk, &[other], 30);
        layout
    }

    fn learned(scored: Scored) -> Result<(Vec<f32>, Gradients)> {
        let mut gradients = Gradients::default();
        let pairs = scored.pairs().flatten_all()?.to_vec1::<f32>()?;
        let weights = (0..pairs.len()).map(|i| (i as f32 * 0.9).sin()).collect();
        let weights = Tensor::from_vec(weights, scored.pairs().shape(), scored.pairs().device())?;
        let loss = (scored.pairs() * weights)?.sum_all()?;
        scored.backward(&loss, &mut gradients)?;
        Ok((pairs, gradients))
    }

    fn gap(a: &[f32], b: &[f32]) -> f32 {
        let largest = b.iter().fold(0f32, |m, x| m.max(x.abs()));
        a.iter().zip(b).fold(0f32, |m, (x, y)| m.max((x - y).abs())) / largest
    }

    #[test]
    fn the_fused_pass_and_the_graph_find_the_same() -> std::result::Result<(), crate::model::ModelError> {
        let layout = layout();
        let (positions, visibility) = (layout.positions(), Arc::new(layout.visibility()));
        let tokens: Vec<u32> = (0..layout.len() as u32).map(|i| i * 7 % 11).collect();
        let draw = |i: u32| Draw {
            token: i % 11,
            allowed: AllowedSet::ALL,
            temperature: 0.8 + 0.1 * (i % 3) as f32,
        };
        // One row predicts several draws, and some rows none.
        let predictors: Vec<u32> = [8, 8].into_iter().chain(9..70).chain([80, 88]).collect();
        let draws = Arc::new((0..predictors.len() as u32).map(draw).collect::<Vec<_>>());
        let controls = Arc::new(Controls::default());
        let configs = [
            Config::tiny(11),
            Config { tie_word_embeddings: false, ..Config::tiny(11).of_family(Family::Qwen3) },
            Config { attention_bias: true, mlp_bias: true, ..Config::tiny(11) },
        ];
        for (seed, config) in configs.iter().enumerate() {
            let decoder = Decoder::random(config, seed as u64)?;
            let batch = Batch {
                tokens: &tokens,
                positions: &positions,
                visibility: &visibility,
                predictors: &predictors,
                draws: &draws,
                controls: &controls,
                recompute: false,
            };
            let (want, graph) = learned(decoder.score_by_graph(batch)?)?;
            let frozen = decoder.score_frozen(batch)?.flatten_all()?.to_vec1::<f32>()?;
            for recompute in [false, true] {
                let (got, fused) = learned(decoder.score(Batch { recompute, ..batch })?)?;
                assert_eq!(got, frozen);
                assert!(gap(&got, &want) < 1e-5, "scores of {config:?}");
                for name in decoder.vars().keys() {
                    let flat = |gradients: &Gradients| -> Result<Vec<f32>> {
                        gradients.get(name).expect("a gradient for each variable").flatten_all()?.to_vec1()
                    };
                    let gap = gap(&flat(&fused)?, &flat(&graph)?);
                    assert!(gap < 1e-4, "{name}, recomputed: {recompute}: off by {gap:e} of the largest");
                }
            }
        }
        Ok(())
    }
}
