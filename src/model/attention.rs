//! One attention layer: projections, norms of queries and keys where the family has them, rotary positions, and the
//! keys and values of the cache when there is one.

use std::sync::Arc;

use candle_core::{Result, Tensor};

use super::decoder::CacheWrite;
use super::projection::Projection;
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
    pub(super) q: Projection,
    pub(super) k: Projection,
    pub(super) v: Projection,
    pub(super) o: Projection,
    /// Norms over each head of the queries and of the keys (Qwen3), `[head_dim]`.
    pub(super) qk_norm: Option<(Tensor, Tensor)>,
    pub(super) head_dim: usize,
    pub(super) eps: f64,
}

impl Attention {
    /// `x [rows, d]` -> `[rows, d]`.
    pub(super) fn forward(&self, x: &Tensor, layer: usize, pass: &mut Pass) -> Result<Tensor> {
        let rows = x.dim(0)?;
        let heads = |projection: &Projection| -> Result<Tensor> {
            let y = projection.forward(x)?; // [rows, heads * head_dim]
            y.reshape((rows, y.dim(1)? / self.head_dim, self.head_dim))
        };
        let (mut q, mut k, v) = (heads(&self.q)?, heads(&self.k)?, heads(&self.v)?);
        if let Some((q_norm, k_norm)) = &self.qk_norm {
            q = kernels::rms_norm(&q, q_norm, self.eps)?;
            k = kernels::rms_norm(&k, k_norm, self.eps)?;
        }
        let (q, k) = (kernels::rope(&q, &pass.rope)?, kernels::rope(&k, &pass.rope)?);
        let (k, v) = match &mut pass.cache {
            Some(write) => write.store(layer, &k, &v)?,
            None => (k, v),
        };
        let y = kernels::attention(&q, &k, &v, &pass.visibility)?; // [rows, heads, head_dim]
        self.o.forward(&y.flatten_from(1)?)
    }
}
