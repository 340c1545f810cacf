//! From any teacher to a clean set of parallel demonstrations.
//!
//! A teacher's answers are only as good as what is kept of them: published sets have wrong answers, damaged text and
//! tags that no grammar reads. So each answer passes [`check`], sets are deduplicated and compared with the problems
//! they will be measured on, and every repair is recorded.

pub mod assemble;
pub mod budget;
pub mod check;
pub mod contamination;
pub mod convert;
pub mod dedupe;
pub mod generate;
pub mod prompts;
pub mod split;
pub mod stats;
pub mod teacher;

mod likeness;
mod stream;

pub use stream::write_without;
