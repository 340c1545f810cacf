//! `y = x W^T`: the projections and the output head.

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor};

use super::gemm::{Into, Matrix, gemm};
use super::{contiguous, data, dense, wide};

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
pub(super) fn product(x: &[f32], weight: &[f32], k: usize, into: Into, out: &mut [f32]) {
    let (m, n) = (x.len() / k, weight.len() / k);
    gemm(Matrix::new(x, m, k), Matrix::new(weight, n, k).t(), into, out);
}

/// The gradient of x: `dy [m, n]`, `weight [n, k]` -> `[m, k]`.
pub(super) fn input_gradient(dy: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (m, k) = (dy.dim(0)?, weight.dim(1)?);
    let mut dx = vec![0f32; m * k];
    dense::input_gradient(&data(&dy.contiguous()?)?, &weight.contiguous()?, &mut dx, false)?;
    Tensor::from_vec(dx, (m, k), dy.device())
}

/// The gradient of the weight: `dy [m, n]`, `x [m, k]` -> `[n, k]`.
pub(super) fn weight_gradient(dy: &Tensor, x: &Tensor) -> Result<Tensor> {
    let dw = Tensor::zeros((dy.dim(1)?, x.dim(1)?), DType::F32, dy.device())?;
    dense::weight_gradient(&data(&dy.contiguous()?)?, &data(&x.contiguous()?)?, &dw, false)?;
    Ok(dw)
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
        product(contiguous(x, lx)?, contiguous(w, lw)?, k, Into::Set, &mut out);
        Ok((CpuStorage::F32(out), (m, n).into()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let dy = dy.detach();
        // Detached, or the gradients would keep the whole graph that x and w stand in alive. What is not trained gets
        // none: under adapters that saves half of the backward pass.
        let dx = x.track_op().then(|| input_gradient(&dy, &w.detach())).transpose()?;
        let dw = w.track_op().then(|| weight_gradient(&dy, &x.detach())).transpose()?;
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
