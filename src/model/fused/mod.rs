//! The training pass of a plain model (f32 on the CPU, with or without an adapter) on slices: what the forward pass leaves for the
//! gradient lies in memory that the decoder keeps from pass to pass, and weight gradients are added where they are
//! summed. It computes what [`Network`] composes; a test holds the two against each other.

mod backward;
mod forward;
mod project;

use std::borrow::Cow;
use std::sync::MutexGuard;

use candle_core::{Result, Tensor};

use super::Decoder;
use super::network::Network;
use super::projection::Weight;
use super::score::Batch;
use crate::kernels::RopeTable;
use crate::kernels::attention::{self, tiled};
use crate::kernels::log_prob::{Kept, Readout};

/// What one layer leaves for its gradient, one row a token each.
#[derive(Default)]
struct Activations {
    /// `1 / rms` of the layer's input.
    inverses: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    /// Queries and keys before their norm, and its `1 / rms` a head, where the family has it.
    raw: [Vec<f32>; 2],
    raw_inverses: [Vec<f32>; 2],
    /// What the heads read.
    read: Vec<f32>,
    /// Log-sum-exp of the scores, `[heads, rows]`.
    lse: Vec<f32>,
    /// The residual stream between attention and MLP.
    middle: Vec<f32>,
    middle_inverses: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
}

/// Memory of a pass that is used again in each layer.
#[derive(Default)]
struct Work {
    /// Normed rows.
    normed: Vec<f32>,
    /// As wide as the MLP.
    inner: Vec<f32>,
    /// The gradient of the residual stream.
    slope: Vec<f32>,
    /// The gradient of normed rows.
    normed_slope: Vec<f32>,
    /// The gradient of what the heads read.
    read_slope: Vec<f32>,
    qkv_slopes: [Vec<f32>; 3],
    tiles: tiled::Scratch,
}

/// Memory of a pass.
#[derive(Default)]
pub(super) struct Memory {
    /// The residual stream before each layer and after the last.
    stream: Vec<Vec<f32>>,
    layers: Vec<Activations>,
    work: Work,
    /// The rows that predict, before and after the last norm.
    last: Vec<f32>,
    last_inverses: Vec<f32>,
    hidden: Vec<f32>,
    kept: Kept,
}

/// One pass over a batch.
pub(super) struct Pass<'a> {
    decoder: &'a Decoder,
    network: Cow<'a, Network>,
    batch: Batch<'a>,
    rope: RopeTable,
    sizes: attention::Sizes,
    memory: Option<Memory>,
    /// Whether there will be a gradient.
    keep: bool,
}

/// A buffer of `len` elements, whatever is in them.
fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    buffer.resize(len, 0.0);
    buffer
}

fn dense(weight: &Weight) -> Result<&Tensor> {
    match weight {
        Weight::Dense(tensor) => Ok(tensor),
        Weight::Quantised(_) => {
            candle_core::bail!("quantised weights have no gradient: open the model to train it")
        }
    }
}

impl<'a> Pass<'a> {
    pub(super) fn new(decoder: &'a Decoder, batch: Batch<'a>, keep: bool) -> Result<Self> {
        let (config, rows) = (decoder.config(), batch.tokens.len());
        attention::check(batch.visibility, rows, rows)?;
        if batch.positions.len() != rows || batch.predictors.len() != batch.draws.len() {
            candle_core::bail!(
                "{rows} tokens, {} positions; {} predictors, {} draws",
                batch.positions.len(),
                batch.predictors.len(),
                batch.draws.len()
            );
        }
        if let Some(row) = batch.predictors.iter().find(|&&row| row as usize >= rows) {
            candle_core::bail!("predictor {row} of {rows} rows");
        }
        if let Some(token) = batch.tokens.iter().find(|&&token| token as usize >= config.vocab_size) {
            candle_core::bail!("token {token} outside a vocabulary of {}", config.vocab_size);
        }
        let sizes = attention::Sizes {
            heads: config.num_attention_heads,
            kv_heads: config.kv_heads(),
            width: config.head_dim(),
        };
        let memory = Some(decoder.memory().take().unwrap_or_default());
        let rope = decoder.rope_table(batch.positions)?;
        Ok(Self { decoder, network: decoder.current_network()?, batch, rope, sizes, memory, keep })
    }

    fn eps(&self) -> f32 {
        self.decoder.config().rms_norm_eps as f32
    }

    fn readout(&self) -> Readout<'a> {
        Readout::new(self.batch.draws, self.batch.controls, self.decoder.config().hidden_size)
    }

    /// Where the residual stream before layer `i` lies: without a gradient two buffers take turns.
    fn place(&self, i: usize) -> usize {
        if self.keep { i } else { i % 2 }
    }

    /// How many layers' activations are held at once.
    fn held(&self) -> usize {
        if self.keep && !self.batch.recompute { self.network.layers.len() } else { 1 }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            *self.decoder.memory() = Some(memory);
        }
    }
}

impl Decoder {
    /// The memory that passes use one after the other; a pass beside another one gets its own.
    fn memory(&self) -> MutexGuard<'_, Option<Memory>> {
        // A pass that panicked left memory that any pass can write over.
        self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Frees the memory that passes keep, until the next one.
    pub fn release_memory(&self) {
        *self.memory() = None;
    }
}
