//! Root-mean-square norm: `y = x / sqrt(mean(x^2) + eps) * weight` (Zhang and Sennrich 2019, arXiv 1910.07467).

use candle_core::{CpuStorage, CustomOp2, D, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{
    contiguous, data,
    exp::{dot, fold},
    vectorised, wide,
};

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

/// `out = x / rms(x) * weight` row by row, on slices; `inverses` gets each row's `1 / rms`.
pub(crate) fn forward(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32], inverses: &mut [f32]) {
    let d = weight.len();
    assert!(out.len() == x.len() && inverses.len() * d == x.len(), "a place for every row");
    let rows = |((out, x), inverses): ((&mut [f32], &[f32]), &mut [f32])| {
        vectorised(
            #[inline(always)]
            || {
                for ((out, x), inverse) in out.chunks_exact_mut(d).zip(x.chunks_exact(d)).zip(&mut *inverses)
                {
                    *inverse = 1.0 / (dot(x, x) / d as f32 + eps).sqrt();
                    for ((out, x), w) in out.iter_mut().zip(x).zip(weight) {
                        *out = x * *inverse * w;
                    }
                }
            },
        )
    };
    let blocks = out.par_chunks_mut(TASK_ROWS * d).zip(x.par_chunks(TASK_ROWS * d));
    blocks.zip(inverses.par_chunks_mut(TASK_ROWS)).for_each(rows);
}

/// The gradients of [`forward`], added to `dx` and `dweight`.
pub(crate) fn backward([x, weight, inverses, dy]: [&[f32]; 4], dx: &mut [f32], dweight: &mut [f32]) {
    let d = weight.len();
    assert!(dx.len() == x.len() && dy.len() == x.len() && inverses.len() * d == x.len());
    let block = TASK_ROWS * d;
    let inputs = x.par_chunks(block).zip(dy.par_chunks(block)).zip(inverses.par_chunks(TASK_ROWS));
    let shares = dx.par_chunks_mut(block).zip(inputs).map(|(dx, ((x, dy), inverses))| {
        let mut share = vec![0f32; d];
        vectorised(
            #[inline(always)]
            || {
                let rows = x.chunks_exact(d).zip(dy.chunks_exact(d)).zip(dx.chunks_exact_mut(d));
                for (((x, dy), dx), &inverse) in rows.zip(inverses) {
                    backward_row([x, weight, dy], inverse, dx, &mut share);
                }
            },
        );
        share
    });
    for share in shares.collect::<Vec<_>>() {
        dweight.iter_mut().zip(share).for_each(|(a, b)| *a += b);
    }
}

#[inline(always)]
fn backward_row([x, weight, dy]: [&[f32]; 3], inverse: f32, dx: &mut [f32], dweight: &mut [f32]) {
    let (d, mut lanes) = (x.len(), [0f32; 16]);
    let chunks = x.chunks_exact(16).zip(weight.chunks_exact(16)).zip(dy.chunks_exact(16));
    for ((x, w), dy) in chunks {
        for (((lane, x), w), dy) in lanes.iter_mut().zip(x).zip(w).zip(dy) {
            *lane += dy * w * x;
        }
    }
    let tail: f32 = (d / 16 * 16..d).map(|i| dy[i] * weight[i] * x[i]).sum();
    // d(1/rms)/dx spreads each row's dot product over the row.
    let spread = (fold(lanes, |a, b| a + b) + tail) * inverse * inverse * inverse / d as f32;
    for ((((dx, x), w), dy), dw) in dx.iter_mut().zip(x).zip(weight).zip(dy).zip(dweight) {
        *dw += dy * x * inverse;
        *dx += dy * w * inverse - x * spread;
    }
}

struct RmsNorm {
    eps: f32,
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
        if lx.dims().last() != Some(&w.len()) {
            candle_core::bail!("rms_norm: x {:?} against weight {:?}", lx.shape(), lw.shape());
        }
        let mut out = vec![0f32; x.len()];
        forward(x, w, self.eps, &mut out, &mut vec![0f32; x.len() / w.len()]);
        Ok((CpuStorage::F32(out), lx.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let dy = dy.contiguous()?;
        let (xs, ws, dy) = (data(x)?, data(w)?, data(&dy)?);
        let (mut y, mut inverses) = (vec![0f32; xs.len()], vec![0f32; xs.len() / ws.len()]);
        forward(&xs, &ws, self.eps, &mut y, &mut inverses);
        let (mut dx, mut dw) = (vec![0f32; xs.len()], vec![0f32; ws.len()]);
        backward([&xs, &ws, &inverses, &dy], &mut dx, &mut dw);
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
