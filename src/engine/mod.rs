//! Prompt -> [`Trace`]: samples from a model, with parallel blocks that really run in parallel.
//!
//! ```text
//! Request ──admit──▶ branches ──feed──▶ one pass ──logits──▶ draws ──fork, close, join──▶ Trace
//!            ▲           ▲                                                  │
//!            │ pages     └──────────────────────────────────────────────────┘
//!          cache
//! ```
//!
//! `scheduler` is the loop. It uses `cache` (which token goes to which slot), `step` (what a pass
//! is), `sampler` (a row of logits -> a token), `budget` (what a branch may still spend) and
//! `branch` (one growing end of a response). `vote` is built on top: many samples, one answer.

mod branch;
mod budget;
mod cache;
mod decoder;
mod observer;
mod params;
mod sample;
mod sampler;
mod scheduler;
mod step;
mod trace;
pub mod vote;

#[cfg(test)]
mod oracle;

pub use decoder::CachedDecoder;
pub use observer::{ForkEvent, JoinEvent, Observer, TokenEvent};
pub use params::{ParamsError, SamplingParams};
pub use step::{LanguageModel, ModelError, Rows};
pub use trace::{Finish, Trace};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::Decoder;
use crate::prompt::tags::Controls;

/// A prompt and how many responses to it are wanted. The prompt is read once for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Names the request in traces and events, and keys its random streams: the same id, seed and
    /// sample number give the same response, whatever else is sampled with it.
    pub id: u64,
    /// The prompt's tokens.
    pub prompt: Vec<u32>,
    /// How many responses.
    pub samples: usize,
    /// The number of the first of them.
    pub first_sample: usize,
}

/// How much work the engine takes on at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineOptions {
    /// Branches in one pass.
    pub max_batch: usize,
    /// Tokens that the cache holds at most; less is allocated where less suffices.
    pub cache_tokens: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { max_batch: 64, cache_tokens: 65_536 }
    }
}

/// What the engine has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineStats {
    /// Passes over the model.
    pub steps: u64,
    /// Rows in them.
    pub rows: u64,
    /// Prompt tokens, each counted once a request.
    pub prompt_tokens: u64,
    /// Tokens that were sampled.
    pub sampled_tokens: u64,
    /// Tokens that were forced.
    pub forced_tokens: u64,
    /// Rows beyond the first for any token of a text: what forks and joins read again. Zero.
    pub reread_tokens: u64,
    /// Live branches, summed over the passes.
    pub branch_steps: u64,
    /// Entropy of the distributions sampled from, summed, in nats.
    pub entropy: f64,
}

impl EngineStats {
    /// Live branches in a pass, on average.
    pub fn mean_live_branches(&self) -> f64 {
        self.branch_steps as f64 / self.steps.max(1) as f64
    }

    /// Adds what another engine has done.
    pub fn merge(&mut self, other: &Self) {
        self.steps += other.steps;
        self.rows += other.rows;
        self.prompt_tokens += other.prompt_tokens;
        self.sampled_tokens += other.sampled_tokens;
        self.forced_tokens += other.forced_tokens;
        self.reread_tokens += other.reread_tokens;
        self.branch_steps += other.branch_steps;
        self.entropy += other.entropy;
    }

    /// Entropy of a sampled token's distribution, on average, in nats.
    pub fn mean_entropy(&self) -> f64 {
        self.entropy / self.sampled_tokens.max(1) as f64
    }
}

/// Why nothing could be sampled.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A setting is outside its limits.
    #[error("sampling settings: {0}")]
    Params(#[from] ParamsError),
    /// An engine without room for a branch.
    #[error("max_batch: expected at least 1, got 0")]
    NoBatch,
    /// A prompt without a token, so nothing predicts the response.
    #[error("request {request}: expected a prompt of at least one token, got an empty one")]
    EmptyPrompt {
        /// The request.
        request: u64,
    },
    /// A prompt that fills all positions of the model.
    #[error(
        "request {request}: the prompt has {tokens} tokens, but the model has {limit} positions \
         (max_position_embeddings) and the response needs at least one of them; shorten the prompt"
    )]
    PromptTooLong {
        /// The request.
        request: u64,
        /// Tokens of the prompt.
        tokens: usize,
        /// The model's position limit.
        limit: usize,
    },
    /// A request that the cache can't hold even alone.
    #[error(
        "request {request}: a sample may need {needs} tokens of cache (prompt and \
         max_response_tokens, rounded up to pages), but cache_tokens is {has}; raise cache_tokens \
         or lower max_response_tokens"
    )]
    CacheTooSmall {
        /// The request.
        request: u64,
        /// Slots of the prompt and one sample.
        needs: usize,
        /// Slots of the cache.
        has: usize,
    },
    /// An id that the model has no row for.
    #[error("{what}: token {token} is outside the model's vocabulary of {vocab}")]
    UnknownToken {
        /// Where the token is from.
        what: String,
        /// The token.
        token: u32,
        /// The size of the vocabulary.
        vocab: usize,
    },
    /// The model's numbers are no longer numbers.
    #[error("request {request}, sample {sample}: no finite logits to sample from; the model has diverged")]
    NotFinite {
        /// The request.
        request: u64,
        /// Which of its samples.
        sample: usize,
    },
    /// The model failed.
    #[error("the model failed: {0}")]
    Model(#[source] ModelError),
}

/// Samples from a model.
pub struct Engine<M> {
    model: M,
    controls: Controls,
    options: EngineOptions,
    stats: EngineStats,
}

impl<'a> Engine<CachedDecoder<'a>> {
    /// An engine for a decoder.
    pub fn new(decoder: &'a Decoder, controls: &Controls, options: EngineOptions) -> Self {
        Self::over(CachedDecoder::new(decoder), controls, options)
    }
}

impl<M: LanguageModel> Engine<M> {
    /// An engine for any model.
    pub fn over(model: M, controls: &Controls, options: EngineOptions) -> Self {
        Self { model, controls: controls.clone(), options, stats: EngineStats::default() }
    }

    /// Samples all requests. The result has a list for each, with its traces in the order of their
    /// numbers; after [`Observer::wants`] or [`Observer::cancelled`] stopped some, the others.
    pub fn generate(
        &mut self,
        requests: &[Request],
        params: &SamplingParams,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Vec<Trace>>, EngineError> {
        scheduler::generate(self, requests, params, observer)
    }

    /// What was done since the engine was made.
    pub fn stats(&self) -> EngineStats {
        self.stats
    }
}
