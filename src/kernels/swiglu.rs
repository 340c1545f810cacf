//! The gated activation of the MLP: `silu(gate) * up` (Shazeer 2020, arXiv 2002.05202).

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{contiguous, data, exp::exp, vectorised, wide};

const TASK: usize = 1 << 14;

/// `gate`, `up` of one shape -> `silu(gate) * up`.
pub fn swiglu(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    if gate.device().is_cpu() {
        wide(gate)?.apply_op2(&wide(up)?, SwiGlu)?.to_dtype(gate.dtype())
    } else {
        composed(gate, up)
    }
}

fn composed(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    gate.silu()? * up
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `out = silu(gate) * up`, on slices.
pub(crate) fn forward(gate: &[f32], up: &[f32], out: &mut [f32]) {
    assert!(gate.len() == out.len() && up.len() == out.len());
    let blocks = out.par_chunks_mut(TASK).zip(gate.par_chunks(TASK)).zip(up.par_chunks(TASK));
    blocks.for_each(|((out, gate), up)| {
        vectorised(
            #[inline(always)]
            || {
                for ((o, &g), &u) in out.iter_mut().zip(gate).zip(up) {
                    *o = g * sigmoid(g) * u;
                }
            },
        )
    });
}

/// The gradient in place: `gate` and `up` turn into their gradients, `slope` from the gradient of the output into the
/// output.
pub(crate) fn backward(gate: &mut [f32], up: &mut [f32], slope: &mut [f32]) {
    assert!(gate.len() == slope.len() && up.len() == slope.len());
    let blocks = gate.par_chunks_mut(TASK).zip(up.par_chunks_mut(TASK)).zip(slope.par_chunks_mut(TASK));
    blocks.for_each(|((gate, up), slope)| {
        vectorised(
            #[inline(always)]
            || {
                for ((gate, up), slope) in gate.iter_mut().zip(&mut *up).zip(&mut *slope) {
                    let (g, u, dy) = (*gate, *up, *slope);
                    let s = sigmoid(g);
                    *gate = dy * u * s * (1.0 + g * (1.0 - s));
                    *up = dy * g * s;
                    *slope = g * s * u;
                }
            },
        )
    });
}

struct SwiGlu;

impl CustomOp2 for SwiGlu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn cpu_fwd(
        &self,
        g: &CpuStorage,
        lg: &Layout,
        u: &CpuStorage,
        lu: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (gate, up) = (contiguous(g, lg)?, contiguous(u, lu)?);
        if gate.len() != up.len() {
            candle_core::bail!("swiglu: gate {:?} against up {:?}", lg.shape(), lu.shape());
        }
        let mut out = vec![0f32; gate.len()];
        forward(gate, up, &mut out);
        Ok((CpuStorage::F32(out), lg.shape().clone()))
    }

    fn bwd(
        &self,
        g: &Tensor,
        u: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let [mut dg, mut du] = [data(g)?.to_vec(), data(u)?.to_vec()];
        let mut slope = data(&dy.contiguous()?)?.to_vec();
        backward(&mut dg, &mut du, &mut slope);
        let tensor = |data| Tensor::from_vec(data, g.shape(), g.device());
        Ok((Some(tensor(dg)?), Some(tensor(du)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::{check_gradients, random};

    #[test]
    fn fused_equals_composed_and_gradients_agree() -> Result<()> {
        let inputs = [random(&[9, 20], 1), random(&[9, 20], 2)];
        check_gradients(&inputs, |t| swiglu(&t[0], &t[1]), |t| composed(&t[0], &t[1]))
    }
}
