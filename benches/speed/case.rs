//! What is measured: the cases and the shapes of models of `benches/peers/cases.json`, which both sides read.

use std::path::{Path, PathBuf};

use candle_core::Device;
use parallel_r1::model::{self, Config, Decoder};
use serde::Deserialize;
use serde_json::Value;

use super::Result;

const CASES: &str = include_str!("../peers/cases.json");

/// The kind of work.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Forward, backward, clipping and AdamW.
    Train,
    /// Responses of a fixed length to prompts.
    Sample,
    /// A whole step: sample, reward, update.
    Grpo,
    /// A parallel block and its summary.
    Block,
    /// The same tokens by requests that read their prefix again at fork and join.
    Reread,
    /// The machine's own limits.
    Machine,
    /// The judge.
    Verify,
}

/// A piece of work. Lengths are in tokens.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) work: Kind,
    /// The shape of the model.
    #[serde(default)]
    model: String,
    /// Where its weights lie, if they do.
    folder: Option<PathBuf>,
    /// Different prompts.
    #[serde(default = "one")]
    pub(super) prompts: usize,
    /// Responses to each prompt.
    #[serde(default = "one")]
    pub(super) group: usize,
    /// Length of a prompt.
    #[serde(default = "one")]
    pub(super) prompt: usize,
    /// Length of a response; in a block, of a path with its tags.
    #[serde(default = "one")]
    pub(super) response: usize,
    /// Paths of a block.
    #[serde(default = "one")]
    pub(super) paths: usize,
    /// Length of what follows a block.
    #[serde(default = "one")]
    pub(super) summary: usize,
    /// Rows of a forward pass in training, at most.
    #[serde(default = "micro_batch_tokens")]
    pub(super) micro_batch_tokens: usize,
    /// Whether activations are computed again in the backward pass.
    #[serde(default)]
    pub(super) recompute: bool,
}

fn one() -> usize {
    1
}

/// As the recipes have it.
fn micro_batch_tokens() -> usize {
    2048
}

impl Case {
    /// A case by name, or from a JSON object.
    pub(super) fn find(name: &str) -> Result<Self> {
        if name == "machine" {
            return Ok(serde_json::from_str(r#"{"name": "machine", "work": "machine"}"#)?);
        }
        if name.starts_with('{') {
            return Ok(serde_json::from_str(name)?);
        }
        let all: Value = serde_json::from_str(CASES)?;
        let cases = all["cases"].as_array().ok_or("cases.json: expected a list \"cases\"")?;
        let found =
            cases.iter().find(|case| case["name"] == name).ok_or_else(|| format!("no case {name:?}"))?;
        Ok(serde_json::from_value(found.clone())?)
    }

    /// The model.
    pub(super) fn model(&self) -> Result<Decoder> {
        match &self.folder {
            Some(folder) => Ok(model::load(folder, &Device::Cpu)?),
            None => random(&self.model),
        }
    }

    /// Tokens that a round is about: each prompt once, and its responses.
    pub(super) fn useful_tokens(&self) -> usize {
        self.prompts * (self.prompt + self.group * self.response)
    }

    /// Responses of a round.
    pub(super) fn responses(&self) -> usize {
        self.prompts * self.group
    }
}

/// Names of all cases.
pub(super) fn names() -> Result<Vec<String>> {
    let all: Value = serde_json::from_str(CASES)?;
    let cases = all["cases"].as_array().into_iter().flatten();
    Ok(cases.filter_map(|case| case["name"].as_str().map(String::from)).collect())
}

/// Writes a model of a named shape.
pub(super) fn write(name: &str, folder: &Path) -> Result<()> {
    Ok(model::save(&random(name)?, folder, candle_core::DType::F32)?)
}

/// A model of a named shape with random weights, the same each time.
fn random(name: &str) -> Result<Decoder> {
    let all: Value = serde_json::from_str(CASES)?;
    let shape = all["models"].get(name).ok_or_else(|| format!("no model {name:?}"))?;
    let config: Config = serde_json::from_value(shape.clone())?;
    Ok(Decoder::random(&config, 1)?)
}
