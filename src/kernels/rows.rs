//! The operations between the products on rows of plain numbers, as the engine's pass has them; each on one thread.

use super::exp::exp;
use super::vectorised;

/// Sums run in this many lanes.
const LANES: usize = 16;

/// Root-mean-square norm of the rows of `x`, see [`super::rms_norm`]; `x` and `out` are whole rows of the weight's width.
pub(crate) fn norm_rows(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let d = weight.len();
    vectorised(
        #[inline(always)]
        || {
            for (x, out) in x.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
                let inverse = 1.0 / (square_sum(x) / d as f32 + eps).sqrt();
                for ((out, &x), &w) in out.iter_mut().zip(x).zip(weight) {
                    *out = x * inverse * w;
                }
            }
        },
    );
}

#[inline(always)]
fn square_sum(row: &[f32]) -> f32 {
    let mut lanes = [0f32; LANES];
    let chunks = row.chunks_exact(LANES);
    let tail = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = x.mul_add(x, *lane);
        }
    }
    lanes.iter().copied().chain(tail.iter().map(|&x| x * x)).sum()
}

/// Turns the heads of one row by the angles with these cosines and sines, see [`super::rope`].
pub(crate) fn rotate_row(heads: &mut [f32], cos: &[f32], sin: &[f32]) {
    let half = cos.len();
    vectorised(
        #[inline(always)]
        || {
            for head in heads.chunks_exact_mut(2 * half) {
                let (a, b) = head.split_at_mut(half);
                for i in 0..half {
                    (a[i], b[i]) = (a[i] * cos[i] - b[i] * sin[i], b[i] * cos[i] + a[i] * sin[i]);
                }
            }
        },
    );
}

/// Gate and up, side by side in rows of twice `width` -> `silu(gate) * up` in the gate's place.
pub(crate) fn swiglu_rows(rows: &mut [f32], width: usize) {
    vectorised(
        #[inline(always)]
        || {
            for row in rows.chunks_exact_mut(2 * width) {
                let (gate, up) = row.split_at_mut(width);
                for (g, &u) in gate.iter_mut().zip(up.iter()) {
                    *g = *g / (1.0 + exp(-*g)) * u;
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use candle_core::{Result, Tensor};

    use super::*;
    use crate::kernels::tests::random;
    use crate::kernels::{RopeTable, rms_norm, rope, swiglu};

    fn numbers(tensor: &Tensor) -> Vec<f32> {
        tensor.flatten_all().and_then(|t| t.to_vec1()).expect("a tensor of numbers")
    }

    fn close(got: &[f32], want: &Tensor) {
        let gap = got.iter().zip(numbers(want)).fold(0f32, |gap, (a, b)| gap.max((a - b).abs()));
        assert!(gap < 1e-6, "gap {gap}");
    }

    #[test]
    fn they_are_those_of_training() -> Result<()> {
        let (x, weight) = (random(&[5, 40], 1), random(&[40], 2));
        let mut out = vec![0.0; 200];
        norm_rows(&numbers(&x), &numbers(&weight), 1e-5, &mut out);
        close(&out, &rms_norm(&x, &weight, 1e-5)?);

        let (gate, up) = (x.narrow(1, 0, 20)?, x.narrow(1, 20, 20)?);
        let mut rows = numbers(&x);
        swiglu_rows(&mut rows, 20);
        let kept: Vec<f32> = rows.chunks_exact(40).flat_map(|row| row[..20].to_vec()).collect();
        close(&kept, &swiglu(&gate, &up)?);

        let frequencies = [1f32, 0.3, 0.05, 0.01];
        let mut row = numbers(&x)[..40].to_vec();
        let (cos, sin): (Vec<f32>, Vec<f32>) =
            frequencies.iter().map(|f| ((7.0 * f).cos(), (7.0 * f).sin())).unzip();
        rotate_row(&mut row, &cos, &sin);
        let heads = x.narrow(0, 0, 1)?.reshape((1, 5, 8))?;
        close(&row, &rope(&heads, &RopeTable::new(&[7], &frequencies, 1.0))?);
        Ok(())
    }
}
