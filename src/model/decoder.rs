//! A decoder that takes positions and visibility from the layout.
//!
//! There is one forward pass. Training runs it over a packed sequence and differentiates it; the engine runs it over
//! the newest rows of all live branches, with earlier keys and values in a cache. Only the origin of the keys
//! differs, so the two compute the same function.
//!
//! What training changes are variables: all parameters, or those of an [`Adapter`] beside a fixed base.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use candle_core::{DType, Device, Result, Tensor, Var};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::adapter::Adapter;
use super::attention::Pass;
use super::fused::Memory;
use super::network::Network;
use super::parameters::parameter_shapes;
use super::projection::Weight;
use super::source::{Parameters, Precision};
use super::weights::Weights;
use super::{Config, ModelError, rope};
use crate::kernels::{self, RopeTable};
use crate::layout::Visibility;

/// Keys and values of past tokens: for each layer two buffers `[slots, kv_heads, head_dim]`, in f32, which the kernels
/// read without a copy.
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

/// The model.
pub struct Decoder {
    config: Config,
    device: Device,
    precision: Precision,
    /// What training changes, in f32.
    vars: BTreeMap<String, Var>,
    /// What it does not.
    fixed: BTreeMap<String, Weight>,
    adapter: Option<Adapter>,
    /// Angle per position of each pair of dimensions, and the factor on cosines and sines.
    rope: (Vec<f32>, f32),
    /// The network without gradient tracking.
    frozen: Network,
    /// What training passes keep between them, see `fused`.
    pub(super) memory: Mutex<Option<Memory>>,
}

impl Decoder {
    /// A model from a copy of its weights (on one device, made f32), all trainable; a missing or mis-shaped tensor is
    /// named.
    pub fn new(config: Config, weights: &Weights) -> std::result::Result<Self, ModelError> {
        Self::from_source(config, |name| Ok(weights.get(name).cloned()))
    }

    /// The same from a function that finds tensors by name; one of them at a time is held beside the model.
    pub(super) fn from_source(
        config: Config,
        mut find: impl FnMut(&str) -> Result<Option<Tensor>>,
    ) -> std::result::Result<Self, ModelError> {
        let mut vars = BTreeMap::new();
        for (name, expected) in checked_shapes(&config)? {
            let tensor = find(&name)?;
            fits(&name, expected, tensor.as_ref().map(Tensor::dims))?;
            if let Some(tensor) = tensor {
                vars.insert(name, Var::from_tensor(&tensor.to_dtype(DType::F32)?)?);
            }
        }
        Self::assemble(config, Precision::F32, vars, BTreeMap::new(), None)
    }

    /// The same model to train: its weights are dequantised, and trainable unless an adapter is.
    pub fn trainable(self) -> std::result::Result<Self, ModelError> {
        if self.fixed.is_empty() {
            return Ok(self);
        }
        // The network is dropped first: it shares the weights.
        let Self { config, precision, vars, mut fixed, adapter, frozen, .. } = self;
        drop(frozen);
        if adapter.is_none() {
            return Self::from_source(config, |name| {
                fixed.remove(name).map(|weight| weight.dense()).transpose()
            });
        }
        let dense =
            |(name, weight): (String, Weight)| weight.dense().map(|tensor| (name, Weight::Dense(tensor)));
        let fixed = fixed.into_iter().map(dense).collect::<Result<_>>()?;
        Self::assemble(config, precision, vars, fixed, adapter)
    }

    /// The same model with other tables (embedding, untied head) of `vocab_size` rows.
    pub(super) fn with_tables(
        self,
        vocab_size: usize,
        tables: Weights,
    ) -> std::result::Result<Self, ModelError> {
        let Self { config, precision, mut vars, fixed, adapter, .. } = self;
        for (name, table) in tables {
            vars.insert(name, Var::from_tensor(&table)?);
        }
        Self::assemble(Config { vocab_size, ..config }, precision, vars, fixed, adapter)
    }

    /// A model to run, not to train: its weights are kept as they are, quantised ones too.
    pub fn fixed(config: Config, weights: BTreeMap<String, Weight>) -> std::result::Result<Self, ModelError> {
        for (name, expected) in checked_shapes(&config)? {
            let dims = weights.get(&name).map(Weight::dims);
            fits(&name, expected, dims.as_deref())?;
        }
        Self::assemble(config, Precision::F32, BTreeMap::new(), weights, None)
    }

    fn assemble(
        config: Config,
        precision: Precision,
        vars: BTreeMap<String, Var>,
        fixed: BTreeMap<String, Weight>,
        adapter: Option<Adapter>,
    ) -> std::result::Result<Self, ModelError> {
        let parameters = Parameters {
            config: &config,
            precision,
            vars: &vars,
            fixed: &fixed,
            adapter: adapter.as_ref(),
            tracked: false,
        };
        let frozen = parameters.network()?;
        let device = match &frozen.embedding {
            Weight::Dense(table) => table.device().clone(),
            Weight::Quantised(_) => Device::Cpu,
        };
        let rope = rope::frequencies(&config);
        let memory = Mutex::default();
        Ok(Self { config, device, precision, vars, fixed, adapter, rope, frozen, memory })
    }

    /// A model with random weights: normal, 0.02, output projections of the residual stream scaled down by the
    /// root of twice the depth (as GPT-2); norms at 1, biases at 0.
    pub fn random(config: &Config, seed: u64) -> std::result::Result<Self, ModelError> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let residual = 0.02 / (2.0 * config.num_hidden_layers as f32).sqrt();
        let mut weights = Weights::new();
        for (name, shape) in parameter_shapes(config) {
            let scale = if name.contains("o_proj") || name.contains("down_proj") { residual } else { 0.02 };
            let tensor = match shape.len() {
                1 if name.ends_with(".bias") => Tensor::zeros(shape, DType::F32, &Device::Cpu)?,
                1 => Tensor::ones(shape, DType::F32, &Device::Cpu)?,
                _ => super::tag_rows::normal(&mut rng, &shape, scale)?,
            };
            weights.insert(name, tensor);
        }
        Self::new(config.clone(), &weights)
    }

    /// A model of which `vars`, those of the adapter, are trainable and `fixed` is its base.
    pub(super) fn adapted(
        config: Config,
        mut fixed: BTreeMap<String, Weight>,
        adapter: Adapter,
        vars: BTreeMap<String, Var>,
    ) -> std::result::Result<Self, ModelError> {
        for (name, expected) in checked_shapes(&config)? {
            fits(&name, expected, fixed.get(&name).map(Weight::dims).as_deref())?;
        }
        for (name, weight) in &mut fixed {
            if let Some((_, ids)) = adapter.rows_of(name) {
                *weight = Weight::Dense(without_rows(&weight.dense()?, ids)?);
            }
        }
        Self::assemble(config, Precision::F32, vars, fixed, Some(adapter))
    }

    /// The configuration and the weights, none of them trainable any more. An adapter is left out.
    pub(super) fn into_fixed(self) -> (Config, BTreeMap<String, Weight>) {
        let mut fixed = self.fixed;
        let vars = self.vars.into_iter().filter(|_| self.adapter.is_none());
        fixed.extend(vars.map(|(name, var)| (name, Weight::Dense(var.as_detached_tensor()))));
        (self.config, fixed)
    }

    /// The same model, computing in `precision`; its fixed weights are rounded for good. Quantised weights compute as
    /// their kernels do.
    pub fn with_precision(self, precision: Precision) -> std::result::Result<Self, ModelError> {
        let rounded = |(name, weight)| match weight {
            Weight::Dense(tensor) => precision.rounded(tensor).map(|tensor| (name, Weight::Dense(tensor))),
            quantised => Ok((name, quantised)),
        };
        let fixed = self.fixed.into_iter().map(rounded).collect::<Result<_>>()?;
        Self::assemble(self.config, precision, self.vars, fixed, self.adapter)
    }

    /// A copy whose variables are its own; what is fixed is shared.
    pub fn copy(&self) -> std::result::Result<Self, ModelError> {
        let var =
            |(name, var): (&String, &Var)| Ok((name.clone(), Var::from_tensor(&var.as_detached_tensor())?));
        let vars = self.vars.iter().map(var).collect::<Result<_>>()?;
        Self::assemble(self.config.clone(), self.precision, vars, self.fixed.clone(), self.adapter.clone())
    }

    /// To be called after variables were changed: brings what is derived from them up to date.
    pub fn refresh(&mut self) -> Result<()> {
        let shared = self.precision == Precision::F32 && self.adapter.as_ref().is_none_or(|a| !a.has_rows());
        if !shared {
            self.frozen = self.parameters(false).network()?;
        }
        Ok(())
    }

    fn parameters(&self, tracked: bool) -> Parameters<'_> {
        Parameters {
            config: &self.config,
            precision: self.precision,
            vars: &self.vars,
            fixed: &self.fixed,
            adapter: self.adapter.as_ref(),
            tracked,
        }
    }

    /// Angle per position of each pair of dimensions, and the factor on cosines and sines.
    pub(super) fn rope(&self) -> &(Vec<f32>, f32) {
        &self.rope
    }

    /// Sizes and constants.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where the parameters lie.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// In what a forward pass computes.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The trainable parameters by name.
    pub fn vars(&self) -> &BTreeMap<String, Var> {
        &self.vars
    }

    /// The adapter, if there is one.
    pub fn adapter(&self) -> Option<&Adapter> {
        self.adapter.as_ref()
    }

    /// One of the weights in f32 under its Hugging Face name: an adapter is merged in, quantised weights are
    /// dequantised.
    pub fn weight(&self, name: &str) -> Result<Tensor> {
        self.parameters(false).merged(name)
    }

    /// All weights, each as [`Decoder::weight`] has it. Plain ones share their storage with the model, so later training
    /// changes them too; [`Decoder::new`] copies what it is given.
    pub fn weights(&self) -> Result<Weights> {
        let names = parameter_shapes(&self.config).into_iter().map(|(name, _)| name);
        names.map(|name| self.weight(&name).map(|tensor| (name, tensor))).collect()
    }

    /// The first variable with a value that is not finite, if there is one.
    pub fn not_finite(&self) -> Result<Option<String>> {
        for (name, var) in &self.vars {
            // The sum of squares is finite exactly if all values are, short of an overflow that is a divergence too.
            if !var.as_detached_tensor().sqr()?.sum_all()?.to_scalar::<f32>()?.is_finite() {
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    }

    /// Final-norm hidden states `[rows, d]` of `tokens` at `positions`, without gradient: for the engine, for old and
    /// for reference log-probabilities.
    ///
    /// Without a cache the keys are this call's own rows and `visibility` indexes rows. With one, row i's key and
    /// value are first written to `slots[i]`, and `visibility`'s runs index slots.
    pub fn hidden(
        &self,
        tokens: &[u32],
        positions: &[u32],
        visibility: &Arc<Visibility>,
        cache: Option<CacheWrite<'_>>,
    ) -> Result<Tensor> {
        self.run(&self.frozen, tokens, positions, visibility, cache)
    }

    /// The same, differentiable, and the output head `[vocab, d]`, differentiable too.
    pub(super) fn trained(
        &self,
        tokens: &[u32],
        positions: &[u32],
        visibility: &Arc<Visibility>,
    ) -> Result<(Tensor, Tensor)> {
        if self.fixed.values().any(|weight| matches!(weight, Weight::Quantised(_))) {
            candle_core::bail!("quantised weights have no gradient: open the model to train it");
        }
        let network = self.parameters(true).network()?;
        let hidden = self.run(&network, tokens, positions, visibility, None)?;
        Ok((hidden, network.head.dense()?))
    }

    fn run(
        &self,
        network: &Network,
        tokens: &[u32],
        positions: &[u32],
        visibility: &Arc<Visibility>,
        cache: Option<CacheWrite<'_>>,
    ) -> Result<Tensor> {
        let rope = self.rope_table(positions)?;
        let mut pass = Pass { rope, visibility: visibility.clone(), cache };
        let x = network.embedding.rows(tokens)?; // [rows, d]
        let x = if self.precision == Precision::Bf16 { x.to_dtype(DType::BF16)? } else { x };
        network.forward(x, self.config.rms_norm_eps, &mut pass)
    }

    /// The angles of some positions.
    pub(super) fn rope_table(&self, positions: &[u32]) -> Result<RopeTable> {
        let limit = self.config.position_limit();
        if let Some(&p) = positions.iter().find(|&&p| p as usize >= limit) {
            candle_core::bail!("position {p} is beyond the model's limit of {limit} positions");
        }
        let (frequencies, factor) = &self.rope;
        Ok(RopeTable::new(positions, frequencies, *factor))
    }

    /// Whether the model is plain f32 on the CPU, which is what the fused pass is for.
    pub(super) fn is_plain(&self) -> bool {
        let dense = |weight: &Weight| matches!(weight, Weight::Dense(_));
        self.device.is_cpu() && self.precision == Precision::F32 && self.fixed.values().all(dense)
    }

    /// The network without gradient tracking, as the variables are now.
    pub(super) fn current_network(&self) -> Result<Cow<'_, Network>> {
        match self.adapter.as_ref().is_some_and(Adapter::has_rows) {
            // Trained rows are copied into their tables.
            true => self.parameters(false).network().map(Cow::Owned),
            false => Ok(Cow::Borrowed(&self.frozen)),
        }
    }

    /// The network without gradient.
    pub(super) fn frozen(&self) -> &Network {
        &self.frozen
    }

    /// The output head `[vocab, d]` without gradient.
    pub fn head(&self) -> Result<Tensor> {
        self.frozen.head.dense()
    }

    /// `hidden [rows, d]` -> logits `[rows, vocab]` in f32, without gradient.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        self.frozen.head.logits(&hidden.detach())
    }

    /// An empty cache.
    pub fn new_cache(&self, slots: usize) -> Result<KvCache> {
        let shape = (slots, self.config.kv_heads(), self.config.head_dim());
        let buffer = || Tensor::zeros(shape, DType::F32, &self.device);
        let layers = (0..self.config.num_hidden_layers).map(|_| Ok((buffer()?, buffer()?)));
        Ok(KvCache { layers: layers.collect::<Result<_>>()? })
    }
}

fn checked_shapes(config: &Config) -> std::result::Result<Vec<(String, Vec<usize>)>, ModelError> {
    config.check().map_err(|reason| ModelError::Config { path: "config.json".into(), reason })?;
    Ok(parameter_shapes(config))
}

fn fits(name: &str, expected: Vec<usize>, got: Option<&[usize]>) -> std::result::Result<(), ModelError> {
    let name = name.to_owned();
    match got {
        None => Err(ModelError::Missing { name, expected }),
        Some(got) if got != expected => Err(ModelError::Shape { name, expected, got: got.to_vec() }),
        Some(_) => Ok(()),
    }
}

/// A copy of a table with zeros in the rows `ids`.
fn without_rows(table: &Tensor, ids: &[u32]) -> Result<Tensor> {
    let mut keep = vec![1f32; table.dim(0)?];
    ids.iter().for_each(|&id| keep[id as usize] = 0.0);
    table.broadcast_mul(&Tensor::from_vec(keep, (table.dim(0)?, 1), table.device())?)
}
