//! What a model can do: rollouts over problems, and the statistics of them.
//!
//! ```text
//! Problem ──rollout──▶ Rollout ──row──▶ ProblemResult ──benchmark──▶ Evaluation ──compare──▶ Comparison
//!             │           (shape, means)                                 ▲
//!             └──consolidate: N samples, one answer──────────────────────┘
//! ```

pub mod benchmark;
pub mod compare;
pub mod consolidate;
pub mod majority;
pub mod means;
pub mod paired;
pub mod rollout;
pub mod row;
pub mod shape;
pub mod stats;

pub use benchmark::{Evaluation, evaluate};
pub use compare::{CompareError, Comparison, Difference, compare};
pub use consolidate::{Consolidation, confidence, consolidate};
pub use means::Means;
pub use rollout::{Rollout, rollouts};
pub use row::ProblemResult;
pub use shape::Shape;
