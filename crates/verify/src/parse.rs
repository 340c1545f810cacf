//! Text to [`Answer`]: LaTeX and plain text, within bounds.

use crate::answer::Answer;

/// Why a text is no readable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// There is nothing in it.
    #[error("empty")]
    Empty,
    /// Longer, deeper or with more digits than is read.
    #[error("too large: {what} beyond {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// It is neither mathematics nor words.
    #[error("cannot be read: {0}")]
    Malformed(String),
}

/// Reads an answer (not a whole response): perhaps between `$`, in `\boxed`, with a final dot.
pub fn answer(text: &str) -> Result<Answer, ParseError> {
    let text = text.trim();
    if text.is_empty() { Err(ParseError::Empty) } else { Ok(Answer::Text(text.to_lowercase())) }
}
