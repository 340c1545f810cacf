//! `y = x W^T + inner B^T`: a fixed projection and a trained low-rank share in one operation, so that one tensor as wide
//! as the output is kept for the gradient instead of three.

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};

use super::gemm::Into;
use super::linear::{input_gradient, product, weight_gradient};
use super::{contiguous, linear, wide, with_data};

/// `x [m, k]`, `weight [n, k]`, `inner [m, r]`, `b [n, r]` -> `[m, n]`. Differentiable in all but `weight`.
pub fn linear_low_rank(x: &Tensor, weight: &Tensor, inner: &Tensor, b: &Tensor) -> Result<Tensor> {
    if x.device().is_cpu() && !weight.track_op() {
        let op = LinearLowRank { weight: wide(weight)? };
        wide(x)?.apply_op3(&wide(inner)?, &wide(b)?, op)?.to_dtype(x.dtype())
    } else {
        linear(x, weight)? + linear(inner, b)?
    }
}

struct LinearLowRank {
    weight: Tensor,
}

impl CustomOp3 for LinearLowRank {
    fn name(&self) -> &'static str {
        "linear_low_rank"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        inner: &CpuStorage,
        li: &Layout,
        b: &CpuStorage,
        lb: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let ((m, k), (n, kw)) = (lx.shape().dims2()?, self.weight.dims2()?);
        let ((mi, r), (nb, rb)) = (li.shape().dims2()?, lb.shape().dims2()?);
        if (k, m, n, r) != (kw, mi, nb, rb) {
            candle_core::bail!(
                "linear_low_rank: x [{m}, {k}], weight [{n}, {kw}], inner [{mi}, {r}], b [{nb}, {rb}]"
            );
        }
        let mut out = vec![0f32; m * n];
        with_data(&self.weight, |weight| {
            product(contiguous(x, lx)?, weight, k, Into::Set, &mut out);
            Ok(())
        })?;
        product(contiguous(inner, li)?, contiguous(b, lb)?, r, Into::Add, &mut out);
        Ok((CpuStorage::F32(out), (m, n).into()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        inner: &Tensor,
        b: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let dy = dy.contiguous()?.detach();
        let dx = x.track_op().then(|| input_gradient(&dy, &self.weight)).transpose()?;
        Ok((dx, Some(input_gradient(&dy, &b.detach())?), Some(weight_gradient(&dy, &inner.detach())?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::{check_gradients, random};

    #[test]
    fn fused_equals_composed_and_gradients_agree() -> Result<()> {
        let weight = random(&[6, 40], 2);
        let inputs = [random(&[50, 40], 1), random(&[50, 3], 3), random(&[6, 3], 4)];
        check_gradients(
            &inputs,
            |t| linear_low_rank(&t[0], &weight, &t[1], &t[2]),
            |t| t[0].matmul(&weight.t()?)? + t[1].matmul(&t[2].t()?)?,
        )
    }
}
