//! Projections of one input, whose results stand side by side: one product where their weights are plain.

use candle_core::{Result, Tensor};

use crate::kernels::{Input, Output, Packed, QuantisedMatrix, Threads};
use crate::model::projection::{LowRank, Projection, Weight};

/// `y = x W^T + bias + scale * (x A^T) B^T` for one or several of these.
pub(super) struct Projections {
    parts: Vec<Part>,
    /// Columns of all results together.
    pub(super) columns: usize,
    bias: Option<Vec<f32>>,
    shares: Vec<Share>,
}

struct Part {
    matrix: Matrix,
    /// Its first column.
    at: usize,
}

enum Matrix {
    Packed(Packed),
    Quantised(QuantisedMatrix),
}

/// What an adapter adds to the columns from `at` on.
struct Share {
    /// `[r, k]`, scaled
    a: Packed,
    /// `[n, r]`
    b: Packed,
    at: usize,
}

impl Projections {
    pub(super) fn new(projections: &[&Projection]) -> Result<Self> {
        let weights: Vec<&Weight> = projections.iter().map(|projection| &projection.weight).collect();
        let mut all = Self::of_weights(&weights)?;
        let mut at = 0;
        for projection in projections {
            let columns = projection.weight.dims()[0];
            if let Some(LowRank { a, b, scale }) = &projection.low_rank {
                all.shares.push(Share { a: Packed::new(&[&(a * *scale)?])?, b: Packed::new(&[b])?, at });
            }
            if let Some(bias) = &projection.bias {
                let biases = all.bias.get_or_insert_with(|| vec![0.0; all.columns]);
                biases[at..at + columns].copy_from_slice(&super::numbers(bias)?);
            }
            at += columns;
        }
        Ok(all)
    }

    /// A product without anything added.
    pub(super) fn plain(weight: &Weight) -> Result<Self> {
        Self::of_weights(&[weight])
    }

    fn of_weights(weights: &[&Weight]) -> Result<Self> {
        let plain = |weight: &&Weight| match weight {
            Weight::Dense(tensor) => Some(tensor.clone()),
            Weight::Quantised(_) => None,
        };
        let columns = weights.iter().map(|weight| weight.dims()[0]).sum();
        if let Some(tensors) = weights.iter().map(plain).collect::<Option<Vec<Tensor>>>() {
            let matrix = Matrix::Packed(Packed::new(&tensors.iter().collect::<Vec<_>>())?);
            return Ok(Self { parts: vec![Part { matrix, at: 0 }], columns, bias: None, shares: Vec::new() });
        }
        let mut at = 0;
        let part = |weight: &&Weight| {
            let matrix = match weight {
                Weight::Dense(tensor) => Matrix::Packed(Packed::new(&[tensor])?),
                Weight::Quantised(matrix) => Matrix::Quantised(matrix.clone()),
            };
            at += weight.dims()[0];
            Ok(Part { matrix, at: at - weight.dims()[0] })
        };
        let parts = weights.iter().map(part).collect::<Result<_>>()?;
        Ok(Self { parts, columns, bias: None, shares: Vec::new() })
    }

    /// Whether all weights are plain numbers.
    pub(super) fn is_plain(&self) -> bool {
        self.parts.iter().all(|part| matches!(part.matrix, Matrix::Packed(_)))
    }

    /// Writes the projections of `x` to whole rows of `out`, or adds them to what is there.
    pub(super) fn apply(&self, x: Input, out: &mut [f32], add: bool, threads: Threads) -> Result<()> {
        let stride = self.columns;
        for Part { matrix, at } in &self.parts {
            match matrix {
                Matrix::Packed(packed) => {
                    packed.product(x, Output { data: &mut out[*at..], stride, add }, threads)
                }
                Matrix::Quantised(matrix) => quantised(matrix, x, &mut out[*at..], stride, add)?,
            }
        }
        for Share { a, b, at } in &self.shares {
            let rank = a.columns();
            let mut inner = vec![0.0; x.rows * rank];
            a.product(x, Output { data: &mut inner, stride: rank, add: false }, threads);
            let inner = Input { data: &inner, stride: rank, rows: x.rows };
            b.product(inner, Output { data: &mut out[*at..], stride, add: true }, threads);
        }
        if let Some(bias) = &self.bias {
            for row in out.chunks_exact_mut(stride) {
                row.iter_mut().zip(bias).for_each(|(y, &b)| *y += b);
            }
        }
        Ok(())
    }
}

fn quantised(matrix: &QuantisedMatrix, x: Input, out: &mut [f32], stride: usize, add: bool) -> Result<()> {
    let (n, k) = matrix.dims();
    let rows: Vec<f32> = x.data.chunks(x.stride).take(x.rows).flat_map(|row| row[..k].to_vec()).collect();
    let y = matrix.product(&Tensor::from_vec(rows, (x.rows, k), &candle_core::Device::Cpu)?)?;
    let y = super::numbers(&y)?;
    for (row, y) in out.chunks_mut(stride).zip(y.chunks_exact(n)) {
        let row = &mut row[..n];
        match add {
            true => row.iter_mut().zip(y).for_each(|(out, y)| *out += y),
            false => row.copy_from_slice(y),
        }
    }
    Ok(())
}
