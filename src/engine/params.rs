//! The settings of sampling, with their defaults and their limits.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::sampler::Draws;
use crate::layout::Structure;

/// Beyond these a setting is a slip, and arithmetic on it could overflow.
const MAX_PATHS: usize = 1024;
const MAX_TOKENS: usize = 1 << 24;

/// How a response is sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingParams {
    /// Divides the logits; 0 takes the likeliest token.
    pub temperature: f32,
    /// The temperature inside paths. By default that of the rest, except that `path_window` paths
    /// are sampled at 1 where that is 0: greedy siblings would all be the same.
    pub path_temperature: Option<f32>,
    /// Draw only from the likeliest tokens that together have this probability.
    pub top_p: f32,
    /// Draw only from the `top_k` likeliest tokens; 0 sets no limit.
    pub top_k: usize,
    /// Whether the paths of a block see each other.
    pub structure: Structure,
    /// Paths of a block. (In the causal structure the model chooses; this many must fit.)
    pub num_paths: usize,
    /// Blocks of a response, nested ones too; 0 makes it sequential.
    pub max_blocks: usize,
    /// Blocks within each other; 1 allows no block inside a path.
    pub max_nesting: usize,
    /// Tokens of a response, forced ones too.
    pub max_response_tokens: usize,
    /// Tokens of a path, its tags too; by default only its share of the budget bounds it.
    pub max_path_tokens: Option<usize>,
    /// Tokens of a path, its tags too, below which no block is opened.
    pub min_path_tokens: usize,
    /// Tokens that a block leaves for its summary and the answer.
    pub reserve_tokens: usize,
    /// Where all random streams start.
    pub seed: u64,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            path_temperature: None,
            top_p: 1.0,
            top_k: 0,
            structure: Structure::PathWindow,
            num_paths: 3,
            max_blocks: 4,
            max_nesting: 1,
            max_response_tokens: 512,
            max_path_tokens: None,
            min_path_tokens: 16,
            reserve_tokens: 64,
            seed: 0,
        }
    }
}

/// A setting outside its limits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: expected {expected}, got {got}")]
pub struct ParamsError {
    /// The setting.
    pub field: &'static str,
    /// What it must be.
    pub expected: &'static str,
    /// What it is.
    pub got: String,
}

impl SamplingParams {
    /// Checks every setting.
    pub fn validate(&self) -> Result<(), ParamsError> {
        // Smaller ones overflow the logits that they divide.
        let temperature = |t: f32| t == 0.0 || (1e-3..=1e3).contains(&t);
        let shortest = self.max_path_tokens.unwrap_or(usize::MAX);
        let blocks = self.max_blocks > 0;
        check(temperature(self.temperature), "temperature", "0, or 0.001 to 1000", self.temperature)?;
        if let Some(t) = self.path_temperature {
            check(temperature(t), "path_temperature", "0, or 0.001 to 1000", t)?;
        }
        check(self.top_p > 0.0 && self.top_p <= 1.0, "top_p", "above 0 and at most 1", self.top_p)?;
        let paths = (1..=MAX_PATHS).contains(&self.num_paths);
        check(paths, "num_paths", "1 to 1024", self.num_paths)?;
        check(self.max_nesting > 0, "max_nesting", "at least 1 (max_blocks = 0 forbids blocks)", 0)?;
        let tokens = (1..=MAX_TOKENS).contains(&self.max_response_tokens);
        check(tokens, "max_response_tokens", "1 to 16777216", self.max_response_tokens)?;
        check(self.max_blocks <= MAX_TOKENS, "max_blocks", "at most 16777216", self.max_blocks)?;
        check(self.reserve_tokens <= MAX_TOKENS, "reserve_tokens", "at most 16777216", self.reserve_tokens)?;
        check(
            self.min_path_tokens >= 3,
            "min_path_tokens",
            "at least 3 (two tags and a token)",
            self.min_path_tokens,
        )?;
        check(
            self.min_path_tokens <= MAX_TOKENS,
            "min_path_tokens",
            "at most 16777216",
            self.min_path_tokens,
        )?;
        check(shortest >= self.min_path_tokens, "max_path_tokens", "at least min_path_tokens", shortest)?;
        check(!blocks || self.reserve_tokens > 0, "reserve_tokens", "at least 1", self.reserve_tokens)
    }

    /// What a user should know about these settings, if anything.
    pub fn notice(&self) -> Option<String> {
        let siblings = self.structure == Structure::PathWindow && self.max_blocks > 0 && self.num_paths > 1;
        match self.path_temperature {
            None if siblings && self.temperature == 0.0 => Some(
                "temperature 0 would make all paths of a block the same, so paths are sampled at \
                 temperature 1 (path_temperature sets another)"
                    .into(),
            ),
            Some(0.0) if siblings => Some("path_temperature 0 makes all paths of a block the same".into()),
            _ => None,
        }
    }

    /// How tokens are drawn inside a path or outside.
    pub(super) fn draws(&self, inside_path: bool) -> Draws {
        let siblings = self.structure == Structure::PathWindow;
        let temperature = match self.path_temperature {
            Some(t) if inside_path => t,
            None if inside_path && siblings && self.temperature == 0.0 => 1.0,
            _ => self.temperature,
        };
        Draws { temperature, top_k: self.top_k, top_p: self.top_p }
    }
}

fn check(
    holds: bool,
    field: &'static str,
    expected: &'static str,
    got: impl ToString,
) -> Result<(), ParamsError> {
    if holds { Ok(()) } else { Err(ParamsError { field, expected, got: got.to_string() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_field() {
        let params = SamplingParams { top_p: 1.5, ..Default::default() };
        let error = params.validate().unwrap_err();
        assert_eq!(error.to_string(), "top_p: expected above 0 and at most 1, got 1.5");
        assert_eq!(SamplingParams::default().validate(), Ok(()));
    }

    #[test]
    fn unknown_keys_are_refused_and_absent_ones_have_defaults() {
        let read = serde_json::from_str::<SamplingParams>;
        assert_eq!(read("{}").unwrap(), SamplingParams::default());
        let causal = read(r#"{"structure": "causal", "num_paths": 5}"#).unwrap();
        assert_eq!((causal.structure, causal.num_paths), (Structure::Causal, 5));
        assert!(read(r#"{"num_path": 5}"#).unwrap_err().to_string().contains("num_path"));
    }

    #[test]
    fn greedy_siblings_are_sampled_and_said_to_be() {
        let greedy = SamplingParams { temperature: 0.0, ..Default::default() };
        assert!(greedy.notice().is_some());
        assert_eq!(greedy.draws(true).temperature, 1.0);
        assert_eq!(greedy.draws(false).temperature, 0.0);
        let causal = SamplingParams { structure: Structure::Causal, ..greedy };
        assert_eq!(causal.draws(true).temperature, 0.0);
        assert!(causal.notice().is_none());
    }
}
