//! `completions`: teaches a shell the command line.

use std::io::{Write, stdout};

use clap::CommandFactory;
use clap_complete::{Shell, generate};

/// Print a shell's completions
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  parallel-r1 completions bash > ~/.local/share/bash-completion/completions/parallel-r1"
)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        // Through memory: the generator panics where its output is closed early.
        let mut script = Vec::new();
        generate(self.shell, &mut super::Cli::command(), "parallel-r1", &mut script);
        Ok(stdout().write_all(&script)?)
    }
}
