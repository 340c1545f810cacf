//! A model with what it needs to read and write text: weights, tokenizer, chat template.

use std::path::Path;
use std::sync::Arc;

use candle_core::{DType, Device};

use super::peft::{self, ADAPTER_CONFIG, PeftConfig};
use super::{Config, Decoder, LoraConfig, ModelError, NewRow, Precision, add_rows, gguf, weights};
use crate::prompt::{ChatTemplate, Controls, Message, Tokenizer};

/// Name under which the embedded base model is asked for.
pub const EMBEDDED: &str = "embedded";

/// What is compiled in, a few MB.
const CONFIG: &str = include_str!("../../assets/countdown/config.json");
const WEIGHTS: &[u8] = include_bytes!("../../assets/countdown/model.safetensors");

/// A model, its tokenizer and its chat template.
pub struct Pretrained {
    /// The weights.
    pub decoder: Decoder,
    /// Text to tokens and back.
    pub tokenizer: Tokenizer,
    /// Messages to text.
    pub template: ChatTemplate,
}

impl Pretrained {
    /// A model to run: `embedded`, a folder in Hugging Face form, an adapter in PEFT's form, or a GGUF file, whose
    /// quantised weights stay so.
    pub fn open(name: &str, device: &Device) -> Result<Self, ModelError> {
        let path = Path::new(name);
        if name == EMBEDDED {
            Self::embedded(device)
        } else if path.is_dir() {
            Self::from_folder(path, device)
        } else if path.is_file() {
            Self::from_gguf(path)
        } else {
            Err(ModelError::NotFound { name: name.into() })
        }
    }

    /// A model to train: as [`Pretrained::open`], but quantised weights are dequantised.
    pub fn open_to_train(name: &str, device: &Device) -> Result<Self, ModelError> {
        let model = Self::open(name, device)?;
        Ok(Self { decoder: model.decoder.trainable()?, ..model })
    }

    /// The base model that is compiled into the program (made by `recipes/countdown/base.toml`).
    pub fn embedded(device: &Device) -> Result<Self, ModelError> {
        let broken = |reason: String| ModelError::Config { path: EMBEDDED.into(), reason };
        let config = serde_json::from_str(CONFIG).map_err(|e| broken(e.to_string()))?;
        let config = Config::from_json(config).map_err(broken)?;
        let weights = candle_core::safetensors::load_buffer(WEIGHTS, device)?;
        let decoder = Decoder::new(config, &weights.into_iter().collect())?;
        let tokenizer = Tokenizer::characters();
        let template = ChatTemplate::plain(&tokenizer);
        Self { decoder, tokenizer, template }.checked()
    }

    /// A folder in Hugging Face form, or an adapter in PEFT's.
    pub fn from_folder(folder: &Path, device: &Device) -> Result<Self, ModelError> {
        if folder.join(ADAPTER_CONFIG).is_file() {
            return Self::from_adapter(folder, device);
        }
        let decoder = weights::load(folder, device)?;
        let tokenizer = Tokenizer::load(folder)?;
        let template = ChatTemplate::load(folder, &tokenizer)?;
        Self { decoder, tokenizer, template }.checked()
    }

    /// An adapter and the base model that it names; the tokenizer and the template are the base's where the adapter
    /// brings none.
    fn from_adapter(folder: &Path, device: &Device) -> Result<Self, ModelError> {
        let peft = PeftConfig::read(folder)?;
        let base = peft::local_base(peft.base(), folder)?;
        if Path::new(&base).join(ADAPTER_CONFIG).is_file() {
            return Err(ModelError::Config {
                path: folder.join(ADAPTER_CONFIG),
                reason: peft::nested(&base),
            });
        }
        let base = Self::open(&base, device)?;
        let decoder = peft::load(base.decoder, peft, folder)?;
        let (mut tokenizer, mut template) = (base.tokenizer, base.template);
        if folder.join("tokenizer.json").is_file() {
            tokenizer = Tokenizer::load(folder)?;
        }
        let own = ChatTemplate::load(folder, &tokenizer)?;
        if own.source().is_some() {
            template = own;
        }
        Self { decoder, tokenizer, template }.checked()
    }

    /// A GGUF file; its quantised weights stay so.
    pub fn from_gguf(file: &Path) -> Result<Self, ModelError> {
        let gguf::GgufModel { config, weights, tokenizer, template } = gguf::read_gguf(file)?;
        let decoder = Decoder::fixed(config, weights)?;
        Self { decoder, tokenizer, template }.checked()
    }

    fn checked(self) -> Result<Self, ModelError> {
        let (rows, ids) = (self.decoder.config().vocab_size, self.tokenizer.vocab_size());
        if ids > rows { Err(ModelError::Vocabulary { rows, ids }) } else { Ok(self) }
    }

    /// Writes the folder that [`Pretrained::from_folder`] reads, the weights as `dtype`: an adapter alone where the model
    /// has one, else the whole model.
    pub fn save(&self, folder: &Path, dtype: DType) -> Result<(), ModelError> {
        match self.decoder.adapter() {
            Some(adapter) => peft::save(&self.decoder, adapter, folder, dtype)?,
            None => weights::save(&self.decoder, folder, dtype)?,
        }
        self.save_text(folder)
    }

    /// As [`Pretrained::save`], with an adapter merged into the weights.
    pub fn save_merged(&self, folder: &Path, dtype: DType) -> Result<(), ModelError> {
        weights::save(&self.decoder, folder, dtype)?;
        self.save_text(folder)
    }

    fn save_text(&self, folder: &Path) -> Result<(), ModelError> {
        self.tokenizer.save(folder)?;
        self.template.save(folder)?;
        Ok(())
    }

    /// Makes the six tags single tokens with rows of their own, if they are not yet. The rest is unchanged. An adapter
    /// without them is refused: its files have no place for new rows of its base.
    pub fn with_tags(self, seed: u64) -> Result<Self, ModelError> {
        let Self { mut decoder, mut tokenizer, template } = self;
        if let Some(adapter) = decoder.adapter().filter(|_| !tokenizer.has_tags()) {
            let (base, reason) =
                (adapter.base().into(), "it has no tags; merge it first (`model export`)".into());
            return Err(ModelError::Adapter { base, reason });
        }
        let before = tokenizer.clone();
        let new = tokenizer.add_tags()?;
        let rows = new.into_iter().map(|id| {
            let text = tokenizer.token(id).unwrap_or_default();
            Ok(NewRow { id, pieces: before.encode_piece(&text)? })
        });
        let rows = rows.collect::<Result<Vec<_>, ModelError>>()?;
        if !rows.is_empty() {
            decoder = add_rows(decoder, &rows, seed)?;
        }
        Ok(Self { decoder, tokenizer, template })
    }

    /// Moves the paths of its blocks back by so many positions: see [`Controls::path_rewind`].
    pub fn with_path_rewind(mut self, by: u32) -> Self {
        self.tokenizer.set_path_rewind(by);
        self
    }

    /// Gives the model a new adapter, which with the rows of the tags (if it has them) is what is trained from now on.
    /// `base` is the name under which the adapter's files will refer to the model.
    pub fn with_lora(self, lora: &LoraConfig, base: &str, seed: u64) -> Result<Self, ModelError> {
        let tags = self.tokenizer.controls()?.tags;
        let decoder = self.decoder.with_lora(lora, tags.as_ref().map_or(&[], |ids| ids), base, seed)?;
        Ok(Self { decoder, ..self })
    }

    /// The same model, computing in `precision`.
    pub fn with_precision(self, precision: Precision) -> Result<Self, ModelError> {
        Ok(Self { decoder: self.decoder.with_precision(precision)?, ..self })
    }

    /// The tokens that open the answer to a problem: the chat template with one user message.
    pub fn prompt(&self, problem: &str) -> Result<Vec<u32>, ModelError> {
        let text = self.template.render(&[Message::user(problem)], true)?;
        Ok(self.tokenizer.encode_prompt(&text)?)
    }

    /// The ids that steer structure.
    pub fn controls(&self) -> Result<Arc<Controls>, ModelError> {
        Ok(Arc::new(self.tokenizer.controls()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_model_is_the_folder_it_was_made_from() -> Result<(), ModelError> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/countdown");
        let (embedded, on_disk) =
            (Pretrained::embedded(&Device::Cpu)?, Pretrained::from_folder(&folder, &Device::Cpu)?);
        assert_eq!(embedded.decoder.config(), on_disk.decoder.config());
        assert!(embedded.decoder.config().parameters() < 1_000_000);
        assert!(!embedded.tokenizer.has_tags());
        for text in ["3 7 12 = 45", "12+3=15,15*3=45 ok\nAnswer: none", "Result: <Path>"] {
            assert_eq!(embedded.prompt(text)?, on_disk.prompt(text)?);
        }
        Ok(())
    }

    #[test]
    fn adding_tags_keeps_everything_else_and_is_idempotent() -> Result<(), ModelError> {
        let base = Pretrained::embedded(&Device::Cpu)?;
        let tagged = Pretrained::embedded(&Device::Cpu)?.with_tags(3)?;
        let rows = tagged.decoder.config().vocab_size;
        assert_eq!(rows, base.decoder.config().vocab_size + 6);
        assert_eq!(base.prompt("3 7 12 = 45")?, tagged.prompt("3 7 12 = 45")?);
        let tagged = tagged.with_tags(4)?;
        assert_eq!(tagged.decoder.config().vocab_size, rows);
        Ok(())
    }
}
