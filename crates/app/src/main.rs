//! `parallel-r1`: teaches language models to think in parallel, and runs them so.

mod cmd;

use std::process::ExitCode;

use clap::Parser;

/// Frees and reuses large buffers without returning their pages to the system, which training would fault in again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    parallel_r1::kernels::calm_candle();
    match cmd::Cli::parse().run() {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("{}error:{:#} {error:#}", cmd::ERROR_STYLE, cmd::ERROR_STYLE);
            ExitCode::FAILURE
        }
    }
}
