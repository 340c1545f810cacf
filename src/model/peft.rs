//! Adapters on disk, in the form of PEFT: `adapter_config.json` and `adapter_model.safetensors`.
//!
//! The tensors decide which modules are adapted; the configuration says how they are scaled. Whatever would make the
//! model another one and is not understood here is an error that names it.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{DType, Tensor, Var};
use serde_json::Value;

use super::adapter::{Adapter, duplicate, rows_variable};
use super::parameters::{EMBEDDING, HEAD, PROJECTIONS, projection, projection_shape};
use super::projection::Weight;
use super::weights::{self, Weights};
use super::{Config, Decoder, EMBEDDED, ModelError, plain};
use crate::data::hub::{Hub, Kind};
use crate::prompt::file;

/// The configuration of an adapter; a folder with this file is one.
pub(super) const ADAPTER_CONFIG: &str = "adapter_config.json";
pub(super) const ADAPTER_WEIGHTS: &str = "adapter_model.safetensors";
/// What PEFT puts in front of all names.
const PREFIX: &str = "base_model.model.";
const MAX_BYTES: u64 = 16 << 20;

/// Settings that are understood here, or that change nothing in a trained adapter. All others must be off: PEFT has many,
/// and gets new ones, that make the model another function.
const UNDERSTOOD: [&str; 25] = [
    "alpha_pattern",
    "auto_mapping",
    "base_model_name_or_path",
    "bias",
    "ensure_weight_tying",
    "exclude_modules",
    "inference_mode",
    "init_lora_weights",
    "layers_pattern",
    "layers_to_transform",
    "lora_alpha",
    "lora_dropout",
    "megatron_core",
    "modules_to_save",
    "peft_type",
    "peft_version",
    "qalora_group_size",
    "r",
    "rank_pattern",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
    "trainable_token_indices",
    "use_rslora",
];

/// Ways to begin with a new adapter that leave its base as it is.
const PLAIN_BEGINNINGS: [&str; 3] = ["gaussian", "eva", "orthogonal"];

/// What an adapter's configuration says.
pub(super) struct PeftConfig(Value);

impl PeftConfig {
    /// Reads `adapter_config.json` in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self, ModelError> {
        let path = folder.join(ADAPTER_CONFIG);
        let wrong = |reason: String| ModelError::Config { path: path.clone(), reason };
        let bytes =
            file::read(&path, MAX_BYTES).map_err(|source| ModelError::Read { path: path.clone(), source })?;
        let config: Value = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        check(&config).map_err(wrong)?;
        Ok(Self(config))
    }

    /// The name of the base model.
    pub(super) fn base(&self) -> &str {
        self.0["base_model_name_or_path"].as_str().unwrap_or_default()
    }

    /// Whether the adapter brings trained copies of the embedding or the head, which are then two tables, even if the
    /// base has them tied.
    fn saves_tables(&self) -> bool {
        let saved = self.0["modules_to_save"].as_array().into_iter().flatten().filter_map(Value::as_str);
        saved
            .filter_map(|name| name.rsplit('.').next())
            .any(|name| matches!(name, "embed_tokens" | "lm_head"))
    }

    /// The scale of a module whose matrices have rank `r`.
    fn scale(&self, module: &str, r: usize) -> f64 {
        let patterns = self.0["alpha_pattern"].as_object().into_iter().flatten();
        let own = patterns.filter(|(key, _)| is_end_of(module, key)).find_map(|(_, alpha)| alpha.as_f64());
        let alpha = own.or(self.0["lora_alpha"].as_f64()).unwrap_or(r as f64);
        if self.0["use_rslora"] == true { alpha / (r as f64).sqrt() } else { alpha / r as f64 }
    }

    /// The tokens whose rows are trainable, by table.
    fn rows(&self, tied: bool) -> Result<BTreeMap<String, Vec<u32>>, String> {
        let ids = |value: &Value| -> Result<Vec<u32>, String> {
            serde_json::from_value(value.clone())
                .map_err(|e| format!("trainable_token_indices: expected token ids: {e}"))
        };
        let mut rows = BTreeMap::new();
        match &self.0["trainable_token_indices"] {
            Value::Null => {}
            Value::Object(tables) => {
                for (table, value) in tables {
                    match table.rsplit('.').next() {
                        Some("embed_tokens") => rows.insert(EMBEDDING.to_owned(), ids(value)?),
                        Some("lm_head") => rows.insert(HEAD.to_owned(), ids(value)?),
                        _ => {
                            return Err(format!(
                                "trainable_token_indices: expected embed_tokens or lm_head, got {table:?}"
                            ));
                        }
                    };
                }
            }
            list => drop(rows.insert(EMBEDDING.to_owned(), ids(list)?)),
        }
        if let Some(head) = rows.get(HEAD).filter(|_| tied) {
            if rows.get(EMBEDDING) != Some(head) {
                return Err(
                    "trainable_token_indices.lm_head: expected the ids of embed_tokens (the head is tied)"
                        .into(),
                );
            }
            rows.remove(HEAD);
        }
        rows.retain(|_, ids| !ids.is_empty());
        match rows.values().find_map(|ids| duplicate(ids)) {
            Some(id) => Err(format!("trainable_token_indices: token {id} is named twice")),
            None => Ok(rows),
        }
    }
}

fn check(config: &Value) -> Result<(), String> {
    if config["peft_type"] != "LORA" {
        return Err(format!("peft_type: expected \"LORA\", got {}", config["peft_type"]));
    }
    if config["base_model_name_or_path"].as_str().is_none_or(str::is_empty) {
        return Err("base_model_name_or_path: expected the base model's name, got nothing".into());
    }
    if config["lora_alpha"].as_f64().is_none_or(|alpha| !alpha.is_finite()) {
        return Err(format!("lora_alpha: expected a number, got {}", config["lora_alpha"]));
    }
    if !matches!(config["bias"].as_str(), None | Some("none")) {
        return Err(format!("bias: expected \"none\", got {}", config["bias"]));
    }
    let off = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    let others =
        config.as_object().into_iter().flatten().filter(|(field, _)| !UNDERSTOOD.contains(&field.as_str()));
    if let Some((field, value)) = others.into_iter().find(|(_, value)| !off(value)) {
        return Err(format!("{field}: not supported, expected it off, got {value}"));
    }
    let beginning = &config["init_lora_weights"];
    if !(beginning.is_null()
        || beginning.is_boolean()
        || beginning.as_str().is_some_and(|b| PLAIN_BEGINNINGS.contains(&b)))
    {
        return Err(format!("init_lora_weights: {beginning} changes the base model, which is not supported"));
    }
    let patterns = config["alpha_pattern"].as_object().into_iter().flatten();
    let plain = |key: &str| key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    match patterns.map(|(key, _)| key).find(|key| !plain(key)) {
        Some(key) => Err(format!("alpha_pattern: expected the end of a module's name, got {key:?}")),
        None => Ok(()),
    }
}

/// Whether `end` is whole last parts of a dotted name.
fn is_end_of(name: &str, end: &str) -> bool {
    name.strip_suffix(end).is_some_and(|front| front.is_empty() || front.ends_with('.'))
}

/// The base model with the adapter of `folder`, which is trainable.
pub(super) fn load(base: Decoder, peft: PeftConfig, folder: &Path) -> Result<Decoder, ModelError> {
    let path = folder.join(ADAPTER_WEIGHTS);
    let wrong = |reason: String| ModelError::Weights { path: path.clone(), reason };
    let (mut config, mut fixed) = base.into_fixed();
    if config.tie_word_embeddings && peft.saves_tables() {
        config.tie_word_embeddings = false;
        fixed.extend(fixed.get(EMBEDDING).cloned().map(|table| (HEAD.to_owned(), table)));
    }
    let rows = peft
        .rows(config.tie_word_embeddings)
        .map_err(|reason| ModelError::Config { path: folder.join(ADAPTER_CONFIG), reason })?;
    let sorted = sort(weights::read(&path)?, &config).map_err(wrong)?;
    let mut adapter = Adapter { scales: BTreeMap::new(), rows, tables: BTreeMap::new(), config: Value::Null };
    for (table, (key, tensor)) in sorted.tables {
        fixed.insert(table.clone(), Weight::Dense(tensor));
        adapter.tables.insert(table, key);
    }
    // Before anything is allocated for them.
    for (table, ids) in &adapter.rows {
        let (name, expected) = (rows_variable(table), vec![ids.len(), config.hidden_size]);
        match sorted.rows.get(table).map(Tensor::dims) {
            None => return Err(ModelError::Missing { name, expected }),
            Some(got) if got != expected => {
                return Err(ModelError::Shape { name, expected, got: got.to_vec() });
            }
            Some(_) => {}
        }
    }
    grow(&mut config, &mut fixed, &adapter.rows)
        .map_err(|reason| ModelError::Config { path: folder.join(ADAPTER_CONFIG), reason })?;

    let mut vars = BTreeMap::new();
    for (module, parts) in sorted.low_rank {
        let [a, b] = low_rank(&module, parts, &config).map_err(wrong)?;
        adapter.scales.insert(module.clone(), peft.scale(&module, a.dim(0)?));
        vars.insert(format!("{module}.lora_A.weight"), Var::from_tensor(&a)?);
        vars.insert(format!("{module}.lora_B.weight"), Var::from_tensor(&b)?);
    }
    for table in adapter.rows.keys() {
        vars.insert(rows_variable(table), Var::from_tensor(&sorted.rows[table])?);
    }
    adapter.config = peft.0;
    Decoder::adapted(config, fixed, adapter, vars)
}

/// Adds rows of zeros to the tables until each trainable row has a place. New rows follow the old ones without a gap.
fn grow(
    config: &mut Config,
    fixed: &mut BTreeMap<String, Weight>,
    rows: &BTreeMap<String, Vec<u32>>,
) -> Result<(), String> {
    let tables = [EMBEDDING, HEAD].into_iter().filter_map(|name| Some(fixed.get(name)?.dims()[0]));
    let there = tables.chain([config.vocab_size]).max().unwrap_or(0);
    let last = rows.values().flatten().max().map_or(0, |&id| id as usize + 1);
    let brought = rows.values().map(Vec::len).max().unwrap_or(0);
    if last > there + brought {
        let id = last - 1;
        return Err(format!("trainable_token_indices: expected ids up to {}, got {id}", there + brought - 1));
    }
    let needed = there.max(last);
    config.vocab_size = needed;
    config.check()?;
    for name in [EMBEDDING, HEAD] {
        let Some(weight) = fixed.get_mut(name).filter(|weight| weight.dims()[0] < needed) else { continue };
        let missing = needed - weight.dims()[0];
        let table = weight.dense().and_then(|table| table.pad_with_zeros(0, 0, missing)).map_err(plain)?;
        *weight = Weight::Dense(table);
    }
    Ok(())
}

/// An adapter's tensors by what they are for.
#[derive(Default)]
struct Sorted {
    /// A and B by module.
    low_rank: BTreeMap<String, [Option<Tensor>; 2]>,
    /// Trainable rows by table.
    rows: Weights,
    /// Whole tables, and the key that each was stored under.
    tables: BTreeMap<String, (String, Tensor)>,
}

fn sort(tensors: Weights, config: &Config) -> Result<Sorted, String> {
    let modules: Vec<String> = (0..config.num_hidden_layers)
        .flat_map(|layer| PROJECTIONS.map(|name| projection(layer, name)))
        .collect();
    let mut sorted = Sorted::default();
    for (key, tensor) in tensors {
        let tensor = tensor.to_dtype(DType::F32).map_err(|e| format!("tensor {key}: {}", plain(e)))?;
        let name = key.strip_prefix(PREFIX).unwrap_or(&key).to_owned();
        if let Some((module, part)) = name.split_once(".lora_")
            && modules.iter().any(|known| known == module)
            && let Some(side) = ["A.weight", "B.weight"].iter().position(|known| part == *known)
        {
            sorted.low_rank.entry(module.into()).or_default()[side] = Some(tensor);
            continue;
        }
        let table =
            [EMBEDDING, HEAD].into_iter().find(|table| name.starts_with(table.trim_end_matches("weight")));
        let Some(table) = table else {
            return Err(format!("tensor {key}: not a part of a LoRA adapter that this program runs"));
        };
        // A tied head has the embedding's rows; PEFT may have written them twice.
        if table == HEAD && config.tie_word_embeddings {
            continue;
        }
        let whole = format!("{}.token_adapter.base_layer.weight", table.trim_end_matches(".weight"));
        if name == rows_variable(table) {
            sorted.rows.insert(table.into(), tensor);
        } else if (name == table || name == whole) && tensor.dims().get(1) == Some(&config.hidden_size) {
            sorted.tables.insert(table.into(), (key, tensor));
        } else {
            return Err(format!("tensor {key}: not a part of a LoRA adapter that this program runs"));
        }
    }
    Ok(sorted)
}

fn low_rank(module: &str, parts: [Option<Tensor>; 2], config: &Config) -> Result<[Tensor; 2], String> {
    let ([n, k], _) = projection_shape(config, module.rsplit('.').next().unwrap_or(module));
    let [Some(a), Some(b)] = parts else {
        return Err(format!("module {module}: expected both lora_A and lora_B, got one"));
    };
    let r = a.dims().first().copied().unwrap_or(0);
    for (name, tensor, expected) in [("lora_A", &a, [r, k]), ("lora_B", &b, [n, r])] {
        if tensor.dims() != expected || r == 0 {
            let got = tensor.dims();
            return Err(format!("tensor {module}.{name}.weight: expected shape {expected:?}, got {got:?}"));
        }
    }
    Ok([a, b])
}

/// Writes the adapter of a model, the tensors as `dtype`.
pub(super) fn save(
    decoder: &Decoder,
    adapter: &Adapter,
    folder: &Path,
    dtype: DType,
) -> Result<(), ModelError> {
    let wrote = |path: &Path| {
        let path = path.to_owned();
        move |source| ModelError::Read { path, source }
    };
    std::fs::create_dir_all(folder).map_err(wrote(folder))?;
    let path = folder.join(ADAPTER_CONFIG);
    std::fs::write(&path, format!("{:#}\n", adapter.config)).map_err(wrote(&path))?;
    let vars = decoder.vars().iter().map(|(name, var)| (format!("{PREFIX}{name}"), var.as_detached_tensor()));
    let mut tensors: Weights = vars.collect();
    for (table, key) in &adapter.tables {
        tensors.insert(key.clone(), decoder.weight(table)?);
    }
    weights::write(&folder.join(ADAPTER_WEIGHTS), tensors, dtype)
}

/// The name of the base model of an adapter in `folder`; `None` of a folder that holds no adapter.
pub fn adapter_base(folder: &Path) -> Result<Option<String>, ModelError> {
    if !folder.join(ADAPTER_CONFIG).is_file() {
        return Ok(None);
    }
    PeftConfig::read(folder).map(|peft| Some(peft.base().to_owned()))
}

/// Where the base of an adapter lies: `base` as it stands, as a path seen from the adapter's folder, or a name on the
/// Hub.
pub(super) fn local_base(base: &str, folder: &Path) -> Result<String, ModelError> {
    let beside = folder.join(base);
    if base == EMBEDDED || Path::new(base).exists() {
        return Ok(base.into());
    }
    let path =
        if beside.exists() { beside } else { Hub::from_env().resolve(Kind::Model, base, &mut |_| {})? };
    Ok(path.to_string_lossy().into_owned())
}

/// Why an adapter of an adapter is refused.
pub(super) fn nested(base: &str) -> String {
    format!("base_model_name_or_path: {base} is an adapter too; merge it first (`model export`)")
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::model::LoraConfig;

    fn tiny(seed: u64) -> Decoder {
        Decoder::random(&Config::tiny(10), seed).unwrap()
    }

    /// A folder with an adapter of the tiny model; `change` edits its configuration.
    fn adapter(change: impl Fn(&mut Value)) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let lora = LoraConfig { r: 2, ..Default::default() };
        let decoder = tiny(1).with_lora(&lora, &[8, 9], "base", 3).unwrap();
        let mut kept = decoder.adapter().unwrap().clone();
        change(&mut kept.config);
        save(&decoder, &kept, folder.path(), DType::F32).unwrap();
        folder
    }

    fn open(folder: &Path) -> Result<Decoder, String> {
        PeftConfig::read(folder).and_then(|peft| load(tiny(1), peft, folder)).map_err(|e| e.to_string())
    }

    #[test]
    fn a_saved_adapter_loads_again_unchanged() {
        let folder = adapter(|_| {});
        let (again, first) = (open(folder.path()).unwrap(), tiny(1));
        assert_eq!(again.adapter().unwrap().base(), "base");
        assert_eq!(again.adapter().unwrap().scales.values().next(), Some(&16.0));
        for (name, tensor) in again.weights().unwrap() {
            let other = first.vars()[&name].flatten_all().unwrap().to_vec1::<f32>().unwrap();
            assert_eq!(tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap(), other, "{name}");
        }
    }

    #[test]
    fn scales_follow_the_configuration() {
        let scales = |change: fn(&mut Value)| {
            let adapted = open(adapter(change).path()).unwrap();
            let scales = &adapted.adapter().unwrap().scales;
            ["model.layers.0.self_attn.q_proj", "model.layers.1.mlp.up_proj"].map(|module| scales[module])
        };
        assert_eq!(scales(|c| c["alpha_pattern"] = serde_json::json!({"up_proj": 4})), [16.0, 2.0]);
        let root = scales(|c| c["use_rslora"] = true.into())[0];
        assert!((root - 32.0 / 2f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let message = |change: fn(&mut Value)| open(adapter(change).path()).map(|_| ()).unwrap_err();
        for (change, part) in [
            (
                (|c| c["peft_type"] = "IA3".into()) as fn(&mut Value),
                "peft_type: expected \"LORA\", got \"IA3\"",
            ),
            (|c| c["use_dora"] = true.into(), "use_dora: not supported"),
            (|c| c["bias"] = "all".into(), "bias: expected \"none\""),
            (|c| c["base_model_name_or_path"] = Value::Null, "base_model_name_or_path"),
            (|c| c["alpha_pattern"] = serde_json::json!({".*q": 1}), "alpha_pattern"),
            (
                |c| c["trainable_token_indices"] = serde_json::json!({"embed_tokens": [7, 8, 9]}),
                "expected shape [3, 32]",
            ),
            (|c| c["trainable_token_indices"] = serde_json::json!({"wte": [7]}), "got \"wte\""),
            (
                |c| c["trainable_token_indices"] = serde_json::json!([4_000_000_000u32, 1]),
                "expected ids up to 11, got 4000000000",
            ),
            (|c| c["trainable_token_indices"] = serde_json::json!([8, 8]), "token 8 is named twice"),
            (|c| c["init_lora_weights"] = "pissa".into(), "init_lora_weights: \"pissa\" changes the base"),
            (|c| c["new_method_config"] = serde_json::json!({"a": 1}), "new_method_config: not supported"),
        ] {
            let message = message(change);
            assert!(message.contains(part) && message.contains("adapter"), "{message}");
        }
        let folder = adapter(|_| {});
        let path = folder.path().join(ADAPTER_WEIGHTS);
        let mut tensors = weights::read(&path).unwrap();
        let strange = Tensor::zeros((1, 32), DType::F32, &Device::Cpu).unwrap();
        tensors.insert(format!("{PREFIX}model.layers.0.self_attn.q_proj.lora_magnitude_vector"), strange);
        weights::write(&path, tensors.clone(), DType::F32).unwrap();
        let message = open(folder.path()).map(|_| ()).unwrap_err();
        assert!(message.contains("lora_magnitude_vector: not a part"), "{message}");
        tensors.retain(|name, _| {
            !name.contains("magnitude") && !name.contains("layers.0.self_attn.q_proj.lora_A")
        });
        weights::write(&path, tensors, DType::F32).unwrap();
        let message = open(folder.path()).map(|_| ()).unwrap_err();
        assert!(message.contains("model.layers.0.self_attn.q_proj: expected both"), "{message}");
    }

    #[test]
    fn rows_beyond_the_base_get_a_place() {
        let folder = tempfile::tempdir().unwrap();
        let lora = LoraConfig { r: 2, ..Default::default() };
        let wide = Decoder::random(&Config::tiny(13), 2).unwrap();
        let decoder = wide.with_lora(&lora, &[10, 11, 12], "base", 3).unwrap();
        save(&decoder, decoder.adapter().unwrap(), folder.path(), DType::F32).unwrap();
        assert_eq!(open(folder.path()).unwrap().config().vocab_size, 13);
    }
}
