//! A Llama-family decoder that takes positions and visibility from the layout.
//!
//! There is one forward pass. Training runs it over a packed sequence and differentiates it; the engine runs it over
//! the newest rows of all live branches, with earlier keys and values in a cache. Only the origin of the keys
//! differs, so the two compute the same function.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor, Var};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::attention::{Attention, Pass};
use super::weights::Weights;
use super::{Config, ModelError};
use crate::kernels::{self, RopeTable};
use crate::layout::Visibility;

/// Keys and values of past tokens: for each layer two buffers `[slots, kv_heads, head_dim]`.
pub struct KvCache {
    layers: Vec<(Tensor, Tensor)>,
}

/// Where a forward pass writes its keys and values.
pub struct CacheWrite<'a> {
    /// The cache.
    pub cache: &'a mut KvCache,
    /// The slot of each row.
    pub slots: &'a [u32],
}

impl CacheWrite<'_> {
    /// Writes a layer's new rows and returns the layer's whole buffers.
    pub(super) fn store(&mut self, layer: usize, k: &Tensor, v: &Tensor) -> Result<(Tensor, Tensor)> {
        let (keys, values) = &self.cache.layers[layer];
        kernels::scatter_rows(keys, self.slots, k)?;
        kernels::scatter_rows(values, self.slots, v)?;
        Ok((keys.clone(), values.clone()))
    }
}

#[derive(Clone)]
struct Layer {
    attention_norm: Tensor,
    attention: Attention,
    mlp_norm: Tensor,
    gate: Tensor,
    up: Tensor,
    down: Tensor,
}

impl Layer {
    fn forward(&self, x: &Tensor, index: usize, eps: f64, pass: &mut Pass) -> Result<Tensor> {
        let h = kernels::rms_norm(x, &self.attention_norm, eps)?;
        let x = (x + self.attention.forward(&h, index, pass)?)?;
        let h = kernels::rms_norm(&x, &self.mlp_norm, eps)?;
        let h = kernels::swiglu(&kernels::linear(&h, &self.gate)?, &kernels::linear(&h, &self.up)?)?;
        &x + kernels::linear(&h, &self.down)?
    }
}

/// The tensors in the order in which a forward pass uses them.
#[derive(Clone)]
struct Network {
    embedding: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Tensor,
}

impl Network {
    fn new(config: &Config, get: impl Fn(&str) -> Tensor) -> Self {
        let layer = |i: usize| {
            let get = |name: &str| get(&format!("model.layers.{i}.{name}.weight"));
            Layer {
                attention_norm: get("input_layernorm"),
                attention: Attention {
                    q: get("self_attn.q_proj"),
                    k: get("self_attn.k_proj"),
                    v: get("self_attn.v_proj"),
                    o: get("self_attn.o_proj"),
                    head_dim: config.head_dim(),
                },
                mlp_norm: get("post_attention_layernorm"),
                gate: get("mlp.gate_proj"),
                up: get("mlp.up_proj"),
                down: get("mlp.down_proj"),
            }
        };
        let embedding = get(EMBEDDING);
        let head = if config.tie_word_embeddings { embedding.clone() } else { get(HEAD) };
        let layers = (0..config.num_hidden_layers).map(layer).collect();
        Self { embedding, layers, norm: get("model.norm.weight"), head }
    }
}

/// Name of the embedding table.
pub(super) const EMBEDDING: &str = "model.embed_tokens.weight";
/// Name of an untied output head.
pub(super) const HEAD: &str = "lm_head.weight";

/// The model. Its parameters are variables that the optimizer changes in place.
pub struct Decoder {
    config: Config,
    device: Device,
    vars: BTreeMap<String, Var>,
    trained: Network,
    /// The same storage without gradient tracking, for the engine and for reference models.
    frozen: Network,
}

/// Name and shape of every parameter that a configuration asks for.
pub fn parameter_shapes(config: &Config) -> Vec<(String, Vec<usize>)> {
    let (d, h, inner) = (config.hidden_size, config.head_dim(), config.intermediate_size);
    let (q, kv) = (config.num_attention_heads * h, config.kv_heads() * h);
    let mut shapes = vec![(EMBEDDING.to_owned(), vec![config.vocab_size, d])];
    for i in 0..config.num_hidden_layers {
        let parts: [(&str, Vec<usize>); 9] = [
            ("input_layernorm", vec![d]),
            ("self_attn.q_proj", vec![q, d]),
            ("self_attn.k_proj", vec![kv, d]),
            ("self_attn.v_proj", vec![kv, d]),
            ("self_attn.o_proj", vec![d, q]),
            ("post_attention_layernorm", vec![d]),
            ("mlp.gate_proj", vec![inner, d]),
            ("mlp.up_proj", vec![inner, d]),
            ("mlp.down_proj", vec![d, inner]),
        ];
        shapes.extend(parts.map(|(name, shape)| (format!("model.layers.{i}.{name}.weight"), shape)));
    }
    shapes.push(("model.norm.weight".into(), vec![d]));
    if !config.tie_word_embeddings {
        shapes.push((HEAD.into(), vec![config.vocab_size, d]));
    }
    shapes
}

impl Decoder {
    /// A model from a copy of its weights (on one device, made f32); a missing or mis-shaped tensor is named.
    pub fn new(config: Config, weights: &Weights) -> std::result::Result<Self, ModelError> {
        config.check().map_err(|reason| ModelError::Config { path: "config.json".into(), reason })?;
        let mut vars = BTreeMap::new();
        for (name, expected) in parameter_shapes(&config) {
            let Some(tensor) = weights.get(&name) else {
                return Err(ModelError::Missing { name, expected });
            };
            if tensor.dims() != expected {
                return Err(ModelError::Shape { name, expected, got: tensor.dims().to_vec() });
            }
            vars.insert(name, Var::from_tensor(&tensor.to_dtype(DType::F32)?.copy()?)?);
        }
        let device = vars[EMBEDDING].device().clone();
        let trained = Network::new(&config, |name| vars[name].as_tensor().clone());
        let frozen = Network::new(&config, |name| vars[name].as_detached_tensor());
        Ok(Self { config, device, vars, trained, frozen })
    }

    /// A model with random weights: normal, 0.02, output projections of the residual stream scaled down by the
    /// root of twice the depth (as GPT-2); norms at 1.
    pub fn random(config: &Config, seed: u64) -> std::result::Result<Self, ModelError> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let residual = 0.02 / (2.0 * config.num_hidden_layers as f32).sqrt();
        let mut weights = Weights::new();
        for (name, shape) in parameter_shapes(config) {
            let scale = if name.contains("o_proj") || name.contains("down_proj") { residual } else { 0.02 };
            let tensor = match shape.len() {
                1 => Tensor::ones(shape, DType::F32, &Device::Cpu)?,
                _ => super::tag_rows::normal(&mut rng, &shape, scale)?,
            };
            weights.insert(name, tensor);
        }
        Self::new(config.clone(), &weights)
    }

    /// Sizes and constants.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where the parameters lie.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The parameters by name.
    pub fn vars(&self) -> &BTreeMap<String, Var> {
        &self.vars
    }

    /// The current weights. They share their storage with the model, so later training changes them too;
    /// [`Decoder::new`] copies what it is given.
    pub fn weights(&self) -> Weights {
        self.vars.iter().map(|(name, var)| (name.clone(), var.as_detached_tensor())).collect()
    }

    /// The first parameter with a value that is not finite, if there is one.
    pub fn not_finite(&self) -> Result<Option<String>> {
        for (name, var) in &self.vars {
            // The sum of squares is finite exactly if all values are, short of an overflow that is a divergence too.
            if !var.as_detached_tensor().sqr()?.sum_all()?.to_scalar::<f32>()?.is_finite() {
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    }

    /// The output head `[vocab, d]`, differentiable.
    pub fn head(&self) -> &Tensor {
        &self.trained.head
    }

    /// Final-norm hidden states `[rows, d]` of `tokens` at `positions`.
    ///
    /// Without a cache the keys are this call's own rows, `visibility` indexes rows, and the result is
    /// differentiable. With one, row i's key and value are first written to `slots[i]`, `visibility`'s runs index
    /// slots, and no gradient is kept.
    pub fn hidden(
        &self,
        tokens: &[u32],
        positions: &[u32],
        visibility: &Arc<Visibility>,
        cache: Option<CacheWrite<'_>>,
    ) -> Result<Tensor> {
        let network = if cache.is_some() { &self.frozen } else { &self.trained };
        self.run(network, tokens, positions, visibility, cache)
    }

    /// As [`Decoder::hidden`] without a cache, keeping no gradient: for old and reference log-probabilities.
    pub fn hidden_frozen(
        &self,
        tokens: &[u32],
        positions: &[u32],
        visibility: &Arc<Visibility>,
    ) -> Result<Tensor> {
        self.run(&self.frozen, tokens, positions, visibility, None)
    }

    fn run(
        &self,
        network: &Network,
        tokens: &[u32],
        positions: &[u32],
        visibility: &Arc<Visibility>,
        cache: Option<CacheWrite<'_>>,
    ) -> Result<Tensor> {
        let limit = self.config.max_position_embeddings;
        if let Some(&p) = positions.iter().find(|&&p| p as usize >= limit) {
            candle_core::bail!("position {p} is beyond the model's limit max_position_embeddings = {limit}");
        }
        let rope = RopeTable::new(positions, self.config.head_dim(), self.config.rope_theta);
        let mut pass = Pass { rope, visibility: visibility.clone(), cache };
        let ids = Tensor::from_slice(tokens, tokens.len(), &self.device)?;
        let mut x = network.embedding.index_select(&ids, 0)?; // [rows, d]
        for (i, layer) in network.layers.iter().enumerate() {
            x = layer.forward(&x, i, self.config.rms_norm_eps, &mut pass)?;
        }
        kernels::rms_norm(&x, &network.norm, self.config.rms_norm_eps)
    }

    /// `hidden [rows, d]` -> logits `[rows, vocab]`, without gradient.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        kernels::linear(&hidden.detach(), &self.frozen.head)
    }

    /// An empty cache.
    pub fn new_cache(&self, slots: usize) -> Result<KvCache> {
        let shape = (slots, self.config.kv_heads(), self.config.head_dim());
        let buffer = || Tensor::zeros(shape, DType::F32, &self.device);
        let layers = (0..self.config.num_hidden_layers).map(|_| Ok((buffer()?, buffer()?)));
        Ok(KvCache { layers: layers.collect::<Result<_>>()? })
    }
}
