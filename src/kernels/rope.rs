//! Rotary position embedding (Su et al. 2021, arXiv 2104.09864), half-split as Hugging Face stores it.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, Device, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{contiguous, data, vectorised, wide};

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
        let of = |positions: &mut dyn Iterator<Item = u32>| -> (Vec<f32>, Vec<f32>) {
            let angles = positions.flat_map(|p| frequencies.iter().map(move |f| p as f32 * f));
            angles.map(|a| (a.cos() * factor, a.sin() * factor)).unzip()
        };
        let (half, end) = (frequencies.len(), positions.iter().max().map_or(0, |&p| p as usize + 1));
        // In training many rows share a position, and a sine costs more than its copy.
        let (cos, sin) = if end < positions.len() {
            let (cos, sin) = of(&mut (0..end as u32));
            let rows = |table: Vec<f32>| -> Vec<f32> {
                let row = |&p: &u32| &table[p as usize * half..][..half];
                positions.iter().flat_map(row).copied().collect()
            };
            (rows(cos), rows(sin))
        } else {
            of(&mut positions.iter().copied())
        };
        Self { cos: Arc::new(cos), sin: Arc::new(sin), half }
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

/// Rotates rows `[rows, heads, head_dim]` in place. `direction` is 1 forward; -1 turns back, which is the gradient.
pub(crate) fn rotate(x: &mut [f32], heads: usize, table: &RopeTable, direction: f32) {
    let half = table.half;
    let row = heads * 2 * half;
    assert_eq!(x.len() * half, table.cos.len() * row, "a row of angles for each row");
    x.par_chunks_mut(TASK_ROWS * row).enumerate().for_each(|(block, x)| {
        vectorised(
            #[inline(always)]
            || {
                for (i, x) in x.chunks_exact_mut(row).enumerate() {
                    let at = (block * TASK_ROWS + i) * half;
                    let (cos, sin) = (&table.cos[at..at + half], &table.sin[at..at + half]);
                    for head in x.chunks_exact_mut(2 * half) {
                        let (a, b) = head.split_at_mut(half);
                        for (((a, b), cos), sin) in a.iter_mut().zip(b).zip(cos).zip(sin) {
                            let s = sin * direction;
                            (*a, *b) = (*a * cos - *b * s, *b * cos + *a * s);
                        }
                    }
                }
            },
        )
    });
}

struct Rope {
    table: RopeTable,
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
        let mut out = contiguous(x, layout)?.to_vec();
        rotate(&mut out, heads, &self.table, 1.0);
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let heads = x.dim(1)?;
        let mut dx = data(&dy.contiguous()?)?.to_vec();
        rotate(&mut dx, heads, &self.table, -1.0);
        Ok(Some(Tensor::from_vec(dx, x.shape(), x.device())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::{check_gradients, random};

    #[test]
    fn rows_that_share_positions_have_the_angles_of_each_alone() {
        let (positions, frequencies) = ([4, 0, 4, 2, 3, 1], [1.0, 0.3]);
        let together = RopeTable::new(&positions, &frequencies, 1.5);
        for (i, position) in positions.into_iter().enumerate() {
            let alone = RopeTable::new(&[position], &frequencies, 1.5);
            assert_eq!(together.cos[i * 2..][..2], alone.cos[..]);
            assert_eq!(together.sin[i * 2..][..2], alone.sin[..]);
        }
    }

    #[test]
    fn fused_equals_composed_and_gradients_agree() -> Result<()> {
        let table = RopeTable::new(&[0, 3, 3, 700, 1], &[1.0, 0.05, 0.002], 1.3);
        check_gradients(&[random(&[5, 2, 6], 1)], |t| rope(&t[0], &table), |t| composed(&t[0], &table))
    }
}
