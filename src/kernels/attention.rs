//! Attention over a layout's visibility: grouped-query, exact softmax, nothing computed that cannot be seen.
//!
//! A query block (see [`Visibility`]) names runs of keys that all its rows see, and its own keys, of which row i
//! sees the first i + 1. In training the keys are the sequence's own rows; in the engine they are cache slots. The
//! arithmetic is the same either way, which is half of the project's law.

pub(crate) mod tiled;

use std::ops::Range;
use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp3, D, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::dot::{Dots, Rows, WeightedSum, Weights};
use super::{SharedMut, contiguous, data, exp, vectorised, wide};
use crate::layout::{QueryBlock, Visibility};

/// Query rows whose scores are held at once; bounds the scratch memory at `ROWS * keys`.
const ROWS: usize = 32;

/// `q [rows, heads, head_dim]`, `k`, `v [keys, kv_heads, head_dim]` -> `[rows, heads, head_dim]`.
///
/// Query head h reads key/value head `h / (heads / kv_heads)`; scores are scaled by `1 / sqrt(head_dim)`.
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor, visibility: &Arc<Visibility>) -> Result<Tensor> {
    if q.device().is_cpu() {
        let op = Attention { visibility: visibility.clone() };
        wide(q)?.apply_op3(&wide(k)?, &wide(v)?, op)?.to_dtype(q.dtype())
    } else {
        composed(q, k, v, visibility)
    }
}

/// The same by candle operations, block by block, so that no rows x keys tensor of the whole sequence exists.
fn composed(q: &Tensor, k: &Tensor, v: &Tensor, visibility: &Visibility) -> Result<Tensor> {
    let (_, heads, width) = q.dims3()?;
    let group = heads / k.dim(1)?;
    let mut outputs = Vec::with_capacity(visibility.blocks.len());
    for block in &visibility.blocks {
        let n = block.queries.len();
        let runs = keys(block, n).map(|r| r.start as u32..r.end as u32);
        let ids: Vec<u32> = runs.flatten().collect();
        let seen = ids.len();
        let ids = Tensor::from_vec(ids, seen, q.device())?;
        let gather = |t: &Tensor| -> Result<Tensor> {
            // [seen, kv_heads, w] -> [kv_heads, 1, seen, w] -> [heads, seen, w]
            let t = t.index_select(&ids, 0)?.transpose(0, 1)?.unsqueeze(1)?;
            t.broadcast_as((heads / group, group, seen, width))?.reshape((heads, seen, width))
        };
        let rows = q.narrow(0, block.queries.start, n)?.transpose(0, 1)?.contiguous()?; // [heads, n, w]
        let scores = (rows.matmul(&gather(k)?.t()?)? / (width as f64).sqrt())?; // [heads, n, seen]
        let shared = seen - n;
        let hidden =
            (0..n).flat_map(|i| (0..seen).map(move |j| if j > shared + i { f32::NEG_INFINITY } else { 0.0 }));
        let mask = Tensor::from_vec(hidden.collect::<Vec<f32>>(), (1, n, seen), q.device())?;
        let scores = scores.broadcast_add(&mask)?;
        let scores = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?.detach())?.exp()?;
        let weights = scores.broadcast_div(&scores.sum_keepdim(D::Minus1)?)?;
        outputs.push(weights.matmul(&gather(v)?)?.transpose(0, 1)?); // [n, heads, w]
    }
    Tensor::cat(&outputs, 0)
}

/// The runs of keys that the first `rows` rows of a block need.
fn keys(block: &QueryBlock, rows: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    block.context.iter().cloned().chain(std::iter::once(block.own..block.own + rows))
}

/// A chunk of a block's rows: which rows, and how many keys its first row sees.
struct Chunk<'a> {
    block: &'a QueryBlock,
    rows: Range<usize>,
    shared: usize,
}

impl Chunk<'_> {
    /// Keys that row i of the chunk sees.
    fn visible(&self, i: usize) -> usize {
        self.shared + self.rows.start + i + 1
    }

    /// Keys that its last row sees.
    fn width(&self) -> usize {
        self.shared + self.rows.end
    }

    fn runs(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        keys(self.block, self.rows.end)
    }
}

fn chunks(block: &QueryBlock) -> impl Iterator<Item = Chunk<'_>> {
    let (n, shared) = (block.queries.len(), block.context.iter().map(Range::len).sum());
    let rows = (0..n.div_ceil(ROWS)).map(move |c| c * ROWS..n.min((c + 1) * ROWS));
    rows.map(move |rows| Chunk { block, rows, shared })
}

struct Attention {
    visibility: Arc<Visibility>,
}

/// Sizes of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Query heads.
    pub(crate) heads: usize,
    /// Heads of keys and values.
    pub(crate) kv_heads: usize,
    /// Width of a head.
    pub(crate) width: usize,
}

impl Sizes {
    fn of(q: &Shape, k: &Shape, v: &Shape) -> Result<Self> {
        let ((_, heads, width), (_, kv_heads, kw)) = (q.dims3()?, k.dims3()?);
        if width != kw || !heads.is_multiple_of(kv_heads) || k.dims() != v.dims() {
            candle_core::bail!("attention: q {q:?}, k {k:?}, v {v:?} do not fit each other");
        }
        Ok(Self { heads, kv_heads, width })
    }

    fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    fn scale(&self) -> f32 {
        1.0 / (self.width as f32).sqrt()
    }

    /// `count` rows of key/value head `head` from key `first`.
    fn kv_rows<'a>(&self, data: &'a [f32], head: usize, first: usize, count: usize) -> Rows<'a> {
        let stride = self.kv_heads * self.width;
        Rows::new(&data[first * stride + head * self.width..], stride, self.width, count)
    }

    /// `count` rows of query head `head` from row `first`.
    fn q_rows<'a>(&self, data: &'a [f32], head: usize, first: usize, count: usize) -> Rows<'a> {
        let stride = self.heads * self.width;
        Rows::new(&data[first * stride + head * self.width..], stride, self.width, count)
    }
}

/// `scores[i, j] = scale * rows_i . key_j` over all keys of the chunk, rows `width` apart.
#[inline(always)]
#[allow(unsafe_code)]
fn score(rows: Rows, chunk: &Chunk, sizes: Sizes, keys: &[f32], head: usize, scale: f32, scores: &mut [f32]) {
    let stride = chunk.width();
    assert!(scores.len() >= chunk.rows.len() * stride, "a score for every row and key");
    let mut at = 0;
    for run in chunk.runs() {
        let w = sizes.kv_rows(keys, head, run.start, run.len());
        // SAFETY: the runs add up to `stride`, and `scores` holds `stride` elements for each row.
        let dots = unsafe { Dots::new(rows, w, scale, scores.as_mut_ptr().add(at), stride) };
        pulp::Arch::new().dispatch(dots);
        at += run.len();
    }
}

/// Softmax of each row over the keys it sees; zero beyond.
fn normalise(chunk: &Chunk, scores: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            for (i, row) in scores.chunks_exact_mut(chunk.width()).enumerate() {
                let (seen, hidden) = row.split_at_mut(chunk.visible(i));
                exp::softmax(seen);
                hidden.fill(0.0);
            }
        },
    );
}

/// Fails unless the blocks cover `rows` rows once, ascending, and name keys below `keys`.
pub(crate) fn check(visibility: &Visibility, rows: usize, keys: usize) -> Result<()> {
    let mut next = 0;
    for block in &visibility.blocks {
        let sound = |r: &Range<usize>| r.start < r.end && r.end <= keys;
        let own = block.own..block.own.saturating_add(block.queries.len());
        // Rows of two blocks that overlap would be written by two threads.
        let inside = block.context.iter().chain(std::iter::once(&own)).all(sound);
        if block.queries.start != next || block.queries.is_empty() || !inside {
            candle_core::bail!("attention: block {block:?} does not fit {rows} rows and {keys} keys");
        }
        next = block.queries.end;
    }
    if next != rows {
        candle_core::bail!("attention: visibility covers {next} of {rows} rows");
    }
    Ok(())
}

impl Attention {
    /// Output of one block and one key/value head, chunk by chunk.
    #[allow(unsafe_code)]
    fn forward(&self, block: &QueryBlock, head: usize, s: Sizes, [q, k, v]: [&[f32]; 3], out: SharedMut) {
        let mut scores = Vec::new();
        for chunk in chunks(block) {
            let (n, first) = (chunk.rows.len(), block.queries.start + chunk.rows.start);
            scores.clear();
            scores.resize(n * chunk.width(), 0.0);
            for h in head * s.group()..(head + 1) * s.group() {
                score(s.q_rows(q, h, first, n), &chunk, s, k, head, s.scale(), &mut scores);
                normalise(&chunk, &mut scores);
                let mut at = 0;
                for run in chunk.runs() {
                    let weights = Weights { data: &scores[at..], row: chunk.width(), column: 1 };
                    let source = s.kv_rows(v, head, run.start, run.len());
                    // SAFETY: rows of this block and query head, which no other task writes.
                    let sum = unsafe {
                        let rows = out.at((first * s.heads + h) * s.width);
                        WeightedSum::new(weights, source, rows, s.heads * s.width, n)
                    };
                    pulp::Arch::new().dispatch(sum);
                    at += run.len();
                }
            }
        }
    }
}

impl CustomOp3 for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        lq: &Layout,
        k: &CpuStorage,
        lk: &Layout,
        v: &CpuStorage,
        lv: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let sizes = Sizes::of(lq.shape(), lk.shape(), lv.shape())?;
        check(&self.visibility, lq.dims()[0], lk.dims()[0])?;
        let (q, k, v) = (contiguous(q, lq)?, contiguous(k, lk)?, contiguous(v, lv)?);
        let mut out = vec![0f32; q.len()];
        let shared = SharedMut::new(&mut out);
        let blocks = &self.visibility.blocks;
        (0..blocks.len() * sizes.kv_heads).into_par_iter().for_each(|task| {
            let (block, head) = (&blocks[task / sizes.kv_heads], task % sizes.kv_heads);
            self.forward(block, head, sizes, [q, k, v], shared);
        });
        Ok((CpuStorage::F32(out), lq.shape().clone()))
    }

    fn bwd(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        _: &Tensor,
        dout: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let sizes = Sizes::of(q.shape(), k.shape(), v.shape())?;
        let dout = dout.contiguous()?;
        let inputs = [data(q)?, data(k)?, data(v)?];
        let inputs @ [q_data, k_data, v_data] = inputs.each_ref().map(|data| &**data);
        let (mut out, mut lse) = (vec![0f32; q_data.len()], vec![0f32; q_data.len() / sizes.width]);
        let mut scratch = tiled::Scratch::default();
        tiled::forward(inputs, &self.visibility, sizes, &mut out, &mut lse, &mut scratch);
        let inputs = [q_data, k_data, v_data, &out, &*data(&dout)?];
        let mut grads = [q, k, v].map(|t| vec![0f32; t.elem_count()]);
        let outputs = grads.each_mut().map(|grad| grad.as_mut_slice());
        tiled::backward(inputs, &lse, &self.visibility, sizes, outputs, &mut scratch);
        let [dq, dk, dv] = grads;
        let tensor = |data, like: &Tensor| Tensor::from_vec(data, like.shape(), like.device());
        Ok((Some(tensor(dq, q)?), Some(tensor(dk, k)?), Some(tensor(dv, v)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::{check_gradients, random};

    /// A prompt of 3, two siblings of 4 and 40 tokens, and a join of 2 that sees all.
    fn fork_and_join() -> Arc<Visibility> {
        let block = |queries: Range<usize>, context: Vec<Range<usize>>| QueryBlock {
            own: queries.start,
            queries,
            context,
        };
        let prompt = || std::iter::once(0..3).collect();
        let blocks = vec![
            block(0..3, vec![]),
            block(3..7, prompt()),
            block(7..47, prompt()),
            block(47..49, vec![0..7, 7..47]),
        ];
        Arc::new(Visibility { blocks })
    }

    #[test]
    fn fused_equals_composed_and_gradients_agree() -> Result<()> {
        let visibility = fork_and_join();
        for width in [6, 32, 40] {
            let inputs = [random(&[49, 4, width], 1), random(&[49, 2, width], 2), random(&[49, 2, width], 3)];
            check_gradients(
                &inputs,
                |t| attention(&t[0], &t[1], &t[2], &visibility),
                |t| composed(&t[0], &t[1], &t[2], &visibility),
            )?;
        }
        Ok(())
    }

    #[test]
    fn visibility_that_does_not_fit_is_an_error() {
        let (q, k) = (random(&[48, 2, 4], 1), random(&[48, 2, 4], 2));
        assert!(attention(&q, &k, &k, &fork_and_join()).is_err());
        let (q, k) = (random(&[49, 2, 4], 1), random(&[49, 2, 4], 2));
        assert!(attention(&q, &k, &k, &fork_and_join()).is_ok());
        // Overlapping rows behind an inverted range, and an inverted run of keys.
        for change in [(1, Range { start: 3, end: 1 }, 0..3), (1, 3..7, Range { start: 3, end: 0 })] {
            let mut visibility = fork_and_join().as_ref().clone();
            (visibility.blocks[change.0].queries, visibility.blocks[change.0].context[0]) =
                (change.1, change.2);
            assert!(attention(&q, &k, &k, &Arc::new(visibility)).is_err());
        }
    }
}
