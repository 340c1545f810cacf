//! From a problem to tokens: chat template, tokenizer, and the six tags.

pub(crate) mod file;
pub mod tags;
pub mod template;
pub mod tokenizer;

pub use tags::{AllowedSet, Control, Controls, Tag};
pub use template::{ChatTemplate, Message};
pub use tokenizer::Tokenizer;
