//! `data dedupe`: copies within a file.

use std::io::{Write, stdout};
use std::path::PathBuf;

use parallel_r1::cold_start::dedupe::{Basis, DedupeOptions, DedupeReport, dedupe};
use parallel_r1::cold_start::write_without;
use parallel_r1::data::hub::Kind;

use super::super::generate::print_json;
use crate::hub;

/// Find copies within a file, exact and near
///
/// The first row of a kind stays. Near copies have the same numbers and, by an estimate from MinHash, this share of their
/// runs of three words in common.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 data dedupe rows.jsonl\n  \
    parallel-r1 data dedupe rows.jsonl --by problem --out unique.jsonl")]
pub(super) struct Args {
    /// A .jsonl or .parquet file, or `org/name` or `org/name/FILE` on the Hugging Face Hub
    #[arg(value_name = "FILE")]
    file: String,
    /// What makes two rows the same
    #[arg(long, value_enum, default_value_t = By::Both)]
    by: By,
    /// The least share of common runs; above 1 only exact copies count
    #[arg(long, value_name = "S", default_value_t = DedupeOptions::default().threshold)]
    threshold: f64,
    /// Write the rows that stay
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The field of the responses [default: the first of response, output, solution that is there]
    #[arg(long, value_name = "NAME")]
    response_field: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum By {
    /// The problem
    Problem,
    /// The response
    Response,
    /// Problem and response
    Both,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let basis = match self.by {
            By::Problem => Basis::Problem,
            By::Response => Basis::Response,
            By::Both => Basis::Both,
        };
        let file = hub::resolve(Kind::DataSet, &self.file)?;
        let options = DedupeOptions { basis, threshold: self.threshold };
        let report = dedupe(&file, self.response_field.as_deref(), options)?;
        if let Some(out) = &self.out {
            write_without(&file, out, &report.dropped)?;
            eprintln!("{}: {} of {} rows", out.display(), report.kept, report.rows);
        }
        if self.json { print_json(&report) } else { print(&report) }
    }
}

fn print(report: &DedupeReport) -> anyhow::Result<()> {
    let mut text = format!(
        "rows          {}\nexact copies  {}\nnear copies   {}\nstay          {}\n",
        report.rows, report.exact, report.near, report.kept
    );
    for copy in &report.examples {
        let how = copy.similarity.map_or("exact".to_owned(), |similarity| format!("about {similarity:.2}"));
        text += &format!("  {} is a copy of row {} ({how})\n", copy.id, copy.of_row);
    }
    Ok(stdout().write_all(text.as_bytes())?)
}
