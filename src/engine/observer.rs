//! What can be watched while the engine works: for streaming, progress and stopping early.

use super::trace::Trace;
use crate::layout::{Role, SegmentId};

/// A token was appended to a response. Segments are numbered as they begin, which for nested
/// blocks isn't their order in the final trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenEvent {
    /// The request.
    pub request: u64,
    /// Which of its samples.
    pub sample: usize,
    /// The segment that the token is appended to.
    pub segment: SegmentId,
    /// What that segment is for.
    pub role: Role,
    /// Which path of its block it is in, if in any.
    pub path: Option<usize>,
    /// The token.
    pub token: u32,
    /// Whether it was forced, not sampled.
    pub forced: bool,
    /// Its log-probability; 0 for a forced one.
    pub logprob: f32,
}

/// A block was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkEvent<'a> {
    /// The request.
    pub request: u64,
    /// Which of its samples.
    pub sample: usize,
    /// The segment that ends with `<Parallel>`.
    pub from: SegmentId,
    /// The first segments of the paths.
    pub paths: &'a [SegmentId],
}

/// A block was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinEvent<'a> {
    /// The request.
    pub request: u64,
    /// Which of its samples.
    pub sample: usize,
    /// The last segments of the paths.
    pub paths: &'a [SegmentId],
    /// The segment that starts with `</Parallel>`.
    pub into: SegmentId,
}

/// Watches the engine; every method has a default that does nothing.
pub trait Observer {
    /// A token was appended.
    fn token(&mut self, _event: &TokenEvent) {}

    /// A block was opened.
    fn fork(&mut self, _event: &ForkEvent<'_>) {}

    /// A block was closed.
    fn join(&mut self, _event: &JoinEvent<'_>) {}

    /// A sample is complete.
    fn sample_done(&mut self, _trace: &Trace) {}

    /// Whether the rest of a request's samples is still wanted; asked after each of them.
    fn wants(&mut self, _request: u64) -> bool {
        true
    }

    /// Whether to stop everything now; asked before each pass.
    fn cancelled(&mut self) -> bool {
        false
    }
}

/// Nobody watches.
impl Observer for () {}
