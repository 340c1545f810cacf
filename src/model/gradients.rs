//! Gradients by parameter name, summed over the micro-batches of a step in buffers that live on to the next.

use std::collections::BTreeMap;

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor};

use super::Decoder;
use crate::kernels::{self, dense, with_data_mut};

/// Gradients summed over the micro-batches of a step.
#[derive(Default)]
pub struct Gradients(BTreeMap<String, Sum>);

struct Sum {
    buffer: Tensor,
    /// Whether the buffer holds something of this step.
    written: bool,
}

impl Gradients {
    /// Forgets the sums and keeps their buffers, for the next step.
    pub fn clear(&mut self) {
        self.0.values_mut().for_each(|sum| sum.written = false);
    }

    /// Adds the gradients of one micro-batch. They are detached: candle's gradients can be part of a graph, and kept to
    /// the end of a step they would keep the activations of all its micro-batches.
    pub fn add(&mut self, decoder: &Decoder, grads: &GradStore) -> Result<()> {
        for (name, var) in decoder.vars() {
            let Some(grad) = grads.get(var).map(Tensor::detach) else { continue };
            let buffer = match self.get(name) {
                Some(sum) => (sum + grad)?,
                None => grad,
            };
            self.0.insert(name.clone(), Sum { buffer, written: true });
        }
        Ok(())
    }

    /// The gradient of a parameter, once it has one.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.0.get(name).filter(|sum| sum.written).map(|sum| &sum.buffer)
    }

    /// The norm over all parameters.
    pub fn norm(&self) -> Result<f64> {
        let squares = self.0.values().filter(|sum| sum.written).map(|sum| {
            let grad = sum.buffer.contiguous()?;
            match grad.device().is_cpu() {
                true => Ok(kernels::sum_of_squares(&kernels::data(&grad)?)),
                false => Ok(f64::from(grad.sqr()?.sum_all()?.to_scalar::<f32>()?)),
            }
        });
        Ok(squares.sum::<Result<f64>>()?.sqrt())
    }

    /// The buffer of a parameter, and whether something is to be added to it rather than overwrite it. Whoever asks
    /// writes.
    fn buffer(&mut self, name: &str, like: &Tensor) -> Result<(&Tensor, bool)> {
        if !self.0.contains_key(name) {
            let buffer = Tensor::zeros(like.shape(), like.dtype(), like.device())?;
            self.0.insert(name.to_owned(), Sum { buffer, written: false });
        }
        let sum = self.0.get_mut(name).expect("it was just made");
        Ok((&sum.buffer, std::mem::replace(&mut sum.written, true)))
    }

    /// Adds `dy^T x` to the gradient of a weight `[n, k]`, on the CPU.
    pub(super) fn add_product(&mut self, name: &str, like: &Tensor, dy: &[f32], x: &[f32]) -> Result<()> {
        let (buffer, accumulate) = self.buffer(name, like)?;
        dense::weight_gradient(dy, x, buffer, accumulate)
    }

    /// Lets `f` add to the gradient of a parameter, on the CPU.
    pub(super) fn add_with<R>(
        &mut self,
        name: &str,
        like: &Tensor,
        f: impl FnOnce(&mut [f32]) -> R,
    ) -> Result<R> {
        let (buffer, accumulate) = self.buffer(name, like)?;
        with_data_mut(buffer, |sum| {
            if !accumulate {
                sum.fill(0.0);
            }
            f(sum)
        })
    }

    /// Lets `f` write the gradient of a parameter, or add to it where its second argument says so, on the CPU.
    pub(super) fn write_with<R>(
        &mut self,
        name: &str,
        like: &Tensor,
        f: impl FnOnce(&mut [f32], bool) -> R,
    ) -> Result<R> {
        let (buffer, accumulate) = self.buffer(name, like)?;
        with_data_mut(buffer, |sum| f(sum, accumulate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{DType, Device};

    #[test]
    fn sums_of_an_earlier_step_are_forgotten_and_those_of_this_one_added() -> Result<()> {
        let weight = Tensor::zeros((2, 3), DType::F32, &Device::Cpu)?;
        let (dy, x) = ([1.0, 2.0], [1.0, 10.0, 100.0]);
        let product = [1.0, 10.0, 100.0, 2.0, 20.0, 200.0];
        let mut gradients = Gradients::default();
        for _ in 0..2 {
            gradients.clear();
            assert!(gradients.get("w").is_none() && gradients.norm()? == 0.0);
            gradients.add_product("w", &weight, &dy, &x)?;
            gradients.add_with("w", &weight, |sum| sum[0] += 0.5)?;
            gradients.add_product("w", &weight, &dy, &x)?;
            gradients.add_with("v", &weight, |sum| sum[1] += 1.0)?;
            let sum = |name: &str| gradients.get(name).expect("it has one").flatten_all()?.to_vec1::<f32>();
            let want: Vec<f32> =
                product.iter().enumerate().map(|(i, p)| 2.0 * p + if i == 0 { 0.5 } else { 0.0 }).collect();
            assert_eq!(sum("w")?, want);
            assert_eq!(sum("v")?, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        }
        Ok(())
    }
}
