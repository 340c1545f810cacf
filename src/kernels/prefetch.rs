//! Hints that memory will be needed soon. Without effect on what a program computes, and on other processors none at all.

/// Fetches the line of memory around `place`, which may lie anywhere, into the first cache.
#[inline(always)]
#[allow(unsafe_code)]
pub(super) fn fetch_near(place: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint may name any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// The same, into the second cache.
#[inline(always)]
#[allow(unsafe_code)]
pub(super) fn fetch_far(place: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint may name any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
