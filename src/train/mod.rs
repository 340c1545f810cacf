//! From scores to weights: the recipe, the two training loops, and what a run leaves behind.

pub mod advantage;
pub mod batch;
pub mod checkpoint;
mod credit;
pub mod curriculum;
pub mod demonstrations;
pub mod estimate;
pub mod fork;
pub mod grpo;
pub mod loss;
pub mod metrics;
pub mod optim;
pub mod problems;
pub mod recipe;
pub mod sft;
pub mod stop;
pub mod tensorboard;

use std::path::PathBuf;

use crate::data::DataError;
use crate::data::hub::HubError;
use crate::eval::rollout::RolloutError;
use crate::layout::TargetError;
use crate::model::ModelError;
use crate::reward::ExternalError;

/// What can end a training run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The recipe is not valid TOML or has an unknown or missing key.
    #[error("{recipe}: {reason}")]
    Recipe {
        /// Name or file of the recipe.
        recipe: String,
        /// What is wrong, with the key.
        reason: String,
    },
    /// A `--set` argument does not fit the recipe.
    #[error("--set {argument}: {reason}")]
    Override {
        /// The argument.
        argument: String,
        /// What is wrong.
        reason: String,
    },
    /// A file of the run folder could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the run folder does not hold what it should.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The run folder holds an earlier run.
    #[error("{}: holds a run already", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// None of a stage's demonstrations can be trained on.
    #[error("stage {stage}: no usable demonstration ({refused} refused; the first: {first})")]
    NoDemonstrations {
        /// The stage.
        stage: String,
        /// How many rows were refused.
        refused: usize,
        /// Why the first was.
        first: String,
    },
    /// The weights are no numbers any more.
    #[error("training diverged: {name} holds values that are not finite; the last checkpoint is kept")]
    Diverged {
        /// The first such parameter.
        name: String,
    },
    /// Stopped from outside, after a checkpoint was written.
    #[error("stopped; `--resume` goes on from the newest checkpoint")]
    Cancelled,
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A name on the Hub.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Sampling and judging.
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    /// The command that judges responses.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// A sequence without a predictor for one of its actions.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A tensor operation.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

/// Result of training.
pub type Result<T> = std::result::Result<T, TrainError>;
