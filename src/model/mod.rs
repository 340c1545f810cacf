//! The decoder: Llama, Qwen2 and Qwen3, positions and visibility from the layout, Hugging Face form on disk.

mod adapter;
mod attention;
mod config;
mod decoder;
mod fused;
mod gguf;
mod gradients;
mod inference;
mod info;
mod network;
mod parameters;
mod peft;
mod pretrained;
mod projection;
mod rope;
mod score;
mod source;
mod tag_rows;
mod weights;

pub use adapter::{Adapter, LoraConfig};
pub use config::{Config, Family};
pub use decoder::{CacheWrite, Decoder, KvCache};
pub use gguf::{GgufModel, read_gguf};
pub use gradients::Gradients;
pub use inference::{Inference, Inputs, Take};
pub use info::{Info, Memory};
pub use parameters::{PROJECTIONS, parameter_shapes};
pub use peft::adapter_base;
pub use pretrained::{EMBEDDED, Pretrained};
pub use projection::Weight;
pub use rope::{RopeScaling, Yarn};
pub use score::{Batch, Scored};
pub use source::Precision;
pub use tag_rows::{NewRow, add_rows};
pub use weights::{Weights, load, save};

use std::path::PathBuf;

/// What can be wrong with a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The configuration is damaged or describes a model that cannot run.
    #[error("{}: {reason}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The field and what is wrong with it.
        reason: String,
    },
    /// A folder holds no weights.
    #[error("{}: no model.safetensors and no model.safetensors.index.json", path.display())]
    NoWeights {
        /// The folder.
        path: PathBuf,
    },
    /// A weights file is damaged.
    #[error("{}: {reason}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor that the configuration asks for is missing.
    #[error("tensor {name} is missing (expected shape {expected:?})")]
    Missing {
        /// Its name.
        name: String,
        /// The shape that the configuration gives it.
        expected: Vec<usize>,
    },
    /// A tensor has another shape than the configuration gives it.
    #[error("tensor {name}: expected shape {expected:?}, got {got:?}")]
    Shape {
        /// Its name.
        name: String,
        /// The shape that the configuration gives it.
        expected: Vec<usize>,
        /// The shape it has.
        got: Vec<usize>,
    },
    /// Neither a folder nor a file nor the embedded model.
    #[error(
        "model {name:?}: no such folder or file (expected a folder in Hugging Face form, a .gguf file, a name on the \
         Hub like `org/name` or `org/name/FILE.gguf`, or `embedded`)"
    )]
    NotFound {
        /// What was asked for.
        name: String,
    },
    /// The tokenizer has ids that the embedding table has no row for.
    #[error("the tokenizer has {ids} ids, but the embedding table has {rows} rows")]
    Vocabulary {
        /// Rows of the table.
        rows: usize,
        /// Ids of the tokenizer.
        ids: usize,
    },
    /// A model cannot get an adapter, or what an adapter has no place for.
    #[error("the adapter of {base}: {reason}")]
    Adapter {
        /// The base model.
        base: String,
        /// What is wrong.
        reason: String,
    },
    /// A base model that an adapter names could not be fetched.
    #[error(transparent)]
    Hub(Box<crate::data::hub::HubError>),
    /// The tokenizer is damaged or lacks something.
    #[error(transparent)]
    Tokenizer(#[from] crate::prompt::tokenizer::TokenizerError),
    /// The chat template is damaged or refuses the messages.
    #[error(transparent)]
    Template(#[from] crate::prompt::template::TemplateError),
    /// An operation failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

impl From<crate::data::hub::HubError> for ModelError {
    fn from(error: crate::data::hub::HubError) -> Self {
        Self::Hub(Box::new(error))
    }
}

/// What a candle error says, without the backtrace that it adds where `RUST_BACKTRACE` is set.
fn plain(error: candle_core::Error) -> String {
    match error {
        candle_core::Error::WithBacktrace { inner, .. } => plain(*inner),
        other => other.to_string(),
    }
}
