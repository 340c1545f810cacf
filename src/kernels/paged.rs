//! Keys and values in pages of slots, and the attention of the newest tokens over them.
//!
//! The keys of a page stand transposed, so that one vector holds the same element of many keys: the scores of a page are
//! then chains of multiply-adds, without a sum across lanes. Runs of keys begin with a page, since a segment owns
//! whole pages; what a row's sums are split by is so its segments' lengths, never where the pages lie or what else
//! is computed beside it.
//!
//! Many branches' pages don't fit the processor's cache, so while a row attends, the pages of the next one are fetched.

use std::ops::Range;

use candle_core::Result;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::lines::{LINE_ELEMENTS, Lines};
use super::prefetch::fetch_near;
use super::{SharedMut, exp};
use crate::layout::QueryBlock;

/// Slots of a page.
pub const PAGE: usize = 16;
/// Vectors of values are at most this wide.
const LANES: usize = 16;

/// The keys and values of one layer.
pub struct Pages {
    /// `[pages][kv_heads]`, each the keys `[head_dim][PAGE]` and the values `[PAGE][padded]` of one page.
    data: Lines,
    /// Elements of one head in one page: keys, values and a line more, without which the pages of a row would share a few
    /// sets of the first cache.
    head: usize,
    slots: usize,
    kv_heads: usize,
    width: usize,
    /// The width of a value, rounded up to whole vectors.
    padded: usize,
}

/// The slots that the rows of a pass are written to: within the cache, no two the same.
pub struct Slots(Vec<u32>);

/// Some rows of keys and values, `stride` apart, each with all heads side by side.
#[derive(Clone, Copy)]
pub struct KeysValues<'a> {
    /// Which rows of the pass.
    pub rows: &'a Range<usize>,
    /// The first row's keys and all that follows.
    pub keys: &'a [f32],
    /// The first row's values and all that follows.
    pub values: &'a [f32],
    /// Elements from row to row.
    pub stride: usize,
}

/// The pages that the rows of a block see.
pub struct Reach {
    /// Each with the number of its slots that its last row sees, counted from its first.
    pages: Vec<(u32, u32)>,
    /// How many of them are not of the last run, which is the one that rows see different parts of.
    before: usize,
    /// Slots of the last run.
    last: usize,
}

/// What one row sees: some pages whole (as far as they are filled) and one in part.
#[derive(Clone, Copy)]
pub struct Sight<'a> {
    pages: &'a [(u32, u32)],
    /// Slots of the last page.
    last: u32,
}

/// Buffers of one thread.
#[derive(Default)]
pub struct Scratch {
    scores: Vec<f32>,
    sums: Vec<f32>,
}

impl Slots {
    /// Checks `slots` for a cache of `limit` slots.
    pub fn new(slots: &[u32], limit: usize) -> Result<Self> {
        let mut sorted = slots.to_vec();
        sorted.sort_unstable();
        if let Some(last) = sorted.last().filter(|&&last| last as usize >= limit) {
            candle_core::bail!("slot {last} of {limit}");
        }
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => candle_core::bail!("slot {} is written twice in one pass", pair[0]),
            None => Ok(Self(slots.to_vec())),
        }
    }
}

impl Reach {
    /// What a block of rows sees of a cache of `limit` slots.
    pub fn new(block: &QueryBlock, limit: usize) -> Result<Self> {
        let own = block.own..block.own + block.queries.len();
        let mut runs = block.context.clone();
        match runs.last_mut() {
            Some(last) if last.end == own.start => last.end = own.end,
            _ => runs.push(own.clone()),
        }
        let sound =
            |run: &Range<usize>| run.start < run.end && run.end <= limit && run.start.is_multiple_of(PAGE);
        if let Some(run) = runs.iter().find(|run| !sound(run)) {
            candle_core::bail!("slots {run:?} of {limit} are no run of pages");
        }
        let pages = |run: &Range<usize>| {
            let run = run.clone();
            run.clone().step_by(PAGE).map(move |slot| ((slot / PAGE) as u32, PAGE.min(run.end - slot) as u32))
        };
        let last = runs.last().map_or(0, Range::len);
        let pages: Vec<(u32, u32)> = runs.iter().flat_map(pages).collect();
        Ok(Self { before: pages.len() - last.div_ceil(PAGE), pages, last })
    }

    /// What a row of the block sees that misses the last `hidden` slots.
    pub fn less(&self, hidden: usize) -> Sight<'_> {
        let seen = self.last - hidden;
        assert!(0 < seen && seen <= self.last, "a row sees itself");
        let pages = &self.pages[..self.before + seen.div_ceil(PAGE)];
        Sight { pages, last: ((seen - 1) % PAGE + 1) as u32 }
    }
}

impl Sight<'_> {
    /// The pages and how many slots of each are seen.
    #[inline(always)]
    fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        let (end, last) = (self.pages.len() - 1, self.last);
        let seen = move |(i, &(page, len)): (usize, &(u32, u32))| {
            (page as usize, if i == end { last } else { len } as usize)
        };
        self.pages.iter().enumerate().map(seen)
    }
}

impl Pages {
    /// Room for `slots` tokens, rounded up to whole pages.
    pub fn new(slots: usize, kv_heads: usize, width: usize) -> Self {
        let (slots, padded) = (slots.next_multiple_of(PAGE), width.next_multiple_of(LANES));
        let head = PAGE * (width + padded) + LINE_ELEMENTS;
        Self { data: Lines::zeros(slots / PAGE * kv_heads * head), head, slots, kv_heads, width, padded }
    }

    /// How many tokens there is room for.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Writes keys and values to the slots of their rows, one part a thread.
    pub fn write(&mut self, slots: &Slots, parts: &[KeysValues]) {
        let mut next = 0;
        for part in parts {
            let (rows, width) = (part.rows, self.kv_heads * self.width);
            assert!(rows.start == next && rows.end <= slots.0.len(), "rows follow each other");
            let end = rows.len().saturating_sub(1) * part.stride + width;
            assert!(
                rows.is_empty() || end <= part.keys.len().min(part.values.len()),
                "rows within their data"
            );
            next = rows.end;
        }
        assert!(slots.0.iter().all(|&slot| (slot as usize) < self.slots), "slots within the cache");
        let data = SharedMut::new(&mut self.data);
        let this = &*self;
        let write = |part: &KeysValues| {
            for (i, &slot) in slots.0[part.rows.clone()].iter().enumerate() {
                // SAFETY: no two rows have one slot, so no two threads write one element; bounds were checked.
                #[allow(unsafe_code)]
                unsafe {
                    this.write_row(
                        data,
                        slot as usize,
                        &part.keys[i * part.stride..],
                        &part.values[i * part.stride..],
                    );
                }
            }
        };
        match parts {
            [one] => write(one),
            several => several.par_iter().for_each(write),
        }
    }

    /// # Safety
    /// `data` is that of the cache, `slot` within it, and nobody else uses the slot's elements meanwhile.
    #[allow(unsafe_code)]
    unsafe fn write_row(&self, data: SharedMut, slot: usize, keys: &[f32], values: &[f32]) {
        let (width, place) = (self.width, slot % PAGE);
        let heads = keys.chunks_exact(width).zip(values.chunks_exact(width)).take(self.kv_heads);
        for (head, (key, value)) in heads.enumerate() {
            let start = (slot / PAGE * self.kv_heads + head) * self.head;
            for (i, &x) in key.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { *data.at(start + i * PAGE + place) = x };
            }
            for (i, &x) in value.iter().enumerate() {
                // SAFETY: as above.
                unsafe { *data.at(start + PAGE * width + place * self.padded + i) = x };
            }
        }
    }

    /// Attention of one row: `q`, the queries of the heads that read key/value head `head`, side by side -> `out`, the
    /// same for their results. `next` is what will be attended to thereafter.
    pub fn attend(
        &self,
        (head, sight): (usize, Sight),
        next: Option<(usize, Sight)>,
        q: &[f32],
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        assert!(head < self.kv_heads, "a head of the cache");
        assert!(sight.iter().all(|(page, len)| page * PAGE + len <= self.slots), "slots of the cache");
        let Scratch { scores, sums } = scratch;
        scores.resize(sight.pages.len() * PAGE, 0.0);
        sums.resize(self.padded, 0.0);
        let heads = q.chunks_exact(self.width).zip(out.chunks_exact_mut(self.width));
        for (i, (q, out)) in heads.enumerate() {
            let next = next.filter(|_| i == 0);
            let row = Row { cache: self, head, sight, next, q, scores, sums };
            pulp::Arch::new().dispatch(row);
            out.copy_from_slice(&sums[..self.width]);
        }
    }

    /// Where a head's part of a page begins.
    #[inline(always)]
    fn part(&self, page: usize, head: usize) -> usize {
        (page * self.kv_heads + head) * self.head
    }
}

/// One query head of one row.
struct Row<'a> {
    cache: &'a Pages,
    head: usize,
    sight: Sight<'a>,
    next: Option<(usize, Sight<'a>)>,
    q: &'a [f32],
    /// A place for each slot of the pages.
    scores: &'a mut [f32],
    sums: &'a mut [f32],
}

impl WithSimd for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        match S::F32_LANES {
            16 => self.score::<S, 4, 1>(simd),
            8 => self.score::<S, 2, 2>(simd),
            4 => self.score::<S, 1, 4>(simd),
            2 => self.score::<S, 1, 8>(simd),
            _ => self.score::<S, 1, 16>(simd),
        }
        let top = exp::max(self.scores);
        for score in self.scores.iter_mut() {
            *score = exp::exp(*score - top);
        }
        let inverse = 1.0 / exp::sum(self.scores);
        let vectors = self.cache.padded / S::F32_LANES;
        let mut v = 0;
        while v + 4 <= vectors {
            self.sum::<S, 4, 2>(simd, v * S::F32_LANES);
            v += 4;
        }
        while v + 2 <= vectors {
            self.sum::<S, 2, 4>(simd, v * S::F32_LANES);
            v += 2;
        }
        if v < vectors {
            self.sum::<S, 1, 4>(simd, v * S::F32_LANES);
        }
        for sum in self.sums.iter_mut() {
            *sum *= inverse;
        }
    }
}

impl Row<'_> {
    /// Scores of all keys, some pages of `V` vectors each at a time; -inf in the places without a key.
    #[inline(always)]
    fn score<S: Simd, const P: usize, const V: usize>(&mut self, simd: S) {
        let count = self.sight.pages.len();
        let mut first = 0;
        while first + P <= count {
            self.dots::<S, P, V>(simd, first);
            first += P;
        }
        while first < count {
            self.dots::<S, 1, V>(simd, first);
            first += 1;
        }
        for (i, (_, len)) in self.sight.iter().enumerate() {
            if len < PAGE {
                self.scores[i * PAGE + len..(i + 1) * PAGE].fill(f32::NEG_INFINITY);
            }
        }
    }

    /// Scores of `P` pages.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dots<S: Simd, const P: usize, const V: usize>(&mut self, simd: S, first: usize) {
        assert_eq!(V * S::F32_LANES, PAGE, "vectors of a page");
        let (cache, ahead) = (self.cache, self.ahead::<P>(first, 0));
        let data = cache.data.as_ptr();
        let page = |p: usize| cache.part(self.sight.pages[first + p].0 as usize, self.head);
        let mut sums = [[simd.splat_f32s(0.0); V]; P];
        let scores = &mut self.scores[first * PAGE..(first + P) * PAGE];
        // SAFETY: `attend` checked that pages and head are those of the cache, whose parts hold PAGE keys of `width`
        // elements; V vectors hold a page.
        unsafe {
            let keys: [*const f32; P] = std::array::from_fn(|p| data.add(page(p)));
            for (i, &q) in self.q.iter().enumerate() {
                let q = simd.splat_f32s(q);
                for ((key, sums), ahead) in keys.iter().zip(&mut sums).zip(&ahead) {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        let key = key.add(i * PAGE + v * S::F32_LANES).cast::<S::f32s>().read_unaligned();
                        *sum = simd.mul_add_f32s(q, key, *sum);
                    }
                    fetch_near(ahead.wrapping_add(i * PAGE));
                }
            }
            let scale = simd.splat_f32s(1.0 / (cache.width as f32).sqrt());
            let scores = scores.as_mut_ptr().cast::<S::f32s>();
            for (i, &sum) in sums.as_flattened().iter().enumerate() {
                scores.add(i).write_unaligned(simd.mul_f32s(sum, scale));
            }
        }
    }

    /// The weighted sum of the values, `V` vectors from `column` on, in `C` chains of every C-th key.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn sum<S: Simd, const V: usize, const C: usize>(&mut self, simd: S, column: usize) {
        let cache = self.cache;
        let padded = cache.padded;
        assert!(column + V * S::F32_LANES <= padded && self.sums.len() == padded);
        let mut sums = [[simd.splat_f32s(0.0); V]; C];
        for (i, (page, len)) in self.sight.iter().enumerate() {
            let [ahead] = self.ahead::<1>(i, PAGE * cache.width);
            let weights = &self.scores[i * PAGE..(i + 1) * PAGE];
            // SAFETY: `attend` checked that the page is one of the cache; its part holds PAGE values of `padded` elements.
            let values =
                unsafe { cache.data.as_ptr().add(cache.part(page, self.head) + PAGE * cache.width + column) };
            for j in (0..PAGE).step_by(C) {
                for (c, sums) in sums.iter_mut().enumerate() {
                    let at = (j + c) * padded;
                    // Beyond `len` may stand what an earlier owner of the page left behind.
                    if j + c < len {
                        let weight = simd.splat_f32s(weights[j + c]);
                        for (v, sum) in sums.iter_mut().enumerate() {
                            // SAFETY: as above, with j + c < PAGE.
                            let value = unsafe {
                                values.add(at + v * S::F32_LANES).cast::<S::f32s>().read_unaligned()
                            };
                            *sum = simd.mul_add_f32s(weight, value, *sum);
                        }
                    }
                    for v in (0..V * S::F32_LANES).step_by(LANES) {
                        fetch_near(ahead.wrapping_add(at + column + v));
                    }
                }
            }
        }
        for v in 0..V {
            let mut total = sums[0][v];
            for chain in &sums[1..] {
                total = simd.add_f32s(total, chain[v]);
            }
            // SAFETY: the columns lie within the sums, as was checked.
            unsafe {
                let at = column + v * S::F32_LANES;
                self.sums.as_mut_ptr().add(at).cast::<S::f32s>().write_unaligned(total);
            }
        }
    }

    /// The places, `offset` on, of the parts of pages that are needed next; those at hand where nothing is.
    #[inline(always)]
    fn ahead<const P: usize>(&self, first: usize, offset: usize) -> [*const f32; P] {
        let (head, sight) = self.next.unwrap_or((self.head, self.sight));
        let last = sight.pages.len() - 1;
        std::array::from_fn(|p| {
            let page = sight.pages[last.min(first + p)].0 as usize;
            self.cache.data.as_ptr().wrapping_add(self.cache.part(page, head) + offset)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::kernels::attention;
    use crate::kernels::tests::random;
    use crate::layout::Visibility;

    const HEADS: usize = 4;
    const KV: usize = 2;

    /// Where the pages of the five runs of a text lie.
    fn place(runs: &[usize], pages: &[usize]) -> Vec<Range<usize>> {
        runs.iter().zip(pages).map(|(&len, &page)| page * PAGE..page * PAGE + len).collect()
    }

    /// The last `rows` tokens of a text of some runs attend; returns their results.
    fn run(width: usize, lens: &[usize], pages: &[usize], rows: usize) -> Result<Vec<f32>> {
        let len: usize = lens.iter().sum();
        let of = |heads, seed| random(&[len, heads, width], seed).flatten_all()?.to_vec1::<f32>();
        let (q, k, v) = (of(HEADS, 1)?, of(KV, 2)?, of(KV, 3)?);
        let mut cache = Pages::new(40 * PAGE, KV, width);
        let mut context = place(lens, pages);
        let slots: Vec<u32> = context.iter().cloned().flatten().map(|slot| slot as u32).collect();
        let stride = KV * width;
        let halves = [0..len / 2, len / 2..len];
        let parts = halves.each_ref().map(|rows| {
            let at = rows.start * stride;
            KeysValues { rows, keys: &k[at..], values: &v[at..], stride }
        });
        cache.write(&Slots::new(&slots, cache.slots())?, &parts);
        let last = context.last_mut().expect("a run");
        last.end -= rows;
        let own = last.end;
        context.retain(|run| !run.is_empty());
        let reach = Reach::new(&QueryBlock { queries: 0..rows, context, own }, cache.slots())?;
        let (mut out, mut scratch) = (vec![0.0; rows * HEADS * width], Scratch::default());
        for (task, out) in out.chunks_exact_mut(HEADS / KV * width).enumerate() {
            let (row, head) = (task / KV, task % KV);
            let at = ((len - rows + row) * HEADS + head * HEADS / KV) * width;
            let task = (head, reach.less(rows - 1 - row));
            let next = (row % 2 == 0).then(|| (KV - 1 - head, reach.less(0)));
            cache.attend(task, next, &q[at..at + out.len()], out, &mut scratch);
        }
        Ok(out)
    }

    #[test]
    fn it_is_the_attention_of_training() -> Result<()> {
        for width in [8, 16, 32, 40, 64, 128] {
            for (lens, rows) in [(&[1][..], 1), (&[3, 70, 16, 21], 5), (&[33, 2, 64], 64), (&[100], 100)] {
                let got = run(width, lens, &[3, 7, 20, 30], rows)?;
                let len: usize = lens.iter().sum();
                let of = |heads, seed| random(&[len, heads, width], seed);
                let block = QueryBlock { queries: 0..len, context: vec![], own: 0 };
                let all = Arc::new(Visibility { blocks: vec![block] });
                let want = attention(&of(HEADS, 1), &of(KV, 2), &of(KV, 3), &all)?;
                let want = want.narrow(0, len - rows, rows)?.flatten_all()?.to_vec1::<f32>()?;
                let gap = got.iter().zip(&want).fold(0f32, |gap, (a, b)| gap.max((a - b).abs()));
                assert!(gap < 1e-6, "width {width}, runs {lens:?}: gap {gap}");
            }
        }
        Ok(())
    }

    #[test]
    fn neither_the_pages_nor_the_rows_beside_it_change_a_bit() -> Result<()> {
        let lens = [3, 70, 16, 21];
        let (here, there) = (run(32, &lens, &[3, 7, 20, 30], 9)?, run(32, &lens, &[31, 0, 5, 6], 9)?);
        assert_eq!(here, there);
        let alone = run(32, &lens, &[3, 7, 20, 30], 1)?;
        assert_eq!(here[8 * HEADS * 32..], alone[..]);
        Ok(())
    }

    #[test]
    fn slots_outside_or_twice_and_runs_within_a_page_are_errors() {
        assert!(Slots::new(&[31, 0], 32).is_ok());
        assert!(Slots::new(&[32], 32).is_err());
        assert!(Slots::new(&[3, 1, 3], 32).is_err());
        let block = |context, own| QueryBlock { queries: 0..2, context, own };
        let some = |run: Range<usize>| vec![run];
        let reach = Reach::new(&block(some(0..15), 15), 32).expect("a run of pages");
        assert_eq!((reach.pages, reach.before, reach.last), (vec![(0, 16), (1, 1)], 0, 17));
        for wrong in [block(some(0..3), 4), block(some(16..40), 0), block(vec![], 31), block(some(1..3), 3)] {
            assert!(Reach::new(&wrong, 32).is_err(), "{wrong:?}");
        }
    }
}
