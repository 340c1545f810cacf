//! The f32 matrix product that everything with weights is made of, good from one row to thousands.
//!
//! Every element of a result is one chain of fused multiply-adds over the reduction index, in order, starting from zero
//! or from what the result held. Neither the tile that an element falls into, nor which operand is packed, nor the
//! number of rows beside it changes the chain. So a row's numbers are the same alone and in any batch, bit for bit,
//! which libraries that choose their blocks by the shape do not promise.
//!
//! The loops are those of BLIS (Van Zee and van de Geijn 2015): a panel of the vectorised operand is packed, then rows of
//! the other one, whose elements are broadcast, pass over it. A product with few rows (decoding) takes the weights as
//! the broadcast operand: they are read once, in place, at the speed of memory.

mod tile;

use std::ops::Range;

use rayon::prelude::*;

use super::SharedMut;
use tile::{Task, Vectors, WIDTH};

/// Below this many multiply-adds a product runs on one thread, since waking another costs more.
const PARALLEL: usize = 1 << 19;
/// Up to so many rows the weights are what is broadcast.
const FEW: usize = 64;
/// Rows that one task takes when they are read in place: enough that packing the panel beside them costs little.
const ROWS_IN_PLACE: usize = 480;
/// Rows that one task takes when they are packed: they stay in the second-level cache.
const ROWS_PACKED: usize = 144;

/// A matrix somewhere in memory: element (i, j) at `data[i * row + j * column]`.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
}

impl<'a> Matrix<'a> {
    /// `rows` of `columns` elements, one row after the other.
    pub(super) fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * columns, "a matrix fills its data");
        Self { data, rows, columns, row: columns, column: 1 }
    }

    /// The transposed matrix, in the same place.
    pub(super) fn t(self) -> Self {
        Self { rows: self.columns, columns: self.rows, row: self.column, column: self.row, ..self }
    }

    /// The elements from (i, j) on.
    fn from(&self, i: usize, j: usize) -> &'a [f32] {
        &self.data[i * self.row + j * self.column..]
    }
}

/// What a product does with what its result held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Into {
    /// Overwrites it.
    Set,
    /// Adds to it.
    Add,
}

/// `out (+)= a b` with `a [m, k]`, `b [k, n]` and `out [m, n]`, row-major.
pub(super) fn gemm(a: Matrix, b: Matrix, into: Into, out: &mut [f32]) {
    assert_eq!(a.columns, b.rows, "as many columns as rows");
    assert_eq!(out.len(), a.rows * b.columns, "an element for every row and column");
    if out.is_empty() {
        return;
    }
    if a.columns == 0 && into == Into::Set {
        out.fill(0.0);
    }
    let start = SharedMut::new(out);
    if a.rows <= FEW && a.rows < b.columns && b.row == 1 {
        Job { a: b.t(), b: a.t(), out: Out { start, row: 1, column: b.columns }, into }
            .run(Vectors::for_columns(a.rows));
    } else {
        Job { a, b, out: Out { start, row: b.columns, column: 1 }, into }
            .run(Vectors::for_columns(b.columns));
    }
}

/// Where a result goes: element (i, j) at `start[i * row + j * column]`.
#[derive(Clone, Copy)]
struct Out {
    start: SharedMut,
    row: usize,
    column: usize,
}

/// A product whose second operand is vectorised along its columns. The elements of the first are broadcast.
#[derive(Clone, Copy)]
struct Job<'a> {
    a: Matrix<'a>,
    b: Matrix<'a>,
    out: Out,
    into: Into,
}

impl Job<'_> {
    /// Whether rows of `a` can be read where they are.
    fn in_place(&self) -> bool {
        self.a.column == 1
    }

    fn run(self, vectors: Vectors) {
        let (m, n) = (self.a.rows, self.b.columns);
        let threads = if m * n * self.a.columns < PARALLEL { 1 } else { rayon::current_num_threads() };
        let width = WIDTH * vectors.lanes();
        let most = if self.in_place() { ROWS_IN_PLACE } else { ROWS_PACKED };
        // A multiple of the threads, so that none waits for the last chunk.
        let rows = m.div_ceil(m.div_ceil(most).next_multiple_of(threads)).next_multiple_of(4);
        let chunks = m.div_ceil(rows);
        // Packed rows pass over all panels, so that they are packed once.
        let ranges = if self.in_place() { (8 * threads).div_ceil(chunks) } else { 1 };
        let columns = n.div_ceil(width).div_ceil(ranges) * width;
        let tasks = chunks * n.div_ceil(columns);
        let part = |t: usize, size: usize, end: usize| -> Range<usize> { t * size..end.min((t + 1) * size) };
        let task = |t: usize| {
            let (rows, columns) = (part(t % chunks, rows, m), part(t / chunks, columns, n));
            vectors.dispatch(Task { job: self, rows, columns });
        };
        if threads == 1 {
            (0..tasks).for_each(task);
        } else {
            (0..tasks).into_par_iter().with_max_len(1).for_each(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(n: usize, f: f32) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * f).sin()).collect()
    }

    /// Shapes around every edge: lanes, panels, blocks of rows, the depth of a block, few and many rows, both sides of
    /// the limit for one thread.
    const SHAPES: [(usize, usize, usize); 12] = [
        (1, 1, 1),
        (1, 70, 40),
        (2, 9, 8),
        (5, 7, 9),
        (8, 40, 33),
        (9, 100, 17),
        (17, 200, 515),
        (13, 50, 600),
        (64, 65, 12),
        (65, 64, 31),
        (70, 100, 1030),
        (600, 33, 64),
    ];

    #[test]
    fn each_element_is_one_chain_of_fused_multiply_adds() {
        for (m, n, k) in SHAPES {
            let (x, w) = (ramp(m * k, 0.37), ramp(n * k, 0.11));
            let chain = |start: f32, terms: &mut dyn Iterator<Item = (f32, f32)>| {
                terms.fold(start, |sum, (a, b)| a.mul_add(b, sum)).to_bits()
            };
            let (x_m, w_m) = (Matrix::new(&x, m, k), Matrix::new(&w, n, k));
            let mut y = vec![f32::NAN; m * n];
            gemm(x_m, w_m.t(), Into::Set, &mut y);
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let want = chain(0.0, &mut (0..k).map(|p| (x[i * k + p], w[j * k + p])));
                assert_eq!(y[i * n + j].to_bits(), want, "y[{i}, {j}] of {m} x {n} x {k}");
            }
            let y_m = Matrix::new(&y, m, n);
            let mut dx = vec![f32::NAN; m * k];
            gemm(y_m, w_m, Into::Set, &mut dx);
            for (i, j) in (0..m).flat_map(|i| (0..k).map(move |j| (i, j))) {
                let want = chain(0.0, &mut (0..n).map(|p| (y[i * n + p], w[p * k + j])));
                assert_eq!(dx[i * k + j].to_bits(), want, "dx[{i}, {j}] of {m} x {n} x {k}");
            }
            let mut dw = vec![0.5; n * k];
            gemm(y_m.t(), x_m, Into::Add, &mut dw);
            for (i, j) in (0..n).flat_map(|i| (0..k).map(move |j| (i, j))) {
                let want = chain(0.5, &mut (0..m).map(|p| (y[p * n + i], x[p * k + j])));
                assert_eq!(dw[i * k + j].to_bits(), want, "dw[{i}, {j}] of {m} x {n} x {k}");
            }
        }
    }

    #[test]
    fn vectors_of_half_the_width_give_the_same() {
        for (m, n, k) in SHAPES {
            let (x, w) = (ramp(m * k, 0.37), ramp(n * k, 0.11));
            let (a, b) = (Matrix::new(&x, m, k), Matrix::new(&w, n, k).t());
            let product = |vectors| {
                let mut y = vec![0.0; m * n];
                let out = Out { start: SharedMut::new(&mut y), row: n, column: 1 };
                Job { a, b, out, into: Into::Set }.run(vectors);
                y
            };
            assert_eq!(product(Vectors::Widest), product(Vectors::Half), "{m} x {n} x {k}");
        }
    }

    #[test]
    fn an_empty_product_is_zero() {
        let mut out = vec![1.0; 6];
        gemm(Matrix::new(&[], 2, 0), Matrix::new(&[], 0, 3), Into::Set, &mut out);
        assert_eq!(out, [0.0; 6]);
        gemm(Matrix::new(&[], 0, 2), Matrix::new(&[1.0; 6], 2, 3), Into::Set, &mut []);
    }
}
