//! What the machine can do: the rate of a large product, and of reading memory.

use std::hint::black_box;
use std::time::Instant;

use candle_core::{Device, Tensor};
use parallel_r1::kernels::linear;
use rayon::prelude::*;
use serde_json::json;

use super::{Done, Result, Work};

const SIDE: usize = 2048;
/// 1 GiB, far beyond any cache.
const WORDS: usize = 1 << 27;

/// Measures both; the best of some tries, since a limit is asked for.
pub(super) struct Machine;

impl Work for Machine {
    fn round(&mut self) -> Result<Done> {
        Ok(Done { units: 1, notes: json!({"gflops": gflops()?, "gbytes_per_second": bandwidth()}) })
    }
}

fn gflops() -> Result<f64> {
    let a = Tensor::randn(0f32, 1.0, (SIDE, SIDE), &Device::Cpu)?;
    let b = Tensor::randn(0f32, 1.0, (SIDE, SIDE), &Device::Cpu)?;
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        black_box(linear(&a, &b)?);
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(2.0 * (SIDE as f64).powi(3) / best * 1e-9)
}

fn bandwidth() -> f64 {
    let data = vec![1u64; WORDS];
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let part = |words: &[u64]| words.iter().fold(0u64, |sum, &word| sum.wrapping_add(word));
        black_box(data.par_chunks(1 << 16).map(part).reduce(|| 0, u64::wrapping_add));
        best = best.min(start.elapsed().as_secs_f64());
    }
    8.0 * WORDS as f64 / best * 1e-9
}
