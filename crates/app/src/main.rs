//! `parallel-r1`: teaches language models to think in parallel, and runs them so.
//!
//! `cmd` has one file a verb. Beside it stands what they share: `recipes` (which recipe a name means), `sampling` (the
//! flags of sampling), `branches` (a response with parallel paths, drawn as it comes), `response` (the same as JSON),
//! `hub` (names on the Hub), `progress` (bars on stderr), `report` (runs as a page), `table`, `lock` and `interrupt` (one process a run, and a clean end), and `failure` (what
//! a person reads when something goes wrong).
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 called wrongly.

#![deny(unsafe_code)]

mod branches;
mod chat_options;
mod cmd;
mod failure;
mod hub;
mod interrupt;
mod lock;
mod progress;
mod recipes;
mod report;
mod response;
mod sampling;
mod table;
mod watch;

use std::process::ExitCode;

use clap::Parser;

/// Frees and reuses large buffers without returning their pages to the system, which training would fault in again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // SAFETY: no other thread runs yet.
    #[allow(unsafe_code)]
    unsafe {
        parallel_r1::kernels::calm_candle()
    };
    let cli = cmd::Cli::parse();
    // On a thread of the pool: a parallel operation that starts outside it wakes a worker and sleeps meanwhile.
    match rayon::scope(|_| cli.run()) {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}
