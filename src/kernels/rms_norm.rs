//! Root-mean-square norm: `y = x / sqrt(mean(x^2) + eps) * weight` (Zhang and Sennrich 2019, arXiv 1910.07467).

use candle_core::{CpuStorage, CustomOp2, D, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{contiguous, exp::sum, vectorised, wide, with_data};

/// Rows that one task takes; also the unit in which the weight's gradient is summed, so that its order is fixed.
const TASK_ROWS: usize = 64;

/// `x [m, d]`, `weight [d]` -> `[m, d]`.
pub fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    if x.device().is_cpu() {
        wide(x)?.apply_op2(&wide(weight)?, RmsNorm { eps: eps as f32 })?.to_dtype(x.dtype())
    } else {
        composed(x, weight, eps)
    }
}

fn composed(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    let mean = x.sqr()?.mean_keepdim(D::Minus1)?;
    x.broadcast_div(&(mean + eps)?.sqrt()?)?.broadcast_mul(weight)
}

struct RmsNorm {
    eps: f32,
}

impl RmsNorm {
    #[inline(always)]
    fn inverse(&self, row: &[f32], square: &mut [f32]) -> f32 {
        for (s, &x) in square.iter_mut().zip(row) {
            *s = x * x;
        }
        1.0 / (sum(square) / row.len() as f32 + self.eps).sqrt()
    }

    /// Gradients of a block of rows; returns the block's share of the weight's gradient.
    #[inline(always)]
    fn backward_rows(&self, x: &[f32], w: &[f32], dy: &[f32], dx: &mut [f32]) -> Vec<f32> {
        let d = w.len();
        let (mut dw, mut scratch) = (vec![0f32; d], vec![0f32; d]);
        for ((x, dy), dx) in x.chunks_exact(d).zip(dy.chunks_exact(d)).zip(dx.chunks_exact_mut(d)) {
            let inverse = self.inverse(x, &mut scratch);
            for i in 0..d {
                dw[i] += dy[i] * x[i] * inverse;
                scratch[i] = dy[i] * w[i] * x[i];
            }
            // d(1/rms)/dx spreads each row's dot product over the row.
            let spread = sum(&scratch) * inverse * inverse * inverse / d as f32;
            for i in 0..d {
                dx[i] = dy[i] * w[i] * inverse - x[i] * spread;
            }
        }
        dw
    }
}

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        w: &CpuStorage,
        lw: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, w) = (contiguous(x, lx)?, contiguous(w, lw)?);
        let d = w.len();
        if lx.dims().last() != Some(&d) {
            candle_core::bail!("rms_norm: x {:?} against weight {:?}", lx.shape(), lw.shape());
        }
        let mut out = vec![0f32; x.len()];
        let rows = |(out, x): (&mut [f32], &[f32])| {
            vectorised(
                #[inline(always)]
                || {
                    let mut square = vec![0f32; d];
                    for (out, x) in out.chunks_exact_mut(d).zip(x.chunks_exact(d)) {
                        let inverse = self.inverse(x, &mut square);
                        for i in 0..d {
                            out[i] = x[i] * inverse * w[i];
                        }
                    }
                },
            )
        };
        out.par_chunks_mut(TASK_ROWS * d).zip(x.par_chunks(TASK_ROWS * d)).for_each(rows);
        Ok((CpuStorage::F32(out), lx.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let d = w.elem_count();
        let mut dx = vec![0f32; x.elem_count()];
        let shares: Vec<Vec<f32>> = with_data(x, |xs| {
            with_data(w, |ws| {
                with_data(dy, |dys| {
                    let blocks = dx.par_chunks_mut(TASK_ROWS * d);
                    let blocks = blocks.zip(xs.par_chunks(TASK_ROWS * d)).zip(dys.par_chunks(TASK_ROWS * d));
                    let share = |((dx, x), dy): ((&mut [f32], &[f32]), &[f32])| {
                        vectorised(
                            #[inline(always)]
                            || self.backward_rows(x, ws, dy, dx),
                        )
                    };
                    Ok(blocks.map(share).collect())
                })
            })
        })?;
        let mut dw = vec![0f32; d];
        for share in shares {
            dw.iter_mut().zip(share).for_each(|(a, b)| *a += b);
        }
        let dx = Tensor::from_vec(dx, x.shape(), x.device())?;
        Ok((Some(dx), Some(Tensor::from_vec(dw, w.shape(), w.device())?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::{check_gradients, random};

    #[test]
    fn fused_equals_composed_and_gradients_agree() -> Result<()> {
        let inputs = [random(&[70, 24], 1), random(&[24], 2)];
        check_gradients(&inputs, |t| rms_norm(&t[0], &t[1], 1e-5), |t| composed(&t[0], &t[1], 1e-5))
    }
}
