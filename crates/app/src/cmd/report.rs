//! `report`: runs as a page for people.

use std::io::{Write, stdout};
use std::path::PathBuf;

use crate::failure::Failure;
use crate::report::{Run, write};

/// Write a report of one or more runs: one HTML file that needs nothing else
///
/// Verdicts first, then results by tier, the curriculum, curves of training, and sampled responses drawn as threads.
/// Several runs are compared. A run that still goes on is reported as far as it has come.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 report runs/default-1\n  \
    parallel-r1 report runs/default-1 runs/default-2 --out both.html")]
pub(crate) struct Args {
    /// Run folders
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The file to write [default: report.html in the folder of a single run, else here]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runs = self.runs.iter().map(|folder| Run::open(folder)).collect::<anyhow::Result<Vec<Run>>>()?;
        let out = match (self.out, &self.runs[..]) {
            (Some(out), _) => out,
            (None, [single]) => single.join("report.html"),
            (None, _) => "report.html".into(),
        };
        if out.is_dir() {
            let message = format!("--out {}: expected a file, got a folder", out.display());
            return Err(Failure::misuse(message, "name the file, such as `report.html`"));
        }
        write(&runs, &out)?;
        Ok(writeln!(stdout(), "{}", out.display())?)
    }
}
