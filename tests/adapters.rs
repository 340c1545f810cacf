//! LoRA adapters as peft saves them give the logits that peft gives (made by `tests/reference/adapters.py`).

use std::path::{Path, PathBuf};

use candle_core::Device;
use parallel_r1::model::{ModelError, Pretrained};
use serde::Deserialize;
use tempfile::TempDir;

use super::golden::{Case, model_folder};

/// What `tests/reference/adapters.py` writes beside an adapter.
#[derive(Deserialize)]
struct Golden {
    base: String,
    cases: Vec<Case>,
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The adapter `name` with its base where the adapter's configuration says it is, the base with a tokenizer.
fn laid_out(name: &str) -> (TempDir, PathBuf, Golden) {
    let (folder, golden) = (tempfile::tempdir().unwrap(), model_folder("../adapters").join(name));
    let text = std::fs::read_to_string(golden.join("expected.json")).unwrap();
    let expected: Golden = serde_json::from_str(&text).unwrap();
    let adapter = folder.path().join("adapters").join(name);
    let base = folder.path().join("models").join(&expected.base);
    copy(&golden, &adapter);
    copy(&model_folder(&expected.base), &base);
    copy(&model_folder("tokenizer"), &base);
    (folder, adapter, expected)
}

fn open(folder: &Path) -> Result<Pretrained, ModelError> {
    Pretrained::open(folder.to_str().unwrap(), &Device::Cpu)
}

fn agrees(name: &str) {
    let (_folder, adapter, golden) = laid_out(name);
    let model = open(&adapter).unwrap();
    golden.cases.iter().for_each(|case| case.check(&model.decoder));
}

#[test]
fn an_adapter_gives_the_logits_that_peft_gives() {
    agrees("qwen2-lora");
}

#[test]
fn trained_token_rows_are_rows_of_a_tied_head_too() {
    agrees("qwen2-tokens");
}

#[test]
fn trained_token_rows_of_an_untied_head_are_its_own() {
    agrees("llama-tokens");
}

#[test]
fn an_adapter_can_bring_tokens_that_its_base_has_no_rows_for() {
    agrees("qwen2-grown");
    let (_folder, adapter, _golden) = laid_out("qwen2-grown");
    assert!(open(&adapter).unwrap().tokenizer.has_tags());
}

/// Root-of-rank scaling, and ranks and alphas by module: their scales differ, and each gives wrong logits quietly
/// where it is overlooked.
#[test]
fn ranks_and_alphas_by_module_are_obeyed() {
    agrees("qwen3-patterns");
}

/// The base has them tied; the adapter brings one or both as tables of their own.
#[test]
fn trained_copies_of_tied_tables_are_two_tables() {
    agrees("qwen2-saved");
    agrees("qwen2-head");
}

#[test]
fn an_adapter_without_its_base_names_the_base() {
    let (folder, adapter, golden) = laid_out("qwen2-lora");
    std::fs::remove_dir_all(folder.path().join("models")).unwrap();
    let message = open(&adapter).map(|_| ()).unwrap_err().to_string();
    assert!(message.contains(&format!("models/{}", golden.base)), "{message}");
}

#[test]
fn what_an_adapter_asks_for_beyond_low_rank_is_refused_by_name() {
    for (field, value) in [("use_dora", "true"), ("bias", "\"all\""), ("peft_type", "\"IA3\"")] {
        let (_folder, adapter, _golden) = laid_out("qwen2-lora");
        let path = adapter.join("adapter_config.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
        config[field] = serde_json::from_str(value).unwrap();
        std::fs::write(&path, config.to_string()).unwrap();
        let message = open(&adapter).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(field), "{field}: {message}");
    }
}
