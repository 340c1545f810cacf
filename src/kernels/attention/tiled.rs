//! Attention over many rows: forward and gradient in tiles of [`ROWS`] queries and [`KEYS`] keys.
//!
//! Keys and values are packed once a head; a tile's scores stay in the first-level cache, the softmax is carried from
//! tile to tile (Dao et al. 2022, arXiv 2205.14135), and the gradient recomputes the scores from the saved
//! log-sum-exp. Nothing of size rows x keys is ever held.
//!
//! A row's keys are counted along what it sees, so where a tile ends depends on the row alone and not on how its
//! context is cut into runs.

use std::collections::BTreeSet;
use std::ops::Range;

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::super::exp::{dot, exp, fold};
use super::super::tile::{BLOCK, LANES, Tile};
use super::super::{SharedMut, vectorised};
use super::{Sizes, check, keys};
use crate::layout::{QueryBlock, Visibility};

/// Queries of a tile: few, since the tile on the diagonal is computed whole.
const ROWS: usize = 4 * BLOCK;
/// Keys of a tile.
const KEYS: usize = 128;
/// Distance between the rows of a tile's scores: the last run of keys is rounded up to whole vectors.
const STRIDE: usize = KEYS + LANES;

/// Memory that outlives a call, so that it is not faulted in again at each.
#[derive(Default)]
pub(crate) struct Scratch {
    packed: Vec<f32>,
    shares: Vec<f32>,
}

/// How one key/value head is packed: natural rows `[keys, wide]` and columns `[width, long]`, zero-padded.
#[derive(Clone, Copy)]
struct Packing {
    keys: usize,
    width: usize,
    wide: usize,
    long: usize,
}

impl Packing {
    fn new(keys: usize, width: usize) -> Self {
        // An odd number of cache lines, or the columns of a tile would share a few sets of the cache.
        let long = ((keys.div_ceil(LANES) + 1) | 1) * LANES;
        Self { keys, width, wide: width.next_multiple_of(LANES), long }
    }

    fn natural(&self) -> usize {
        self.keys * self.wide
    }

    fn turned(&self) -> usize {
        self.width * self.long
    }

    /// Elements of a head's keys and values, each both ways.
    fn total(&self) -> usize {
        2 * (self.natural() + self.turned())
    }

    /// Keys turned, values natural, and for the gradient keys natural, values turned.
    fn split(self, packed: &[f32]) -> Packed<'_> {
        let (keys_turned, rest) = packed.split_at(self.turned());
        let (values, rest) = rest.split_at(self.natural());
        let (keys, values_turned) = rest.split_at(self.natural());
        Packed { keys, keys_turned, values, values_turned, layout: self }
    }

    #[inline(always)]
    fn pack(self, packed: &mut [f32], s: Sizes, head: usize, [k, v]: [&[f32]; 2], gradient: bool) {
        let (keys_turned, rest) = packed.split_at_mut(self.turned());
        let (values, rest) = rest.split_at_mut(self.natural());
        self.turn(keys_turned, k, s, head);
        self.copy(values, v, s, head);
        if gradient {
            let (keys, values_turned) = rest.split_at_mut(self.natural());
            self.copy(keys, k, s, head);
            self.turn(values_turned, v, s, head);
        }
    }

    #[inline(always)]
    fn copy(self, to: &mut [f32], from: &[f32], s: Sizes, head: usize) {
        let rows = from.chunks_exact(s.kv_heads * self.width).zip(to.chunks_exact_mut(self.wide));
        for (from, to) in rows {
            to[..self.width].copy_from_slice(&from[head * self.width..][..self.width]);
            to[self.width..].fill(0.0);
        }
    }

    #[inline(always)]
    fn turn(self, to: &mut [f32], from: &[f32], s: Sizes, head: usize) {
        let stride = s.kv_heads * self.width;
        for first in (0..self.keys).step_by(LANES) {
            let count = LANES.min(self.keys - first);
            // Four columns at once, which the compiler turns in registers.
            for c in (0..self.width).step_by(4) {
                let mut part = [[0f32; 4]; LANES];
                for (l, part) in part.iter_mut().enumerate().take(count) {
                    let row = &from[(first + l) * stride + head * self.width..][c..self.width];
                    match row.first_chunk() {
                        Some(four) => *part = *four,
                        None => part[..row.len()].copy_from_slice(row),
                    }
                }
                for i in 0..4.min(self.width - c) {
                    let to = &mut to[(c + i) * self.long + first..][..LANES];
                    to.iter_mut().zip(&part).for_each(|(to, part)| *to = part[i]);
                }
            }
        }
        to.chunks_exact_mut(self.long).for_each(|row| row[self.keys..].fill(0.0));
    }
}

/// One key/value head.
#[derive(Clone, Copy)]
struct Packed<'a> {
    keys: &'a [f32],
    keys_turned: &'a [f32],
    values: &'a [f32],
    values_turned: &'a [f32],
    layout: Packing,
}

fn grown(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}

/// Packs all heads; the result has one share a key/value head.
fn pack_all<'a>(
    buffer: &'a mut Vec<f32>,
    layout: Packing,
    s: Sizes,
    inputs: [&[f32]; 2],
    gradient: bool,
) -> Vec<Packed<'a>> {
    let packed = grown(buffer, s.kv_heads * layout.total());
    let heads = packed.par_chunks_mut(layout.total()).enumerate();
    heads.for_each(|(head, packed)| {
        vectorised(
            #[inline(always)]
            || layout.pack(packed, s, head, inputs, gradient),
        )
    });
    packed.chunks(layout.total()).map(|packed| layout.split(packed)).collect()
}

/// `out [rows, heads, width]` and the log-sum-exp of each row's scores, `lse [heads, rows]`.
pub(crate) fn forward(
    [q, k, v]: [&[f32]; 3],
    visibility: &Visibility,
    s: Sizes,
    out: &mut [f32],
    lse: &mut [f32],
    scratch: &mut Scratch,
) {
    let rows = q.len() / (s.heads * s.width);
    let layout = Packing::new(k.len() / (s.kv_heads * s.width), s.width);
    assert!(out.len() == q.len() && lse.len() == rows * s.heads, "a place for every row and head");
    assert!(
        k.len() == v.len() && check(visibility, rows, layout.keys).is_ok(),
        "blocks of these rows and keys"
    );
    let packed = pack_all(&mut scratch.packed, layout, s, [k, v], false);
    let (out, lse) = (SharedMut::new(out), SharedMut::new(lse));
    let blocks = &visibility.blocks;
    (0..blocks.len() * s.heads).into_par_iter().with_max_len(1).for_each(|task| {
        let (block, head) = (&blocks[task / s.heads], task % s.heads);
        let packed = packed[head / s.group()];
        pulp::Arch::new().dispatch(Forward { q, packed, block, head, s, rows, out, lse });
    });
}

/// The runs of keys at places `places` among those that a block's rows see, each with its offset from the first place.
fn pieces(block: &QueryBlock, places: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
    let mut at = 0;
    keys(block, block.queries.len()).filter_map(move |run| {
        let (start, end) = (at, at + run.len());
        at = end;
        let (from, to) = (start.max(places.start), end.min(places.end));
        (from < to).then(|| (from - places.start, run.start + from - start..run.start + to - start))
    })
}

/// The rows of a block in tiles: their range within the block, and the number of keys that the first of them sees.
fn chunks(block: &QueryBlock) -> impl Iterator<Item = (Range<usize>, usize)> {
    let (n, shared) = (block.queries.len(), block.context.iter().map(Range::len).sum::<usize>());
    (0..n).step_by(ROWS).map(move |start| (start..n.min(start + ROWS), shared + start + 1))
}

/// Up to [`ROWS`] rows of a head, one after the other and zero-padded.
#[inline(always)]
fn load(from: &[f32], first: usize, count: usize, head: usize, s: Sizes, scale: f32, to: &mut [f32]) {
    let wide = s.width.next_multiple_of(LANES);
    for (i, to) in to.chunks_exact_mut(wide).take(count).enumerate() {
        let from = &from[((first + i) * s.heads + head) * s.width..][..s.width];
        for (to, from) in to.iter_mut().zip(from) {
            *to = from * scale;
        }
    }
}

struct Forward<'a> {
    q: &'a [f32],
    packed: Packed<'a>,
    block: &'a QueryBlock,
    head: usize,
    s: Sizes,
    rows: usize,
    out: SharedMut,
    lse: SharedMut,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(unsafe_code)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (s, layout) = (self.s, self.packed.layout);
        let wide = layout.wide;
        let mut q = vec![0f32; ROWS * wide];
        let mut sums = vec![0f32; ROWS * wide];
        let mut scores = vec![0f32; ROWS * STRIDE];
        for (range, seen) in chunks(self.block) {
            let (count, first) = (range.len(), self.block.queries.start + range.start);
            load(self.q, first, count, self.head, s, s.scale(), &mut q);
            sums.fill(0.0);
            let (mut tops, mut totals) = ([f32::NEG_INFINITY; ROWS], [0f32; ROWS]);
            let last = seen + count - 1;
            for start in (0..last).step_by(KEYS) {
                let end = last.min(start + KEYS);
                for (at, run) in pieces(self.block, start..end) {
                    let tile =
                        scores_tile(&q, self.packed.keys_turned, layout, count, run, &mut scores[at..]);
                    // SAFETY: `pieces` stay below `KEYS`, so that rounded columns fit a row of `STRIDE`; packed columns
                    // are padded by more than a vector.
                    unsafe { tile.run(simd) };
                }
                for i in 0..count {
                    let row = &mut scores[i * STRIDE..][..STRIDE];
                    let visible = (seen + i).saturating_sub(start).min(end - start);
                    softmax_step(
                        row,
                        visible,
                        end - start,
                        &mut tops[i],
                        &mut totals[i],
                        &mut sums[i * wide..][..wide],
                    );
                }
                for (at, run) in pieces(self.block, start..end) {
                    let tile = Tile {
                        rows: count.next_multiple_of(BLOCK),
                        columns: s.width,
                        depth: run.len(),
                        a: scores[at..].as_ptr(),
                        a_steps: (STRIDE, 1),
                        b: self.packed.values[run.start * wide..run.end * wide].as_ptr(),
                        b_row: wide,
                        out: sums.as_mut_ptr(),
                        out_row: wide,
                        accumulate: true,
                    };
                    // SAFETY: as above; packed rows and sums are padded to whole vectors.
                    unsafe { tile.run(simd) };
                }
            }
            for i in 0..count {
                // SAFETY: rows of this block and head, which no other task writes, within `out` and `lse`, whose sizes
                // were checked.
                let (out, lse) = unsafe {
                    let at = self.out.at(((first + i) * s.heads + self.head) * s.width);
                    let out = std::slice::from_raw_parts_mut(at, s.width);
                    (out, &mut *self.lse.at(self.head * self.rows + first + i))
                };
                let inverse = 1.0 / totals[i];
                for (out, sum) in out.iter_mut().zip(&sums[i * wide..]) {
                    *out = sum * inverse;
                }
                *lse = tops[i] + totals[i].ln();
            }
        }
    }
}

/// `scores = rows x columns of the run`.
#[inline(always)]
fn scores_tile(
    rows: &[f32],
    turned: &[f32],
    layout: Packing,
    count: usize,
    run: Range<usize>,
    scores: &mut [f32],
) -> Tile {
    assert!(run.end <= layout.keys && count <= ROWS && rows.len() == ROWS * layout.wide);
    Tile {
        // Whole blocks of rows; nobody looks at those beyond the last.
        rows: count.next_multiple_of(BLOCK),
        columns: run.len(),
        depth: layout.width,
        a: rows.as_ptr(),
        a_steps: (layout.wide, 1),
        b: turned[run.start..].as_ptr(),
        b_row: layout.long,
        out: scores.as_mut_ptr(),
        out_row: STRIDE,
        accumulate: false,
    }
}

/// Turns the first `visible` scores of a row into `e^(score - top)`, the others up to `width` into zeros; carries the
/// row's largest score, its total and its sum of values on.
#[inline(always)]
fn softmax_step(
    row: &mut [f32],
    visible: usize,
    width: usize,
    top: &mut f32,
    total: &mut f32,
    sums: &mut [f32],
) {
    let row = &mut row[..width.next_multiple_of(LANES)];
    row[visible..].fill(f32::NEG_INFINITY);
    if visible == 0 {
        return row.fill(0.0);
    }
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in row.chunks_exact(LANES) {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = if x > *lane { x } else { *lane };
        }
    }
    let new = top.max(fold(lanes, |a, b| if b > a { b } else { a }));
    let mut lanes = [0f32; LANES];
    for chunk in row.chunks_exact_mut(LANES) {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *x = exp(*x - new);
            *lane += *x;
        }
    }
    let keep = exp(*top - new);
    *top = new;
    *total = *total * keep + fold(lanes, |a, b| a + b);
    sums.iter_mut().for_each(|sum| *sum *= keep);
}

/// Gradients of [`forward`], from its output and log-sum-exp: `[dq, dk, dv]` are overwritten.
pub(crate) fn backward(
    [q, k, v, out, dout]: [&[f32]; 5],
    lse: &[f32],
    visibility: &Visibility,
    s: Sizes,
    [dq, dk, dv]: [&mut [f32]; 3],
    scratch: &mut Scratch,
) {
    let rows = q.len() / (s.heads * s.width);
    assert!(lse.len() == rows * s.heads && [out, dout, dq].iter().all(|t| t.len() == q.len()));
    let layout = Packing::new(k.len() / (s.kv_heads * s.width), s.width);
    assert!([v, dk, dv].iter().all(|t| t.len() == k.len()) && check(visibility, rows, layout.keys).is_ok());
    let packed = pack_all(&mut scratch.packed, layout, s, [k, v], true);
    let share = 2 * layout.natural();
    let shares = grown(&mut scratch.shares, s.heads * share);
    shares.par_chunks_mut(1 << 16).for_each(|part| part.fill(0.0));
    let (dq, sums) = (SharedMut::new(dq), SharedMut::new(shares));
    let trees = trees(visibility, layout.keys);
    // One task a query head and tree: the blocks of a tree share keys, so their sums must not run side by side.
    (0..trees.len() * s.heads).into_par_iter().with_max_len(1).for_each(|task| {
        let (blocks, head) = (&trees[task / s.heads], task % s.heads);
        let packed = packed[head / s.group()];
        // SAFETY: within the shares, whose size is that of all heads.
        #[allow(unsafe_code)]
        let [dk, dv] =
            [0, layout.natural()].map(|offset| SharedMut(unsafe { sums.at(head * share + offset) }));
        pulp::Arch::new().dispatch(Backward { q, out, dout, lse, packed, blocks, head, s, rows, dq, dk, dv });
    });
    let shares = &*shares;
    // The heads of a group share their keys and values.
    let row = s.kv_heads * s.width;
    let keys = dk.par_chunks_mut(row).zip(dv.par_chunks_mut(row)).with_min_len(64).enumerate();
    keys.for_each(|(key, (dk, dv))| {
        for (to, offset) in [(dk, 0), (dv, layout.natural())] {
            for (head, to) in to.chunks_exact_mut(s.width).enumerate() {
                let from = |g: usize| {
                    &shares[(head * s.group() + g) * share + offset + key * layout.wide..][..s.width]
                };
                to.copy_from_slice(from(0));
                for g in 1..s.group() {
                    to.iter_mut().zip(from(g)).for_each(|(to, from)| *to += from);
                }
            }
        }
    });
}

/// The blocks of a visibility, those that see a common key together.
fn trees(visibility: &Visibility, count: usize) -> Vec<Vec<&QueryBlock>> {
    let mut trees: Vec<Vec<usize>> = Vec::new();
    let mut tree_of = vec![usize::MAX; count];
    for (i, block) in visibility.blocks.iter().enumerate() {
        let seen = || keys(block, block.queries.len()).flatten();
        let known: BTreeSet<usize> =
            seen().map(|key| tree_of[key]).filter(|&tree| tree != usize::MAX).collect();
        let tree = known.first().copied().unwrap_or(trees.len());
        trees.resize_with(trees.len().max(tree + 1), Vec::new);
        for &other in known.iter().skip(1) {
            let moved = std::mem::take(&mut trees[other]);
            trees[tree].extend(moved);
            tree_of.iter_mut().filter(|of| **of == other).for_each(|of| *of = tree);
        }
        trees[tree].push(i);
        seen().for_each(|key| tree_of[key] = tree);
    }
    let blocks = |mut tree: Vec<usize>| {
        tree.sort_unstable();
        tree.into_iter().map(|i| &visibility.blocks[i]).collect()
    };
    trees.into_iter().filter(|tree| !tree.is_empty()).map(blocks).collect()
}

struct Backward<'a> {
    q: &'a [f32],
    out: &'a [f32],
    dout: &'a [f32],
    lse: &'a [f32],
    packed: Packed<'a>,
    blocks: &'a [&'a QueryBlock],
    head: usize,
    s: Sizes,
    rows: usize,
    dq: SharedMut,
    /// This head's shares of the gradients of keys and values, `[keys, wide]`.
    dk: SharedMut,
    dv: SharedMut,
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(unsafe_code)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (s, layout, p) = (self.s, self.packed.layout, self.packed);
        let wide = layout.wide;
        let [mut q, mut dout, mut out, mut sums] = std::array::from_fn(|_| vec![0f32; ROWS * wide]);
        let [mut weights, mut slopes] = std::array::from_fn(|_| vec![0f32; ROWS * STRIDE]);
        for &block in self.blocks {
            for (range, seen) in chunks(block) {
                let (count, first) = (range.len(), block.queries.start + range.start);
                load(self.q, first, count, self.head, s, s.scale(), &mut q);
                load(self.dout, first, count, self.head, s, 1.0, &mut dout);
                load(self.out, first, count, self.head, s, 1.0, &mut out);
                let lse = &self.lse[self.head * self.rows + first..][..count];
                let mut means = [0f32; ROWS];
                for (i, mean) in means.iter_mut().enumerate().take(count) {
                    *mean = dot(&dout[i * wide..][..wide], &out[i * wide..][..wide]);
                }
                sums.fill(0.0);
                let last = seen + count - 1;
                for start in (0..last).step_by(KEYS) {
                    let end = last.min(start + KEYS);
                    for (at, run) in pieces(block, start..end) {
                        let tile =
                            scores_tile(&q, p.keys_turned, layout, count, run.clone(), &mut weights[at..]);
                        // SAFETY: as in the forward pass.
                        unsafe { tile.run(simd) };
                        let tile = scores_tile(&dout, p.values_turned, layout, count, run, &mut slopes[at..]);
                        // SAFETY: as in the forward pass.
                        unsafe { tile.run(simd) };
                    }
                    for i in 0..count {
                        let at = i * STRIDE..i * STRIDE + (end - start).next_multiple_of(LANES);
                        let visible = (seen + i).saturating_sub(start).min(end - start);
                        softmax_slopes(&mut weights[at.clone()], &mut slopes[at], visible, lse[i], means[i]);
                    }
                    for (at, run) in pieces(block, start..end) {
                        let by_key = |a: &[f32], b: &[f32], out: *mut f32| Tile {
                            rows: run.len(),
                            columns: s.width,
                            depth: count,
                            a: a[at..].as_ptr(),
                            a_steps: (1, STRIDE),
                            b: b.as_ptr(),
                            b_row: wide,
                            out,
                            out_row: wide,
                            accumulate: true,
                        };
                        let keys = run.start * wide..run.end * wide;
                        // SAFETY: `scores_tile` has checked that the run lies within the keys.
                        let (dv, dk) = unsafe { (self.dv.at(keys.start), self.dk.at(keys.start)) };
                        let (dv, dk) = (by_key(&weights, &dout, dv), by_key(&slopes, &q, dk));
                        let dq = Tile {
                            rows: count.next_multiple_of(BLOCK),
                            columns: s.width,
                            depth: run.len(),
                            a: slopes[at..].as_ptr(),
                            a_steps: (STRIDE, 1),
                            b: p.keys[keys].as_ptr(),
                            b_row: wide,
                            out: sums.as_mut_ptr(),
                            out_row: wide,
                            accumulate: true,
                        };
                        for tile in [dv, dk, dq] {
                            // SAFETY: a task owns what its tree's keys have of its head's shares of dk and dv; rows are
                            // padded to whole vectors.
                            unsafe { tile.run(simd) };
                        }
                    }
                }
                for i in 0..count {
                    // SAFETY: a task owns its head in dq, whose size was checked.
                    let dq = unsafe {
                        let at = self.dq.at(((first + i) * s.heads + self.head) * s.width);
                        std::slice::from_raw_parts_mut(at, s.width)
                    };
                    for (to, sum) in dq.iter_mut().zip(&sums[i * wide..]) {
                        *to = sum * s.scale();
                    }
                }
            }
        }
    }
}

/// Turns scores into weights `p = e^(score - lse)` and their gradients into those of the scores, `p (dp - mean)`; both
/// zero for what is hidden.
#[inline(always)]
fn softmax_slopes(weights: &mut [f32], slopes: &mut [f32], visible: usize, lse: f32, mean: f32) {
    weights[visible..].fill(f32::NEG_INFINITY);
    for (w, s) in weights.chunks_exact_mut(LANES).zip(slopes.chunks_exact_mut(LANES)) {
        for (w, s) in w.iter_mut().zip(s) {
            let p = exp(*w - lse);
            *s = p * (*s - mean);
            *w = p;
        }
    }
    slopes[visible..].fill(0.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::attention::{attention, composed};
    use crate::kernels::tests::{check_gradients, random};
    use std::sync::Arc;

    fn block(queries: Range<usize>, context: impl IntoIterator<Item = Range<usize>>) -> QueryBlock {
        QueryBlock { own: queries.start, queries, context: context.into_iter().collect() }
    }

    /// A prompt of 150, answers of 70 and 201 to it, and a join: runs and blocks that end within tiles, at their ends
    /// and beyond.
    fn long() -> Visibility {
        let blocks = vec![
            block(0..150, None),
            block(150..220, Some(0..150)),
            block(220..421, Some(0..150)),
            block(421..423, [0..220, 220..421]),
        ];
        Visibility { blocks }
    }

    fn run(visibility: &Visibility, s: Sizes, inputs: &[Vec<f32>; 3]) -> (Vec<f32>, Vec<f32>) {
        let [q, k, v] = inputs.each_ref().map(|data| data.as_slice());
        let (mut out, mut lse) = (vec![f32::NAN; q.len()], vec![f32::NAN; q.len() / s.width]);
        forward([q, k, v], visibility, s, &mut out, &mut lse, &mut Scratch::default());
        (out, lse)
    }

    fn inputs(rows: usize, s: Sizes) -> candle_core::Result<([candle_core::Tensor; 3], [Vec<f32>; 3])> {
        let shape = |heads| [rows, heads, s.width];
        let tensors = [(s.heads, 1), (s.kv_heads, 2), (s.kv_heads, 3)];
        let tensors = tensors.map(|(heads, seed)| random(&shape(heads), seed));
        let flat = |i: usize| tensors[i].flatten_all()?.to_vec1::<f32>();
        let data = [flat(0)?, flat(1)?, flat(2)?];
        Ok((tensors, data))
    }

    #[test]
    fn long_runs_agree_with_the_composition_and_so_do_their_gradients() -> candle_core::Result<()> {
        let visibility = Arc::new(long());
        for (heads, kv_heads, width) in [(2, 1, 32), (3, 3, 10)] {
            let s = Sizes { heads, kv_heads, width };
            let (tensors, data) = inputs(423, s)?;
            let want = composed(&tensors[0], &tensors[1], &tensors[2], &visibility)?;
            let want = want.flatten_all()?.to_vec1::<f32>()?;
            let (out, lse) = run(&visibility, s, &data);
            let gap = out.iter().zip(&want).fold(0f32, |gap, (a, b)| gap.max((a - b).abs()));
            assert!(gap < 1e-5 && lse.iter().all(|x| x.is_finite()), "gap {gap}");
            check_gradients(
                &tensors,
                |t| attention(&t[0], &t[1], &t[2], &visibility),
                |t| composed(&t[0], &t[1], &t[2], &visibility),
            )?;
        }
        Ok(())
    }

    #[test]
    fn blocks_that_see_a_common_key_are_one_tree() {
        let one = |visibility: &Visibility| trees(visibility, 423).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(one(&long()), [4]);
        let blocks =
            vec![block(0..3, None), block(3..5, None), block(5..9, Some(0..3)), block(9..10, Some(3..5))];
        let mut visibility = Visibility { blocks };
        assert_eq!(one(&visibility), [2, 2]);
        // A join of both.
        visibility.blocks.push(block(10..12, [0..3, 3..5, 5..9]));
        assert_eq!(one(&visibility), [5]);
    }

    #[test]
    fn a_row_depends_on_what_it_sees_and_not_on_where_that_lies_bit_for_bit() -> candle_core::Result<()> {
        let s = Sizes { heads: 2, kv_heads: 1, width: 20 };
        let (_, data) = inputs(423, s)?;
        let (together, _) = run(&long(), s, &data);
        // The second answer right behind the prompt, alone: its context and its own rows are neighbours.
        let alone = Visibility { blocks: vec![block(0..150, None), block(150..351, Some(0..150))] };
        let moved = [0, 1, 2].map(|i| {
            let row = if i == 0 { s.heads * s.width } else { s.kv_heads * s.width };
            [&data[i][..150 * row], &data[i][220 * row..421 * row]].concat()
        });
        let (alone, _) = run(&alone, s, &moved);
        let row = s.heads * s.width;
        assert_eq!(alone[150 * row..], together[220 * row..421 * row]);
        assert_eq!(alone[..150 * row], together[..150 * row]);
        Ok(())
    }
}
