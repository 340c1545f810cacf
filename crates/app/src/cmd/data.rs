//! `data`: makes and checks demonstrations.

mod cold_start;

/// Make, check and convert data sets
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    ColdStart(cold_start::Args),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::ColdStart(args) => args.run(),
        }
    }
}
