//! What a model is made of, in the words of Hugging Face's `config.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ModelError;
use super::rope::{self, RopeScaling};

/// The largest value accepted for any size in a configuration; beyond it the file is damaged or hostile.
const MAX_SIZE: usize = 1 << 24;
/// The largest `config.json` accepted.
const MAX_BYTES: u64 = 1 << 20;
/// The largest depth accepted.
const MAX_LAYERS: usize = 1024;

/// The decoder families. They share one network; where they differ, [`Config`] says so in one method each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Llama 2 and 3, and what is built like them (SmolLM2, TinyLlama).
    Llama,
    /// Qwen2 and 2.5: the query, key and value projections have a bias.
    Qwen2,
    /// Qwen3: queries and keys are normalised, head by head.
    Qwen3,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 3] = [Self::Llama, Self::Qwen2, Self::Qwen3];

    /// Its name, as `model_type` of a configuration and `general.architecture` of a GGUF file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }

    /// The class that runs it in transformers.
    fn architecture(self) -> &'static str {
        match self {
            Self::Llama => "LlamaForCausalLM",
            Self::Qwen2 => "Qwen2ForCausalLM",
            Self::Qwen3 => "Qwen3ForCausalLM",
        }
    }

    /// The family of a name; the message lists what is known.
    pub(super) fn named(name: Option<&str>) -> Result<Self, String> {
        let known = Self::ALL.map(|family| format!("{:?}", family.name())).join(", ");
        let got = name.map_or("nothing".into(), |name| format!("{name:?}"));
        let found = Self::ALL.into_iter().find(|family| Some(family.name()) == name);
        found.ok_or_else(|| format!("expected one of {known}, got {got}"))
    }
}

/// Sizes and constants of a decoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Class names that may run this model; the family's must be one of them.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// The family.
    pub model_type: Family,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_key_value_heads: Option<usize>,
    /// Width of a head; when absent 128 in Qwen3, else `hidden_size / num_attention_heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<usize>,
    /// Positions that the model was made for; with a scaled rotary base see [`Config::position_limit`].
    pub max_position_embeddings: usize,
    /// Epsilon of the RMS norms.
    #[serde(default = "default_eps")]
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    #[serde(default = "default_theta")]
    pub rope_theta: f64,
    /// How the rotary frequencies are scaled to longer texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rope_scaling: Option<RopeScaling>,
    /// Whether all four projections of the attention carry a bias.
    #[serde(default)]
    pub attention_bias: bool,
    /// Whether the projections of the MLP carry a bias.
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

fn silu() -> String {
    "silu".into()
}

fn default_eps() -> f64 {
    1e-6
}

fn default_theta() -> f64 {
    10_000.0
}

/// Settings that would make this another model than the one that runs here.
fn refuse_strangers(config: &Value) -> Result<(), String> {
    if let Some(method) = config.get("quantization_config").filter(|v| !v.is_null()) {
        let method = method["quant_method"].as_str().unwrap_or("unknown");
        return Err(format!(
            "quantization_config: expected plain weights, got the method {method:?} (quantised weights are read from \
             GGUF files)"
        ));
    }
    let windows = config.get("layer_types").and_then(Value::as_array).into_iter().flatten();
    let windows = windows.filter_map(Value::as_str).find(|kind| *kind != "full_attention");
    if let Some(kind) = windows {
        return Err(format!("layer_types: expected \"full_attention\" everywhere, got {kind:?}"));
    }
    if config["use_sliding_window"] == true && config.get("sliding_window").is_some_and(Value::is_number) {
        return Err("use_sliding_window: expected false (attention sees the whole text), got true".into());
    }
    Ok(())
}

impl Config {
    /// A Llama configuration of the given sizes, tied head, everything else at its default.
    pub fn llama(vocab: usize, hidden: usize, intermediate: usize, layers: usize, heads: usize) -> Self {
        Self {
            architectures: vec![Family::Llama.architecture().into()],
            model_type: Family::Llama,
            vocab_size: vocab,
            hidden_size: hidden,
            intermediate_size: intermediate,
            num_hidden_layers: layers,
            num_attention_heads: heads,
            num_key_value_heads: Some(heads),
            head_dim: Some(hidden / heads.max(1)),
            max_position_embeddings: 2048,
            rms_norm_eps: 1e-5,
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

    /// The same sizes for another family.
    pub fn of_family(self, family: Family) -> Self {
        Self { architectures: vec![family.architecture().into()], model_type: family, ..self }
    }

    /// Key/value heads.
    pub fn kv_heads(&self) -> usize {
        self.num_key_value_heads.unwrap_or(self.num_attention_heads)
    }

    /// Width of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim.unwrap_or(match self.model_type {
            Family::Qwen3 => 128,
            _ => self.hidden_size / self.num_attention_heads.max(1),
        })
    }

    /// Whether the query, key and value projections carry a bias.
    pub fn qkv_bias(&self) -> bool {
        self.model_type == Family::Qwen2 || self.attention_bias
    }

    /// Whether the output projection of the attention carries a bias.
    pub fn o_bias(&self) -> bool {
        self.model_type != Family::Qwen2 && self.attention_bias
    }

    /// Whether queries and keys are normalised, head by head.
    pub fn qk_norm(&self) -> bool {
        self.model_type == Family::Qwen3
    }

    /// No token may stand at or beyond this position: `max_position_embeddings`, or what the scaling of the rotary
    /// frequencies stretches their original range to.
    pub fn position_limit(&self) -> usize {
        let stretched = self.rope_scaling.as_ref().and_then(|s| s.stretched(self.max_position_embeddings));
        stretched.unwrap_or(0).max(self.max_position_embeddings)
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        super::parameter_shapes(self).iter().map(|(_, shape)| shape.iter().product::<usize>()).sum()
    }

    /// Reads and checks `config.json`.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let wrong = |reason| ModelError::Config { path: path.into(), reason };
        let bytes = crate::prompt::file::read(path, MAX_BYTES)
            .map_err(|source| ModelError::Read { path: path.into(), source })?;
        let json = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        Self::from_json(json).map_err(wrong)
    }

    /// Understands what `config.json` holds, in the form of transformers 4 or 5; an error names the field.
    pub fn from_json(mut json: Value) -> Result<Self, String> {
        if !json.is_object() {
            return Err("expected a JSON object".into());
        }
        let family = Family::named(json["model_type"].as_str()).map_err(|e| format!("model_type: {e}"))?;
        if let Some(classes) = json["architectures"].as_array().filter(|classes| !classes.is_empty())
            && !classes.iter().any(|class| class == family.architecture())
        {
            let (expected, got) = (family.architecture(), &json["architectures"]);
            return Err(format!("architectures: expected {expected:?}, got {got}"));
        }
        refuse_strangers(&json)?;
        rope::to_one_form(&mut json)?;
        let config: Self = serde_json::from_value(json).map_err(|e| e.to_string())?;
        config.check()?;
        Ok(config)
    }

    /// Says what makes this configuration impossible to run, naming the field.
    pub fn check(&self) -> Result<(), String> {
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
        let width = self.num_attention_heads.saturating_mul(self.head_dim());
        if width > MAX_SIZE {
            return Err(format!(
                "head_dim: expected heads of at most {MAX_SIZE} numbers together, got {width}"
            ));
        }
        if !self.head_dim().is_multiple_of(2) {
            return Err(format!("head_dim: expected an even number, got {}", self.head_dim()));
        }
        if let Some(scaling) = &self.rope_scaling {
            scaling.check().map_err(|reason| format!("rope_scaling.{reason}"))?;
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

    fn changed(change: &str) -> Result<Config, String> {
        let mut value = serde_json::to_value(Config::tiny(10)).unwrap();
        let change: Value = serde_json::from_str(change).unwrap();
        for (key, new) in change.as_object().unwrap() {
            value[key] = new.clone();
        }
        Config::from_json(value)
    }

    #[test]
    fn what_cannot_run_is_refused_by_field() {
        assert_eq!(changed("{}"), Ok(Config::tiny(10)));
        for (change, field) in [
            (
                r#"{"model_type": "gpt2"}"#,
                "model_type: expected one of \"llama\", \"qwen2\", \"qwen3\", got \"gpt2\"",
            ),
            (r#"{"architectures": ["LlamaForSequenceClassification"]}"#, "architectures: expected"),
            (r#"{"hidden_size": 0}"#, "hidden_size"),
            (r#"{"vocab_size": 99999999999}"#, "vocab_size"),
            (r#"{"num_key_value_heads": 3}"#, "num_key_value_heads"),
            (r#"{"head_dim": 7}"#, "head_dim"),
            (r#"{"head_dim": 8388608}"#, "head_dim: expected heads of at most"),
            (
                r#"{"rope_scaling": {"rope_type": "dynamic", "factor": 2}}"#,
                "rope_scaling.rope_type: expected",
            ),
            (r#"{"rope_scaling": {"rope_type": "yarn"}}"#, "rope_scaling: missing field `factor`"),
            (r#"{"rope_scaling": {"type": "linear", "factor": 0}}"#, "rope_scaling.factor: expected"),
            (
                r#"{"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8}}"#,
                "rope_scaling: missing",
            ),
            (r#"{"rope_parameters": {"full_attention": {"rope_type": "default"}}}"#, "rope_parameters"),
            (r#"{"partial_rotary_factor": 0.5}"#, "partial_rotary_factor"),
            (r#"{"quantization_config": {"quant_method": "gptq"}}"#, "quantization_config: expected plain"),
            (r#"{"use_sliding_window": true, "sliding_window": 4096}"#, "use_sliding_window"),
            (r#"{"layer_types": ["full_attention", "sliding_attention"]}"#, "layer_types"),
            (r#"{"hidden_act": "gelu"}"#, "hidden_act"),
        ] {
            let message = changed(change).unwrap_err();
            assert!(message.starts_with(field), "{change}: {message}");
        }
    }

    #[test]
    fn both_forms_of_rotary_settings_are_one() {
        let old =
            changed(r#"{"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4.0}}"#).unwrap();
        let new =
            changed(r#"{"rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 4.0}}"#);
        assert_eq!(Ok(&old), new.as_ref());
        assert_eq!((old.rope_theta, old.rope_scaling.is_some()), (5e5, true));
        assert_eq!(Config::from_json(serde_json::to_value(&old).unwrap()), Ok(old));
        let scaling =
            r#""rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 99}"#;
        let beside = changed(&format!(r#"{{{scaling}, "original_max_position_embeddings": 32}}"#)).unwrap();
        let Some(RopeScaling::Yarn(yarn)) = beside.rope_scaling else { panic!("expected YaRN") };
        assert_eq!(yarn.original_max_position_embeddings, Some(32));
    }

    #[test]
    fn scaling_stretches_the_position_limit() {
        let scaling = r#"{"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}"#;
        let config = changed(&format!(r#"{{"rope_scaling": {scaling}}}"#)).unwrap();
        let written =
            serde_json::to_string(&Config { head_dim: None, num_key_value_heads: None, ..config.clone() });
        assert!(!written.unwrap().contains("null"), "transformers takes null for a value");
        assert_eq!((Config::tiny(10).position_limit(), config.position_limit()), (2048, 8192));
        let linear = changed(r#"{"rope_scaling": {"type": "linear", "factor": 2.0}}"#).unwrap();
        assert_eq!(linear.position_limit(), 4096);
    }

    #[test]
    fn families_differ_in_their_parameters() {
        let count = |family| Config::tiny(10).of_family(family).parameters();
        // Two layers: biases of width 32 + 16 + 16; norms of width 8 for queries and for keys.
        assert_eq!(count(Family::Qwen2) - count(Family::Llama), 2 * 64);
        assert_eq!(count(Family::Qwen3) - count(Family::Llama), 2 * 16);
    }
}
