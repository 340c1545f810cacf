//! `data`: makes and checks demonstrations.

/// Make, check and convert data sets
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {}
    }
}
