//! One step of AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101) on one parameter.

use candle_core::{Result, Tensor, Var};
use rayon::prelude::*;

use super::{data, exp::dot, vectorised, with_data_mut};

const TASK: usize = 1 << 16;

/// The numbers of one step.
#[derive(Clone, Copy, Debug)]
pub struct AdamWStep {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Number of this step, from 1, for the bias correction.
    pub step: usize,
    /// Factor on the gradient (clipping, averaging).
    pub grad_scale: f64,
}

/// Updates `param` and its `moments [2, elements of param]` (first, second) in place.
pub fn adamw(param: &Var, grad: &Tensor, moments: &Var, step: &AdamWStep) -> Result<()> {
    let grad = grad.contiguous()?;
    if param.device().is_cpu() {
        let grad = data(&grad)?;
        return with_data_mut(param, |param| {
            with_data_mut(moments, |moments| {
                match moments.len() == 2 * grad.len() && param.len() == grad.len() {
                    true => {
                        step.update(param, &grad, moments);
                        Ok(())
                    }
                    false => candle_core::bail!("adamw: {} gradients, {} moments", grad.len(), moments.len()),
                }
            })
        })??;
    }
    composed(param, &grad, moments, step)
}

fn composed(param: &Var, grad: &Tensor, moments: &Var, s: &AdamWStep) -> Result<()> {
    let grad = (grad.flatten_all()? * s.grad_scale)?;
    let first = ((moments.get(0)? * s.beta1)? + (&grad * (1.0 - s.beta1))?)?;
    let second = ((moments.get(1)? * s.beta2)? + (grad.sqr()? * (1.0 - s.beta2))?)?;
    moments.set(&Tensor::stack(&[&first, &second], 0)?)?;
    let (c1, c2) = s.corrections();
    let change = ((first / c1)? / ((second / c2)?.sqrt()? + s.eps)?)?.reshape(param.shape())?;
    let decayed = (param.as_tensor() * (1.0 - s.lr * s.weight_decay))?;
    param.set(&(decayed - (change * s.lr)?)?)
}

impl AdamWStep {
    /// One pass over parameter, gradient and both moments: memory is what it costs.
    fn update(&self, param: &mut [f32], grad: &[f32], moments: &mut [f32]) {
        let (c1, c2) = self.corrections();
        let (b1, b2, scale) = (self.beta1 as f32, self.beta2 as f32, self.grad_scale as f32);
        let (lr, eps) = (self.lr as f32, self.eps as f32);
        let (rate, c2, keep) = (lr / c1 as f32, 1.0 / c2 as f32, 1.0 - lr * self.weight_decay as f32);
        let (first, second) = moments.split_at_mut(grad.len());
        let blocks = param.par_chunks_mut(TASK).zip(grad.par_chunks(TASK));
        let moments = first.par_chunks_mut(TASK).zip(second.par_chunks_mut(TASK));
        blocks.zip(moments).for_each(|((param, grad), (first, second))| {
            vectorised(
                #[inline(always)]
                || {
                    let moments = first.iter_mut().zip(&mut *second);
                    for ((p, &g), (m, v)) in param.iter_mut().zip(grad).zip(moments) {
                        let g = g * scale;
                        *m = b1 * *m + (1.0 - b1) * g;
                        *v = b2 * *v + (1.0 - b2) * g * g;
                        *p = *p * keep - rate * *m / ((*v * c2).sqrt() + eps);
                    }
                },
            )
        });
    }

    fn corrections(&self) -> (f64, f64) {
        let power = |beta: f64| 1.0 - beta.powi(self.step.min(i32::MAX as usize) as i32);
        (power(self.beta1), power(self.beta2))
    }
}

/// The sum of squares, in parts of fixed size.
pub(crate) fn sum_of_squares(x: &[f32]) -> f64 {
    let part = |x: &[f32]| {
        f64::from(vectorised(
            #[inline(always)]
            || dot(x, x),
        ))
    };
    x.par_chunks(TASK).map(part).collect::<Vec<_>>().into_iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::random;
    use candle_core::{DType, Device};

    #[test]
    fn fused_equals_composed_over_several_steps() -> Result<()> {
        let start = random(&[7, 5], 1);
        let make = || -> Result<(Var, Var)> {
            Ok((Var::from_tensor(&start.copy()?)?, Var::zeros((2, 35), DType::F32, &Device::Cpu)?))
        };
        let ((fused, fused_moments), (plain, plain_moments)) = (make()?, make()?);
        for i in 1..=5 {
            let grad = random(&[7, 5], 10 + i as u64);
            let step = AdamWStep {
                lr: 0.01,
                beta1: 0.9,
                beta2: 0.95,
                eps: 1e-8,
                weight_decay: 0.1,
                step: i,
                grad_scale: 0.5,
            };
            adamw(&fused, &grad, &fused_moments, &step)?;
            composed(&plain, &grad, &plain_moments, &step)?;
        }
        let gap = (fused.as_tensor() - plain.as_tensor())?.abs()?.max_all()?.to_scalar::<f32>()?;
        assert!(gap < 1e-6, "gap {gap}");
        let moved = (fused.as_tensor() - &start)?.abs()?.max_all()?.to_scalar::<f32>()?;
        assert!(moved > 0.01, "moved {moved}");
        Ok(())
    }
}
