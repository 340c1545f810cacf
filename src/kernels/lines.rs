//! Numbers that begin with a line of the processor's cache, so that no vector of them lies across two.

use std::ops::{Deref, DerefMut};

/// Bytes of a line; also those of the widest vectors.
const LINE: usize = 64;
/// Numbers in a line.
pub(super) const LINE_ELEMENTS: usize = LINE / size_of::<f32>();

/// A slice of f32 that begins with a line.
pub(super) struct Lines {
    data: Vec<f32>,
    start: usize,
    len: usize,
}

impl Lines {
    /// `len` zeros.
    pub(super) fn zeros(len: usize) -> Self {
        // Room to begin later; memory that nobody writes to is not taken.
        let data = vec![0.0; len + LINE_ELEMENTS];
        let start = data.as_ptr().align_offset(LINE).min(LINE_ELEMENTS);
        Self { data, start, len }
    }
}

impl Deref for Lines {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.data[self.start..self.start + self.len]
    }
}

impl DerefMut for Lines {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.data[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_begin_with_a_line() {
        for len in [0, 1, 100, 100_000] {
            let mut lines = Lines::zeros(len);
            assert!(lines.as_ptr().addr().is_multiple_of(LINE));
            lines.fill(1.0);
            assert_eq!(lines.iter().sum::<f32>(), len as f32);
        }
    }
}
