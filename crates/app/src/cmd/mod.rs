//! The command line: one file a verb.

mod train;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Style of the word `error`.
pub(crate) const ERROR_STYLE: anstyle::Style =
    anstyle::Style::new().bold().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Red)));

/// Teaches language models to think in parallel, and runs them so.
#[derive(Parser)]
#[command(name = "parallel-r1", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Train(train::Args),
}

impl Cli {
    /// Runs the verb.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Train(args) => args.run(),
        }
    }
}
