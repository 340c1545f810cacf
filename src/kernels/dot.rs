//! The two inner loops that everything else is made of: dot products of rows with rows, and weighted sums of rows.

use pulp::{Simd, WithSimd};

/// Rows of equal width at a fixed distance from each other.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    data: &'a [f32],
    stride: usize,
    width: usize,
    count: usize,
}

impl<'a> Rows<'a> {
    /// `count` rows of `width` elements, the first at `data[0]`, the next `stride` further on.
    pub(super) fn new(data: &'a [f32], stride: usize, width: usize, count: usize) -> Self {
        assert!(count == 0 || (count - 1) * stride + width <= data.len(), "rows lie within their data");
        Self { data, stride, width, count }
    }

    /// The first element of a row.
    ///
    /// # Safety
    /// `row` is below `count`; `new` checked that all `count` rows lie within the data.
    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn pointer(&self, row: usize) -> *const f32 {
        debug_assert!(row < self.count);
        // SAFETY: the caller's promise.
        unsafe { self.data.as_ptr().add(row * self.stride) }
    }
}

/// `out[i * stride + j] = scale * x_i . w_j` for all rows of x and w.
///
/// Works on tiles of 3 x 4 rows: twelve sums in registers, seven loads for twelve multiply-adds. Each sum runs in
/// the same lanes and is folded in the same order wherever its tile lies.
pub(super) struct Dots<'a> {
    x: Rows<'a>,
    w: Rows<'a>,
    scale: f32,
    out: *mut f32,
    stride: usize,
}

impl<'a> Dots<'a> {
    /// # Safety
    /// `out` points to the rows of the result: a row for each of x, `stride` apart, an element for each of w. Nobody
    /// else reads or writes them meanwhile.
    #[allow(unsafe_code)]
    pub(super) unsafe fn new(x: Rows<'a>, w: Rows<'a>, scale: f32, out: *mut f32, stride: usize) -> Self {
        assert_eq!(x.width, w.width, "rows of equal width");
        Self { x, w, scale, out, stride }
    }
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut j = 0;
        while j + 4 <= self.w.count {
            self.column::<S, 4>(simd, j);
            j += 4;
        }
        while j < self.w.count {
            self.column::<S, 1>(simd, j);
            j += 1;
        }
    }
}

impl Dots<'_> {
    #[inline(always)]
    fn column<S: Simd, const N: usize>(&self, simd: S, j: usize) {
        let mut i = 0;
        while i + 3 <= self.x.count {
            self.tile::<S, 3, N>(simd, i, j);
            i += 3;
        }
        while i < self.x.count {
            self.tile::<S, 1, N>(simd, i, j);
            i += 1;
        }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn tile<S: Simd, const M: usize, const N: usize>(&self, simd: S, i: usize, j: usize) {
        let lanes = S::F32_LANES;
        let width = self.x.width;
        // SAFETY: `column` and `with_simd` give tiles that lie within the rows.
        let x: [*const f32; M] = std::array::from_fn(|a| unsafe { self.x.pointer(i + a) });
        // SAFETY: as above.
        let w: [*const f32; N] = std::array::from_fn(|b| unsafe { self.w.pointer(j + b) });
        let mut sums = [[simd.splat_f32s(0.0); N]; M];
        let whole = width / lanes * lanes;
        let mut k = 0;
        while k < whole {
            // SAFETY: k + lanes <= width, and `Rows::new` checked every row to hold `width` elements.
            unsafe {
                let xs: [S::f32s; M] =
                    std::array::from_fn(|a| x[a].add(k).cast::<S::f32s>().read_unaligned());
                for b in 0..N {
                    let wv = w[b].add(k).cast::<S::f32s>().read_unaligned();
                    for a in 0..M {
                        sums[a][b] = simd.mul_add_f32s(xs[a], wv, sums[a][b]);
                    }
                }
            }
            k += lanes;
        }
        for a in 0..M {
            for b in 0..N {
                let mut sum = simd.reduce_sum_f32s(sums[a][b]);
                for k in whole..width {
                    // SAFETY: k < width.
                    sum += unsafe { *x[a].add(k) * *w[b].add(k) };
                }
                // SAFETY: `new` demands an `out` that holds all rows of x at this stride.
                unsafe { *self.out.add((i + a) * self.stride + j + b) = sum * self.scale };
            }
        }
    }
}

/// `weight(i, j) = data[i * row + j * column]`.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a> {
    pub(super) data: &'a [f32],
    pub(super) row: usize,
    pub(super) column: usize,
}

/// `out_i += sum_j weight(i, j) * source_j`.
pub(super) struct WeightedSum<'a> {
    weights: Weights<'a>,
    source: Rows<'a>,
    out: *mut f32,
    out_stride: usize,
    out_count: usize,
}

impl<'a> WeightedSum<'a> {
    /// # Safety
    /// `out` points to `out_count` rows of the source's width, `out_stride` apart. Nobody else reads or writes them
    /// meanwhile.
    #[allow(unsafe_code)]
    pub(super) unsafe fn new(
        weights: Weights<'a>,
        source: Rows<'a>,
        out: *mut f32,
        out_stride: usize,
        out_count: usize,
    ) -> Self {
        if out_count > 0 && source.count > 0 {
            let last = (out_count - 1) * weights.row + (source.count - 1) * weights.column;
            assert!(last < weights.data.len(), "a weight for every pair");
        }
        Self { weights, source, out, out_stride, out_count }
    }
}

impl WithSimd for WeightedSum<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if self.out_count == 0 || self.source.count == 0 {
            return;
        }
        let vectors = self.source.width / S::F32_LANES;
        let mut i = 0;
        while i + 2 <= self.out_count {
            self.rows::<S, 2>(simd, i, vectors);
            i += 2;
        }
        if i < self.out_count {
            self.rows::<S, 1>(simd, i, vectors);
        }
    }
}

impl WeightedSum<'_> {
    #[inline(always)]
    fn rows<S: Simd, const M: usize>(&self, simd: S, i: usize, vectors: usize) {
        let mut v = 0;
        while v + 4 <= vectors {
            self.tile::<S, M, 4>(simd, i, v * S::F32_LANES);
            v += 4;
        }
        while v < vectors {
            self.tile::<S, M, 1>(simd, i, v * S::F32_LANES);
            v += 1;
        }
        for k in vectors * S::F32_LANES..self.source.width {
            for a in 0..M {
                self.element(i + a, k);
            }
        }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn tile<S: Simd, const M: usize, const V: usize>(&self, simd: S, i: usize, k: usize) {
        // SAFETY (all of this function): k + V * lanes <= width; `new` checked the last weight and demands an `out` that
        // holds `out_count` rows of the source's width at this stride.
        unsafe {
            let at = |a: usize, v: usize| {
                self.out.add((i + a) * self.out_stride + k + v * S::F32_LANES).cast::<S::f32s>()
            };
            let mut sums: [[S::f32s; V]; M] =
                std::array::from_fn(|a| std::array::from_fn(|v| at(a, v).read_unaligned()));
            for j in 0..self.source.count {
                let row = self.source.pointer(j).add(k);
                let xs: [S::f32s; V] =
                    std::array::from_fn(|v| row.add(v * S::F32_LANES).cast::<S::f32s>().read_unaligned());
                for (a, sums) in sums.iter_mut().enumerate() {
                    let weight = *self
                        .weights
                        .data
                        .get_unchecked((i + a) * self.weights.row + j * self.weights.column);
                    let weight = simd.splat_f32s(weight);
                    for v in 0..V {
                        sums[v] = simd.mul_add_f32s(weight, xs[v], sums[v]);
                    }
                }
            }
            for (a, sums) in sums.iter().enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    at(a, v).write_unaligned(*sum);
                }
            }
        }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn element(&self, i: usize, k: usize) {
        // SAFETY: as in `tile`, with k < width.
        unsafe {
            let out = self.out.add(i * self.out_stride + k);
            for j in 0..self.source.count {
                let weight = self.weights.data[i * self.weights.row + j * self.weights.column];
                *out += weight * *self.source.pointer(j).add(k);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(n: usize, f: f32) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * f).sin()).collect()
    }

    #[allow(unsafe_code)]
    fn dots(x: Rows, w: Rows, out: &mut [f32]) {
        assert_eq!(out.len(), x.count * w.count);
        // SAFETY: the length was checked.
        pulp::Arch::new().dispatch(unsafe { Dots::new(x, w, 0.5, out.as_mut_ptr(), w.count) });
    }

    #[test]
    fn dots_match_the_plain_sum_and_do_not_depend_on_the_tile() {
        for (m, n, k) in [(1, 1, 1), (3, 4, 8), (5, 7, 19), (10, 9, 64)] {
            let (x, w) = (ramp(m * k, 0.37), ramp(n * k, 0.11));
            let mut out = vec![0.0; m * n];
            let rows = |data, count| Rows::new(data, k, k, count);
            dots(rows(&x, m), rows(&w, n), &mut out);
            for i in 0..m {
                for j in 0..n {
                    let want: f32 = (0..k).map(|c| x[i * k + c] * w[j * k + c]).sum();
                    assert!((out[i * n + j] - 0.5 * want).abs() < 1e-4);
                    let mut one = [0.0];
                    dots(rows(&x[i * k..], 1), rows(&w[j * k..], 1), &mut one);
                    assert_eq!(
                        one[0].to_bits(),
                        out[i * n + j].to_bits(),
                        "row {i}, column {j} of {m} x {n}"
                    );
                }
            }
        }
    }

    #[test]
    fn weighted_sums_match_the_plain_sum_both_ways_round() {
        let (m, n, k) = (5, 6, 43);
        let (weights, source) = (ramp(m * n, 0.3), ramp(n * k, 0.21));
        let mut out = vec![1.0; m * k];
        let by_row = Weights { data: &weights, row: n, column: 1 };
        let rows = Rows::new(&source, k, k, n);
        // SAFETY: `out` has m rows of k.
        #[allow(unsafe_code)]
        pulp::Arch::new().dispatch(unsafe { WeightedSum::new(by_row, rows, out.as_mut_ptr(), k, m) });
        for i in 0..m {
            for c in 0..k {
                let want: f32 = 1.0 + (0..n).map(|j| weights[i * n + j] * source[j * k + c]).sum::<f32>();
                assert!((out[i * k + c] - want).abs() < 1e-4);
            }
        }
    }
}
