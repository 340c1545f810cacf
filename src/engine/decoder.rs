//! The decoder as the engine sees it: together with its cache.

use candle_core::{DType, Tensor};

use super::step::{LanguageModel, ModelError, Rows};
use crate::model::{CacheWrite, Decoder, KvCache};

/// A decoder and the keys and values of the sequences at work.
pub struct CachedDecoder<'a> {
    decoder: &'a Decoder,
    cache: Option<(usize, KvCache)>,
}

impl<'a> CachedDecoder<'a> {
    /// A decoder without a cache yet; [`LanguageModel::reserve`] makes one as large as is needed.
    pub fn new(decoder: &'a Decoder) -> Self {
        Self { decoder, cache: None }
    }
}

impl LanguageModel for CachedDecoder<'_> {
    fn vocab_size(&self) -> usize {
        self.decoder.config().vocab_size
    }

    fn max_positions(&self) -> usize {
        self.decoder.config().position_limit()
    }

    fn reserve(&mut self, slots: usize) -> Result<(), ModelError> {
        if self.cache.as_ref().is_none_or(|(size, _)| *size < slots) {
            self.cache = None;
            self.cache = Some((slots, self.decoder.new_cache(slots)?));
        }
        Ok(())
    }

    fn step(&mut self, rows: &Rows) -> Result<Vec<f32>, ModelError> {
        let (_, cache) = self.cache.as_mut().ok_or("a pass before any slot was reserved")?;
        let write = CacheWrite { cache, slots: &rows.slots };
        let hidden = self.decoder.hidden(&rows.tokens, &rows.positions, &rows.visibility, Some(write))?;
        if rows.wanted.is_empty() {
            return Ok(Vec::new());
        }
        let hidden = if rows.wanted.len() == rows.len() {
            hidden
        } else {
            let wanted = Tensor::new(&rows.wanted[..], self.decoder.device())?;
            hidden.index_select(&wanted, 0)?
        };
        let logits = self.decoder.logits(&hidden)?;
        Ok(logits.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?)
    }
}
