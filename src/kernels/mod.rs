//! The operations that a decoder spends its time in, with hand-written gradients.
//!
//! On the CPU each is one fused pass over the data, vectorised by `pulp` (the instruction set is chosen at run
//! time). On other devices the same functions compose candle operations; those compositions are also the oracle
//! that the tests hold the fused passes against.
//!
//! Every sum over a row runs in an order that depends on the row alone, never on how many other rows are in the
//! batch. So a sequence's numbers do not depend on its batch-mates, bit for bit.

mod adamw;
mod attention;
mod dot;
mod exp;
mod linear;
mod log_prob;
mod low_rank;
mod packed;
mod paged;
mod quantised;
mod rms_norm;
mod rope;
mod rows;
mod scatter;
mod swiglu;
mod threads;
#[cfg(test)]
pub(crate) mod tests;

pub use adamw::{AdamWStep, adamw};
pub use attention::attention;
pub use linear::linear;
pub use log_prob::{Draw, log_prob, logits};
pub use low_rank::linear_low_rank;
pub use packed::{Input, Output, Packed};
pub use paged::{KeysValues, PAGE, Pages, Reach, Scratch, Sight, Slots};
pub use quantised::{QuantisedMatrix, resident_bytes};
pub use rms_norm::rms_norm;
pub use rope::{RopeTable, rope};
pub(crate) use rows::{norm_rows, rotate_row, swiglu_rows};
pub use scatter::scatter_rows;
pub use swiglu::swiglu;
pub use threads::{Threads, calm_candle};

pub(crate) use exp::{exp, max};

use candle_core::{CpuStorage, DType, Layout, Result, Storage, Tensor};

/// The contiguous f32 data behind a storage; candle's own error when it is anything else.
fn contiguous<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let data = storage.as_slice::<f32>()?;
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&data[start..end]),
        None => candle_core::bail!("kernel: expected a contiguous tensor, got strides {:?}", layout.stride()),
    }
}

/// A tensor as the kernels want it: contiguous f32. Half-precision tensors are widened, computed with, and the result is
/// rounded once, as processors with wide accumulators do it.
fn wide(tensor: &Tensor) -> Result<Tensor> {
    tensor.to_dtype(DType::F32)?.contiguous()
}

/// A closure that is compiled once for each instruction set.
struct Vectorised<F>(F);

impl<R, F: FnMut() -> R> pulp::WithSimd for Vectorised<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// Runs `f` compiled for the best instruction set of this machine. The closure must be marked `#[inline(always)]`;
/// it is called by reference, since the call of a closure by value goes through a shim that is not inlined and would
/// leave its body compiled for the plain instruction set.
pub(crate) fn vectorised<R>(f: impl FnMut() -> R) -> R {
    pulp::Arch::new().dispatch(Vectorised(f))
}

/// Runs `f` on a CPU tensor's data.
fn with_data<R>(tensor: &Tensor, f: impl FnOnce(&[f32]) -> Result<R>) -> Result<R> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(cpu) => f(contiguous(cpu, layout)?),
        _ => candle_core::bail!("kernel: expected a CPU tensor"),
    }
}

/// A pointer that several threads write through, each to places of its own.
#[derive(Clone, Copy)]
struct SharedMut(*mut f32);

// SAFETY: every user writes disjoint elements from different threads; each use says why they are disjoint.
#[allow(unsafe_code)]
unsafe impl Send for SharedMut {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for SharedMut {}

impl SharedMut {
    fn new(data: &mut [f32]) -> Self {
        Self(data.as_mut_ptr())
    }

    /// The pointer, `offset` elements on.
    ///
    /// # Safety
    /// `offset` lies within the slice that this was made from.
    #[allow(unsafe_code)]
    unsafe fn at(self, offset: usize) -> *mut f32 {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(offset) }
    }
}
