//! The network as the engine runs it: the forward pass of [`Decoder`] without gradients, on plain numbers in buffers that
//! stay, with keys and values in pages.
//!
//! A pass has a handful of rows a branch, so what costs is waiting: for memory and for other threads. There are two ways
//! to share the work. Where all weights fit the processor's cache, each thread takes some rows through a whole layer,
//! and the threads meet once a layer, when keys and values are written. Where they don't, all threads work on the same
//! rows and share each product's columns, so that every weight is fetched from memory once a pass.
//!
//! Either way a row's numbers depend on what it sees alone, bit for bit.

mod group;
mod projections;

use candle_core::{Result, Tensor};
use rayon::prelude::*;

use self::group::Group;
use self::projections::Projections;
use super::{Decoder, Precision, Weight};
use crate::kernels::{Pages, Reach, Sight, Slots, Threads};
use crate::layout::{QueryBlock, Visibility};

/// Plain weights up to this many bytes are read by every thread for rows of its own.
const SMALL_BYTES: usize = 12 << 20;
/// What stays in the processor's last cache from pass to pass, in bytes; others may share the cache.
const CACHED_BYTES: usize = 10 << 20;
/// Rows that are worth a thread of their own.
const LEAST_ROWS: usize = 4;
/// Rows a thread for each of these bytes of weights, with which fetching the weights doesn't show.
const GOOD_ROWS: (usize, usize) = (8, 4 << 20);
/// Plain weights beyond this many bytes are not packed: that would hold them twice.
const PACKED_BYTES: u64 = 2 << 30;

/// Bytes of the packed copy of `plain` bytes of plain weights.
pub(super) fn packed_bytes(plain: u64) -> u64 {
    if plain <= PACKED_BYTES { plain } else { 0 }
}

/// A network's weights as its passes read them, its cache and its buffers.
pub struct Inference {
    sizes: Sizes,
    embedding: Weight,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    head: Projections,
    angles: Angles,
    /// No position may stand at or beyond this.
    positions: usize,
    cache: Vec<Pages>,
    /// Whether threads share the rows of a pass (or else the columns of products).
    by_rows: bool,
    /// Bytes of the plain weights.
    bytes: usize,
    groups: Vec<Group>,
}

/// Widths of one row of the buffers.
#[derive(Clone, Copy)]
struct Sizes {
    d: usize,
    inner: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    eps: f32,
}

impl Sizes {
    /// Queries.
    fn q(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Keys, or values.
    fn kv(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Queries, keys and values.
    fn qkv(&self) -> usize {
        self.q() + 2 * self.kv()
    }
}

struct Layer {
    attention_norm: Vec<f32>,
    qkv: Projections,
    qk_norm: Option<(Vec<f32>, Vec<f32>)>,
    o: Projections,
    mlp_norm: Vec<f32>,
    gate_up: Projections,
    down: Projections,
}

impl Layer {
    fn is_plain(&self) -> bool {
        [&self.qkv, &self.o, &self.gate_up, &self.down].iter().all(|projections| projections.is_plain())
    }
}

/// Cosines and sines of all positions met so far, `[positions, head_dim / 2]` each.
struct Angles {
    frequencies: Vec<f32>,
    factor: f32,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

/// The rows of a pass, see [`Inference::pass`].
pub struct Inputs<'a> {
    /// Token ids.
    pub tokens: &'a [u32],
    /// Their positions.
    pub positions: &'a [u32],
    /// The slots that their keys and values go to, each at most once.
    pub slots: &'a [u32],
    /// Who sees whom, in slots; every run begins with a page.
    pub visibility: &'a Visibility,
    /// The rows whose logits are asked for, ascending.
    pub wanted: &'a [u32],
}

/// Takes the logits of the wanted row with this number, on any thread.
pub type Take<'a> = &'a (dyn Fn(usize, &mut [f32]) + Sync);

/// What a row sees.
#[derive(Clone, Copy)]
struct Seen {
    block: usize,
    /// How many slots its block's last row sees that it doesn't.
    hidden: usize,
}

/// What all groups of rows of a pass share.
struct Pass<'a> {
    inputs: Inputs<'a>,
    slots: Slots,
    /// What each block sees.
    reach: Vec<Reach>,
    /// For each row.
    seen: Vec<Seen>,
}

impl Inference {
    /// The decoder's weights for passes on the CPU in f32; `None` where it computes otherwise, or where a second copy of
    /// its plain weights would be too large. Later changes of its variables are not seen.
    pub fn new(decoder: &Decoder) -> Result<Option<Self>> {
        let network = decoder.frozen();
        let bytes = network.plain_elements() * size_of::<f32>();
        let plain_cpu = decoder.device().is_cpu() && decoder.precision() == Precision::F32;
        if !plain_cpu || packed_bytes(bytes as u64) < bytes as u64 {
            return Ok(None);
        }
        let config = decoder.config();
        let sizes = Sizes {
            d: config.hidden_size,
            inner: config.intermediate_size,
            heads: config.num_attention_heads,
            kv_heads: config.kv_heads(),
            head_dim: config.head_dim(),
            eps: config.rms_norm_eps as f32,
        };
        let layer = |layer: &super::network::Layer| -> Result<Layer> {
            let attention = &layer.attention;
            let norms = |(q, k): &(Tensor, Tensor)| -> Result<_> { Ok((numbers(q)?, numbers(k)?)) };
            Ok(Layer {
                attention_norm: numbers(&layer.attention_norm)?,
                qkv: Projections::new(&[&attention.q, &attention.k, &attention.v])?,
                qk_norm: attention.qk_norm.as_ref().map(norms).transpose()?,
                o: Projections::new(&[&attention.o])?,
                mlp_norm: numbers(&layer.mlp_norm)?,
                gate_up: Projections::new(&[&layer.gate, &layer.up])?,
                down: Projections::new(&[&layer.down])?,
            })
        };
        let layers = network.layers.iter().map(layer).collect::<Result<Vec<_>>>()?;
        let head = Projections::plain(&network.head)?;
        let plain = head.is_plain() && layers.iter().all(Layer::is_plain);
        let (frequencies, factor) = decoder.rope().clone();
        Ok(Some(Self {
            sizes,
            embedding: network.embedding.clone(),
            layers,
            norm: numbers(&network.norm)?,
            head,
            angles: Angles { frequencies, factor, cos: Vec::new(), sin: Vec::new() },
            positions: config.position_limit(),
            cache: Vec::new(),
            by_rows: plain && bytes <= SMALL_BYTES,
            bytes,
            groups: Vec::new(),
        }))
    }

    /// How many branches of `tokens` tokens are worth running side by side: where the weights stay in the processor's cache,
    /// no more than whose keys and values do as well, since nothing else of a pass comes from memory.
    pub fn best_batch(&self, tokens: usize) -> usize {
        if !self.by_rows {
            return usize::MAX;
        }
        let branch = 2 * self.layers.len() * self.sizes.kv() * tokens * size_of::<f32>();
        let fit = CACHED_BYTES.saturating_sub(self.bytes) / branch.max(1);
        let (rows, weights) = GOOD_ROWS;
        fit.max(rows * self.bytes.div_ceil(weights) * rayon::current_num_threads())
    }

    /// Makes an empty cache of `slots` slots.
    pub fn reserve(&mut self, slots: usize) {
        self.cache.clear();
        let pages = || Pages::new(slots, self.sizes.kv_heads, self.sizes.head_dim);
        self.cache.extend(self.layers.iter().map(|_| pages()));
    }

    /// Writes each row's keys and values to its slot, lets each row see what the visibility says, and hands out the logits
    /// of the wanted rows.
    pub fn pass(&mut self, inputs: Inputs, take: Take) -> Result<()> {
        let Some(pages) = self.cache.first() else { candle_core::bail!("a pass without a cache") };
        let pass = Pass::new(inputs, pages)?;
        if let Some(&p) = pass.inputs.positions.iter().find(|&&p| p as usize >= self.positions) {
            candle_core::bail!("position {p} is beyond the model's limit of {} positions", self.positions);
        }
        self.angles.extend_to(pass.inputs.positions);
        self.share_rows(&pass);
        let Self { sizes, embedding, layers, norm, head, angles, cache, groups, .. } = self;
        for_all(groups, |group| {
            group.embed(embedding, *sizes, pass.inputs.tokens)?;
            layers.first().map_or(Ok(()), |layer| group.begin(layer, *sizes, angles, &pass))
        })?;
        for (i, (layer, pages)) in layers.iter().zip(cache).enumerate() {
            let written: Vec<_> = groups.iter().map(|group| group.keys_values(*sizes)).collect();
            pages.write(&pass.slots, &written);
            for_all(groups, |group| {
                group.finish(layer, *sizes, pages, &pass)?;
                match layers.get(i + 1) {
                    Some(next) => group.begin(next, *sizes, angles, &pass),
                    None => group.hand_out(norm, head, *sizes, take),
                }
            })?;
        }
        Ok(())
    }

    /// Whether a pass of so many rows has work for several threads.
    pub fn is_parallel(&self, rows: usize) -> bool {
        !self.by_rows || self.group_count(rows) > 1
    }

    fn group_count(&self, rows: usize) -> usize {
        if self.by_rows { (rows / LEAST_ROWS).clamp(1, rayon::current_num_threads()) } else { 1 }
    }

    /// Cuts the rows of a pass into groups, one a thread or one for all.
    fn share_rows(&mut self, pass: &Pass) {
        let (rows, count) = (pass.seen.len(), self.group_count(pass.seen.len()));
        let threads = if self.by_rows { Threads::One } else { Threads::All };
        self.groups.resize_with(count, Group::default);
        for (i, group) in self.groups.iter_mut().enumerate() {
            group.take_rows(i * rows / count..(i + 1) * rows / count, pass.inputs.wanted, threads);
        }
    }
}

fn for_all(groups: &mut [Group], work: impl Fn(&mut Group) -> Result<()> + Send + Sync) -> Result<()> {
    match groups {
        [one] => work(one),
        several => several.par_iter_mut().try_for_each(work),
    }
}

fn numbers(tensor: &Tensor) -> Result<Vec<f32>> {
    tensor.to_dtype(candle_core::DType::F32)?.flatten_all()?.to_vec1()
}

impl<'a> Pass<'a> {
    fn sight(&self, row: usize) -> Sight<'_> {
        let Seen { block, hidden } = self.seen[row];
        self.reach[block].less(hidden)
    }

    fn new(inputs: Inputs<'a>, pages: &Pages) -> Result<Self> {
        let blocks = &inputs.visibility.blocks;
        let mut seen = Vec::with_capacity(inputs.tokens.len());
        for (block, QueryBlock { queries, .. }) in blocks.iter().enumerate() {
            if queries.start != seen.len() || queries.is_empty() {
                candle_core::bail!("the rows {queries:?} of a block don't follow row {}", seen.len());
            }
            seen.extend(queries.clone().map(|row| Seen { block, hidden: queries.end - 1 - row }));
        }
        let lists = [inputs.tokens.len(), inputs.positions.len(), inputs.slots.len()];
        if lists != [seen.len(); 3] {
            candle_core::bail!("tokens, positions, slots: {lists:?} for {} rows", seen.len());
        }
        if !inputs.wanted.is_sorted() || inputs.wanted.last().is_some_and(|&row| row as usize >= seen.len()) {
            candle_core::bail!(
                "wanted rows {:?}: expected ascending ones below {}",
                inputs.wanted,
                seen.len()
            );
        }
        let reach = blocks.iter().map(|block| Reach::new(block, pages.slots())).collect::<Result<_>>()?;
        Ok(Self { slots: Slots::new(inputs.slots, pages.slots())?, inputs, reach, seen })
    }
}

impl Angles {
    /// Adds what is missing up to the last of some positions.
    fn extend_to(&mut self, positions: &[u32]) {
        let half = self.frequencies.len();
        let known = self.cos.len() / half.max(1);
        let end = positions.iter().max().map_or(0, |&last| last as usize + 1);
        for position in known..end {
            let angles = self.frequencies.iter().map(|f| position as f32 * f);
            let (cos, sin): (Vec<f32>, Vec<f32>) =
                angles.map(|a| (a.cos() * self.factor, a.sin() * self.factor)).unzip();
            self.cos.extend(cos);
            self.sin.extend(sin);
        }
    }

    fn of(&self, position: u32) -> (&[f32], &[f32]) {
        let half = self.frequencies.len();
        let at = position as usize * half;
        (&self.cos[at..at + half], &self.sin[at..at + half])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::layout::{Layout, Role};
    use crate::model::{Config, Family, LoraConfig};

    /// Decoders of all families, one with an adapter, with weights large enough to tell tokens apart.
    fn decoders() -> Vec<Decoder> {
        let families = Family::ALL.map(|family| Config::tiny(30).of_family(family));
        let decoder = |config: &Config| {
            let decoder = Decoder::random(config, 3).unwrap();
            for (i, var) in decoder.vars().values().enumerate() {
                let noise = crate::kernels::tests::random(var.dims(), i as u64);
                var.set(&(var.as_tensor() + (noise * 0.3).unwrap()).unwrap()).unwrap();
            }
            decoder
        };
        let mut decoders: Vec<Decoder> = families.iter().map(decoder).collect();
        let lora = decoder(&families[1]).with_lora(&LoraConfig::default(), &[3], "x", 1).unwrap();
        for (i, var) in lora.vars().values().enumerate() {
            var.set(&(crate::kernels::tests::random(var.dims(), i as u64) * 0.3).unwrap()).unwrap();
        }
        decoders.push(lora);
        decoders.last_mut().unwrap().refresh().unwrap();
        decoders
    }

    /// Logits of all rows of one text, fed in pieces of these lengths.
    fn logits(inference: &mut Inference, tokens: &[u32], pieces: &[usize]) -> Vec<Vec<f32>> {
        inference.reserve(64);
        let (mut all, mut start) = (Vec::new(), 0);
        for &len in pieces {
            let positions: Vec<u32> = (start as u32..(start + len) as u32).collect();
            let context = if start == 0 { vec![] } else { std::iter::once(16..16 + start).collect() };
            let block = QueryBlock { queries: 0..len, context, own: 16 + start };
            let rows = Mutex::new(vec![Vec::new(); len]);
            let inputs = Inputs {
                tokens: &tokens[start..start + len],
                positions: &positions,
                slots: &positions.iter().map(|position| position + 16).collect::<Vec<_>>(),
                visibility: &Visibility { blocks: vec![block] },
                wanted: &(0..len as u32).collect::<Vec<_>>(),
            };
            inference.pass(inputs, &|row, logits| rows.lock().unwrap()[row] = logits.to_vec()).unwrap();
            all.extend(rows.into_inner().unwrap());
            start += len;
        }
        all
    }

    #[test]
    fn it_is_the_pass_of_the_decoder_whoever_shares_the_work() {
        let tokens: Vec<u32> = (0..40).map(|i| (i * i * 7 + 3) % 30).collect();
        let mut layout = Layout::default();
        layout.push(Role::Prompt, &[], tokens.len());
        let visibility = Arc::new(layout.visibility());
        for decoder in decoders() {
            let hidden = decoder.hidden(&tokens, &layout.positions(), &visibility, None).unwrap();
            let want: Vec<Vec<f32>> = decoder.logits(&hidden).unwrap().to_vec2().unwrap();
            let mut inference = Inference::new(&decoder).unwrap().unwrap();
            let whole = logits(&mut inference, &tokens, &[40]);
            for (got, want) in whole.iter().flatten().zip(want.iter().flatten()) {
                assert!((got - want).abs() < 1e-4, "{got} against {want}");
            }
            assert_eq!(logits(&mut inference, &tokens, &[1, 17, 3, 19]), whole, "in pieces");
            inference.by_rows = false;
            assert_eq!(logits(&mut inference, &tokens, &[16, 24]), whole, "columns shared");
        }
    }

    #[test]
    fn rows_that_do_not_fit_are_errors() {
        let decoder = Decoder::random(&Config::tiny(30), 3).unwrap();
        let mut inference = Inference::new(&decoder).unwrap().unwrap();
        inference.reserve(32);
        let visibility = Visibility { blocks: vec![QueryBlock { queries: 0..2, context: vec![], own: 0 }] };
        let mut pass = |positions: &[u32], slots: &[u32], wanted: &[u32]| {
            let inputs = Inputs { tokens: &[1, 2], positions, slots, visibility: &visibility, wanted };
            inference.pass(inputs, &|_, _| {}).is_ok()
        };
        assert!(pass(&[0, 1], &[0, 1], &[1]));
        assert!(!pass(&[0, 9999], &[0, 1], &[1]));
        assert!(!pass(&[0, 1], &[0, 32], &[1]));
        assert!(!pass(&[0, 1], &[0, 1], &[1, 0]));
        assert!(!pass(&[0, 1], &[0, 1], &[2]));
        assert!(!pass(&[0], &[0], &[0]));
    }
}
