//! The parameters of a decoder as a network takes them: trained or fixed, rounded, with an adapter's share.

use std::collections::BTreeMap;

use candle_core::{DType, Result, Tensor, Var};
use serde::{Deserialize, Serialize};

use super::Config;
use super::adapter::Adapter;
use super::network::{Network, Source};
use super::projection::{Projection, Weight};

/// In what a forward pass computes. Variables are f32 either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit floats.
    #[default]
    F32,
    /// Weights and activations rounded to bfloat16, sums in f32, as mixed-precision training does it on a GPU. On the
    /// CPU this is neither faster nor smaller.
    Bf16,
}

impl Precision {
    /// A tensor with the values of this precision.
    pub(super) fn rounded(self, tensor: Tensor) -> Result<Tensor> {
        match self {
            Self::F32 => Ok(tensor),
            // The CPU's kernels read f32, so the rounded values are kept in it.
            Self::Bf16 if tensor.device().is_cpu() => tensor.to_dtype(DType::BF16)?.to_dtype(DType::F32),
            Self::Bf16 => tensor.to_dtype(DType::BF16),
        }
    }
}

/// The parameters of a decoder, with or without gradient.
pub(super) struct Parameters<'a> {
    pub(super) config: &'a Config,
    pub(super) precision: Precision,
    pub(super) vars: &'a BTreeMap<String, Var>,
    pub(super) fixed: &'a BTreeMap<String, Weight>,
    pub(super) adapter: Option<&'a Adapter>,
    pub(super) tracked: bool,
}

impl Parameters<'_> {
    fn var(&self, name: &str) -> Option<Tensor> {
        let var = self.vars.get(name)?;
        Some(if self.tracked { var.as_tensor().clone() } else { var.as_detached_tensor() })
    }

    /// Whether training changes a parameter, as a whole or in some rows.
    fn changes(&self, name: &str) -> bool {
        self.vars.contains_key(name) || self.adapter.is_some_and(|adapter| adapter.rows_of(name).is_some())
    }

    /// A parameter; what is trained is not yet rounded.
    pub(super) fn full(&self, name: &str) -> Result<Weight> {
        let weight = match (self.var(name), self.fixed.get(name)) {
            (Some(tensor), _) => Weight::Dense(tensor),
            (None, Some(weight)) => weight.clone(),
            (None, None) => candle_core::bail!("no parameter {name}"),
        };
        match self.adapter.and_then(|adapter| adapter.rows_of(name)) {
            Some((variable, ids)) => {
                let Some(rows) = self.var(&variable) else { candle_core::bail!("no parameter {variable}") };
                let ids = Tensor::from_slice(ids, ids.len(), rows.device())?;
                // The table is zero in these rows.
                Ok(Weight::Dense(weight.dense()?.index_add(&ids, &rows, 0)?))
            }
            None => Ok(weight),
        }
    }

    /// The weight of a module with the adapter's share added, in f32.
    pub(super) fn merged(&self, name: &str) -> Result<Tensor> {
        let weight = self.full(name)?.dense()?;
        let module = name.trim_end_matches(".weight");
        match self.adapter.and_then(|adapter| adapter.low_rank(module, |name| self.var(name))) {
            Some(part) => weight + (part.b.matmul(&part.a)? * part.scale)?,
            None => Ok(weight),
        }
    }

    pub(super) fn network(&self) -> Result<Network> {
        Network::new(self.config, self)
    }
}

impl Source for Parameters<'_> {
    fn weight(&self, name: &str) -> Result<Weight> {
        match self.full(name)? {
            // What is fixed has been rounded once.
            Weight::Dense(tensor) if self.changes(name) => Ok(Weight::Dense(self.precision.rounded(tensor)?)),
            as_it_is => Ok(as_it_is),
        }
    }

    fn projection(&self, module: &str, bias: bool) -> Result<Projection> {
        let weight = self.weight(&format!("{module}.weight"))?;
        let bias = bias.then(|| self.tensor(&format!("{module}.bias"))).transpose()?;
        let mut low_rank = self.adapter.and_then(|adapter| adapter.low_rank(module, |name| self.var(name)));
        if let Some(part) = &mut low_rank {
            (part.a, part.b) =
                (self.precision.rounded(part.a.clone())?, self.precision.rounded(part.b.clone())?);
        }
        Ok(Projection { weight, bias, low_rank })
    }
}
