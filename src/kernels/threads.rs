//! One pool of threads instead of two, and who may use it.

/// How many threads an operation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// The caller's: other threads are busy with other rows.
    One,
    /// All of rayon's pool.
    All,
}

impl Threads {
    pub(super) fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::All => rayon::current_num_threads(),
        }
    }
}

/// Keeps candle's own helper threads from spinning beside rayon's.
///
/// candle 0.11 runs its elementwise operations on a pool whose idle workers spin; next to this crate's kernels they
/// take the cores that the kernels need (docs/lab.md has the measurement). The pool's size can only be set by an
/// environment variable. A value that the user has set is kept.
///
/// # Safety
/// No other thread runs: call it first thing in `main`.
#[allow(unsafe_code)]
pub unsafe fn calm_candle() {
    const VARIABLE: &str = "CANDLE_NUM_THREADS";
    if std::env::var_os(VARIABLE).is_none() {
        // SAFETY: the caller's promise; no other thread reads the environment.
        unsafe { std::env::set_var(VARIABLE, "1") };
    }
}
