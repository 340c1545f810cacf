//! LoRA: a small trainable part beside fixed weights (Hu et al. 2021, arXiv 2106.09685).
//!
//! A projection gets `scale * B A` added, with `scale = lora_alpha / r`. Beside it the rows of some tokens are
//! trainable, in the embedding table and in an untied head: the tags are new, so a fixed row would mean nothing. Names
//! are those of PEFT, see `peft` for the files.

use std::collections::{BTreeMap, HashSet};

use candle_core::{Device, Result, Tensor, Var};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::parameters::{EMBEDDING, HEAD, PROJECTIONS, projection, projection_shape};
use super::projection::{LowRank, Weight};
use super::{Decoder, ModelError};

/// The largest rank.
const MAX_RANK: usize = 4096;

/// Settings of a new adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoraConfig {
    /// Rank of the added matrices.
    pub r: usize,
    /// They are scaled by `lora_alpha / r`.
    pub lora_alpha: f64,
    /// The projections that get them, of [`PROJECTIONS`].
    pub target_modules: Vec<String>,
}

impl Default for LoraConfig {
    fn default() -> Self {
        Self { r: 16, lora_alpha: 32.0, target_modules: PROJECTIONS.map(String::from).to_vec() }
    }
}

impl LoraConfig {
    /// Says what is wrong with the settings, naming the field.
    pub fn check(&self) -> std::result::Result<(), String> {
        if !(1..=MAX_RANK).contains(&self.r) {
            return Err(format!("r: expected 1 to {MAX_RANK}, got {}", self.r));
        }
        if !(self.lora_alpha.is_finite() && self.lora_alpha > 0.0) {
            return Err(format!("lora_alpha: expected a number above 0, got {}", self.lora_alpha));
        }
        if self.target_modules.is_empty() {
            return Err(format!("target_modules: expected some of {}, got none", PROJECTIONS.join(", ")));
        }
        match self.target_modules.iter().find(|name| !PROJECTIONS.contains(&name.as_str())) {
            Some(name) => {
                Err(format!("target_modules: expected some of {}, got {name:?}", PROJECTIONS.join(", ")))
            }
            None => Ok(()),
        }
    }

    /// The same in PEFT's `adapter_config.json`, for a base model and the rows of `tokens`.
    fn to_peft(&self, base: &str, tokens: &[u32], tied: bool) -> Value {
        let mut config = json!({
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": base,
            "r": self.r,
            "lora_alpha": self.lora_alpha,
            "target_modules": self.target_modules,
            "lora_dropout": 0.0,
            "bias": "none",
            "inference_mode": true,
        });
        if !tokens.is_empty() {
            let tables = if tied { &["embed_tokens"][..] } else { &["embed_tokens", "lm_head"] };
            let rows = tables.iter().map(|table| ((*table).to_owned(), json!(tokens)));
            config["trainable_token_indices"] = Value::Object(rows.collect());
        }
        config
    }
}

/// What an adapter consists of, besides its variables, which are the decoder's.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// PEFT's configuration.
    pub(super) config: Value,
    /// The scale of each adapted module.
    pub(super) scales: BTreeMap<String, f64>,
    /// The trainable rows by table ([`EMBEDDING`] or [`HEAD`]).
    pub(super) rows: BTreeMap<String, Vec<u32>>,
    /// Tables that the adapter brings as a whole, and their keys in its file.
    pub(super) tables: BTreeMap<String, String>,
}

impl Adapter {
    /// The name of the model that the adapter belongs to.
    pub fn base(&self) -> &str {
        self.config["base_model_name_or_path"].as_str().unwrap_or_default()
    }

    /// What the adapter adds to a module; `var` finds variables by name.
    pub(super) fn low_rank(&self, module: &str, var: impl Fn(&str) -> Option<Tensor>) -> Option<LowRank> {
        let scale = *self.scales.get(module)?;
        let [a, b] = ["lora_A", "lora_B"].map(|part| var(&format!("{module}.{part}.weight")));
        Some(LowRank { a: a?, b: b?, scale })
    }

    /// The variable that holds the trainable rows of a table, and their ids.
    pub(super) fn rows_of(&self, table: &str) -> Option<(String, &[u32])> {
        let ids = self.rows.get(table)?;
        Some((rows_variable(table), ids))
    }

    pub(super) fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }
}

/// The name of the variable of a table's trainable rows. PEFT calls them a delta; they are the rows themselves.
pub(super) fn rows_variable(table: &str) -> String {
    format!("{}.token_adapter.trainable_tokens_delta", table.trim_end_matches(".weight"))
}

impl Decoder {
    /// The same model with a new adapter, which changes nothing yet (A is uniform in ±1/sqrt(k), B zero): its weights
    /// become fixed, the adapter and the rows of `tokens` are what is trained. `base` is the name under which the
    /// adapter's files will refer to the model.
    pub fn with_lora(
        self,
        lora: &LoraConfig,
        tokens: &[u32],
        base: &str,
        seed: u64,
    ) -> std::result::Result<Self, ModelError> {
        let wrong = |reason| ModelError::Adapter { base: base.into(), reason };
        lora.check().map_err(wrong)?;
        if self.adapter().is_some() {
            return Err(wrong("the model has an adapter already; merge it first (`model export`)".into()));
        }
        if let Some(id) = duplicate(tokens) {
            return Err(wrong(format!("token {id} is named twice")));
        }
        let (config, fixed) = self.into_fixed();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut vars, mut scales) = (BTreeMap::new(), BTreeMap::new());
        for layer in 0..config.num_hidden_layers {
            for name in PROJECTIONS.into_iter().filter(|name| lora.target_modules.iter().any(|t| t == name)) {
                let (module, ([n, k], _)) = (projection(layer, name), projection_shape(&config, name));
                let bound = 1.0 / (k as f32).sqrt();
                let a: Vec<f32> = (0..lora.r * k).map(|_| rng.random_range(-bound..bound)).collect();
                let a = Tensor::from_vec(a, (lora.r, k), &Device::Cpu)?;
                vars.insert(format!("{module}.lora_A.weight"), Var::from_tensor(&a)?);
                let b = Var::zeros((n, lora.r), candle_core::DType::F32, &Device::Cpu)?;
                vars.insert(format!("{module}.lora_B.weight"), b);
                scales.insert(module, lora.lora_alpha / lora.r as f64);
            }
        }
        let mut rows = BTreeMap::new();
        for table in [EMBEDDING, HEAD].into_iter().filter(|_| !tokens.is_empty()) {
            if let Some(weight) = fixed.get(table) {
                vars.insert(rows_variable(table), Var::from_tensor(&table_rows(weight, tokens)?)?);
                rows.insert(table.to_owned(), tokens.to_vec());
            }
        }
        let peft = lora.to_peft(base, tokens, config.tie_word_embeddings);
        let adapter = Adapter { config: peft, scales, rows, tables: BTreeMap::new() };
        Self::adapted(config, fixed, adapter, vars)
    }
}

/// The first of some ids that stands there twice.
pub(super) fn duplicate(ids: &[u32]) -> Option<u32> {
    let mut seen = HashSet::new();
    ids.iter().copied().find(|id| !seen.insert(*id))
}

fn table_rows(table: &Weight, ids: &[u32]) -> Result<Tensor> {
    let rows = table.dims()[0];
    match ids.iter().find(|&&id| id as usize >= rows) {
        Some(id) => candle_core::bail!("no row for token {id} in a table of {rows}"),
        None => table.rows(ids),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Role};
    use crate::model::{Config, Family};
    use std::sync::Arc;

    fn logits(decoder: &Decoder) -> Vec<f32> {
        let mut layout = Layout::default();
        layout.push(Role::Prompt, &[], 5);
        let (positions, visibility) = (layout.positions(), Arc::new(layout.visibility()));
        let hidden = decoder.hidden(&[1, 2, 8, 9, 3], &positions, &visibility, None).unwrap();
        decoder.logits(&hidden).unwrap().flatten_all().unwrap().to_vec1().unwrap()
    }

    fn untied() -> Config {
        Config { tie_word_embeddings: false, ..Config::tiny(10).of_family(Family::Qwen3) }
    }

    fn shake(decoder: &mut Decoder) {
        for (i, var) in decoder.vars().values().enumerate() {
            let noise = crate::kernels::tests::random(var.dims(), i as u64);
            var.set(&(var.as_tensor() + (noise * 0.3).unwrap()).unwrap()).unwrap();
        }
        decoder.refresh().unwrap();
    }

    #[test]
    fn a_new_adapter_changes_nothing_and_a_trained_one_merges() {
        for config in [Config::tiny(10), untied()] {
            let plain = Decoder::random(&config, 4).unwrap();
            let before = logits(&plain);
            let mut adapted = Decoder::random(&config, 4)
                .unwrap()
                .with_lora(&LoraConfig::default(), &[8, 9], "x", 1)
                .unwrap();
            assert_eq!(logits(&adapted), before);
            assert_eq!(adapted.vars().len(), 2 * 7 * 2 + if config.tie_word_embeddings { 1 } else { 2 });
            shake(&mut adapted);
            let (now, merged) =
                (logits(&adapted), Decoder::new(config, &adapted.weights().unwrap()).unwrap());
            let gap = now.iter().zip(logits(&merged)).fold(0f32, |gap, (a, b)| gap.max((a - b).abs()));
            let moved = now.iter().zip(before).fold(0f32, |gap, (a, b)| gap.max((a - b).abs()));
            assert!(gap < 1e-4 && moved > 0.05, "gap {gap}, moved {moved}");
        }
    }

    #[test]
    fn settings_are_refused_by_field() {
        let message = |lora: LoraConfig| lora.check().unwrap_err();
        assert!(message(LoraConfig { r: 0, ..Default::default() }).starts_with("r: expected 1"));
        assert!(message(LoraConfig { lora_alpha: -1.0, ..Default::default() }).starts_with("lora_alpha"));
        let strange = vec!["lm_head".to_owned()];
        assert!(
            message(LoraConfig { target_modules: strange, ..Default::default() }).contains("got \"lm_head\"")
        );
        let adapted = |tokens: &[u32]| {
            let base = Decoder::random(&Config::tiny(10), 4).unwrap();
            base.with_lora(&LoraConfig::default(), tokens, "x", 1).map(|_| ()).map_err(|e| e.to_string())
        };
        assert_eq!(adapted(&[]), Ok(()));
        assert_eq!(adapted(&[1, 2, 1]).unwrap_err(), "the adapter of x: token 1 is named twice");
        assert!(adapted(&[10]).unwrap_err().starts_with("no row for token 10 in a table of 10"));
    }
}
