//! What can end a generation.

use std::path::{Path, PathBuf};

use crate::data::DataError;
use crate::engine::EngineError;
use crate::model::ModelError;

/// The result of what generates.
pub type Result<T, E = GenerateError> = std::result::Result<T, E>;

/// What can end a generation. What concerns one answer alone doesn't: it is written down with that answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The journal holds something else.
    #[error("{}, line {line}: expected a journal entry, got {reason}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The journal's answer is to another question.
    #[error(
        "{}: problem {problem:?}, sample {sample}, was asked otherwise there: the teacher, its settings, the prompt or \
         the problem's text has changed since",
        path.display()
    )]
    AskedOtherwise {
        /// The journal.
        path: PathBuf,
        /// The problem's id.
        problem: String,
        /// Which sample.
        sample: usize,
    },
    /// Two problems that can't be told apart.
    #[error("two different problems have the id {id:?}: expected an id of its own for each")]
    SameId {
        /// The id.
        id: String,
    },
    /// No problem to ask.
    #[error("none of the {0} problems has a gold answer that can be read, so no answer could be checked")]
    NoProblems(usize),
    /// The address is none.
    #[error("endpoint: expected http://… or https://…, got {endpoint:?}")]
    Endpoint {
        /// What was given.
        endpoint: String,
    },
    /// The teacher wants to know who asks.
    #[error(
        "{url} answered {status}: {}",
        if *key { "the key that was sent has no access" } else { "it wants a key, and none was sent" }
    )]
    Denied {
        /// What was asked.
        url: String,
        /// 401 or 403.
        status: u16,
        /// Whether a key was sent.
        key: bool,
    },
    /// The teacher will not answer any request.
    #[error("{url}: {reason}")]
    Refused {
        /// What was asked.
        url: String,
        /// What came.
        reason: String,
    },
    /// One answer after the other failed.
    #[error("the teacher failed {failures} times in a row, the last time so: {reason}")]
    GivenUp {
        /// How often.
        failures: usize,
        /// The last reason.
        reason: String,
    },
    /// A prompt that is none.
    #[error("prompt {name}: {reason}")]
    Prompt {
        /// Which.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// A price table that is none, or lacks the model.
    #[error("{}: {reason}", path.display())]
    Prices {
        /// The table.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The problems can't be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The model failed.
    #[error(transparent)]
    Model(Box<ModelError>),
}

impl From<ModelError> for GenerateError {
    fn from(error: ModelError) -> Self {
        Self::Model(error.into())
    }
}

impl GenerateError {
    /// Names the file of an error of the system.
    pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
