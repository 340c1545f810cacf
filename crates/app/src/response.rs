//! A response as JSON.

use parallel_r1::engine::{Finish, Trace};
use parallel_r1::layout::{Role, SegmentId};
use parallel_r1::model::{ModelError, Pretrained};
use serde::Serialize;

/// A response and what it took.
#[derive(Serialize)]
pub(crate) struct Response {
    /// Its text: tags shown, end-of-text not.
    pub(crate) text: String,
    /// The answer that it states last, if any.
    pub(crate) answer: Option<String>,
    tokens: usize,
    critical_path_tokens: usize,
    blocks: usize,
    finish: Finish,
    segments: Vec<Segment>,
}

/// A run of tokens and what it continues.
#[derive(Serialize)]
struct Segment {
    role: Role,
    parents: Vec<SegmentId>,
    start: u32,
    tokens: usize,
    finish: Finish,
    text: String,
}

impl Response {
    /// Describes a trace.
    pub(crate) fn new(trace: &Trace, model: &Pretrained) -> Result<Self, ModelError> {
        let text = model.tokenizer.decode(trace.response())?;
        let ranges = trace.layout.ranges();
        let parts = trace.layout.segments().iter().zip(ranges).zip(&trace.finish);
        let segment =
            |((segment, range), &finish): ((&parallel_r1::layout::Segment, std::ops::Range<usize>), _)| {
                Ok(Segment {
                    role: segment.role,
                    parents: segment.parents.clone(),
                    start: segment.start,
                    tokens: segment.len,
                    finish,
                    text: model.tokenizer.decode(&trace.tokens[range])?,
                })
            };
        Ok(Self {
            answer: parallel_r1_verify::extract(&text).map(str::to_owned),
            text,
            tokens: trace.response_tokens(),
            critical_path_tokens: trace.critical_path(),
            blocks: trace.blocks(),
            finish: if trace.truncated() { Finish::Length } else { Finish::Sampled },
            segments: parts.map(segment).collect::<Result<_, ModelError>>()?,
        })
    }
}
