//! Rows for new tokens in the embedding table and the head.
//!
//! Each new row is the mean of the rows that its text had before (its sub-tokens) plus seeded noise of the table's own
//! scale. The noise matters: rows that start equal stay nearly equal, and a model that cannot tell the tags apart
//! writes few valid ones (PAPER.md, "Where the official implementation goes wrong", 5).

use candle_core::{Result, Tensor};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::parameters::{EMBEDDING, HEAD};
use super::{Decoder, ModelError, Weights};

/// A token that the model has not seen.
pub struct NewRow {
    /// Its id.
    pub id: u32,
    /// The ids that its text had before it was a token.
    pub pieces: Vec<u32>,
}

/// The same model with rows for `rows`. A spare row of a padded vocabulary is reused, otherwise the tables grow.
pub fn add_rows(decoder: Decoder, rows: &[NewRow], seed: u64) -> std::result::Result<Decoder, ModelError> {
    let decoder = decoder.trainable()?;
    let needed = rows.iter().map(|r| r.id as usize + 1).max().unwrap_or(0);
    let vocab_size = decoder.config().vocab_size.max(needed);
    // One stream for both tables: the head's noise is not the embedding's.
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut tables = Weights::new();
    for name in [EMBEDDING, HEAD] {
        if decoder.vars().contains_key(name) {
            let table = extended(&decoder.weight(name)?, rows, vocab_size, &mut rng)?;
            tables.insert(name.into(), table);
        }
    }
    decoder.with_tables(vocab_size, tables)
}

fn extended(table: &Tensor, rows: &[NewRow], vocab_size: usize, rng: &mut ChaCha8Rng) -> Result<Tensor> {
    let (old, d) = table.dims2()?;
    let mut data = table.flatten_all()?.to_vec1::<f32>()?;
    let scale = (data.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / data.len() as f64).sqrt() as f32;
    data.resize(vocab_size * d, 0.0);
    for row in rows {
        let pieces: Vec<usize> = row.pieces.iter().map(|&p| p as usize).filter(|&p| p < old).collect();
        let noise = normal(rng, &[d], scale)?.to_vec1::<f32>()?;
        for (i, noise) in noise.into_iter().enumerate() {
            let sum: f32 = pieces.iter().map(|p| data[p * d + i]).sum();
            data[row.id as usize * d + i] = sum / pieces.len().max(1) as f32 + noise;
        }
    }
    Tensor::from_vec(data, (vocab_size, d), table.device())
}

/// Normal variates by the polar method (Marsaglia), so that they depend on the seed alone.
pub(super) fn normal(rng: &mut ChaCha8Rng, shape: &[usize], scale: f32) -> Result<Tensor> {
    let count = shape.iter().product();
    let mut data = Vec::with_capacity(count + 1);
    while data.len() < count {
        let (x, y) = (rng.random_range(-1.0f32..1.0), rng.random_range(-1.0f32..1.0));
        let s = x * x + y * y;
        if s > 0.0 && s < 1.0 {
            let f = (-2.0 * s.ln() / s).sqrt() * scale;
            data.extend([x * f, y * f]);
        }
    }
    data.truncate(count);
    Tensor::from_vec(data, shape, &candle_core::Device::Cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Config;

    #[test]
    fn new_rows_are_distinct_near_their_pieces_and_old_rows_stay() -> std::result::Result<(), ModelError> {
        let decoder = Decoder::random(&Config::tiny(10), 1)?;
        let rows: Vec<NewRow> = (10..16).map(|id| NewRow { id, pieces: vec![1, 2] }).collect();
        let table = |d: &Decoder| -> Result<Vec<Vec<f32>>> { d.vars()[EMBEDDING].to_vec2() };
        let old = table(&decoder)?;
        let wide = add_rows(decoder, &rows, 5)?;
        assert_eq!(wide.config().vocab_size, 16);
        let new = table(&wide)?;
        assert_eq!(old[..], new[..10]);
        for i in 10..16 {
            for j in 10..i {
                let gap: f32 = new[i].iter().zip(&new[j]).map(|(a, b)| (a - b).abs()).sum();
                assert!(gap > 0.1, "rows {i} and {j} differ by {gap}");
            }
        }
        Ok(())
    }
}
