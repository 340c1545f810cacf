//! The gated activation of the MLP: `silu(gate) * up` (Shazeer 2020, arXiv 2002.05202).

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{contiguous, exp::exp, vectorised, wide, with_data};

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
        Ok((CpuStorage::F32(out), lg.shape().clone()))
    }

    fn bwd(
        &self,
        g: &Tensor,
        u: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let n = g.elem_count();
        let (mut dg, mut du) = (vec![0f32; n], vec![0f32; n]);
        with_data(g, |gate| {
            with_data(u, |up| {
                with_data(dy, |dy| {
                    let blocks = dg.par_chunks_mut(TASK).zip(du.par_chunks_mut(TASK));
                    let inputs = gate.par_chunks(TASK).zip(up.par_chunks(TASK)).zip(dy.par_chunks(TASK));
                    blocks.zip(inputs).for_each(|((dg, du), ((gate, up), dy))| {
                        vectorised(
                            #[inline(always)]
                            || {
                                for i in 0..dg.len() {
                                    let s = sigmoid(gate[i]);
                                    du[i] = dy[i] * gate[i] * s;
                                    dg[i] = dy[i] * up[i] * s * (1.0 + gate[i] * (1.0 - s));
                                }
                            },
                        )
                    });
                    Ok(())
                })
            })
        })?;
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
