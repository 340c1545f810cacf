//! A Llama-family model from one GGUF file: sizes, weights (dequantised to f32), tokenizer and chat template.
//!
//! The weights get their Hugging Face names and, for queries and keys, the Hugging Face order of rows:
//! llama.cpp rotates neighbouring pairs of a head where Hugging Face rotates its two halves, so its converter
//! interleaves the halves. The file comes from outside: sizes are checked before anything is allocated, and a
//! tensor that the decoder would not use is an error, for a model without it is another model.

mod metadata;
mod tokenizer;

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use candle_core::quantized::gguf_file::Content;
use candle_core::{Device, Tensor};

use self::metadata::Metadata;
use super::decoder::{EMBEDDING, HEAD, parameter_shapes};
use super::{Config, ModelError, Weights};
use crate::prompt::{ChatTemplate, Tokenizer};

/// Everything that a GGUF file says.
pub struct GgufModel {
    /// Sizes and constants.
    pub config: Config,
    /// Weights in f32, under their Hugging Face names.
    pub weights: Weights,
    /// The tokenizer, rebuilt from the metadata.
    pub tokenizer: Tokenizer,
    /// The chat template, or the plain format.
    pub template: ChatTemplate,
}

/// Reads a GGUF file.
pub fn read_gguf(path: &Path, device: &Device) -> Result<GgufModel, ModelError> {
    let open = |source| ModelError::Read { path: path.into(), source };
    let wrong = |reason: String| ModelError::Config { path: path.into(), reason };
    let mut file = BufReader::new(File::open(path).map_err(open)?);
    // candle divides by the file's `general.alignment` without looking at it.
    let content = catch_unwind(AssertUnwindSafe(|| Content::read(&mut file)))
        .map_err(|_| wrong("general.alignment: expected a positive number".into()))?
        .map_err(|e| wrong(e.to_string()))?;

    let metadata = Metadata(&content.metadata);
    let config = config(&content).map_err(wrong)?;
    let tokenizer = tokenizer::tokenizer(&metadata).map_err(wrong)?;
    if tokenizer.vocab_size() > config.vocab_size {
        let (rows, tokens) = (config.vocab_size, tokenizer.vocab_size());
        return Err(wrong(format!("tokenizer.ggml.tokens: expected at most {rows} tokens, got {tokens}")));
    }
    let template = match metadata.text("tokenizer.chat_template").map_err(wrong)? {
        Some(source) => ChatTemplate::new(source, &tokenizer)
            .map_err(|e| wrong(format!("tokenizer.chat_template: {e}")))?,
        None => ChatTemplate::plain(&tokenizer),
    };
    let weights = weights(&content, &mut file, &config, device)
        .map_err(|reason| ModelError::Weights { path: path.into(), reason })?;
    Ok(GgufModel { config, weights, tokenizer, template })
}

/// The configuration, in the words of `config.json`.
fn config(content: &Content) -> Result<Config, String> {
    let metadata = Metadata(&content.metadata);
    let family = metadata.text("general.architecture")?.unwrap_or("nothing");
    if family != "llama" {
        return Err(format!("general.architecture: expected \"llama\", got {family:?}"));
    }
    if metadata.number("llama.expert_count")?.is_some_and(|experts| experts > 0) {
        return Err("llama.expert_count: mixtures of experts are not supported".into());
    }
    let scaling = metadata.text("llama.rope.scaling.type")?.is_some_and(|kind| kind != "none");
    if scaling || content.tensor_infos.contains_key("rope_freqs.weight") {
        return Err("llama.rope.scaling.type: scaled rotary positions are not supported".into());
    }
    let embedding = content.tensor_infos.get("token_embd.weight").map(|info| info.shape.dims());
    let Some(&[vocab, _]) = embedding else {
        return Err(format!("token_embd.weight: expected a matrix, got shape {embedding:?}"));
    };

    let size = |key: &str| metadata.required_number(&format!("llama.{key}"));
    let optional = |key: &str| metadata.number(&format!("llama.{key}"));
    let mut config = Config::llama(
        vocab,
        size("embedding_length")?,
        size("feed_forward_length")?,
        size("block_count")?,
        size("attention.head_count")?,
    );
    config.num_key_value_heads = optional("attention.head_count_kv")?;
    config.head_dim = optional("attention.key_length")?;
    config.max_position_embeddings = size("context_length")?;
    if let Some(eps) = metadata.float("llama.attention.layer_norm_rms_epsilon")? {
        config.rms_norm_eps = eps;
    }
    if let Some(theta) = metadata.float("llama.rope.freq_base")? {
        config.rope_theta = theta;
    }
    config.tie_word_embeddings = !content.tensor_infos.contains_key("output.weight");
    config.bos_token_id = metadata.id("tokenizer.ggml.bos_token_id")?;
    config.eos_token_id = metadata.id("tokenizer.ggml.eos_token_id")?.map(Into::into);
    config.check()?;
    for key in ["rope.dimension_count", "attention.value_length"] {
        if let Some(width) = optional(key)?.filter(|width| *width != config.head_dim()) {
            return Err(format!("llama.{key}: expected the head's width {}, got {width}", config.head_dim()));
        }
    }
    Ok(config)
}

/// Reads the tensors that the configuration asks for.
fn weights(
    content: &Content,
    file: &mut BufReader<File>,
    config: &Config,
    device: &Device,
) -> Result<Weights, String> {
    let shapes = parameter_shapes(config);
    let expected: Vec<String> = shapes.iter().map(|(name, _)| gguf_name(name)).collect();
    let known: HashSet<&String> = expected.iter().collect();
    if let Some(extra) = content.tensor_infos.keys().find(|name| !known.contains(name)) {
        return Err(format!("tensor {extra}: not a part of the Llama decoder that this program runs"));
    }
    let mut weights = Weights::new();
    for ((name, shape), stored) in shapes.into_iter().zip(expected) {
        let Some(info) = content.tensor_infos.get(&stored) else {
            return Err(format!("tensor {stored} is missing (expected shape {shape:?})"));
        };
        // Checked before reading: the sizes of a checked configuration cannot overflow.
        if info.shape.dims() != shape {
            return Err(format!("tensor {stored}: expected shape {shape:?}, got {:?}", info.shape.dims()));
        }
        let tensor = content
            .tensor(file, &stored, &Device::Cpu)
            .and_then(|tensor| tensor.dequantize(device))
            .and_then(|tensor| halves(&name, tensor, config))
            .map_err(|e| format!("tensor {stored}: {e}"))?;
        weights.insert(name, tensor);
    }
    Ok(weights)
}

/// Puts the rows of a query or key projection back into halves: row `2i + s` of a head becomes row `i + s *
/// width / 2`.
fn halves(name: &str, tensor: Tensor, config: &Config) -> candle_core::Result<Tensor> {
    let heads = match name {
        _ if name.ends_with("q_proj.weight") => config.num_attention_heads,
        _ if name.ends_with("k_proj.weight") => config.kv_heads(),
        _ => return Ok(tensor),
    };
    let (rows, columns) = tensor.dims2()?;
    tensor
        .reshape((heads, rows / heads / 2, 2, columns))?
        .transpose(1, 2)?
        .contiguous()?
        .reshape((rows, columns))
}

/// The name that llama.cpp gives to a parameter.
fn gguf_name(name: &str) -> String {
    const PARTS: [(&str, &str); 9] = [
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ];
    match name {
        EMBEDDING => "token_embd.weight".into(),
        HEAD => "output.weight".into(),
        "model.norm.weight" => "output_norm.weight".into(),
        _ => PARTS
            .iter()
            .fold(name.replace("model.layers.", "blk."), |name, (ours, theirs)| name.replace(ours, theirs)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use candle_core::quantized::gguf_file::{self, Value};
    use candle_core::quantized::{GgmlDType, QTensor};

    use super::*;

    type Entries = Vec<(&'static str, Value)>;

    fn strings(texts: &[&str]) -> Value {
        Value::Array(texts.iter().map(|text| Value::String((*text).into())).collect())
    }

    /// Metadata of a model with two heads of width four on one key/value head, and a vocabulary of nine
    /// tokens.
    fn entries() -> Entries {
        let types = [3, 3, 1, 1, 1, 1, 1, 1, 1].map(Value::I32).to_vec();
        vec![
            ("general.architecture", Value::String("llama".into())),
            ("llama.block_count", Value::U32(1)),
            ("llama.context_length", Value::U32(64)),
            ("llama.embedding_length", Value::U32(8)),
            ("llama.feed_forward_length", Value::U32(32)),
            ("llama.attention.head_count", Value::U32(2)),
            ("llama.attention.head_count_kv", Value::U32(1)),
            ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-6)),
            ("tokenizer.ggml.model", Value::String("gpt2".into())),
            ("tokenizer.ggml.pre", Value::String("smollm".into())),
            (
                "tokenizer.ggml.tokens",
                strings(&["<s>", "</s>", "a", "b", "1", "\u{120}", "ab", "\u{120}ab", "\u{10a}"]),
            ),
            ("tokenizer.ggml.token_type", Value::Array(types)),
            ("tokenizer.ggml.merges", strings(&["a b", "\u{120} ab"])),
            ("tokenizer.ggml.bos_token_id", Value::U32(0)),
            ("tokenizer.ggml.eos_token_id", Value::U32(1)),
            ("tokenizer.chat_template", Value::String("{{ messages[0].content }}{{ eos_token }}".into())),
        ]
    }

    /// Writes a file whose query and key rows hold the number of the row that Hugging Face would give them.
    fn write(name: &str, entries: &Entries, extra: Option<&str>) -> PathBuf {
        let path = std::env::temp_dir().join(format!("parallel-r1-{name}-{}.gguf", std::process::id()));
        let config = Config { num_key_value_heads: Some(1), ..Config::llama(9, 8, 32, 1, 2) };
        let mut tensors: Vec<(String, QTensor)> = parameter_shapes(&config)
            .into_iter()
            .map(|(name, shape)| {
                let width = shape.last().copied().unwrap_or(1);
                let interleaved = |row: usize| row / 4 * 4 + [0, 2, 1, 3][row % 4];
                let rotated = name.contains("q_proj") || name.contains("k_proj");
                let data: Vec<f32> = (0..shape.iter().product())
                    .map(|i: usize| if rotated { interleaved(i / width) } else { i } as f32)
                    .collect();
                let dtype = if width == 32 { GgmlDType::Q8_0 } else { GgmlDType::F32 };
                let tensor = Tensor::from_vec(data, shape, &Device::Cpu).unwrap();
                (gguf_name(&name), QTensor::quantize(&tensor, dtype).unwrap())
            })
            .collect();
        if let Some(name) = extra {
            let tensor = Tensor::zeros(8, candle_core::DType::F32, &Device::Cpu).unwrap();
            tensors.push((name.into(), QTensor::quantize(&tensor, GgmlDType::F32).unwrap()));
        }
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let entries: Vec<_> = entries.iter().map(|(key, value)| (*key, value)).collect();
        gguf_file::write(&mut File::create(&path).unwrap(), &entries, &tensors).unwrap();
        path
    }

    fn read(path: &Path) -> Result<GgufModel, String> {
        let model = read_gguf(path, &Device::Cpu).map_err(|e| e.to_string());
        std::fs::remove_file(path).unwrap();
        model
    }

    #[test]
    fn a_file_becomes_a_model() {
        let model = read(&write("model", &entries(), None)).unwrap();
        assert_eq!((model.config.vocab_size, model.config.head_dim()), (9, 4));
        assert_eq!((model.config.rms_norm_eps, model.config.rope_theta), (1e-6, 10_000.0));
        assert!(model.config.tie_word_embeddings);
        for (name, rows) in [("q_proj", 8), ("k_proj", 4)] {
            let tensor = &model.weights[&format!("model.layers.0.self_attn.{name}.weight")];
            let first: Vec<f32> = tensor.narrow(1, 0, 1).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            assert_eq!(first, (0..rows).map(|row| row as f32).collect::<Vec<_>>());
        }
        let down = model.weights["model.layers.0.mlp.down_proj.weight"].get(0).unwrap();
        for (i, x) in down.to_vec1::<f32>().unwrap().into_iter().enumerate() {
            assert!((x - i as f32).abs() < 0.2, "{x} is far from {i}");
        }
    }

    #[test]
    fn its_tokenizer_and_template_work() {
        let model = read(&write("tokenizer", &entries(), None)).unwrap();
        let tokenizer = &model.tokenizer;
        assert_eq!(tokenizer.encode_piece("ab ab11\n").unwrap(), [6, 7, 4, 4, 8]);
        assert_eq!(tokenizer.encode_prompt("<s>a</s>").unwrap(), [0, 2, 1]);
        assert_eq!(tokenizer.decode(&[6, 7, 1]).unwrap(), "ab ab");
        assert_eq!((tokenizer.bos(), tokenizer.end()), (Some(0), [1].as_slice()));
        assert_eq!(tokenizer.leading_token(), None);
        let message = crate::prompt::Message::user("a");
        assert_eq!(model.template.render(&[message], true).unwrap(), "a</s>");
    }

    #[test]
    fn the_begin_of_text_flag_is_followed() {
        let mut entries = entries();
        entries.push(("tokenizer.ggml.add_bos_token", Value::Bool(true)));
        entries.retain(|(key, _)| *key != "tokenizer.chat_template");
        let model = read(&write("bos", &entries, None)).unwrap();
        assert_eq!(model.tokenizer.leading_token().as_deref(), Some("<s>"));
        let rendered = model.template.render(&[crate::prompt::Message::user("a")], true).unwrap();
        assert_eq!(model.tokenizer.encode_prompt(&rendered).unwrap(), [0, 2, 8]);
    }

    #[test]
    fn a_sentence_piece_vocabulary_works_too() {
        let mut entries = entries();
        entries.retain(|(key, _)| !["tokenizer.ggml.pre", "tokenizer.ggml.merges"].contains(key));
        for (key, value) in &mut entries {
            match *key {
                "tokenizer.ggml.model" => *value = Value::String("llama".into()),
                "tokenizer.ggml.tokens" => {
                    let space = "\u{2581}";
                    *value =
                        strings(&["<s>", "</s>", "a", "b", "<0x0A>", space, "ab", "\u{2581}ab", "\u{2581}a"]);
                }
                _ => {}
            }
        }
        let scores = [0.0, 0.0, -6.0, -7.0, 0.0, -8.0, -1.0, -2.0, -3.0].map(Value::F32).to_vec();
        entries.push(("tokenizer.ggml.scores", Value::Array(scores)));
        let tokenizer = read(&write("pieces", &entries, None)).unwrap().tokenizer;
        assert_eq!(tokenizer.encode_prompt("<s>ab").unwrap(), [0, 7]);
        assert_eq!(tokenizer.encode_piece("ab\na a").unwrap(), [6, 4, 2, 8]);
        assert_eq!(tokenizer.decode(&[8, 4, 7]).unwrap(), " a\n ab");
        assert_eq!(tokenizer.leading_token().as_deref(), Some("<s>"));
    }

    #[test]
    fn errors_name_the_key() {
        let error = |key: &str, value: Option<Value>| {
            let mut entries = entries();
            let at = entries.iter().position(|(k, _)| *k == key).unwrap();
            match value {
                Some(value) => entries[at].1 = value,
                None => drop(entries.remove(at)),
            }
            read(&write("error", &entries, None)).err().unwrap()
        };
        for (key, value, expected) in [
            ("general.architecture", Some(Value::String("bert".into())), "expected \"llama\", got \"bert\""),
            ("llama.block_count", None, "llama.block_count: missing"),
            ("llama.block_count", Some(Value::Bool(true)), "llama.block_count: expected a number"),
            ("llama.block_count", Some(Value::U64(1 << 60)), "num_hidden_layers: expected 1 to"),
            ("llama.embedding_length", Some(Value::U32(16)), "expected shape [9, 16], got [9, 8]"),
            ("tokenizer.ggml.model", Some(Value::String("t5".into())), "tokenizer.ggml.model: expected"),
            (
                "llama.block_count",
                Some(Value::U32(100_000)),
                "num_hidden_layers: expected 1 to 1024, got 100000",
            ),
            (
                "tokenizer.ggml.tokens",
                Some(strings(&["<s>", "</s>", "a", "b", "1", "c", "ab", &"d".repeat(1025), "e"])),
                "tokenizer.ggml.tokens: token 7: expected at most 1024 bytes, got 1025",
            ),
            (
                "tokenizer.chat_template",
                Some(Value::String("x".repeat(70_000))),
                "expected at most 65536 bytes, got 70000",
            ),
            ("tokenizer.ggml.pre", Some(Value::String("odd".into())), "tokenizer.ggml.pre: expected"),
            ("tokenizer.ggml.eos_token_id", None, "tokenizer.ggml.eos_token_id: missing"),
            ("tokenizer.ggml.eos_token_id", Some(Value::U32(9)), "expected an id below 9, got 9"),
            ("tokenizer.ggml.merges", Some(strings(&["b a"])), "tokenizer.ggml.merges: expected pairs"),
            ("tokenizer.ggml.token_type", Some(strings(&["a"])), "tokenizer.ggml.token_type: expected"),
        ] {
            let message = error(key, value);
            assert!(message.contains(expected), "{key}: {message}");
            assert!(message.contains(".gguf"), "{message}");
        }
        let message = read(&write("extra", &entries(), Some("blk.0.attn_q.bias"))).err().unwrap();
        assert!(message.contains("tensor blk.0.attn_q.bias: not a part"), "{message}");
        let mut odd = entries();
        odd.push(("general.alignment", Value::U32(0)));
        let message = read(&write("alignment", &odd, None)).err().unwrap();
        assert!(message.contains("general.alignment: expected a positive number"), "{message}");
    }

    #[test]
    fn a_cut_file_is_an_error() {
        let path = write("whole", &entries(), None);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        for length in [0, 3, 20, 200, 900, bytes.len() - 64] {
            let path = path.with_extension(format!("{length}.gguf"));
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert!(read(&path).is_err(), "{length}");
        }
    }
}
