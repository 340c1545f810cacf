//! The command line: one file a verb.

mod compare;
mod completions;
mod data;
mod eval;
mod generate;
mod model;
mod report;
mod study;
mod train;
mod verify;
mod votes;

use std::process::ExitCode;

use candle_core::Device;
use clap::{Parser, Subcommand};

/// Where models run.
pub(crate) const DEVICE: Device = Device::Cpu;

/// Teaches language models to think in parallel, and runs them so.
#[derive(Parser)]
#[command(
    name = "parallel-r1",
    version,
    arg_required_else_help = true,
    after_help = "Start with:\n  \
        parallel-r1 train                                   the whole curriculum on the embedded model\n  \
        parallel-r1 generate --model RUN/checkpoints/parallel/step-N \"3 7 12 = 45\"\n\n\
        Exit codes: 0 done, 1 failed, 2 called wrongly. Data goes to stdout, everything else to stderr."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Train(train::Args),
    Generate(generate::Args),
    Eval(eval::Args),
    Compare(compare::Args),
    Report(report::Args),
    Study(study::Args),
    Verify(verify::Args),
    Data(data::Args),
    Model(model::Args),
    Completions(completions::Args),
}

impl Cli {
    /// Runs the verb. The exit code is that of a verb that was carried out: a verdict may be 1.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Train(args) => args.run(),
            Command::Generate(args) => args.run(),
            Command::Eval(args) => args.run(),
            Command::Compare(args) => args.run(),
            Command::Report(args) => args.run(),
            Command::Study(args) => args.run(),
            Command::Verify(args) => return args.run(),
            Command::Data(args) => args.run(),
            Command::Model(args) => args.run(),
            Command::Completions(args) => args.run(),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}
