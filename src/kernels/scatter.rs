//! Writing rows into chosen places of a buffer that lives on: the KV cache.

use candle_core::{CpuStorage, InplaceOp2, Layout, Result, Tensor};

use super::contiguous;

/// `buffer[slots[i]] = rows[i]` in place; `buffer [slots, ...]`, `rows [n, ...]`. Not differentiable.
pub fn scatter_rows(buffer: &Tensor, slots: &[u32], rows: &Tensor) -> Result<()> {
    let rows = rows.to_dtype(buffer.dtype())?.contiguous()?.detach();
    if buffer.device().is_cpu() {
        return buffer.inplace_op2(&rows, &Scatter { slots });
    }
    let width = rows.elem_count() / slots.len().max(1);
    let ids = Tensor::from_slice(slots, (slots.len(), 1), rows.device())?;
    let ids = ids.broadcast_as((slots.len(), width))?.contiguous()?;
    let flat = buffer.reshape((buffer.dim(0)?, width))?;
    flat.scatter_set(&ids, &rows.reshape((slots.len(), width))?, 0)
}

struct Scatter<'a> {
    slots: &'a [u32],
}

impl InplaceOp2 for Scatter<'_> {
    fn name(&self) -> &'static str {
        "scatter_rows"
    }

    fn cpu_fwd(&self, buffer: &mut CpuStorage, lb: &Layout, rows: &CpuStorage, lr: &Layout) -> Result<()> {
        let rows = contiguous(rows, lr)?;
        let width = rows.len() / self.slots.len().max(1);
        let count = lb.dims().first().copied().unwrap_or(0);
        let (CpuStorage::F32(buffer), Some((start, end))) = (buffer, lb.contiguous_offsets()) else {
            candle_core::bail!("scatter_rows: expected a contiguous f32 buffer");
        };
        let buffer = &mut buffer[start..end];
        if count * width != buffer.len() {
            candle_core::bail!("scatter_rows: rows of {width} into a buffer {:?}", lb.shape());
        }
        for (&slot, row) in self.slots.iter().zip(rows.chunks_exact(width)) {
            let Some(place) = buffer.get_mut(slot as usize * width..(slot as usize + 1) * width) else {
                candle_core::bail!("scatter_rows: slot {slot} of {count}");
            };
            place.copy_from_slice(row);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{DType, Device};

    #[test]
    fn rows_land_in_their_slots_and_a_slot_outside_is_an_error() -> Result<()> {
        let buffer = Tensor::zeros((4, 1, 2), DType::F32, &Device::Cpu)?;
        let rows = Tensor::new(&[[[1f32, 2.0]], [[3.0, 4.0]]], &Device::Cpu)?;
        scatter_rows(&buffer, &[3, 1], &rows)?;
        let want = [0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 1.0, 2.0];
        assert_eq!(buffer.flatten_all()?.to_vec1::<f32>()?, want);
        assert!(scatter_rows(&buffer, &[4, 1], &rows).is_err());
        Ok(())
    }
}
