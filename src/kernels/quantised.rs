//! Products with quantised weights, by candle's kernels.
//!
//! candle quantises a row of activations to 8 bits and sums in integers, so a result differs a little from that of the
//! dequantised weights. It spreads a product over a pool of its own, which [`super::calm_candle`] keeps to one thread;
//! here the weights are cut into strips of rows that rayon's threads take.
//!
//! A row's result does not depend on the others where the tests have run (x86-64 with AVX2). candle has other kernels for
//! AMX and for ARM, which choose by the number of rows; what they do to the last bit is not known here.

use std::borrow::Cow;
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, Result, Tensor};
use rayon::prelude::*;

/// Bytes that `weights` weights take while a model runs: those stored, and for some types candle's second copy, laid out
/// for its kernels on the first use (6 and 10 bits a weight on x86).
pub fn resident_bytes(dtype: GgmlDType, weights: usize) -> usize {
    let stored = weights / dtype.block_size() * dtype.type_size();
    stored
        + match dtype {
            GgmlDType::Q4K => weights * 6 / 8,
            GgmlDType::Q6K => weights * 10 / 8,
            _ => 0,
        }
}

/// Rows of a strip are a multiple of this, the width of candle's packed tiles.
const TILE: usize = 32;

/// A matrix `[n, k]` of quantised weights. Clones share it.
#[derive(Clone, Debug)]
pub struct QuantisedMatrix {
    /// Strips of `strip` rows; the last may be shorter.
    strips: Arc<Vec<QTensor>>,
    strip: usize,
    shape: (usize, usize),
    dtype: GgmlDType,
}

impl QuantisedMatrix {
    /// A matrix from rows of `k` weights each, as GGUF stores them: `bytes` holds `n` rows.
    pub fn new(bytes: &[u8], dtype: GgmlDType, (n, k): (usize, usize)) -> Result<Self> {
        let row = k / dtype.block_size() * dtype.type_size();
        if n == 0
            || k == 0
            || !k.is_multiple_of(dtype.block_size())
            || Some(bytes.len()) != n.checked_mul(row)
        {
            candle_core::bail!("{dtype:?} [{n}, {k}]: {} bytes don't hold whole rows of blocks", bytes.len());
        }
        let strip = n.div_ceil(rayon::current_num_threads()).next_multiple_of(TILE).min(n);
        let strips = bytes.chunks(strip * row).map(|bytes| {
            // Copied, since candle wants the bytes to stand where a block may stand.
            let storage = QStorage::from_data(Cow::Owned(bytes.to_vec()), &Device::Cpu, dtype)?;
            QTensor::new(storage, (bytes.len() / row, k))
        });
        Ok(Self { strips: Arc::new(strips.collect::<Result<_>>()?), strip, shape: (n, k), dtype })
    }

    /// Rows and columns.
    pub fn dims(&self) -> (usize, usize) {
        self.shape
    }

    /// How the weights are stored.
    pub fn dtype(&self) -> GgmlDType {
        self.dtype
    }

    /// `x [m, k]` in f32 -> `x W^T [m, n]`. Not differentiable.
    pub fn product(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.contiguous()?.detach();
        // candle takes another way for a single row with this type, whose sums differ in the last bit; a row must not
        // depend on its batch.
        if x.dim(0)? == 1 && self.dtype == GgmlDType::Q6K {
            return self.product(&Tensor::cat(&[&x, &x], 0)?)?.narrow(0, 0, 1);
        }
        let parts =
            self.strips.par_iter().map(|strip| x.apply_op1_no_bwd(strip)).collect::<Result<Vec<_>>>()?;
        Tensor::cat(&parts, 1)
    }

    /// The rows `ids`, in f32: `[ids, k]`.
    pub fn rows(&self, ids: &[u32]) -> Result<Tensor> {
        let (n, k) = self.shape;
        if let Some(id) = ids.iter().find(|&&id| id as usize >= n) {
            candle_core::bail!("row {id} of a matrix of {n} rows");
        }
        // Strip by strip; `place[i]` is where the row of ids[i] then stands.
        let (mut parts, mut place, mut next) = (Vec::new(), vec![0u32; ids.len()], 0);
        for (s, strip) in self.strips.iter().enumerate() {
            let here = || ids.iter().enumerate().filter(|&(_, &id)| id as usize / self.strip == s);
            let local: Vec<u32> = here().map(|(_, &id)| id - (s * self.strip) as u32).collect();
            if local.is_empty() {
                continue;
            }
            for (i, _) in here() {
                place[i] = next;
                next += 1;
            }
            parts.push(strip.embedding(&Tensor::new(local, &Device::Cpu)?)?);
        }
        if parts.is_empty() {
            return Tensor::zeros((0, k), candle_core::DType::F32, &Device::Cpu);
        }
        Tensor::cat(&parts, 0)?.index_select(&Tensor::new(place, &Device::Cpu)?, 0)
    }

    /// All weights in f32.
    pub fn dequantise(&self) -> Result<Tensor> {
        let parts =
            self.strips.iter().map(|strip| strip.dequantize(&Device::Cpu)).collect::<Result<Vec<_>>>()?;
        Tensor::cat(&parts, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::random;

    const TYPES: [GgmlDType; 13] = [
        GgmlDType::F32,
        GgmlDType::F16,
        GgmlDType::BF16,
        GgmlDType::Q2K,
        GgmlDType::Q3K,
        GgmlDType::Q4_0,
        GgmlDType::Q4_1,
        GgmlDType::Q5_0,
        GgmlDType::Q5_1,
        GgmlDType::Q8_0,
        GgmlDType::Q4K,
        GgmlDType::Q5K,
        GgmlDType::Q6K,
    ];

    fn quantised(dtype: GgmlDType, n: usize) -> Result<QuantisedMatrix> {
        let whole = QTensor::quantize(&random(&[n, 512], 5), dtype)?;
        QuantisedMatrix::new(&whole.data()?, dtype, (n, 512))
    }

    #[test]
    fn the_product_is_that_of_the_dequantised_weights_up_to_eight_bit_activations() -> Result<()> {
        let x = random(&[5, 512], 6);
        for dtype in TYPES {
            let plain = matches!(dtype, GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16);
            let matrix = quantised(dtype, 70)?;
            let exact = x.matmul(&matrix.dequantise()?.t()?)?;
            let gap = (matrix.product(&x)? - &exact)?.abs()?.max_all()?.to_scalar::<f32>()?;
            let largest = exact.abs()?.max_all()?.to_scalar::<f32>()?;
            let allowed = if plain { 4e-3 } else { 2e-2 };
            assert!(gap < allowed * largest, "{dtype:?}: off by {gap} of {largest}");
        }
        Ok(())
    }

    #[test]
    fn a_row_does_not_depend_on_the_others() -> Result<()> {
        let x = random(&[48, 512], 7);
        for dtype in TYPES {
            let matrix = quantised(dtype, 96)?;
            let all = matrix.product(&x)?.to_vec2::<f32>()?;
            for count in [1, 2, 3, 4, 5, 31, 32, 33] {
                let some = matrix.product(&x.narrow(0, 48 - count, count)?)?.to_vec2::<f32>()?;
                assert_eq!(all[48 - count..], some[..], "{dtype:?}, {count} rows");
            }
        }
        Ok(())
    }

    #[test]
    fn rows_are_those_of_the_dequantised_weights() -> Result<()> {
        let matrix = quantised(GgmlDType::Q6K, 70)?;
        let ids = [69u32, 0, 33, 33, 31, 64];
        let expected = matrix.dequantise()?.index_select(&Tensor::new(&ids, &Device::Cpu)?, 0)?;
        assert_eq!(matrix.rows(&ids)?.to_vec2::<f32>()?, expected.to_vec2::<f32>()?);
        assert!(matrix.rows(&[70]).is_err());
        assert_eq!(matrix.rows(&[])?.dims(), [0, 512]);
        Ok(())
    }

    #[test]
    fn bytes_that_are_no_whole_rows_are_refused() {
        for (bytes, shape) in [(34, (1, 31)), (33, (1, 32)), (34, (2, 32)), (0, (0, 32))] {
            assert!(QuantisedMatrix::new(&vec![0; bytes], GgmlDType::Q8_0, shape).is_err(), "{shape:?}");
        }
    }
}
