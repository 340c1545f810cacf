//! A trace is a graph of segments: this module decides, in plain integers and without a tensor, where
//! every token stands, whom it sees, what predicts it and whether it was an action. Engine, trainer and
//! report all ask here, so they can't disagree.
//!
//! ```text
//! tokens ──parse──▶ Layout ──▶ positions, visibility, predictors ──▶ targets
//!                     └──pack──▶ one Layout for many traces
//! ```

use serde::{Deserialize, Serialize};

mod pack;
mod parse;
mod positions;
mod segment;
mod targets;
mod visibility;

#[cfg(test)]
mod oracle;

pub use pack::{Member, Packed, pack};
pub use parse::{Parsed, parse};
pub use segment::{Layout, Role, Segment, SegmentId};
pub use targets::{Target, TargetError, targets};
pub use visibility::{QueryBlock, Visibility};

/// How the paths of a block see each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Structure {
    /// Paths are siblings that don't see each other and start at the same position (the paper's
    /// "Unseen").
    PathWindow,
    /// One chain: later paths see earlier ones (the paper's "Seen").
    Causal,
}
