//! A tokenizer's files in a model folder: `tokenizer.json`, and what `tokenizer_config.json` and its neighbours say
//! beside it. What is not understood there is kept and written back.

use std::path::Path;

use serde_json::{Map, Value, json};
use tokenizers::Tokenizer as HfTokenizer;

use super::super::file;
use super::{Tokenizer, TokenizerError, guarded};

/// The largest tokenizer file that is read; the largest published ones have about 40 MB.
const MAX_FILE: u64 = 256 << 20;

/// The largest of the other files: as many values as its bytes could make still fit in the memory.
pub(in crate::prompt) const MAX_CONFIG: u64 = 16 << 20;

/// The key of `tokenizer_config.json` that says how far paths are moved back.
const PATH_REWIND: &str = "path_rewind";

/// The largest `path_rewind`: tags and what separates them from a path's first word take fewer tokens in any vocabulary.
pub const MAX_PATH_REWIND: u32 = 64;

impl Tokenizer {
    /// Reads a model folder: `tokenizer.json`, and from the other files the ids that begin and end a text.
    pub fn load(dir: &Path) -> Result<Self, TokenizerError> {
        let path = dir.join("tokenizer.json");
        let bytes = read(&path, MAX_FILE)?;
        let named = |error| match error {
            TokenizerError::Inner(reason) => TokenizerError::Parse { path: path.clone(), reason },
            other => other,
        };
        let whole =
            guarded(|| HfTokenizer::from_bytes(bytes).map_err(TokenizerError::inner)).map_err(named)?;
        let config = read_object(&dir.join("tokenizer_config.json"))?;
        if let Some(by) = config.get(PATH_REWIND)
            && by.as_u64().is_none_or(|by| by > MAX_PATH_REWIND.into())
        {
            let reason = format!("{PATH_REWIND}: expected 0 to {MAX_PATH_REWIND}, got {by}");
            return Err(TokenizerError::Parse { path: dir.join("tokenizer_config.json"), reason });
        }
        let special = read_object(&dir.join("special_tokens_map.json"))?;
        let generation = read_object(&dir.join("generation_config.json"))?;
        let model = read_object(&dir.join("config.json"))?;

        let token = |key| -> Result<Option<u32>, TokenizerError> {
            let (file, value) = match (config.get(key), special.get(key)) {
                (Some(value), _) if !value.is_null() => ("tokenizer_config.json", value),
                (_, Some(value)) => ("special_tokens_map.json", value),
                _ => return Ok(None),
            };
            let Some(token) = value.as_str().or_else(|| value["content"].as_str()) else {
                return Ok(None);
            };
            let unknown = || TokenizerError::UnknownToken { path: dir.join(file), key, token: token.into() };
            whole.token_to_id(token).map(Some).ok_or_else(unknown)
        };
        let numbered = |key| [&generation, &model].into_iter().flat_map(move |map| ids(map.get(key)));

        let bos = token("bos_token")?.or_else(|| numbered("bos_token_id").next());
        let end = token("eos_token")?.into_iter().chain(numbered("eos_token_id")).collect();
        Self::assemble(whole, bos, end, config, generation, dir).map_err(named)
    }

    /// See [`Controls::path_rewind`](crate::prompt::Controls::path_rewind); it is kept in `tokenizer_config.json`, beside the tags.
    pub fn path_rewind(&self) -> u32 {
        let by = self.config.get(PATH_REWIND).and_then(Value::as_u64);
        by.and_then(|by| u32::try_from(by).ok()).unwrap_or(0)
    }

    /// Sets what [`Tokenizer::path_rewind`] says.
    ///
    /// # Panics
    /// Beyond [`MAX_PATH_REWIND`].
    pub fn set_path_rewind(&mut self, by: u32) {
        assert!(by <= MAX_PATH_REWIND, "path_rewind: expected 0 to {MAX_PATH_REWIND}, got {by}");
        match by {
            0 => drop(self.config.remove(PATH_REWIND)),
            by => drop(self.config.insert(PATH_REWIND.into(), by.into())),
        }
    }

    /// Writes `tokenizer.json`, `tokenizer_config.json` and the end ids in `generation_config.json`.
    pub fn save(&self, dir: &Path) -> Result<(), TokenizerError> {
        let path = dir.join("tokenizer.json");
        let text = self.whole.to_string(false).map_err(TokenizerError::inner)?;
        std::fs::write(&path, text).map_err(|source| TokenizerError::Write { path, source })?;

        let mut config = self.config.clone();
        // This class takes the rules of tokenizer.json; others (LlamaTokenizer, GPT2Tokenizer) take only the
        // vocabulary from it, and split some texts in another way than the model learned.
        config.insert("tokenizer_class".into(), json!("PreTrainedTokenizerFast"));
        for (key, default) in [
            ("bos_token", json!(self.bos.and_then(|id| self.token(id)))),
            ("eos_token", json!(self.token(self.end[0]))),
            ("clean_up_tokenization_spaces", json!(false)),
        ] {
            config.entry(key).or_insert(default);
        }
        if config.contains_key("added_tokens_decoder") {
            config.insert("added_tokens_decoder".into(), self.added_tokens());
        }
        write_object(&dir.join("tokenizer_config.json"), config)?;

        let mut generation = self.generation.clone();
        generation.insert("eos_token_id".into(), json!(self.end));
        if let Some(bos) = self.bos {
            generation.insert("bos_token_id".into(), json!(bos));
        }
        write_object(&dir.join("generation_config.json"), generation)
    }

    /// The added tokens in the form of `tokenizer_config.json`, where transformers keeps a second list of
    /// them.
    fn added_tokens(&self) -> Value {
        let mut tokens: Vec<_> = self.whole.get_added_tokens_decoder().into_iter().collect();
        tokens.sort_by_key(|(id, _)| *id);
        tokens.into_iter().map(|(id, token)| (id.to_string(), json!(token))).collect()
    }
}

/// One id, a list of them, or none.
fn ids(value: Option<&Value>) -> Vec<u32> {
    let values = match value {
        Some(Value::Array(values)) => values.as_slice(),
        Some(value) => std::slice::from_ref(value),
        None => &[],
    };
    values.iter().filter_map(|id| id.as_u64().and_then(|id| id.try_into().ok())).collect()
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, TokenizerError> {
    file::read(path, limit).map_err(|source| TokenizerError::Read { path: path.into(), source })
}

/// A JSON object from a file that may be absent.
fn read_object(path: &Path) -> Result<Map<String, Value>, TokenizerError> {
    if !path.exists() {
        return Ok(Map::new());
    }
    serde_json::from_slice(&read(path, MAX_CONFIG)?)
        .map_err(|e| TokenizerError::Parse { path: path.into(), reason: e.to_string() })
}

fn write_object(path: &Path, object: Map<String, Value>) -> Result<(), TokenizerError> {
    let text = format!("{:#}\n", Value::Object(object));
    std::fs::write(path, text).map_err(|source| TokenizerError::Write { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("parallel-r1-tokenizer-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_saved_tokenizer_loads_as_it_was() {
        let dir = folder("saved");
        let mut tokenizer = Tokenizer::characters();
        tokenizer.add_tags().unwrap();
        tokenizer.save(&dir).unwrap();
        let again = Tokenizer::load(&dir).unwrap();
        assert_eq!(again.controls().unwrap().tags, tokenizer.controls().unwrap().tags);
        assert_eq!(again.end(), tokenizer.end());
        let text = "Answer: <Path> 1 ok";
        assert_eq!(again.encode_prompt(text).unwrap(), tokenizer.encode_prompt(text).unwrap());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn where_paths_begin_is_kept_with_the_tags() {
        let dir = folder("rewind");
        let mut tokenizer = Tokenizer::characters();
        tokenizer.set_path_rewind(3);
        tokenizer.add_tags().unwrap();
        tokenizer.save(&dir).unwrap();
        let mut again = Tokenizer::load(&dir).unwrap();
        assert_eq!(again.controls().unwrap().path_rewind, 3);
        again.set_path_rewind(0);
        again.save(&dir).unwrap();
        assert_eq!(Tokenizer::load(&dir).unwrap().controls().unwrap().path_rewind, 0);
        for wrong in ["-1", "65", "1.5", "\"3\"", "null", "1e99"] {
            std::fs::write(dir.join("tokenizer_config.json"), format!("{{\"path_rewind\": {wrong}}}"))
                .unwrap();
            let error = Tokenizer::load(&dir).err().unwrap().to_string();
            let named = "tokenizer_config.json: path_rewind: expected 0 to 64, got ";
            assert!(error.contains(named), "{error}");
        }
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_saved_tokenizer_names_the_class_that_follows_its_rules() {
        let dir = folder("class");
        Tokenizer::characters().save(&dir).unwrap();
        let file = dir.join("tokenizer_config.json");
        let other = r#"{"tokenizer_class": "LlamaTokenizer", "eos_token": "<|end|>", "legacy": true}"#;
        std::fs::write(&file, other).unwrap();
        Tokenizer::load(&dir).unwrap().save(&dir).unwrap();
        let config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(config["tokenizer_class"], "PreTrainedTokenizerFast");
        assert_eq!(config["legacy"], true);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn errors_name_the_file() {
        let dir = folder("errors");
        let error = |file: &str, text: &str| {
            std::fs::write(dir.join(file), text).unwrap();
            Tokenizer::load(&dir).err().unwrap().to_string()
        };
        assert!(Tokenizer::load(&dir).err().unwrap().to_string().contains("tokenizer.json"));
        assert!(error("tokenizer.json", "{").contains("tokenizer.json: "));
        Tokenizer::characters().save(&dir).unwrap();
        let whole = std::fs::read_to_string(dir.join("tokenizer.json")).unwrap();
        for (key, part) in [
            ("normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"})),
            ("normalizer", json!({"type": "Precompiled", "precompiled_charsmap": ""})),
            ("pre_tokenizer", json!({"type": "FixedLength", "length": 0})),
            (
                "model",
                json!({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]],
                             "continuing_subword_prefix": "####"}),
            ),
        ] {
            let mut odd: Value = serde_json::from_str(&whole).unwrap();
            odd[key] = part.clone();
            let message = error("tokenizer.json", &odd.to_string());
            assert!(message.contains("tokenizer.json: "), "{part}: {message}");
        }
        std::fs::write(dir.join("tokenizer.json"), whole).unwrap();
        let unknown = error("tokenizer_config.json", r#"{"eos_token": {"content": "</s>"}}"#);
        assert!(unknown.contains("eos_token: expected a token of the vocabulary, got \"</s>\""), "{unknown}");
        std::fs::remove_file(dir.join("generation_config.json")).unwrap();
        assert!(error("tokenizer_config.json", "{}").contains("no end-of-text token"));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
