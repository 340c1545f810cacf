//! One attention layer: projections, rotary positions, and the keys and values of the cache when there is one.

use std::sync::Arc;

use candle_core::{Result, Tensor};

use super::decoder::CacheWrite;
use crate::kernels::{self, RopeTable};
use crate::layout::Visibility;

/// What all layers of one forward pass share.
pub(super) struct Pass<'a> {
    pub(super) rope: RopeTable,
    pub(super) visibility: Arc<Visibility>,
    pub(super) cache: Option<CacheWrite<'a>>,
}

#[derive(Clone)]
pub(super) struct Attention {
    pub(super) q: Tensor,
    pub(super) k: Tensor,
    pub(super) v: Tensor,
    pub(super) o: Tensor,
    pub(super) head_dim: usize,
}

impl Attention {
    /// `x [rows, d]` -> `[rows, d]`.
    pub(super) fn forward(&self, x: &Tensor, layer: usize, pass: &mut Pass) -> Result<Tensor> {
        let rows = x.dim(0)?;
        let heads = |weight: &Tensor| -> Result<Tensor> {
            let y = kernels::linear(x, weight)?; // [rows, heads * head_dim]
            y.reshape((rows, y.dim(1)? / self.head_dim, self.head_dim))
        };
        let q = kernels::rope(&heads(&self.q)?, &pass.rope)?;
        let k = kernels::rope(&heads(&self.k)?, &pass.rope)?;
        let v = heads(&self.v)?;
        let (k, v) = match &mut pass.cache {
            Some(write) => write.store(layer, &k, &v)?,
            None => (k, v),
        };
        let y = kernels::attention(&q, &k, &v, &pass.visibility)?; // [rows, heads, head_dim]
        kernels::linear(&y.reshape((rows, self.o.dim(1)?))?, &self.o)
    }
}
