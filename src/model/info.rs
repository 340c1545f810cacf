//! What a model's files say, without reading its weights.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

use candle_core::Device;
use serde::Serialize;

use super::inference::packed_bytes;
use super::parameters::{PROJECTIONS, projection_shape};
use super::peft::{ADAPTER_CONFIG, PeftConfig};
use super::weights::files;
use super::{Config, EMBEDDED, LoraConfig, ModelError, Pretrained, gguf, peft};
use crate::prompt::{ChatTemplate, Tokenizer};

/// The longest header of a safetensors file, as its own library has it.
const MAX_HEADER: u64 = 100_000_000;
/// Bytes of an f32.
const F32: u64 = 4;

/// What is known of a model from its files.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// `folder`, `gguf`, `adapter` or `embedded`.
    pub kind: &'static str,
    /// The base model of an adapter; everything else is then said of the two together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Number of parameters.
    pub parameters: u64,
    /// Ids of the tokenizer.
    pub tokens: usize,
    /// Whether the six tags are tokens.
    pub tags: bool,
    /// By how many positions its paths are moved back: see [`Controls::path_rewind`](crate::prompt::Controls::path_rewind).
    pub path_rewind: u32,
    /// Whether it has a chat template of its own.
    pub chat_template: bool,
    /// The furthest position that a token can stand at, plus one.
    pub positions: usize,
    /// Number of tensors by the type that they are stored in.
    pub tensors: BTreeMap<String, usize>,
    /// Bytes of the stored weights.
    pub stored_bytes: u64,
    /// Estimated memory.
    pub memory: Memory,
    /// Sizes and constants.
    pub config: Config,
}

/// Estimated memory, in bytes. What a program needs besides (the tokenizer, scratch buffers) is not in it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Memory {
    /// Weights of a model that runs; plain ones twice, the second time packed for the engine.
    pub run: u64,
    /// Keys and values of one token.
    pub cache_per_token: u64,
    /// Weights, gradients and moments of a model that is trained as a whole, in f32.
    pub train: u64,
    /// The same where an adapter with default settings and the tags' rows are trained.
    pub train_lora: u64,
    /// What a training pass keeps of one token of a micro-batch until its gradients are known.
    pub activations_per_token: u64,
}

impl Memory {
    /// For a model whose weights take `resident` bytes while it runs; those of its parameters in f32 where not given.
    pub(crate) fn new(config: &Config, resident: Option<u64>) -> Self {
        let count = |n: usize| n as u64;
        let weights = count(config.parameters()) * F32;
        let (d, inner) = (config.hidden_size, config.intermediate_size);
        let (q, kv) = (config.num_attention_heads * config.head_dim(), config.kv_heads() * config.head_dim());
        let normed = if config.qk_norm() { q + kv } else { 0 };
        // Each operation's output: two norms, two sums and two projections of width d; queries before and after
        // rotation and the attention's output; keys likewise and values; gate, up and their product.
        let kept = 6 * d + 3 * q + 3 * kv + normed + 3 * inner;
        let lora = LoraConfig::default().r * lora_widths(config);
        Self {
            run: resident.unwrap_or(weights + packed_bytes(weights)),
            cache_per_token: count(2 * config.num_hidden_layers * kv) * F32,
            train: 4 * weights,
            // With the tags' rows: two more copies of the embedding, and two gradients of its size.
            train_lora: weights + 4 * F32 * count(lora + config.vocab_size * d),
            activations_per_token: count(config.num_hidden_layers * kept) * F32,
        }
    }
}

/// Parameters that each rank of an adapter on all projections takes.
fn lora_widths(config: &Config) -> usize {
    let widths = PROJECTIONS.map(|name| projection_shape(config, name).0.iter().sum::<usize>());
    config.num_hidden_layers * widths.iter().sum::<usize>()
}

/// Types and bytes of stored tensors.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) tensors: BTreeMap<String, usize>,
    pub(super) bytes: u64,
    /// Bytes of the weights in a model that runs, where they stay as they are stored.
    pub(super) resident: Option<u64>,
}

impl Info {
    /// Reads what the files of a model say; `name` as for [`Pretrained::open`].
    pub fn read(name: &str) -> Result<Self, ModelError> {
        let path = Path::new(name);
        if name == EMBEDDED {
            let Pretrained { decoder, tokenizer, template } = Pretrained::embedded(&Device::Cpu)?;
            let mut stored = Stored::default();
            stored.tensors.insert("BF16".into(), decoder.vars().len());
            stored.bytes = 2 * decoder.config().parameters() as u64;
            Ok(Self::new("embedded", decoder.config().clone(), &tokenizer, &template, stored))
        } else if path.join(ADAPTER_CONFIG).is_file() {
            Self::of_adapter(path)
        } else if path.is_dir() {
            let config = Config::read(&path.join("config.json"))?;
            let tokenizer = Tokenizer::load(path)?;
            let template = ChatTemplate::load(path, &tokenizer)?;
            let mut stored = Stored::default();
            for file in files(path)? {
                stored.add(&file)?;
            }
            Ok(Self::new("folder", config, &tokenizer, &template, stored))
        } else if path.is_file() {
            let (config, tokenizer, template, stored) = gguf::describe(path)?;
            Ok(Self::new("gguf", config, &tokenizer, &template, stored))
        } else {
            Err(ModelError::NotFound { name: name.into() })
        }
    }

    fn of_adapter(folder: &Path) -> Result<Self, ModelError> {
        let peft = PeftConfig::read(folder)?;
        let base = peft.base().to_owned();
        let mut info = Self::read(&peft::local_base(&base, folder)?)?;
        if info.kind == "adapter" {
            let (path, reason) = (folder.join(ADAPTER_CONFIG), peft::nested(&base));
            return Err(ModelError::Config { path, reason });
        }
        if folder.join("tokenizer.json").is_file() {
            let tokenizer = Tokenizer::load(folder)?;
            (info.tokens, info.tags) = (tokenizer.vocab_size(), tokenizer.has_tags());
            info.path_rewind = tokenizer.path_rewind();
        }
        let mut stored = Stored::default();
        stored.add(&folder.join(peft::ADAPTER_WEIGHTS))?;
        Ok(Self {
            kind: "adapter",
            base: Some(base),
            tensors: stored.tensors,
            stored_bytes: stored.bytes,
            ..info
        })
    }

    fn new(
        kind: &'static str,
        config: Config,
        tokenizer: &Tokenizer,
        template: &ChatTemplate,
        stored: Stored,
    ) -> Self {
        Self {
            kind,
            base: None,
            parameters: config.parameters() as u64,
            tokens: tokenizer.vocab_size(),
            tags: tokenizer.has_tags(),
            path_rewind: tokenizer.path_rewind(),
            chat_template: template.source().is_some(),
            positions: config.position_limit(),
            memory: Memory::new(&config, stored.resident),
            tensors: stored.tensors,
            stored_bytes: stored.bytes,
            config,
        }
    }
}

impl Stored {
    /// Adds the tensors that the header of a safetensors file lists.
    fn add(&mut self, path: &Path) -> Result<(), ModelError> {
        let header = header(path).map_err(|source| ModelError::Read { path: path.into(), source })?;
        let metadata: safetensors::tensor::Metadata = serde_json::from_slice(&header)
            .map_err(|e| ModelError::Weights { path: path.into(), reason: e.to_string() })?;
        for tensor in metadata.tensors().into_values() {
            *self.tensors.entry(format!("{:?}", tensor.dtype)).or_default() += 1;
            self.bytes += (tensor.data_offsets.1 - tensor.data_offsets.0) as u64;
        }
        Ok(())
    }
}

/// The header of a safetensors file, which stands behind its length in eight bytes.
fn header(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let bytes = u64::from_le_bytes(length);
    if bytes > MAX_HEADER {
        let reason = format!("expected a header of at most {MAX_HEADER} bytes, got {bytes}");
        return Err(Error::new(ErrorKind::InvalidData, reason));
    }
    let mut header = Vec::new();
    file.take(bytes).read_to_end(&mut header)?;
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::DType;

    #[test]
    fn a_folder_is_described_without_its_weights() {
        let folder = tempfile::tempdir().unwrap();
        let model = Pretrained::embedded(&Device::Cpu).unwrap().with_tags(1).unwrap().with_path_rewind(3);
        model.save(folder.path(), DType::F32).unwrap();
        let path = folder.path().join("model.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        let length = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        std::fs::write(&path, &bytes[..length]).unwrap();

        let info = Info::read(&folder.path().to_string_lossy()).unwrap();
        assert_eq!((info.kind, info.tags, info.tokens, info.path_rewind), ("folder", true, 109, 3));
        assert_eq!(info.parameters, model.decoder.config().parameters() as u64);
        assert_eq!(info.tensors, BTreeMap::from([("F32".into(), model.decoder.vars().len())]));
        assert_eq!((info.stored_bytes, info.memory.run), (4 * info.parameters, 8 * info.parameters));
        std::fs::write(&path, u64::MAX.to_le_bytes()).unwrap();
        let message = Info::read(&folder.path().to_string_lossy()).unwrap_err().to_string();
        assert!(message.contains("model.safetensors: expected a header of at most"), "{message}");
    }

    #[test]
    fn the_embedded_model_is_described_too() {
        let info = Info::read(EMBEDDED).unwrap();
        assert_eq!((info.kind, info.tags, info.chat_template), ("embedded", false, false));
        // Four layers of four heads; keys and values of 128 numbers.
        assert_eq!(info.memory.cache_per_token, 4 * 2 * 128 * 4);
        assert!(info.memory.train_lora < info.memory.train);
    }
}
