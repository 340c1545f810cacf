//! Products of activations with a weight `[n, k]`, and their gradients, on slices.

use candle_core::{Result, Tensor};

use super::gemm::{Into, Matrix, gemm};
use super::{data, with_data_mut};

fn into(accumulate: bool) -> Into {
    if accumulate { Into::Add } else { Into::Set }
}

/// `x [m, k]` -> `y = x W^T [m, n]`, or added to `y`.
pub(crate) fn forward(x: &[f32], weight: &Tensor, y: &mut [f32], accumulate: bool) -> Result<()> {
    let (n, k) = weight.dims2()?;
    let weight = data(weight)?;
    gemm(Matrix::new(x, x.len() / k, k), Matrix::new(&weight, n, k).t(), into(accumulate), y);
    Ok(())
}

/// `dy [m, n]` -> `dx = dy W [m, k]`, or added to `dx`.
pub(crate) fn input_gradient(dy: &[f32], weight: &Tensor, dx: &mut [f32], accumulate: bool) -> Result<()> {
    let (n, k) = weight.dims2()?;
    let weight = data(weight)?;
    gemm(Matrix::new(dy, dy.len() / n, n), Matrix::new(&weight, n, k), into(accumulate), dx);
    Ok(())
}

/// `dy [m, n]`, `x [m, k]` -> `dW = dy^T x [n, k]`, or added to `dweight`.
pub(crate) fn weight_gradient(dy: &[f32], x: &[f32], dweight: &Tensor, accumulate: bool) -> Result<()> {
    let (n, k) = dweight.dims2()?;
    with_data_mut(dweight, |dweight| {
        gemm(Matrix::new(dy, dy.len() / n, n).t(), Matrix::new(x, x.len() / k, k), into(accumulate), dweight);
    })
}
