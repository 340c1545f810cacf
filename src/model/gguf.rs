//! A model from one GGUF file: sizes, weights as they are stored, tokenizer and chat template.
//!
//! The weights get their Hugging Face names and, for a Llama's queries and keys, the Hugging Face order of rows:
//! llama.cpp rotates neighbouring pairs of a Llama's head where Hugging Face rotates its two halves, so its converter
//! interleaves the halves. Rows are whole blocks, so they are put back without touching a quantised number. The file
//! comes from outside: sizes are checked before anything is allocated, and a tensor that the decoder would not use is
//! an error, for a model without it is another model.

mod metadata;
mod scaling;
#[cfg(test)]
mod tests;
mod tokenizer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use candle_core::quantized::gguf_file::Content;
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

use self::metadata::Metadata;
use super::config::Family;
use super::info::Stored;
use super::parameters::{EMBEDDING, HEAD, NORM, parameter_shapes};
use super::projection::Weight;
use super::{Config, ModelError, plain};
use crate::kernels::{QuantisedMatrix, resident_bytes};
use crate::prompt::{ChatTemplate, Tokenizer};

/// Everything that a GGUF file says.
pub struct GgufModel {
    /// Sizes and constants.
    pub config: Config,
    /// Weights as they are stored, under their Hugging Face names.
    pub weights: BTreeMap<String, Weight>,
    /// The tokenizer, rebuilt from the metadata.
    pub tokenizer: Tokenizer,
    /// The chat template, or the plain format.
    pub template: ChatTemplate,
}

/// Reads a GGUF file.
pub fn read_gguf(path: &Path) -> Result<GgufModel, ModelError> {
    let Head { content, mut file, config, tokenizer, template } = Head::read(path)?;
    let weights = weights(&content, &mut file, &config)
        .map_err(|reason| ModelError::Weights { path: path.into(), reason })?;
    Ok(GgufModel { config, weights, tokenizer, template })
}

/// What a file says before its weights.
pub(super) fn describe(path: &Path) -> Result<(Config, Tokenizer, ChatTemplate, Stored), ModelError> {
    let Head { content, config, tokenizer, template, .. } = Head::read(path)?;
    let mut stored = Stored::default();
    for info in content.tensor_infos.values() {
        let blocks = info.shape.elem_count() / info.ggml_dtype.block_size();
        *stored.tensors.entry(format!("{:?}", info.ggml_dtype)).or_default() += 1;
        stored.bytes += (blocks * info.ggml_dtype.type_size()) as u64;
        let resident = resident_bytes(info.ggml_dtype, info.shape.elem_count()) as u64;
        stored.resident = Some(stored.resident.unwrap_or(0) + resident);
    }
    Ok((config, tokenizer, template, stored))
}

/// Everything but the weights.
struct Head {
    content: Content,
    file: BufReader<File>,
    config: Config,
    tokenizer: Tokenizer,
    template: ChatTemplate,
}

impl Head {
    fn read(path: &Path) -> Result<Self, ModelError> {
        let open = |source| ModelError::Read { path: path.into(), source };
        let wrong = |reason: String| ModelError::Config { path: path.into(), reason };
        let mut file = BufReader::new(File::open(path).map_err(open)?);
        // candle divides by the file's `general.alignment` without looking at it, and may trust other numbers as well.
        let content = catch_unwind(AssertUnwindSafe(|| Content::read(&mut file)))
            .map_err(|_| wrong("damaged header (general.alignment: expected a positive number?)".into()))?
            .map_err(|e| wrong(plain(e)))?;

        let metadata = Metadata(&content.metadata);
        let config = config(&content, &mut file).map_err(wrong)?;
        let tokenizer = tokenizer::tokenizer(&metadata).map_err(wrong)?;
        if tokenizer.vocab_size() > config.vocab_size {
            let (rows, tokens) = (config.vocab_size, tokenizer.vocab_size());
            return Err(wrong(format!(
                "tokenizer.ggml.tokens: expected at most {rows} tokens, got {tokens}"
            )));
        }
        let template = match metadata.text("tokenizer.chat_template").map_err(wrong)? {
            Some(source) => ChatTemplate::new(source, &tokenizer)
                .map_err(|e| wrong(format!("tokenizer.chat_template: {e}")))?,
            None => ChatTemplate::plain(&tokenizer),
        };
        check_tensors(&content, &config)
            .map_err(|reason| ModelError::Weights { path: path.into(), reason })?;
        Ok(Self { content, file, config, tokenizer, template })
    }
}

/// The configuration, in the words of `config.json`.
fn config(content: &Content, file: &mut BufReader<File>) -> Result<Config, String> {
    let metadata = Metadata(&content.metadata);
    let family = Family::named(metadata.text("general.architecture")?)
        .map_err(|reason| format!("general.architecture: {reason}"))?;
    let key = |name: &str| format!("{}.{name}", family.name());
    if metadata.number(&key("expert_count"))?.is_some_and(|experts| experts > 0) {
        return Err(format!("{}: mixtures of experts are not supported", key("expert_count")));
    }
    let embedding = content.tensor_infos.get("token_embd.weight").map(|info| info.shape.dims());
    let Some(&[vocab, _]) = embedding else {
        return Err(format!("token_embd.weight: expected a matrix, got shape {embedding:?}"));
    };

    let size = |name: &str| metadata.required_number(&key(name));
    let optional = |name: &str| metadata.number(&key(name));
    let mut config = Config::llama(
        vocab,
        size("embedding_length")?,
        size("feed_forward_length")?,
        size("block_count")?,
        size("attention.head_count")?,
    )
    .of_family(family);
    config.num_key_value_heads = optional("attention.head_count_kv")?;
    config.head_dim = optional("attention.key_length")?.or(config.head_dim);
    config.max_position_embeddings = size("context_length")?;
    if let Some(eps) = metadata.float(&key("attention.layer_norm_rms_epsilon"))? {
        config.rms_norm_eps = eps;
    }
    if let Some(theta) = metadata.float(&key("rope.freq_base"))? {
        config.rope_theta = theta;
    }
    let holds = |name: &str| content.tensor_infos.contains_key(name);
    config.attention_bias = family != Family::Qwen2 && holds("blk.0.attn_q.bias");
    config.mlp_bias = holds("blk.0.ffn_gate.bias");
    config.tie_word_embeddings = !holds("output.weight");
    config.bos_token_id = metadata.id("tokenizer.ggml.bos_token_id")?;
    config.eos_token_id = metadata.id("tokenizer.ggml.eos_token_id")?.map(Into::into);
    config.check()?;
    config.rope_scaling = scaling::scaling(content, file, &config)?;
    config.check()?;
    for name in ["rope.dimension_count", "attention.value_length"] {
        if let Some(width) = optional(name)?.filter(|width| *width != config.head_dim()) {
            let expected = config.head_dim();
            return Err(format!("{}: expected the head's width {expected}, got {width}", key(name)));
        }
    }
    Ok(config)
}

/// The file holds the tensors that the configuration asks for, in their shapes, and no others.
fn check_tensors(content: &Content, config: &Config) -> Result<(), String> {
    let shapes: BTreeMap<String, Vec<usize>> =
        parameter_shapes(config).into_iter().map(|(name, shape)| (gguf_name(&name), shape)).collect();
    let known = |name: &str| shapes.contains_key(name) || name == scaling::FACTORS;
    if let Some(extra) = content.tensor_infos.keys().find(|name| !known(name)) {
        let family = config.model_type.name();
        return Err(format!("tensor {extra}: not a part of the {family} decoder that this program runs"));
    }
    for (name, shape) in shapes {
        match content.tensor_infos.get(&name).map(|info| info.shape.dims()) {
            None => return Err(format!("tensor {name} is missing (expected shape {shape:?})")),
            Some(got) if got != shape => {
                return Err(format!("tensor {name}: expected shape {shape:?}, got {got:?}"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Reads the tensors that the configuration asks for; their sizes have been checked, so they cannot overflow.
fn weights(
    content: &Content,
    file: &mut BufReader<File>,
    config: &Config,
) -> Result<BTreeMap<String, Weight>, String> {
    let mut weights = BTreeMap::new();
    for (name, _) in parameter_shapes(config) {
        let stored = gguf_name(&name);
        let weight = content
            .tensor(file, &stored, &Device::Cpu)
            .and_then(|tensor| weight(&tensor, interleaved_heads(&name, config)))
            .map_err(|e| format!("tensor {stored}: {}", plain(e)))?;
        weights.insert(name, weight);
    }
    Ok(weights)
}

/// How many heads of a parameter have their halves interleaved; 0 where rows stand as they should.
fn interleaved_heads(name: &str, config: &Config) -> usize {
    let of = |part: &str| name.contains(part);
    match config.model_type {
        Family::Llama if of("q_proj") => config.num_attention_heads,
        Family::Llama if of("k_proj") => config.kv_heads(),
        _ => 0,
    }
}

/// A matrix as it is stored; vectors and plain f32 as plain numbers.
fn weight(tensor: &QTensor, heads: usize) -> candle_core::Result<Weight> {
    let (rows, dtype) = (tensor.shape().dims()[0], tensor.dtype());
    let order = halves(rows, heads);
    if tensor.rank() != 2 || dtype == GgmlDType::F32 {
        let plain = tensor.dequantize(&Device::Cpu)?;
        return Ok(Weight::Dense(match order {
            Some(order) => plain.index_select(&Tensor::from_vec(order, rows, &Device::Cpu)?, 0)?,
            None => plain,
        }));
    }
    let (data, shape) = (tensor.data()?, tensor.shape().dims2()?);
    let matrix = match order {
        Some(order) => {
            let width = data.len() / rows;
            let ordered = order.into_iter().flat_map(|row| &data[row as usize * width..][..width]);
            QuantisedMatrix::new(&ordered.copied().collect::<Vec<u8>>(), dtype, shape)?
        }
        None => QuantisedMatrix::new(&data, dtype, shape)?,
    };
    Ok(Weight::Quantised(matrix))
}

/// The stored row of each row of a projection whose heads are interleaved: of a head, row `i + s * width / 2` is
/// stored as row `2i + s`.
fn halves(rows: usize, heads: usize) -> Option<Vec<u32>> {
    let width = rows.checked_div(heads)?;
    let stored = |row: usize| {
        let (head, within) = (row / width, row % width);
        (head * width + within % (width / 2) * 2 + within / (width / 2)) as u32
    };
    Some((0..rows).map(stored).collect())
}

/// The name that llama.cpp gives to a parameter.
fn gguf_name(name: &str) -> String {
    const PARTS: [(&str, &str); 11] = [
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ];
    match name {
        EMBEDDING => "token_embd.weight".into(),
        HEAD => "output.weight".into(),
        NORM => "output_norm.weight".into(),
        _ => PARTS
            .iter()
            .fold(name.replace("model.layers.", "blk."), |name, (ours, theirs)| name.replace(ours, theirs)),
    }
}
