//! What a model is made of, in the words of Hugging Face's `config.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ModelError;

/// The largest value accepted for any size in a configuration; beyond it the file is damaged or hostile.
const MAX_SIZE: usize = 1 << 24;
/// The largest `config.json` accepted.
const MAX_BYTES: u64 = 1 << 20;
/// The largest depth accepted.
const MAX_LAYERS: usize = 1024;

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
    /// Whether projections of the MLP carry a bias; not supported, must be false.
    #[serde(default)]
    pub mlp_bias: bool,
    /// The activation of the gated MLP, `"silu"`.
    #[serde(default = "silu")]
    pub hidden_act: String,
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

fn silu() -> String {
    "silu".into()
}

fn default_eps() -> f64 {
    1e-5
}

fn default_theta() -> f64 {
    10_000.0
}

/// transformers 5 writes the rotary settings as one object; this takes it apart again.
fn one_form(mut config: serde_json::Value) -> serde_json::Value {
    let Some(rope) = config.as_object_mut().and_then(|fields| fields.remove("rope_parameters")) else {
        return config;
    };
    if let Some(theta) = rope.get("rope_theta") {
        config["rope_theta"] = theta.clone();
    }
    if rope.get("rope_type").is_some_and(|kind| kind != "default") {
        config["rope_scaling"] = rope;
    }
    config
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
            mlp_bias: false,
            hidden_act: silu(),
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
        let bytes = crate::prompt::file::read(path, MAX_BYTES)
            .map_err(|source| ModelError::Read { path: path.into(), source })?;
        let config: Self = serde_json::from_slice(&bytes)
            .and_then(|value| serde_json::from_value(one_form(value)))
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
            ("num_attention_heads", self.num_attention_heads),
            ("num_key_value_heads", self.kv_heads()),
            ("head_dim", self.head_dim()),
            ("max_position_embeddings", self.max_position_embeddings),
        ] {
            if size == 0 || size > MAX_SIZE {
                return Err(format!("{field}: expected 1 to {MAX_SIZE}, got {size}"));
            }
        }
        if self.num_hidden_layers == 0 || self.num_hidden_layers > MAX_LAYERS {
            let got = self.num_hidden_layers;
            return Err(format!("num_hidden_layers: expected 1 to {MAX_LAYERS}, got {got}"));
        }
        for (field, number) in [("rms_norm_eps", self.rms_norm_eps), ("rope_theta", self.rope_theta)] {
            if !(number.is_finite() && number > 0.0) {
                return Err(format!("{field}: expected a number above 0, got {number}"));
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
        for (field, set) in [("attention_bias", self.attention_bias), ("mlp_bias", self.mlp_bias)] {
            if set {
                return Err(format!("{field}: projections with a bias are not supported"));
            }
        }
        if self.hidden_act != "silu" {
            return Err(format!("hidden_act: expected \"silu\", got {:?}", self.hidden_act));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: &str) -> Result<(), String> {
        let mut value = serde_json::to_value(Config::tiny(10)).unwrap();
        let change: serde_json::Value = serde_json::from_str(change).unwrap();
        for (key, new) in change.as_object().unwrap() {
            value[key] = new.clone();
        }
        serde_json::from_value::<Config>(one_form(value)).map_err(|e| e.to_string())?.check()
    }

    #[test]
    fn what_cannot_run_is_refused_by_field() {
        assert_eq!(check("{}"), Ok(()));
        for (change, field) in [
            (r#"{"model_type": "gpt2"}"#, "model_type"),
            (r#"{"hidden_size": 0}"#, "hidden_size"),
            (r#"{"vocab_size": 99999999999}"#, "vocab_size"),
            (r#"{"num_key_value_heads": 3}"#, "num_key_value_heads"),
            (r#"{"head_dim": 7}"#, "head_dim"),
            (r#"{"rope_scaling": {"rope_type": "yarn"}}"#, "rope_scaling"),
            (r#"{"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5}}"#, "rope_scaling"),
            (r#"{"attention_bias": true}"#, "attention_bias"),
            (r#"{"mlp_bias": true}"#, "mlp_bias"),
            (r#"{"hidden_act": "gelu"}"#, "hidden_act"),
        ] {
            let message = check(change).unwrap_err();
            assert!(message.starts_with(field), "{change}: {message}");
        }
    }

    #[test]
    fn parameters_are_counted() {
        let config = Config::tiny(10);
        let shapes = crate::model::parameter_shapes(&config);
        let sum: usize = shapes.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
        assert_eq!(config.parameters(), sum);
    }
}
