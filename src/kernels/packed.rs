//! A weight matrix laid out for products with few or many rows: packed once, used in every pass of the engine.
//!
//! Its rows (the columns of the result) stand in panels of 32, element k of all of them side by side. A pass over a panel
//! reads memory in order, ahead of its use, whatever the number of rows of x, and each weight once for every dozen of them.
//!
//! Every element of the result is one chain of fused multiply-adds in the order of k, so it depends neither on the
//! other rows nor on how the work is split.

use std::ops::Range;

use candle_core::{Result, Tensor};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::lines::Lines;
use super::prefetch::fetch_far;
use super::{SharedMut, Threads, wide, with_data};

/// Columns of the result that are packed side by side.
const PANEL: usize = 32;
/// Rows of x that a tile takes at most: with two vectors each that is as many sums as registers hold.
const fn tile_rows(lanes: usize) -> usize {
    // AVX2 has sixteen registers, AVX-512 and NEON have thirty-two.
    if lanes == 8 { 6 } else { 12 }
}
/// Elements of x that stay in the second-level cache while panels pass by.
const CHUNK: usize = 1 << 16;
/// Below this many multiply-adds a product runs on one thread, since waking another costs more.
const PARALLEL: usize = 1 << 19;

/// Weights `[n, k]`, packed.
pub struct Packed {
    /// `[panel][k][PANEL]`; columns beyond n are zero.
    data: Lines,
    n: usize,
    k: usize,
}

/// Rows of x: `rows` of them, `stride` apart.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The first row and all that follow.
    pub data: &'a [f32],
    /// Elements from row to row.
    pub stride: usize,
    /// How many.
    pub rows: usize,
}

/// Where a result goes: its first row stands at `data[0]`, the next `stride` further on.
pub struct Output<'a> {
    /// The first row and all that follow.
    pub data: &'a mut [f32],
    /// Elements from row to row.
    pub stride: usize,
    /// Whether the result is added to what is there.
    pub add: bool,
}

impl Packed {
    /// Packs `weights [n_i, k]`, one below the other.
    pub fn new(weights: &[&Tensor]) -> Result<Self> {
        let dims = weights.iter().map(|weight| weight.dims2()).collect::<Result<Vec<_>>>()?;
        let k = dims.first().map_or(0, |&(_, k)| k);
        let whole_panels = dims.iter().rev().skip(1).all(|(n, _)| n.is_multiple_of(PANEL));
        if dims.iter().any(|&(_, width)| width != k) || k == 0 {
            candle_core::bail!("packed: weights {dims:?} do not stand below each other");
        }
        if !whole_panels {
            return Self::new(&[&Tensor::cat(weights, 0)?]);
        }
        let n: usize = dims.iter().map(|(n, _)| n).sum();
        let mut data = Lines::zeros(n.next_multiple_of(PANEL) * k);
        let mut rest = &mut data[..];
        for (weight, (n, _)) in weights.iter().zip(dims) {
            let (panels, others) = rest.split_at_mut(n.next_multiple_of(PANEL) * k);
            rest = others;
            with_data(&wide(weight)?, |weight| {
                let rows = weight.par_chunks(PANEL * k);
                panels.par_chunks_mut(PANEL * k).zip(rows).for_each(|(panel, rows)| pack(panel, rows, k));
                Ok(())
            })?;
        }
        Ok(Self { data, n, k })
    }

    /// Columns of a result.
    pub fn columns(&self) -> usize {
        self.n
    }

    /// `x [rows, k]` -> `x W^T [rows, n]`.
    pub fn product(&self, x: Input, out: Output, threads: Threads) {
        let (n, k) = (self.n, self.k);
        if x.rows == 0 {
            return;
        }
        assert!(x.stride >= k && (x.rows - 1) * x.stride + k <= x.data.len(), "rows of x within their data");
        assert!(
            out.stride >= n && (x.rows - 1) * out.stride + n <= out.data.len(),
            "rows of the result within their place"
        );
        let place = SharedMut::new(out.data);
        let panels = n.div_ceil(PANEL);
        let strip = |panels: Range<usize>| {
            let strip = Strip { matrix: self, panels, x, out: place, stride: out.stride, add: out.add };
            pulp::Arch::new().dispatch(strip);
        };
        let threads = threads.count().min(panels);
        if threads == 1 || x.rows * n * k < PARALLEL {
            return strip(0..panels);
        }
        // SAFETY of all strips together: each writes the columns of its own panels.
        (0..threads).into_par_iter().for_each(|t| strip(t * panels / threads..(t + 1) * panels / threads));
    }
}

/// Writes up to PANEL rows of k weights into a panel.
fn pack(panel: &mut [f32], rows: &[f32], k: usize) {
    // Of a width that keeps the part of the panel in the first cache.
    const WIDTH: usize = 64;
    for (block, panel) in panel.chunks_mut(WIDTH * PANEL).enumerate() {
        for (column, row) in rows.chunks_exact(k).enumerate() {
            let places = panel[column..].iter_mut().step_by(PANEL);
            places.zip(&row[block * WIDTH..]).for_each(|(place, &w)| *place = w);
        }
    }
}

/// The columns of some panels.
struct Strip<'a> {
    matrix: &'a Packed,
    panels: Range<usize>,
    x: Input<'a>,
    out: SharedMut,
    stride: usize,
    add: bool,
}

impl WithSimd for Strip<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rows, most) = (self.x.rows, tile_rows(S::F32_LANES));
        let chunk = (CHUNK / self.matrix.k).max(1).next_multiple_of(most);
        for start in (0..rows).step_by(chunk) {
            let rows = chunk.min(rows - start);
            let tiles = rows.div_ceil(most);
            for panel in self.panels.clone() {
                let end = self.matrix.n.min((panel + 1) * PANEL);
                let (here, next) = (self.panel(panel), self.panel((panel + 1).min(self.panels.end - 1)));
                for column in (panel * PANEL..end).step_by(2 * S::F32_LANES) {
                    for t in 0..tiles {
                        // Tiles of nearly equal height.
                        let (first, end) = (t * rows / tiles, (t + 1) * rows / tiles);
                        // The first two tiles fetch the two lines of every step of the next panel.
                        let line =
                            |wanted: bool, line: &[f32]| if wanted { line.as_ptr() } else { here.as_ptr() };
                        let ahead = [line(t == 0, next), line(t == 1 || tiles == 1, &next[PANEL / 2..])];
                        self.tile_of(simd, start + first..start + end, column, ahead);
                    }
                }
            }
        }
    }
}

impl Strip<'_> {
    /// The weights of a panel.
    #[inline(always)]
    fn panel(&self, panel: usize) -> &[f32] {
        let size = PANEL * self.matrix.k;
        &self.matrix.data[panel * size..(panel + 1) * size]
    }

    #[inline(always)]
    fn tile_of<S: Simd>(&self, simd: S, rows: Range<usize>, column: usize, ahead: [*const f32; 2]) {
        let first = rows.start;
        match rows.len() {
            12 => self.tile::<S, 12>(simd, first, column, ahead),
            11 => self.tile::<S, 11>(simd, first, column, ahead),
            10 => self.tile::<S, 10>(simd, first, column, ahead),
            9 => self.tile::<S, 9>(simd, first, column, ahead),
            8 => self.tile::<S, 8>(simd, first, column, ahead),
            7 => self.tile::<S, 7>(simd, first, column, ahead),
            6 => self.tile::<S, 6>(simd, first, column, ahead),
            5 => self.tile::<S, 5>(simd, first, column, ahead),
            4 => self.tile::<S, 4>(simd, first, column, ahead),
            3 => self.tile::<S, 3>(simd, first, column, ahead),
            2 => self.tile::<S, 2>(simd, first, column, ahead),
            _ => self.tile::<S, 1>(simd, first, column, ahead),
        }
    }

    /// `M` rows from `first` on, two vectors of columns from `column` on. Meanwhile a line of memory behind each place of
    /// `ahead` is fetched per step.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn tile<S: Simd, const M: usize>(&self, simd: S, first: usize, column: usize, ahead: [*const f32; 2]) {
        let (n, k, panel) = (self.matrix.n, self.matrix.k, self.panel(column / PANEL));
        let mut sums = [[simd.splat_f32s(0.0); 2]; M];
        // SAFETY: `column` stands at a multiple of two vectors within its panel of k times PANEL weights, and PANEL is a
        // multiple of two vectors; `product` checked that all rows of x hold k elements.
        unsafe {
            let x = self.x.data.as_ptr().add(first * self.x.stride);
            let w = panel.as_ptr().add(column % PANEL);
            for i in 0..k {
                fetch_far(ahead[0].wrapping_add(i * PANEL));
                fetch_far(ahead[1].wrapping_add(i * PANEL));
                let vector =
                    |v: usize| w.add(i * PANEL + v * S::F32_LANES).cast::<S::f32s>().read_unaligned();
                let w = [vector(0), vector(1)];
                for (a, sums) in sums.iter_mut().enumerate() {
                    let x = simd.splat_f32s(*x.add(a * self.x.stride + i));
                    sums[0] = simd.mul_add_f32s(x, w[0], sums[0]);
                    sums[1] = simd.mul_add_f32s(x, w[1], sums[1]);
                }
            }
        }
        for (a, sums) in sums.iter().enumerate() {
            // SAFETY: `product` checked that the place holds n columns of every row; the columns of a panel are written
            // by one strip.
            unsafe {
                let out = self.out.at((first + a) * self.stride + column);
                self.write(simd, sums, out, n - column);
            }
        }
    }

    /// Writes two vectors, of which `columns` elements count.
    ///
    /// # Safety
    /// `out` points to as many elements that nobody else uses meanwhile.
    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn write<S: Simd>(&self, simd: S, sums: &[S::f32s; 2], out: *mut f32, columns: usize) {
        let mut part = [0f32; PANEL];
        let whole = columns >= 2 * S::F32_LANES;
        for (v, &sum) in sums.iter().enumerate() {
            let place = if whole { out } else { part.as_mut_ptr() };
            // SAFETY: the caller's promise, or `part`, which holds two vectors.
            unsafe {
                let place = place.add(v * S::F32_LANES).cast::<S::f32s>();
                let add = self.add && whole;
                place.write_unaligned(if add { simd.add_f32s(place.read_unaligned(), sum) } else { sum });
            }
        }
        if !whole {
            for (i, &sum) in part[..columns].iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { *out.add(i) = if self.add { *out.add(i) + sum } else { sum } };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::random;

    fn plain(x: &[f32], w: &[f32], k: usize) -> f32 {
        x.iter().zip(w).take(k).fold(0.0, |sum, (&x, &w)| x.mul_add(w, sum))
    }

    /// Also: rows apart, sums onto what is there, on one thread and on all, any number of rows.
    #[test]
    fn every_element_is_one_chain_of_multiply_adds() -> Result<()> {
        for (m, n, k) in [(1, 5, 3), (3, 33, 8), (8, 64, 7), (23, 103, 40), (200, 70, 700)] {
            let (x, w) = (random(&[m, k + 3], 1), random(&[n, k], 2));
            let (x, weights) = (x.flatten_all()?.to_vec1::<f32>()?, w.flatten_all()?.to_vec1::<f32>()?);
            let first = if n > PANEL { PANEL } else { n / 2 };
            let packed = Packed::new(&[&w.narrow(0, 0, first)?, &w.narrow(0, first, n - first)?])?;
            for (threads, add) in [(Threads::One, false), (Threads::All, false), (Threads::All, true)] {
                let mut out = vec![0.5; m * (n + 2)];
                let input = Input { data: &x, stride: k + 3, rows: m };
                packed.product(input, Output { data: &mut out, stride: n + 2, add }, threads);
                for (i, out) in out.chunks_exact(n + 2).enumerate() {
                    for j in 0..n {
                        let want = plain(&x[i * (k + 3)..], &weights[j * k..], k);
                        let want = if add { 0.5 + want } else { want };
                        assert_eq!(out[j].to_bits(), want.to_bits(), "{i}, {j} of {m} x {n} x {k}");
                    }
                    assert_eq!(out[n..], [0.5, 0.5], "nothing beyond the columns is touched");
                }
            }
        }
        Ok(())
    }
}
