//! What a model is made of, in the words of Hugging Face's `config.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ModelError;

/// The largest value accepted for any size in a configuration; beyond it the file is damaged or hostile.
const MAX_SIZE: usize = 1 << 24;

/// Sizes and constants of a Llama-family decoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Class names that may run this model; the first names the family.
    #[serde(default = "llama_architectures")]
    pub architectures: Vec<String>,
    /// The family, `"llama"`.
    pub model_type: String,
    /// Rows of the embedding table.
    pub vocab_size: usize,
    /// Width of the residual stream, `d`.
    pub hidden_size: usize,
    /// Width of the gated MLP.
    pub intermediate_size: usize,
    /// Number of decoder layers.
    pub num_hidden_layers: usize,
    /// Number of query heads.
    pub num_attention_heads: usize,
    /// Number of key/value heads (GQA); equal to `num_attention_heads` when absent.
    #[serde(default)]
    pub num_key_value_heads: Option<usize>,
    /// Width of a head; `hidden_size / num_attention_heads` when absent.
    #[serde(default)]
    pub head_dim: Option<usize>,
    /// The position limit: no token may stand at or beyond it.
    pub max_position_embeddings: usize,
    /// Epsilon of the RMS norms.
    #[serde(default = "default_eps")]
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    #[serde(default = "default_theta")]
    pub rope_theta: f64,
    /// Rotary scaling; not supported yet, so anything but absent or null is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rope_scaling: Option<serde_json::Value>,
    /// Whether projections of the attention carry a bias; not supported yet, must be false.
    #[serde(default)]
    pub attention_bias: bool,
    /// Whether the output head is the embedding table.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// Id that starts a text, if the model has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bos_token_id: Option<u32>,
    /// Id or ids that end a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eos_token_id: Option<serde_json::Value>,
}

fn llama_architectures() -> Vec<String> {
    vec!["LlamaForCausalLM".into()]
}

fn default_eps() -> f64 {
    1e-5
}

fn default_theta() -> f64 {
    10_000.0
}

impl Config {
    /// A Llama configuration of the given sizes, tied head, everything else at its default.
    pub fn llama(vocab: usize, hidden: usize, intermediate: usize, layers: usize, heads: usize) -> Self {
        Self {
            architectures: llama_architectures(),
            model_type: "llama".into(),
            vocab_size: vocab,
            hidden_size: hidden,
            intermediate_size: intermediate,
            num_hidden_layers: layers,
            num_attention_heads: heads,
            num_key_value_heads: Some(heads),
            head_dim: Some(hidden / heads.max(1)),
            max_position_embeddings: 2048,
            rms_norm_eps: default_eps(),
            rope_theta: default_theta(),
            rope_scaling: None,
            attention_bias: false,
            tie_word_embeddings: true,
            bos_token_id: None,
            eos_token_id: None,
        }
    }

    /// A model small enough for tests: two layers, four query heads on two key/value heads.
    pub fn tiny(vocab: usize) -> Self {
        Self { num_key_value_heads: Some(2), ..Self::llama(vocab, 32, 48, 2, 4) }
    }

    /// Key/value heads.
    pub fn kv_heads(&self) -> usize {
        self.num_key_value_heads.unwrap_or(self.num_attention_heads)
    }

    /// Width of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim.unwrap_or(self.hidden_size / self.num_attention_heads.max(1))
    }

    /// Trainable parameters.
    pub fn parameters(&self) -> usize {
        let (d, h) = (self.hidden_size, self.head_dim());
        let attention = 2 * d * h * (self.num_attention_heads + self.kv_heads());
        let layer = attention + 3 * d * self.intermediate_size + 2 * d;
        let tables = if self.tie_word_embeddings { 1 } else { 2 };
        tables * self.vocab_size * d + self.num_hidden_layers * layer + d
    }

    /// Reads and checks `config.json`.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ModelError::Read { path: path.into(), source })?;
        let config: Self = serde_json::from_str(&text)
            .map_err(|e| ModelError::Config { path: path.into(), reason: e.to_string() })?;
        config.check().map_err(|reason| ModelError::Config { path: path.into(), reason })?;
        Ok(config)
    }

    /// Says what makes this configuration impossible to run, naming the field.
    pub fn check(&self) -> Result<(), String> {
        if self.model_type != "llama" {
            return Err(format!("model_type: expected \"llama\", got {:?}", self.model_type));
        }
        for (field, size) in [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("num_key_value_heads", self.kv_heads()),
            ("head_dim", self.head_dim()),
            ("max_position_embeddings", self.max_position_embeddings),
        ] {
            if size == 0 || size > MAX_SIZE {
                return Err(format!("{field}: expected 1 to {MAX_SIZE}, got {size}"));
            }
        }
        if !self.num_attention_heads.is_multiple_of(self.kv_heads()) {
            return Err(format!(
                "num_key_value_heads: expected a divisor of num_attention_heads = {}, got {}",
                self.num_attention_heads,
                self.kv_heads()
            ));
        }
        if !self.head_dim().is_multiple_of(2) {
            return Err(format!("head_dim: expected an even number, got {}", self.head_dim()));
        }
        if self.rope_scaling.as_ref().is_some_and(|v| !v.is_null()) {
            return Err("rope_scaling: scaled rotary positions are not supported".into());
        }
        if self.attention_bias {
            return Err("attention_bias: projections with a bias are not supported".into());
        }
        Ok(())
    }
}
