//! The tensors of a decoder in the order in which a forward pass uses them.
//!
//! A network is put together from a source of parameters: tracked ones for training, the same without gradient for the
//! engine and for reference models.

use candle_core::{Result, Tensor};

use super::Config;
use super::attention::{Attention, Pass};
use super::parameters::{EMBEDDING, HEAD, NORM, projection};
use super::projection::{Projection, Weight};
use crate::kernels;

/// Where a network's tensors come from.
pub(super) trait Source {
    /// The parameter of this name.
    fn weight(&self, name: &str) -> Result<Weight>;

    /// A module with its weight, its bias if it has one, and what an adapter adds to it.
    fn projection(&self, module: &str, bias: bool) -> Result<Projection>;

    /// A parameter that is never quantised.
    fn tensor(&self, name: &str) -> Result<Tensor> {
        self.weight(name)?.dense()
    }
}

#[derive(Clone)]
pub(super) struct Layer {
    pub(super) attention_norm: Tensor,
    pub(super) attention: Attention,
    pub(super) mlp_norm: Tensor,
    pub(super) gate: Projection,
    pub(super) up: Projection,
    pub(super) down: Projection,
}

impl Layer {
    fn new(config: &Config, index: usize, source: &impl Source) -> Result<Self> {
        let norm = |name: &str| source.tensor(&format!("model.layers.{index}.{name}.weight"));
        let part = |name: &str, bias| source.projection(&projection(index, name), bias);
        let qkv = |name: &str| part(name, config.qkv_bias());
        let qk_norm = match config.qk_norm() {
            true => Some((norm("self_attn.q_norm")?, norm("self_attn.k_norm")?)),
            false => None,
        };
        Ok(Self {
            attention_norm: norm("input_layernorm")?,
            attention: Attention {
                q: qkv("q_proj")?,
                k: qkv("k_proj")?,
                v: qkv("v_proj")?,
                o: part("o_proj", config.o_bias())?,
                qk_norm,
                head_dim: config.head_dim(),
                eps: config.rms_norm_eps,
            },
            mlp_norm: norm("post_attention_layernorm")?,
            gate: part("gate_proj", config.mlp_bias)?,
            up: part("up_proj", config.mlp_bias)?,
            down: part("down_proj", config.mlp_bias)?,
        })
    }

    fn forward(&self, x: &Tensor, index: usize, eps: f64, pass: &mut Pass) -> Result<Tensor> {
        let h = kernels::rms_norm(x, &self.attention_norm, eps)?;
        let x = (x + self.attention.forward(&h, index, pass)?)?;
        let h = kernels::rms_norm(&x, &self.mlp_norm, eps)?;
        let h = kernels::swiglu(&self.gate.forward(&h)?, &self.up.forward(&h)?)?;
        &x + self.down.forward(&h)?
    }
}

#[derive(Clone)]
pub(super) struct Network {
    pub(super) embedding: Weight,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Tensor,
    pub(super) head: Weight,
}

impl Network {
    pub(super) fn new(config: &Config, source: &impl Source) -> Result<Self> {
        let embedding = source.weight(EMBEDDING)?;
        let head = if config.tie_word_embeddings { embedding.clone() } else { source.weight(HEAD)? };
        let layers = (0..config.num_hidden_layers).map(|i| Layer::new(config, i, source));
        Ok(Self { embedding, layers: layers.collect::<Result<_>>()?, norm: source.tensor(NORM)?, head })
    }

    /// Elements of the weights that a pass multiplies with, other than quantised ones.
    pub(super) fn plain_elements(&self) -> usize {
        let plain = |weight: &Weight| match weight {
            Weight::Dense(tensor) => tensor.elem_count(),
            Weight::Quantised(_) => 0,
        };
        let layer = |layer: &Layer| {
            let Attention { q, k, v, o, .. } = &layer.attention;
            let projections = [q, k, v, o, &layer.gate, &layer.up, &layer.down];
            projections.iter().map(|projection| plain(&projection.weight)).sum::<usize>()
        };
        plain(&self.head) + self.layers.iter().map(layer).sum::<usize>()
    }

    /// Embedded tokens `x [rows, d]` -> final-norm hidden states `[rows, d]`.
    pub(super) fn forward(&self, mut x: Tensor, eps: f64, pass: &mut Pass) -> Result<Tensor> {
        for (i, layer) in self.layers.iter().enumerate() {
            x = layer.forward(&x, i, eps, pass)?;
        }
        kernels::rms_norm(&x, &self.norm, eps)
    }
}
