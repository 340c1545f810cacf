//! Files are written with candle's writer and read back.

use std::path::PathBuf;

use candle_core::DType;
use candle_core::quantized::gguf_file::{self, Value};

use super::super::rope::{self, RopeScaling};
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
    let extra = extra.map(|name| (name.to_owned(), Tensor::zeros(8, DType::F32, &Device::Cpu).unwrap()));
    write_model(name, entries, &sizes(), extra)
}

fn sizes() -> Config {
    Config { num_key_value_heads: Some(1), ..Config::llama(9, 8, 32, 1, 2) }
}

fn write_model(name: &str, entries: &Entries, config: &Config, extra: Option<(String, Tensor)>) -> PathBuf {
    let path = std::env::temp_dir().join(format!("parallel-r1-{name}-{}.gguf", std::process::id()));
    let interleaves = config.model_type == Family::Llama;
    let mut tensors: Vec<(String, QTensor)> = parameter_shapes(config)
        .into_iter()
        .map(|(name, shape)| {
            let width = shape.last().copied().unwrap_or(1);
            let interleaved = |row: usize| row / 4 * 4 + [0, 2, 1, 3][row % 4];
            let rotated = interleaves && (name.contains("q_proj") || name.contains("k_proj"));
            let data: Vec<f32> = (0..shape.iter().product())
                .map(|i: usize| if rotated { interleaved(i / width) } else { i } as f32)
                .collect();
            let dtype = if width == 32 { GgmlDType::Q8_0 } else { GgmlDType::F32 };
            let tensor = Tensor::from_vec(data, shape, &Device::Cpu).unwrap();
            (gguf_name(&name), QTensor::quantize(&tensor, dtype).unwrap())
        })
        .collect();
    if let Some((name, tensor)) = extra {
        tensors.push((name, QTensor::quantize(&tensor, GgmlDType::F32).unwrap()));
    }
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let entries: Vec<_> = entries.iter().map(|(key, value)| (*key, value)).collect();
    gguf_file::write(&mut File::create(&path).unwrap(), &entries, &tensors).unwrap();
    path
}

fn read(path: &Path) -> Result<GgufModel, String> {
    let model = read_gguf(path).map_err(|e| e.to_string());
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
        let tensor = model.weights[&format!("model.layers.0.self_attn.{name}.weight")].dense().unwrap();
        let first: Vec<f32> = tensor.narrow(1, 0, 1).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        assert_eq!(first, (0..rows).map(|row| row as f32).collect::<Vec<_>>());
    }
    let down = &model.weights["model.layers.0.mlp.down_proj.weight"];
    assert!(matches!(down, Weight::Quantised(_)));
    let down = down.dense().unwrap().get(0).unwrap();
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
        (
            "general.architecture",
            Some(Value::String("bert".into())),
            "expected one of \"llama\", \"qwen2\", \"qwen3\", got \"bert\"",
        ),
        ("llama.block_count", None, "llama.block_count: missing"),
        ("llama.block_count", Some(Value::Bool(true)), "llama.block_count: expected a number"),
        ("llama.block_count", Some(Value::U64(1 << 60)), "num_hidden_layers: expected 1 to"),
        ("llama.embedding_length", Some(Value::U32(16)), "expected shape [8, 16], got [4, 8]"),
        ("tokenizer.ggml.model", Some(Value::String("t5".into())), "tokenizer.ggml.model: expected"),
        ("llama.block_count", Some(Value::U32(100_000)), "num_hidden_layers: expected 1 to 1024, got 100000"),
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
    let message = read(&write("extra", &entries(), Some("blk.0.attn_qkv.weight"))).err().unwrap();
    assert!(message.contains("tensor blk.0.attn_qkv.weight: not a part"), "{message}");
    let mut odd = entries();
    odd.push(("general.alignment", Value::U32(0)));
    let message = read(&write("alignment", &odd, None)).err().unwrap();
    assert!(message.contains("damaged header (general.alignment"), "{message}");
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

/// The entries of another family.
fn of_family(family: Family) -> Entries {
    let name = |key: &'static str| match (key, family) {
        ("general.architecture" | "tokenizer.ggml.pre", _) | (_, Family::Llama) => key,
        _ => match key.strip_prefix("llama.") {
            Some(rest) => format!("{}.{rest}", family.name()).leak(),
            None => key,
        },
    };
    let value = |key: &str, value: Value| match key {
        "general.architecture" => Value::String(family.name().into()),
        _ => value,
    };
    entries().into_iter().map(|(key, v)| (name(key), value(key, v))).collect()
}

#[test]
fn qwen_files_have_their_biases_and_norms_and_no_interleaved_heads() {
    for (family, part, width) in
        [(Family::Qwen2, "self_attn.k_proj.bias", 4), (Family::Qwen3, "self_attn.k_norm.weight", 4)]
    {
        let config = sizes().of_family(family);
        let mut entries = of_family(family);
        entries.push((format!("{}.attention.key_length", family.name()).leak(), Value::U32(4)));
        let model = read(&write_model("qwen", &entries, &config, None)).unwrap();
        assert_eq!((model.config.model_type, model.config.head_dim()), (family, 4));
        assert_eq!(model.weights[&format!("model.layers.0.{part}")].dims(), [width]);
        let q = model.weights["model.layers.0.self_attn.q_proj.weight"].dense().unwrap();
        assert_eq!(q.get(1).unwrap().to_vec1::<f32>().unwrap()[0], 8.0, "rows as they stand");
        let missing = read(&write_model("llama", &entries, &sizes(), None)).err().unwrap();
        assert!(missing.contains("is missing"), "{missing}");
    }
}

#[test]
fn rotary_scaling_is_read_from_metadata() {
    let read = |more: Vec<(&'static str, Value)>| {
        read(&write("scaled", &entries().into_iter().chain(more).collect(), None))
            .map(|m| m.config.rope_scaling)
    };
    let kind = |kind: &str| ("llama.rope.scaling.type", Value::String(kind.into()));
    let factor = || ("llama.rope.scaling.factor", Value::F32(4.0));
    assert_eq!(read(vec![kind("none")]).unwrap(), None);
    assert_eq!(read(vec![kind("none"), factor()]).unwrap(), None);
    let old = ("llama.rope.scale_linear", Value::F32(4.0));
    for entries in [vec![kind("linear"), factor()], vec![factor()], vec![old]] {
        assert_eq!(read(entries).unwrap(), Some(RopeScaling::Linear { factor: 4.0 }));
    }
    let original = ("llama.rope.scaling.original_context_length", Value::U32(16));
    let Some(RopeScaling::Yarn(yarn)) = read(vec![kind("yarn"), factor(), original]).unwrap() else {
        panic!("expected YaRN")
    };
    assert_eq!((yarn.factor, yarn.original_max_position_embeddings), (4.0, Some(16)));
    let message = read(vec![kind("longrope")]).unwrap_err();
    assert!(
        message.contains("llama.rope.scaling.type: expected none, linear or yarn, got \"longrope\""),
        "{message}"
    );
}

#[test]
fn factors_of_llama_3_are_recognised() {
    let scaling = RopeScaling::Llama3 {
        factor: 32.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 8192,
    };
    let config = Config { rope_theta: 500_000.0, ..Config::llama(9, 16, 32, 1, 2) };
    let scaled = Config { rope_scaling: Some(scaling.clone()), ..config.clone() };
    let (plain, scaled) = (rope::frequencies(&config).0, rope::frequencies(&scaled).0);
    let factors: Vec<f32> = plain.iter().zip(scaled).map(|(plain, scaled)| plain / scaled).collect();
    let mut entries = entries();
    entries.retain(|(key, _)| !matches!(*key, "llama.embedding_length" | "llama.attention.head_count_kv"));
    entries.push(("llama.embedding_length", Value::U32(16)));
    entries.push(("llama.rope.freq_base", Value::F32(500_000.0)));
    let file = |factors: Vec<f32>| {
        let factors = Tensor::new(factors, &Device::Cpu).unwrap();
        read(&write_model("factors", &entries, &config, Some((scaling::FACTORS.into(), factors))))
    };
    assert_eq!(file(factors.clone()).unwrap().config.rope_scaling, Some(scaling));
    let strange = file(factors.iter().map(|f| f.sqrt()).collect()).err().unwrap();
    assert!(strange.contains("rope_freqs.weight: expected the factors of Llama 3"), "{strange}");
    let short = file(factors[1..].to_vec()).err().unwrap();
    assert!(short.contains("rope_freqs.weight: expected shape [4], got [3]"), "{short}");
}
