//! The operations that a decoder spends its time in, with hand-written gradients.
//!
//! On the CPU each is one fused pass over the data, vectorised by `pulp` (the instruction set is chosen at run
//! time). On other devices the same functions compose candle operations; those compositions are also the oracle
//! that the tests hold the fused passes against.
//!
//! Every sum over a row runs in an order that depends on the row alone, never on how many other rows are in the
//! batch. So a sequence's numbers do not depend on its batch-mates, bit for bit.

mod adamw;
pub(crate) mod attention;
pub(crate) mod dense;
mod dot;
mod exp;
mod gemm;
mod linear;
mod lines;
pub(crate) mod log_prob;
mod low_rank;
mod packed;
mod paged;
mod prefetch;
mod quantised;
pub(crate) mod rms_norm;
pub(crate) mod rope;
mod rows;
mod scatter;
pub(crate) mod swiglu;
mod threads;
mod tile;
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

pub(crate) use adamw::sum_of_squares;
pub(crate) use exp::{exp, max};

use std::cell::RefCell;
use std::ops::{Deref, Range};

use candle_core::{CpuStorage, DType, InplaceOp1, Layout, Result, Storage, StorageRef, Tensor};
use rayon::prelude::*;

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

/// A contiguous CPU tensor's data, read.
pub(crate) struct Data<'a> {
    storage: StorageRef<'a>,
    range: Range<usize>,
}

impl Deref for Data<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &*self.storage {
            Storage::Cpu(CpuStorage::F32(data)) => &data[self.range.clone()],
            _ => unreachable!("`data` checked it"),
        }
    }
}

/// The data of a contiguous f32 tensor on the CPU.
pub(crate) fn data(tensor: &Tensor) -> Result<Data<'_>> {
    let (storage, layout) = tensor.storage_and_layout();
    match (&*storage, layout.contiguous_offsets()) {
        (Storage::Cpu(CpuStorage::F32(_)), Some((start, end))) => Ok(Data { storage, range: start..end }),
        _ => candle_core::bail!("kernel: expected contiguous f32 data on the CPU, got {tensor:?}"),
    }
}

/// Runs `f` on the data of a contiguous f32 tensor on the CPU, which it may change.
pub(crate) fn with_data_mut<R>(tensor: &Tensor, f: impl FnOnce(&mut [f32]) -> R) -> Result<R> {
    /// The closure, and then what it returned.
    struct Once<F, R>(RefCell<(Option<F>, Option<R>)>);

    impl<R, F: FnOnce(&mut [f32]) -> R> InplaceOp1 for Once<F, R> {
        fn name(&self) -> &'static str {
            "with_data_mut"
        }

        fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
            let (CpuStorage::F32(data), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
                candle_core::bail!("kernel: expected contiguous f32 data");
            };
            let (f, result) = &mut *self.0.borrow_mut();
            *result = f.take().map(|f| f(&mut data[start..end]));
            Ok(())
        }
    }

    let once = Once(RefCell::new((Some(f), None)));
    tensor.inplace_op1(&once)?;
    once.0.into_inner().1.ok_or_else(|| candle_core::Error::Msg("kernel: expected a CPU tensor".into()))
}

/// Copies a slice on all threads.
pub(crate) fn copy(from: &[f32], to: &mut [f32]) {
    const TASK: usize = 1 << 16;
    to.par_chunks_mut(TASK).zip(from.par_chunks(TASK)).for_each(|(to, from)| to.copy_from_slice(from));
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
