//! Teaches language models to think in parallel, and runs them so.
//!
//! The modules stand in the order in which the data flows:
//!
//! ```text
//! rows -> data -> prompt -> layout -> kernels -> model -> engine -> reward -> eval -> train -> study
//!        Problem  tokens    segments             Decoder  Trace     Score    Stats    weights  comparisons
//! ```
//!
//! The one idea: a trace is a graph of segments (see [`layout`]). Positions, visibility, targets and actions follow
//! from it, for the engine that samples and for the trainer that learns, so both compute the same function.

pub mod data;
pub mod prompt;
pub mod layout;
pub mod kernels;
pub mod model;
pub mod engine;
pub mod reward;
pub mod eval;
pub mod train;
pub mod study;
pub mod cold_start;
