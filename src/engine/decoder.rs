//! The decoder as the engine sees it: together with its cache.

use candle_core::{DType, Result, Tensor};
use rayon::prelude::*;

use super::step::{LanguageModel, ModelError, Rows};
use crate::model::{CacheWrite, Decoder, Inference, Inputs, KvCache, Take};

/// A decoder and the keys and values of the sequences at work.
pub struct CachedDecoder<'a> {
    decoder: &'a Decoder,
    slots: usize,
    cache: Option<Cache>,
}

enum Cache {
    Plain(Box<Inference>),
    /// For what [`Inference`] doesn't do: rounded weights, other devices, very large plain weights.
    Tensors(KvCache),
}

impl<'a> CachedDecoder<'a> {
    /// A decoder without a cache yet; [`LanguageModel::reserve`] makes one as large as is needed.
    pub fn new(decoder: &'a Decoder) -> Self {
        Self { decoder, slots: 0, cache: None }
    }

    fn pass(&mut self, rows: &Rows, take: Take) -> Result<()> {
        match &mut self.cache {
            None => candle_core::bail!("a pass before any slot was reserved"),
            Some(Cache::Tensors(cache)) => pass_of_tensors(self.decoder, cache, rows, take),
            Some(Cache::Plain(inference)) => {
                let inputs = Inputs {
                    tokens: &rows.tokens,
                    positions: &rows.positions,
                    slots: &rows.slots,
                    visibility: &rows.visibility,
                    wanted: &rows.wanted,
                };
                if inference.is_parallel(rows.len()) {
                    // Within the pool, whose threads then meet without waking this one in between.
                    rayon::scope(|_| inference.pass(inputs, take))
                } else {
                    inference.pass(inputs, take)
                }
            }
        }
    }
}

impl LanguageModel for CachedDecoder<'_> {
    fn vocab_size(&self) -> usize {
        self.decoder.config().vocab_size
    }

    fn max_positions(&self) -> usize {
        self.decoder.config().position_limit()
    }

    fn best_batch(&self, tokens: usize) -> usize {
        match &self.cache {
            Some(Cache::Plain(inference)) => inference.best_batch(tokens),
            _ => usize::MAX,
        }
    }

    fn reserve(&mut self, slots: usize) -> std::result::Result<(), ModelError> {
        if self.cache.is_some() && slots <= self.slots {
            return Ok(());
        }
        self.slots = slots;
        let inference = match self.cache.take() {
            Some(Cache::Plain(inference)) => Some(inference),
            _ => Inference::new(self.decoder)?.map(Box::new),
        };
        self.cache = Some(match inference {
            Some(mut inference) => {
                inference.reserve(slots);
                Cache::Plain(inference)
            }
            None => Cache::Tensors(self.decoder.new_cache(slots)?),
        });
        Ok(())
    }

    fn step(&mut self, rows: &Rows, take: Take) -> std::result::Result<(), ModelError> {
        Ok(self.pass(rows, take)?)
    }
}

fn pass_of_tensors(decoder: &Decoder, cache: &mut KvCache, rows: &Rows, take: Take) -> Result<()> {
    let write = CacheWrite { cache, slots: &rows.slots };
    let hidden = decoder.hidden(&rows.tokens, &rows.positions, &rows.visibility, Some(write))?;
    if rows.wanted.is_empty() {
        return Ok(());
    }
    let wanted = Tensor::new(&rows.wanted[..], decoder.device())?;
    let logits = decoder.logits(&hidden.index_select(&wanted, 0)?)?;
    let vocab = logits.dim(1)?;
    let mut logits = logits.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
    logits.par_chunks_exact_mut(vocab).enumerate().for_each(|(row, logits)| take(row, logits));
    Ok(())
}
