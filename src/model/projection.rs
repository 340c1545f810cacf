//! A weight matrix as a pass uses it: dense or quantised, with a bias, with a low-rank adapter.

use candle_core::{DType, Result, Tensor};

use crate::kernels::{self, QuantisedMatrix};

/// A matrix `[n, k]` that a pass multiplies with or looks rows up in.
#[derive(Clone, Debug)]
pub enum Weight {
    /// Plain numbers; differentiable.
    Dense(Tensor),
    /// Quantised blocks, from a GGUF file; not differentiable.
    Quantised(QuantisedMatrix),
}

impl Weight {
    /// `x [m, k]` -> `x W^T [m, n]`.
    pub(super) fn product(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Dense(w) => kernels::linear(x, w),
            Self::Quantised(w) => w.product(x),
        }
    }

    /// `hidden [m, k]` -> logits `[m, n]` in f32.
    pub(super) fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        match self {
            Self::Dense(w) => kernels::logits(hidden, w),
            Self::Quantised(w) => w.product(hidden)?.to_dtype(DType::F32),
        }
    }

    /// The rows `ids`: `[ids, k]`.
    pub(super) fn rows(&self, ids: &[u32]) -> Result<Tensor> {
        match self {
            Self::Dense(w) => w.index_select(&Tensor::from_slice(ids, ids.len(), w.device())?, 0),
            Self::Quantised(w) => w.rows(ids),
        }
    }

    /// Rows and columns.
    pub fn dims(&self) -> Vec<usize> {
        match self {
            Self::Dense(w) => w.dims().to_vec(),
            Self::Quantised(w) => vec![w.dims().0, w.dims().1],
        }
    }

    /// The matrix as plain numbers.
    pub fn dense(&self) -> Result<Tensor> {
        match self {
            Self::Dense(w) => Ok(w.clone()),
            Self::Quantised(w) => w.dequantise(),
        }
    }
}

/// `scale * B A`, added to a weight (LoRA, Hu et al. 2021, arXiv 2106.09685).
#[derive(Clone)]
pub(super) struct LowRank {
    /// `[r, k]`
    pub(super) a: Tensor,
    /// `[n, r]`
    pub(super) b: Tensor,
    pub(super) scale: f64,
}

/// `y = x W^T + bias + scale * (x A^T) B^T`.
#[derive(Clone)]
pub(super) struct Projection {
    pub(super) weight: Weight,
    pub(super) bias: Option<Tensor>,
    pub(super) low_rank: Option<LowRank>,
}

impl Projection {
    /// `x [m, k]` -> `[m, n]`.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut y = match (&self.weight, &self.low_rank) {
            (weight, None) => weight.product(x)?,
            (weight, Some(LowRank { a, b, scale })) => {
                let inner = (kernels::linear(x, a)? * *scale)?; // [m, r]
                match weight {
                    Weight::Dense(w) => kernels::linear_low_rank(x, w, &inner, b)?,
                    Weight::Quantised(w) => (w.product(x)? + kernels::linear(&inner, b)?)?,
                }
            }
        };
        if let Some(bias) = &self.bias {
            y = y.broadcast_add(&bias.to_dtype(y.dtype())?)?;
        }
        Ok(y)
    }
}
