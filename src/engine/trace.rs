//! What the engine hands out: a response with everything that rewards, trainer and report need.

use serde::{Deserialize, Serialize};

use crate::layout::{Layout, Role, Structure};
use crate::prompt::tags::{AllowedSet, Control, Tag};

/// How a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// By a tag or end-of-text that the model sampled.
    Sampled,
    /// By the budget.
    Length,
}

/// One sampled response and its prompt. The lists have one entry per token, in text order; where a
/// token wasn't sampled, its log-probability and temperature say nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The request that it answers.
    pub request: u64,
    /// Which of the request's samples it is.
    pub sample: usize,
    /// The seed of the sampling settings.
    pub seed: u64,
    /// The prompt's tokens, then the response's.
    pub tokens: Vec<u32>,
    /// How many of them are the prompt's.
    pub prompt_len: usize,
    /// Their segments; the first is the prompt.
    pub layout: Layout,
    /// Log-softmax(logits / T without the forbidden tokens) of each sampled token.
    pub logprobs: Vec<f32>,
    /// Which tokens are actions: sampled, not forced.
    pub sampled: Vec<bool>,
    /// From which tokens each was sampled, or could have been by the grammar if it was forced.
    pub allowed: Vec<AllowedSet>,
    /// At which temperature each was sampled; 1 where the likeliest token was taken.
    pub temperatures: Vec<f32>,
    /// How each segment ended.
    pub finish: Vec<Finish>,
    /// Whether paths see each other.
    pub structure: Structure,
}

impl Trace {
    /// The response's tokens, in text order.
    pub fn response(&self) -> &[u32] {
        &self.tokens[self.prompt_len..]
    }

    /// How many tokens the response has.
    pub fn response_tokens(&self) -> usize {
        self.response().len()
    }

    /// How many of them were forced.
    pub fn forced_tokens(&self) -> usize {
        self.sampled[self.prompt_len..].iter().filter(|&&sampled| !sampled).count()
    }

    /// Whether the response stops at its budget, without end-of-text.
    pub fn truncated(&self) -> bool {
        self.finish.last() == Some(&Finish::Length)
    }

    /// How many segments other than the last were ended by their budget: paths that were cut off
    /// (`path_window` only; the causal structure is one segment).
    pub fn cut_paths(&self) -> usize {
        let before_last = self.finish.iter().rev().skip(1);
        before_last.filter(|&&finish| finish == Finish::Length).count()
    }

    /// How many response tokens had to follow one another: its latency in tokens.
    pub fn critical_path(&self) -> usize {
        self.layout.critical_path()
    }

    /// How many blocks it opened, nested ones too.
    pub fn blocks(&self) -> usize {
        match self.structure {
            Structure::PathWindow => {
                self.layout.segments().iter().filter(|segment| segment.role == Role::Join).count()
            }
            // Only between `<Parallel>` and the first `<Path>` of a block is `<Path>` alone legal.
            Structure::Causal => {
                let first_path = AllowedSet::NONE.with(Control::Tag(Tag::Path));
                let opened = self.allowed.chunk_by(|a, b| a == b);
                opened.filter(|run| run[0] == first_path).count()
            }
        }
    }

    /// The sum of the log-probabilities of the actions.
    pub fn logprob(&self) -> f64 {
        let actions = self.logprobs.iter().zip(&self.sampled);
        actions.filter(|(_, sampled)| **sampled).map(|(&logprob, _)| f64::from(logprob)).sum()
    }
}
