//! The tests that need more than one module, in one binary. The guards of the law (engine and trainer compute the
//! same function, see `layout`) are named `parity_…`: `cargo test --release --workspace parity` runs just these.

#![allow(clippy::unwrap_used)] // a test may panic

mod adapters;
mod curriculum;
mod engine;
mod golden;
mod gradients;
mod hub;
mod learns;
mod model_errors;
mod order;
mod parity;
mod resume;
mod teachers;
mod templates;
mod tokenizers;

mod digits;
mod hub_server;
mod teacher_server;
mod toys;
