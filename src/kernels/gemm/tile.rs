//! The inner loops of the product: packing, and tiles of sums that stay in registers.

use std::cell::Cell;
use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::{Into, Job, Matrix};

/// Vectors that a panel is wide.
pub(super) const WIDTH: usize = 2;
/// Rows of a tile: with two vectors each, 24 of 32 registers hold sums.
const ROWS: usize = 12;
/// Rows of a tile of two vectors where there are 16 registers.
const ROWS_OF_16: usize = 6;
/// Steps of the reduction that a panel is deep: panel and packed rows fit the second-level cache.
const DEPTH: usize = 512;
/// Elements of a cache line.
const LINE: usize = 16;

/// How wide vectors are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vectors {
    /// The widest that the machine has.
    Widest,
    /// At most 256 bits.
    Half,
}

impl Vectors {
    /// Few columns leave half of a wide vector idle, and some machines run two halves in the time of a whole.
    pub(super) fn for_columns(columns: usize) -> Self {
        if columns <= 8 { Self::Half } else { Self::Widest }
    }

    /// Lanes of a vector.
    pub(super) fn lanes(self) -> usize {
        struct Lanes;
        impl WithSimd for Lanes {
            type Output = usize;

            fn with_simd<S: Simd>(self, _: S) -> usize {
                S::F32_LANES
            }
        }
        let widest = pulp::Arch::new().dispatch(Lanes);
        if self == Self::Half { widest.min(8) } else { widest }
    }

    /// Runs a task with them.
    pub(super) fn dispatch(self, task: Task) {
        #[cfg(target_arch = "x86_64")]
        if self == Self::Half
            && let Some(simd) = pulp::x86::V3::try_new()
        {
            return simd.vectorize(On { simd, task });
        }
        pulp::Arch::new().dispatch(task);
    }
}

#[cfg(target_arch = "x86_64")]
struct On<'a, S> {
    simd: S,
    task: Task<'a>,
}

#[cfg(target_arch = "x86_64")]
impl<S: Simd> pulp::NullaryFnOnce for On<'_, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.task.with_simd(self.simd);
    }
}

/// A part of a product: some rows and some columns of its result.
pub(super) struct Task<'a> {
    pub(super) job: Job<'a>,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

thread_local! {
    /// Where panels are packed; kept, since fresh memory has to be zeroed by the system.
    static SCRATCH: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

impl WithSimd for Task<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let steps = self.job.a.columns;
        let panel_len = steps.min(DEPTH) * WIDTH * S::F32_LANES;
        let rows_len = match self.job.in_place() {
            true => 0,
            false => steps.min(DEPTH) * self.rows.len().next_multiple_of(ROWS),
        };
        let mut scratch = SCRATCH.take();
        if scratch.len() < panel_len + rows_len + LINE {
            scratch.resize(panel_len + rows_len + LINE, 0.0);
        }
        let aligned = scratch.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        let (panel, rows) = scratch[aligned..].split_at_mut(panel_len);
        for start in (0..steps).step_by(DEPTH) {
            let block = start..steps.min(start + DEPTH);
            if !self.job.in_place() {
                pack_rows(&self.job.a, self.rows.clone(), block.clone(), rows);
            }
            for j in self.columns.clone().step_by(WIDTH * S::F32_LANES) {
                self.panel(simd, block.clone(), j, panel, rows);
            }
        }
        SCRATCH.set(scratch);
    }
}

impl Task<'_> {
    /// The columns of one panel, from `j` on, over a block of steps.
    #[inline(always)]
    fn panel<S: Simd>(&self, simd: S, block: Range<usize>, j: usize, panel: &mut [f32], rows: &[f32]) {
        let columns = j..self.columns.end.min(j + WIDTH * S::F32_LANES);
        let vectors = columns.len().div_ceil(S::F32_LANES);
        pack_panel(&self.job.b, block.clone(), columns.clone(), vectors * S::F32_LANES, panel);
        if vectors == 1 {
            self.blocks::<S, ROWS, 1>(simd, block, columns, panel, rows);
        } else if S::REGISTER_COUNT < 32 {
            self.blocks::<S, ROWS_OF_16, WIDTH>(simd, block, columns, panel, rows);
        } else {
            self.blocks::<S, ROWS, WIDTH>(simd, block, columns, panel, rows);
        }
    }

    /// All rows against a packed panel, `R` at a time.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn blocks<S: Simd, const R: usize, const V: usize>(
        &self,
        simd: S,
        block: Range<usize>,
        columns: Range<usize>,
        panel: &[f32],
        rows: &[f32],
    ) {
        let Job { a, b, out, into } = self.job;
        let depth = block.len();
        assert!(
            self.rows.end <= a.rows && block.end <= a.columns && columns.end <= b.columns,
            "a part of the job"
        );
        assert!(panel.len() >= depth * V * S::F32_LANES, "a packed panel");
        // Weights that pass by once come from memory: the next rows are asked for while these are computed with.
        let ahead = if b.columns <= V * S::F32_LANES { a.row } else { 0 };
        let mut i = self.rows.start;
        while i < self.rows.end {
            let local = i - self.rows.start;
            let left = match self.rows.end - i {
                left if left >= R => R,
                left if left >= 4 => 4,
                _ => 1,
            };
            // SAFETY: rows i .. i + left and the columns lie within the result, and other tasks have other ones.
            let start = unsafe { out.start.at(i * out.row + columns.start * out.column) };
            let add = into == Into::Add || block.start > 0;
            let to = Place { start, row: out.row, column: out.column, columns: columns.len(), add };
            macro_rules! tile {
                ($rows:expr) => {
                    // SAFETY: the panel was checked above. Rows in place hold the whole block of steps; packed ones do
                    // so in blocks of ROWS, and R and 4 divide ROWS.
                    unsafe {
                        if self.job.in_place() {
                            let from = Broadcast { start: a.from(i, block.start).as_ptr(), row: a.row, ahead };
                            to.tile::<S, $rows, V, 1>(simd, from, panel.as_ptr(), depth);
                        } else {
                            let at = local / ROWS * ROWS * depth + local % ROWS;
                            let from = Broadcast { start: rows[at..].as_ptr(), row: 1, ahead: 0 };
                            to.tile::<S, $rows, V, ROWS>(simd, from, panel.as_ptr(), depth);
                        }
                    }
                };
            }
            match left {
                4 if R != 4 => tile!(4),
                1 => tile!(1),
                _ => tile!(R),
            }
            i += left;
        }
    }
}

/// The rows of the broadcast operand: how far apart they are, and how far apart those that will be asked for next.
#[derive(Clone, Copy)]
struct Broadcast {
    start: *const f32,
    row: usize,
    ahead: usize,
}

/// Where a tile goes.
#[derive(Clone, Copy)]
struct Place {
    start: *mut f32,
    row: usize,
    column: usize,
    columns: usize,
    add: bool,
}

impl Place {
    /// # Safety
    /// `from` has R rows of `depth` elements, STEP apart; `panel` has `depth` times V vectors; the place is part of the
    /// result, and nobody else uses it meanwhile.
    #[inline(always)]
    #[allow(unsafe_code)]
    unsafe fn tile<S: Simd, const R: usize, const V: usize, const STEP: usize>(
        self,
        simd: S,
        from: Broadcast,
        panel: *const f32,
        depth: usize,
    ) {
        let zero = [[simd.splat_f32s(0.0); V]; R];
        let width = V * S::F32_LANES;
        // SAFETY (all of this function): the caller's promise; `at` and `element` stay within the place, `flat` within
        // the R x V vectors that it points to.
        unsafe {
            if self.column == 1 && self.columns == width {
                let at =
                    |r: usize, v: usize| self.start.add(r * self.row + v * S::F32_LANES).cast::<S::f32s>();
                let start = match self.add {
                    true => std::array::from_fn(|r| std::array::from_fn(|v| at(r, v).read_unaligned())),
                    false => zero,
                };
                let sums = chain::<S, R, V, STEP>(simd, from, panel, depth, start);
                for (r, sums) in sums.iter().enumerate() {
                    for (v, sum) in sums.iter().enumerate() {
                        at(r, v).write_unaligned(*sum);
                    }
                }
                return;
            }
            let mut sums = zero;
            let element = |r: usize, c: usize| self.start.add(r * self.row + c * self.column);
            if self.add {
                let flat = sums.as_mut_ptr().cast::<f32>();
                for (r, c) in (0..R).flat_map(|r| (0..self.columns).map(move |c| (r, c))) {
                    *flat.add(r * width + c) = *element(r, c);
                }
            }
            sums = chain::<S, R, V, STEP>(simd, from, panel, depth, sums);
            let flat = sums.as_ptr().cast::<f32>();
            for c in 0..self.columns {
                for r in 0..R {
                    *element(r, c) = *flat.add(r * width + c);
                }
            }
        }
    }
}

/// The multiply-adds of a tile. The sums come and go by value, so that they stay in registers.
///
/// # Safety
/// As [`Place::tile`].
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn chain<S: Simd, const R: usize, const V: usize, const STEP: usize>(
    simd: S,
    from: Broadcast,
    panel: *const f32,
    depth: usize,
    start: [[S::f32s; V]; R],
) -> [[S::f32s; V]; R] {
    let mut sums: [[S::f32s; V]; R] = std::array::from_fn(|r| std::array::from_fn(|v| start[r][v]));
    // SAFETY (all of this function): the caller's promise.
    unsafe {
        let rows: [*const f32; R] = std::array::from_fn(|r| from.start.add(r * from.row));
        let mut step = 0;
        while step < depth {
            let end = depth.min(step + LINE);
            if STEP == 1 && from.ahead > 0 {
                rows.iter().for_each(|row| prefetch(row.wrapping_add(step + R * from.ahead)));
            }
            for p in step..end {
                let panel = panel.add(p * V * S::F32_LANES);
                let vectors: [S::f32s; V] =
                    std::array::from_fn(|v| panel.add(v * S::F32_LANES).cast::<S::f32s>().read_unaligned());
                for r in 0..R {
                    let x = simd.splat_f32s(*rows[r].add(p * STEP));
                    for v in 0..V {
                        sums[r][v] = simd.mul_add_f32s(x, vectors[v], sums[r][v]);
                    }
                }
            }
            step = end;
        }
    }
    std::array::from_fn(|r| std::array::from_fn(|v| sums[r][v]))
}

#[inline(always)]
#[allow(unsafe_code)]
fn prefetch(at: *const f32) {
    // SAFETY: a prefetch of any address has no effect that a program can see.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Rows whose elements are not neighbours -> blocks of ROWS: `packed[block][step][row]`.
fn pack_rows(a: &Matrix, rows: Range<usize>, block: Range<usize>, packed: &mut [f32]) {
    let depth = block.len();
    for (p, step) in block.enumerate() {
        let from = a.from(rows.start, step);
        for (b, start) in (0..rows.len()).step_by(ROWS).enumerate() {
            let to = &mut packed[(b * depth + p) * ROWS..][..ROWS];
            if a.row == 1 && start + ROWS <= rows.len() {
                to.copy_from_slice(&from[start..start + ROWS]);
            } else {
                let row = |r: usize| if start + r < rows.len() { from[(start + r) * a.row] } else { 0.0 };
                to.iter_mut().enumerate().for_each(|(r, to)| *to = row(r));
            }
        }
    }
}

/// Columns of b -> `panel[step][column]`, zeros up to `width`.
#[inline(always)]
fn pack_panel(b: &Matrix, block: Range<usize>, columns: Range<usize>, width: usize, panel: &mut [f32]) {
    let panel = &mut panel[..block.len() * width];
    if b.column == 1 {
        for (step, to) in block.zip(panel.chunks_exact_mut(width)) {
            let (to, rest) = to.split_at_mut(columns.len());
            to.copy_from_slice(&b.from(step, columns.start)[..to.len()]);
            rest.fill(0.0);
        }
        return;
    }
    if columns.len() < width {
        panel.fill(0.0);
    }
    for start in (0..columns.len()).step_by(8) {
        let column = |c: usize| b.from(block.start, columns.start + start + c);
        if b.row == 1 && start + 8 <= columns.len() {
            let from: [&[f32]; 8] = std::array::from_fn(|c| &column(c)[..block.len()]);
            for (p, to) in panel.chunks_exact_mut(width).enumerate() {
                (0..8).for_each(|c| to[start + c] = from[c][p]);
            }
        } else {
            for c in 0..8.min(columns.len() - start) {
                let from = column(c);
                (0..block.len()).for_each(|p| panel[p * width + start + c] = from[p * b.row]);
            }
        }
    }
}
