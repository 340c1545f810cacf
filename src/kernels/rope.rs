//! Rotary position embedding (Su et al. 2021, arXiv 2104.09864), half-split as Hugging Face stores it.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, Device, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{contiguous, vectorised, wide, with_data};

const TASK_ROWS: usize = 64;

/// Cosines and sines of the rows of one forward pass, `[rows, head_dim / 2]` each.
#[derive(Clone)]
pub struct RopeTable {
    cos: Arc<Vec<f32>>,
    sin: Arc<Vec<f32>>,
    half: usize,
}

impl RopeTable {
    /// The table of `positions`: the angle of pair i is `position * frequencies[i]`, in f32; cosines and sines are
    /// multiplied by `factor`.
    pub fn new(positions: &[u32], frequencies: &[f32], factor: f32) -> Self {
        let angles = positions.iter().flat_map(|&p| frequencies.iter().map(move |f| p as f32 * f));
        let (cos, sin) = angles.map(|a| (a.cos() * factor, a.sin() * factor)).unzip();
        Self { cos: Arc::new(cos), sin: Arc::new(sin), half: frequencies.len() }
    }

    fn tensors(&self, device: &Device) -> Result<(Tensor, Tensor)> {
        let shape = (self.cos.len() / self.half, 1, self.half);
        Ok((Tensor::from_slice(&self.cos, shape, device)?, Tensor::from_slice(&self.sin, shape, device)?))
    }
}

/// Rotates every head of `x [rows, heads, head_dim]` by its row's angles.
pub fn rope(x: &Tensor, table: &RopeTable) -> Result<Tensor> {
    if x.device().is_cpu() {
        wide(x)?.apply_op1(Rope { table: table.clone() })?.to_dtype(x.dtype())
    } else {
        composed(x, table)
    }
}

fn composed(x: &Tensor, table: &RopeTable) -> Result<Tensor> {
    let (cos, sin) = table.tensors(x.device())?;
    let (cos, sin) = (cos.to_dtype(x.dtype())?, sin.to_dtype(x.dtype())?);
    let (a, b) = (x.narrow(2, 0, table.half)?, x.narrow(2, table.half, table.half)?);
    let first = (a.broadcast_mul(&cos)? - b.broadcast_mul(&sin)?)?;
    let second = (b.broadcast_mul(&cos)? + a.broadcast_mul(&sin)?)?;
    Tensor::cat(&[first, second], 2)
}

struct Rope {
    table: RopeTable,
}

impl Rope {
    /// `direction` is 1 forward; -1 turns back, which is the gradient.
    fn rotate(&self, x: &[f32], heads: usize, direction: f32) -> Vec<f32> {
        let half = self.table.half;
        let row = heads * 2 * half;
        let mut out = vec![0f32; x.len()];
        let blocks = out.par_chunks_mut(TASK_ROWS * row).zip(x.par_chunks(TASK_ROWS * row)).enumerate();
        blocks.for_each(|(block, (out, x))| {
            vectorised(
                #[inline(always)]
                || {
                    for (i, (out, x)) in out.chunks_exact_mut(row).zip(x.chunks_exact(row)).enumerate() {
                        let at = (block * TASK_ROWS + i) * half;
                        let (cos, sin) = (&self.table.cos[at..at + half], &self.table.sin[at..at + half]);
                        for (out, x) in out.chunks_exact_mut(2 * half).zip(x.chunks_exact(2 * half)) {
                            let ((oa, ob), (a, b)) = (out.split_at_mut(half), x.split_at(half));
                            for k in 0..half {
                                let s = sin[k] * direction;
                                oa[k] = a[k] * cos[k] - b[k] * s;
                                ob[k] = b[k] * cos[k] + a[k] * s;
                            }
                        }
                    }
                },
            )
        });
        out
    }
}

impl CustomOp1 for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, heads, width) = layout.shape().dims3()?;
        if width != 2 * self.table.half || rows * self.table.half != self.table.cos.len() {
            candle_core::bail!("rope: x {:?} does not fit the table", layout.shape());
        }
        let out = self.rotate(contiguous(x, layout)?, heads, 1.0);
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let heads = x.dim(1)?;
        let dx = with_data(dy, |dy| Ok(self.rotate(dy, heads, -1.0)))?;
        Ok(Some(Tensor::from_vec(dx, x.shape(), x.device())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::{check_gradients, random};

    #[test]
    fn fused_equals_composed_and_gradients_agree() -> Result<()> {
        let table = RopeTable::new(&[0, 3, 3, 700, 1], &[1.0, 0.05, 0.002], 1.3);
        check_gradients(&[random(&[5, 2, 6], 1)], |t| rope(&t[0], &table), |t| composed(&t[0], &table))
    }
}
