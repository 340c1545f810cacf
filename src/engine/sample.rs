//! A response at work: what has been written of each segment, which blocks are open, and the trace that it becomes.

use super::Request;
use super::branch::Branch;
use super::budget::Budget;
use super::params::SamplingParams;
use super::trace::{Finish, Trace};
use crate::layout::{Layout, Role, SegmentId};
use crate::prompt::tags::AllowedSet;

/// A response at work. Segments are in the order in which they began.
pub(super) struct Sample {
    pub(super) group: usize,
    pub(super) number: usize,
    pub(super) layout: Layout,
    pub(super) segments: Vec<Written>,
    pub(super) forks: Vec<Fork>,
}

/// The tokens of a segment.
#[derive(Default)]
pub(super) struct Written {
    pub(super) tokens: Vec<u32>,
    pub(super) logprobs: Vec<f32>,
    pub(super) sampled: Vec<bool>,
    pub(super) allowed: Vec<AllowedSet>,
    pub(super) temperatures: Vec<f32>,
    pub(super) cut: bool,
}

/// An open block.
pub(super) struct Fork {
    /// The branch that opened it, as it was after `<Parallel>`.
    pub(super) trunk: Option<Branch>,
    pub(super) share: Budget,
    /// The paths that have ended.
    pub(super) ended: Vec<Option<Branch>>,
}

impl Sample {
    pub(super) fn begin(&mut self, role: Role, parents: &[SegmentId], rewind: u32) -> SegmentId {
        self.segments.push(Written::default());
        self.layout.push_rewound(role, parents, 0, rewind)
    }

    /// The trace, its segments in text order.
    pub(super) fn into_trace(self, request: &Request, params: &SamplingParams) -> Trace {
        let order = self.layout.text_order();
        let segments = || order.iter().map(|&id| &self.segments[id]);
        let finish = |segment: &Written| if segment.cut { Finish::Length } else { Finish::Sampled };
        Trace {
            request: request.id,
            sample: self.number,
            seed: params.seed,
            tokens: segments().flat_map(|s| s.tokens.iter().copied()).collect(),
            prompt_len: request.prompt.len(),
            layout: self.layout.reordered(&order),
            logprobs: segments().flat_map(|s| s.logprobs.iter().copied()).collect(),
            sampled: segments().flat_map(|s| s.sampled.iter().copied()).collect(),
            allowed: segments().flat_map(|s| s.allowed.iter().copied()).collect(),
            temperatures: segments().flat_map(|s| s.temperatures.iter().copied()).collect(),
            finish: segments().map(finish).collect(),
            structure: params.structure,
        }
    }
}

impl Written {
    pub(super) fn prompt(tokens: &[u32]) -> Self {
        let mut written = Self::default();
        tokens.iter().for_each(|&token| written.push(token, 0.0, false, AllowedSet::ALL, 1.0));
        written
    }

    pub(super) fn push(&mut self, token: u32, logprob: f32, sampled: bool, allowed: AllowedSet, t: f32) {
        self.tokens.push(token);
        self.logprobs.push(logprob);
        self.sampled.push(sampled);
        self.allowed.push(allowed);
        self.temperatures.push(t);
    }
}
