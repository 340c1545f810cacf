//! Projections with what belongs to them, a bias and an adapter's low-rank share, and their gradients.

use candle_core::Result;

use super::{Pass, dense};
use crate::kernels::dense as product;
use crate::kernels::{self};
use crate::model::gradients::Gradients;
use crate::model::projection::{LowRank, Projection};

/// `y = x W^T + bias + scale * (x A^T) B^T`, or the same added to `y`.
pub(super) fn project(projection: &Projection, x: &[f32], y: &mut [f32], accumulate: bool) -> Result<()> {
    product::forward(x, dense(&projection.weight)?, y, accumulate)?;
    if let Some(part) = &projection.low_rank {
        product::forward(&inner(part, x)?, &part.b, y, true)?;
    }
    let Some(bias) = &projection.bias else { return Ok(()) };
    let bias = kernels::data(bias)?;
    y.chunks_exact_mut(bias.len()).for_each(|row| row.iter_mut().zip(&*bias).for_each(|(y, b)| *y += b));
    Ok(())
}

/// The gradient of `x`, or the same added to `dx`.
pub(super) fn input_gradient(
    projection: &Projection,
    dy: &[f32],
    dx: &mut [f32],
    accumulate: bool,
) -> Result<()> {
    product::input_gradient(dy, dense(&projection.weight)?, dx, accumulate)?;
    match &projection.low_rank {
        Some(part) => product::input_gradient(&inner_slope(part, dy)?, &part.a, dx, true),
        None => Ok(()),
    }
}

/// `scale * x A^T`
fn inner(part: &LowRank, x: &[f32]) -> Result<Vec<f32>> {
    let (r, k) = part.a.dims2()?;
    let mut inner = vec![0f32; x.len() / k * r];
    product::forward(x, &part.a, &mut inner, false)?;
    inner.iter_mut().for_each(|x| *x *= part.scale as f32);
    Ok(inner)
}

/// The gradient of `x A^T`.
fn inner_slope(part: &LowRank, dy: &[f32]) -> Result<Vec<f32>> {
    let (n, r) = part.b.dims2()?;
    let mut slope = vec![0f32; dy.len() / n * r];
    product::input_gradient(dy, &part.b, &mut slope, false)?;
    slope.iter_mut().for_each(|x| *x *= part.scale as f32);
    Ok(slope)
}

impl Pass<'_> {
    /// Adds the gradients of whatever in a projection is trained.
    pub(super) fn weight_gradients(
        &self,
        projection: &Projection,
        module: &str,
        dy: &[f32],
        x: &[f32],
        gradients: &mut Gradients,
    ) -> Result<()> {
        let name = format!("{module}.weight");
        if self.trains(&name) {
            gradients.add_product(&name, dense(&projection.weight)?, dy, x)?;
        }
        if let Some(part) = &projection.low_rank {
            let [a, b] = ["lora_A", "lora_B"].map(|part| format!("{module}.{part}.weight"));
            gradients.add_product(&b, &part.b, dy, &inner(part, x)?)?;
            gradients.add_product(&a, &part.a, &inner_slope(part, dy)?, x)?;
        }
        let name = format!("{module}.bias");
        match &projection.bias {
            Some(bias) if self.trains(&name) => gradients.add_with(&name, bias, |dbias| {
                for row in dy.chunks_exact(dbias.len()) {
                    dbias.iter_mut().zip(row).for_each(|(sum, dy)| *sum += dy);
                }
            }),
            _ => Ok(()),
        }
    }

    /// Whether a parameter is trained as a whole.
    pub(super) fn trains(&self, name: &str) -> bool {
        self.decoder.vars().contains_key(name)
    }
}
