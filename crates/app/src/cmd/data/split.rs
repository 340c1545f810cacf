//! `data split`: parts of a file, each problem in one of them.

use std::io::{Write, stdout};
use std::str::FromStr;

use parallel_r1::cold_start::split::{Part, split};
use parallel_r1::data::hub::Kind;

use crate::hub;

/// Split a file so that all rows of a problem are in one part
///
/// The part follows from the problem's text and the seed, so a row stays where it is when others come or go.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 data split rows.jsonl --into train.jsonl=0.9 --into test.jsonl=0.1")]
pub(super) struct Args {
    /// A .jsonl or .parquet file, or `org/name` or `org/name/FILE` on the Hugging Face Hub
    #[arg(value_name = "FILE")]
    file: String,
    /// A part: a file to write and its share of the problems; given at least twice
    #[arg(long, value_name = "FILE=SHARE", required = true)]
    into: Vec<Into>,
    /// Another seed splits otherwise
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

#[derive(Clone)]
struct Into(Part);

impl FromStr for Into {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, share) = text.rsplit_once('=').ok_or("expected FILE=SHARE, as in train.jsonl=0.9")?;
        let share: f64 = share.parse().map_err(|_| format!("expected a number after `=`, got {share:?}"))?;
        if !(share.is_finite() && share > 0.0) {
            return Err(format!("expected a share above 0, got {share}"));
        }
        Ok(Self(Part { path: path.into(), share }))
    }
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let parts: Vec<Part> = self.into.into_iter().map(|Into(part)| part).collect();
        let counts = split(&hub::resolve(Kind::DataSet, &self.file)?, &parts, self.seed)?;
        for (part, count) in parts.iter().zip(counts) {
            writeln!(stdout(), "{}: {count} rows", part.path.display())?;
        }
        Ok(())
    }
}
