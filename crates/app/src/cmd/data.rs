//! `data`: makes, checks and converts demonstrations. One file a subcommand.

mod check;
mod cold_start;
mod contamination;
mod convert;
mod dedupe;
mod split;
mod stats;

/// Make, check and convert data sets
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    ColdStart(Box<cold_start::Args>),
    Check(check::Args),
    Convert(convert::Args),
    Stats(stats::Args),
    Split(split::Args),
    Dedupe(dedupe::Args),
    Contamination(contamination::Args),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::ColdStart(args) => args.run(),
            Command::Check(args) => args.run(),
            Command::Convert(args) => args.run(),
            Command::Stats(args) => args.run(),
            Command::Split(args) => args.run(),
            Command::Dedupe(args) => args.run(),
            Command::Contamination(args) => args.run(),
        }
    }
}
