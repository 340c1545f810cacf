//! A model folder that cannot be read says which of its files, fields or tensors is to blame.

use std::collections::HashMap;
use std::path::Path;

use candle_core::{Device, Tensor};
use parallel_r1::model::load;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::golden::model_folder;

/// A copy of the golden model `name`, with changes to its configuration; null takes a field away.
fn changed(name: &str, changes: &Value) -> TempDir {
    let folder = tempdir().unwrap();
    for entry in std::fs::read_dir(model_folder(name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let path = folder.path().join("config.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for (field, value) in changes.as_object().unwrap() {
        config[field] = value.clone();
    }
    config.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    std::fs::write(path, config.to_string()).unwrap();
    folder
}

fn message(folder: &Path) -> String {
    load(folder, &Device::Cpu).map(|_| ()).unwrap_err().to_string()
}

/// The messages of these changes to the golden model's configuration name the field (and the file).
fn refused(name: &str, cases: &[(Value, &str)]) {
    for (changes, field) in cases {
        let message = message(changed(name, changes).path());
        assert!(message.contains("config.json") && message.contains(field), "{changes}: {message}");
    }
}

#[test]
fn other_families_are_refused_by_name() {
    let gpt2 = json!({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]});
    refused("llama", &[(gpt2.clone(), "model_type"), (gpt2, "gpt2")]);
    let classifier = json!({"architectures": ["LlamaForSequenceClassification"]});
    refused("llama", &[(classifier, "LlamaForSequenceClassification")]);
}

#[test]
fn rotary_scaling_that_is_not_known_is_refused_by_name() {
    let rope = |kind: &str| json!({"rope_type": kind, "rope_theta": 1e4, "factor": 2.0});
    refused(
        "llama",
        &[
            (json!({"rope_parameters": rope("longrope")}), "longrope"),
            (json!({"rope_parameters": rope("dynamic")}), "dynamic"),
            (json!({"rope_parameters": null, "rope_scaling": {"type": "su", "factor": 2.0}}), "su"),
            (json!({"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4}}), "factor"),
            (json!({"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 0.0}}), "factor"),
            (
                json!({"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}),
                "partial_rotary_factor",
            ),
        ],
    );
}

#[test]
fn attention_that_is_not_full_is_refused_by_name() {
    let window = json!({
        "use_sliding_window": true, "sliding_window": 16, "max_window_layers": 0, "layer_types": null,
    });
    refused(
        "qwen2",
        &[
            (window, "sliding_window"),
            (json!({"layer_types": ["full_attention", "sliding_attention"]}), "sliding_attention"),
        ],
    );
}

#[test]
fn quantised_weights_are_refused_by_name() {
    refused(
        "llama",
        &[(json!({"quantization_config": {"quant_method": "gptq", "bits": 4}}), "quantization_config")],
    );
}

#[test]
fn sizes_that_are_not_sizes_are_refused_by_name() {
    refused(
        "llama",
        &[
            (json!({"hidden_size": "wide"}), "config.json"),
            (json!({"num_hidden_layers": 1_u64 << 40}), "num_hidden_layers"),
            (json!({"num_key_value_heads": 3}), "num_key_value_heads"),
            (json!({"rms_norm_eps": 0.0}), "rms_norm_eps"),
        ],
    );
}

/// Writes the weights of `folder` again after `change`.
fn rewrite(folder: &Path, change: impl Fn(&mut HashMap<String, Tensor>)) {
    let path = folder.join("model.safetensors");
    let mut tensors = candle_core::safetensors::load(&path, &Device::Cpu).unwrap();
    change(&mut tensors);
    candle_core::safetensors::save(&tensors, path).unwrap();
}

#[test]
fn a_missing_or_mis_shaped_tensor_is_named() {
    for (model, tensor) in [
        ("llama", "model.layers.1.mlp.up_proj.weight"),
        ("llama", "lm_head.weight"),
        ("llama-biased", "model.layers.0.mlp.up_proj.bias"),
        ("qwen2", "model.layers.1.self_attn.k_proj.bias"),
        ("qwen3-tied", "model.layers.0.self_attn.q_norm.weight"),
    ] {
        let folder = changed(model, &json!({}));
        rewrite(folder.path(), |tensors| {
            let whole = tensors[tensor].clone();
            let cut = whole.narrow(0, 0, whole.dim(0).unwrap() - 1).unwrap();
            tensors.insert(tensor.into(), cut.contiguous().unwrap());
        });
        let text = message(folder.path());
        assert!(text.contains(tensor) && text.contains("shape"), "{model}: {text}");
        rewrite(folder.path(), |tensors| _ = tensors.remove(tensor));
        let text = message(folder.path());
        assert!(text.contains(tensor) && text.contains("missing"), "{model}: {text}");
    }
}

#[test]
fn a_damaged_weights_file_is_named() {
    let folder = changed("llama", &json!({}));
    let path = folder.path().join("model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let text = message(folder.path());
    assert!(text.contains("model.safetensors"), "{text}");
    std::fs::remove_file(&path).unwrap();
    let text = message(folder.path());
    assert!(text.contains(folder.path().to_str().unwrap()), "{text}");
}

#[test]
fn an_index_that_names_an_absent_shard_or_no_tensor_says_which() {
    let folder = changed("qwen3", &json!({}));
    let shard = "model-00002-of-00003.safetensors";
    std::fs::remove_file(folder.path().join(shard)).unwrap();
    let text = message(folder.path());
    assert!(text.contains(shard), "{text}");
    let index = folder.path().join("model.safetensors.index.json");
    std::fs::write(&index, "{}").unwrap();
    let text = message(folder.path());
    assert!(text.contains("index.json") && text.contains("weight_map"), "{text}");
}
