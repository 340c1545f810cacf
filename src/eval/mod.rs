//! What a model can do: rollouts over problems, and the statistics of them.

pub mod benchmark;
pub mod means;
pub mod rollout;
pub mod stats;

pub use benchmark::{Evaluation, evaluate};
pub use means::Means;
pub use rollout::{Rollout, rollouts};
