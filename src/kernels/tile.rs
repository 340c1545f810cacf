//! Products of small packed matrices: the inner loops of attention.

use pulp::Simd;

/// `out[i, j] = sum_k a[i, k] b[k, j]`, or the same added to `out`. Every sum is one chain of multiply-adds over k, so
/// it does not depend on the tile that it is computed in.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub(super) rows: usize,
    /// Columns; they are rounded up to whole vectors, see [`Tile::run`].
    pub(super) columns: usize,
    pub(super) depth: usize,
    pub(super) a: *const f32,
    /// Distances between rows and between columns of `a`.
    pub(super) a_steps: (usize, usize),
    pub(super) b: *const f32,
    /// Distance between rows of `b`, whose columns are neighbours.
    pub(super) b_row: usize,
    pub(super) out: *mut f32,
    /// Distance between rows of `out`, whose columns are neighbours.
    pub(super) out_row: usize,
    pub(super) accumulate: bool,
}

/// The most lanes that a vector has.
pub(super) const LANES: usize = 16;
/// Rows that are multiplied at once.
pub(super) const BLOCK: usize = 6;

impl Tile {
    /// # Safety
    /// The pointers reach all elements that the sizes name. Columns are rounded up to a multiple of [`LANES`]: `b` can be
    /// read and `out` written that far.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(super) unsafe fn run<S: Simd>(self, simd: S) {
        let vectors = self.columns.next_multiple_of(LANES) / S::F32_LANES;
        let mut v = 0;
        // SAFETY: the caller's promise; the blocks below lie within the rounded sizes.
        unsafe {
            if S::REGISTER_COUNT >= 32 {
                while v + 4 <= vectors {
                    self.panel::<S, 4>(simd, v * S::F32_LANES);
                    v += 4;
                }
            }
            while v + 2 <= vectors {
                self.panel::<S, 2>(simd, v * S::F32_LANES);
                v += 2;
            }
            while v < vectors {
                self.panel::<S, 1>(simd, v * S::F32_LANES);
                v += 1;
            }
        }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn panel<S: Simd, const V: usize>(&self, simd: S, column: usize) {
        let mut i = 0;
        // SAFETY: `i` stays below the number of rows.
        unsafe {
            while i + BLOCK <= self.rows {
                self.block::<S, BLOCK, V>(simd, i, column);
                i += BLOCK;
            }
            if i + 3 <= self.rows {
                self.block::<S, 3, V>(simd, i, column);
                i += 3;
            }
            if i + 2 <= self.rows {
                self.block::<S, 2, V>(simd, i, column);
                i += 2;
            }
            if i < self.rows {
                self.block::<S, 1, V>(simd, i, column);
            }
        }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn block<S: Simd, const R: usize, const V: usize>(&self, simd: S, row: usize, column: usize) {
        let (a_row, a_column) = self.a_steps;
        // SAFETY: the caller of `run` promised that these elements are there.
        unsafe {
            let out = |r: usize, v: usize| {
                self.out.add((row + r) * self.out_row + column + v * S::F32_LANES).cast::<S::f32s>()
            };
            let mut sums: [[S::f32s; V]; R] = match self.accumulate {
                true => std::array::from_fn(|r| std::array::from_fn(|v| out(r, v).read_unaligned())),
                false => [[simd.splat_f32s(0.0); V]; R],
            };
            let mut a: [*const f32; R] = std::array::from_fn(|r| self.a.add((row + r) * a_row));
            let mut b = self.b.add(column);
            for _ in 0..self.depth {
                let bs: [S::f32s; V] =
                    std::array::from_fn(|v| b.add(v * S::F32_LANES).cast::<S::f32s>().read_unaligned());
                for r in 0..R {
                    let x = simd.splat_f32s(*a[r]);
                    for v in 0..V {
                        sums[r][v] = simd.mul_add_f32s(x, bs[v], sums[r][v]);
                    }
                    a[r] = a[r].wrapping_add(a_column);
                }
                b = b.wrapping_add(self.b_row);
            }
            for (r, sums) in sums.iter().enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    out(r, v).write_unaligned(*sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::WithSimd;

    struct Run(Tile);

    impl WithSimd for Run {
        type Output = ();

        #[inline(always)]
        #[allow(unsafe_code)]
        fn with_simd<S: Simd>(self, simd: S) {
            // SAFETY: the test makes its matrices as large as `run` asks.
            unsafe { self.0.run(simd) };
        }
    }

    #[test]
    fn each_element_is_one_chain_of_multiply_adds_both_ways_round() {
        let ramp = |n: usize, f: f32| (0..n).map(|i| (i as f32 * f).sin()).collect::<Vec<_>>();
        for (rows, columns, depth) in [(1usize, 1usize, 1usize), (6, 16, 5), (11, 70, 33), (16, 33, 24)] {
            let wide = columns.next_multiple_of(LANES);
            let (a, b, start) = (ramp(rows * depth, 0.3), ramp(depth * wide, 0.17), ramp(rows * wide, 0.7));
            for a_steps in [(depth, 1), (1, rows)] {
                for accumulate in [false, true] {
                    let mut out = start.clone();
                    let (a_data, b_data) = (a.as_ptr(), b.as_ptr());
                    let tile = Tile {
                        rows,
                        columns,
                        depth,
                        a: a_data,
                        a_steps,
                        b: b_data,
                        b_row: wide,
                        out: out.as_mut_ptr(),
                        out_row: wide,
                        accumulate,
                    };
                    pulp::Arch::new().dispatch(Run(tile));
                    for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                        let first = if accumulate { start[i * wide + j] } else { 0.0 };
                        let factor = |k: usize| a[i * a_steps.0 + k * a_steps.1];
                        let want = (0..depth).fold(first, |sum, k| factor(k).mul_add(b[k * wide + j], sum));
                        assert_eq!(
                            out[i * wide + j].to_bits(),
                            want.to_bits(),
                            "{i}, {j} of {rows} x {columns}"
                        );
                    }
                }
            }
        }
    }
}
