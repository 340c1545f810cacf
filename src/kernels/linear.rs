//! `y = x W^T`: the projections and the output head.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::dot::{Dots, Rows};
use super::{SharedMut, contiguous, wide};

/// Rows of x that one task takes: they stay in the second-level cache while the weights pass by.
const TASK_ROWS: usize = 48;
/// Below this many multiply-adds a product runs on one thread, since waking another costs more.
const PARALLEL: usize = 1 << 17;

/// `x [m, k] -> y [m, n]` with `weight [n, k]` as stored by Hugging Face.
///
/// Row i of y depends on row i of x alone, bit for bit.
pub fn linear(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if x.device().is_cpu() {
        wide(x)?.apply_op2(&wide(weight)?, Linear)?.to_dtype(x.dtype())
    } else {
        x.matmul(&weight.t()?)
    }
}

/// The product on plain slices: `x [m, k]`, `weight [n, k]` -> `out [m, n]`.
pub(super) fn product(x: &[f32], weight: &[f32], k: usize, out: &mut [f32]) {
    let (m, n) = (x.len() / k, weight.len() / k);
    assert_eq!(out.len(), m * n);
    let out = SharedMut::new(out);
    let block = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
        let w = Rows::new(&weight[columns.start * k..columns.end * k], k, k, columns.len());
        let at = rows.start * n + columns.start;
        let x = Rows::new(&x[rows.start * k..rows.end * k], k, k, rows.len());
        // SAFETY: the block lies within the m x n elements of out; different blocks write different elements.
        #[allow(unsafe_code)]
        pulp::Arch::new().dispatch(unsafe { Dots::new(x, w, 1.0, out.at(at), n) });
    };
    let threads = rayon::current_num_threads();
    if m * n * k < PARALLEL || threads == 1 {
        (0..m.div_ceil(TASK_ROWS)).for_each(|t| block(t * TASK_ROWS..m.min((t + 1) * TASK_ROWS), 0..n));
    } else if m >= TASK_ROWS * threads {
        let tasks = m.div_ceil(TASK_ROWS);
        (0..tasks).into_par_iter().for_each(|t| block(t * TASK_ROWS..m.min((t + 1) * TASK_ROWS), 0..n));
    } else {
        let width = n.div_ceil(threads).next_multiple_of(4);
        (0..n.div_ceil(width)).into_par_iter().for_each(|t| {
            (0..m.div_ceil(TASK_ROWS)).for_each(|r| {
                block(r * TASK_ROWS..m.min((r + 1) * TASK_ROWS), t * width..n.min((t + 1) * width));
            });
        });
    }
}

struct Linear;

impl CustomOp2 for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        w: &CpuStorage,
        lw: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let ((m, k), (n, kw)) = (lx.shape().dims2()?, lw.shape().dims2()?);
        if k != kw {
            candle_core::bail!("linear: x [{m}, {k}] against weight [{n}, {kw}]");
        }
        let mut out = vec![0f32; m * n];
        product(contiguous(x, lx)?, contiguous(w, lw)?, k, &mut out);
        Ok((CpuStorage::F32(out), (m, n).into()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let dy = dy.contiguous()?.detach();
        // Detached, or the gradients would keep the whole graph that x and w stand in alive. What is not trained gets
        // none: under adapters that saves half of the backward pass.
        let dx = x.track_op().then(|| dy.matmul(&w.detach())).transpose()?;
        let dw = w.track_op().then(|| dy.t()?.matmul(&x.detach())).transpose()?;
        Ok((dx, dw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::{check_gradients, random};

    #[test]
    fn fused_equals_matmul_and_gradients_agree() -> Result<()> {
        for (m, n, k) in [(1, 5, 3), (50, 6, 40)] {
            let inputs = [random(&[m, k], 1), random(&[n, k], 2)];
            check_gradients(&inputs, |t| linear(&t[0], &t[1]), |t| t[0].matmul(&t[1].t()?))?;
        }
        Ok(())
    }

    #[test]
    fn a_row_does_not_depend_on_the_others_bit_for_bit() -> Result<()> {
        // On one thread, split by rows, split by columns.
        for (m, n, k) in [(7, 9, 21), (500, 33, 64), (17, 4000, 70)] {
            let (x, w) = (random(&[m, k], 3), random(&[n, k], 4));
            let all = linear(&x, &w)?;
            for i in [0, m / 2, m - 1] {
                let alone = linear(&x.narrow(0, i, 1)?, &w)?.flatten_all()?.to_vec1::<f32>()?;
                assert_eq!(alone, all.get(i)?.to_vec1::<f32>()?, "row {i} of {m} x {n} x {k}");
            }
        }
        Ok(())
    }
}
