//! `data contamination`: rows that are in an evaluation set.

use std::io::{Write, stdout};
use std::path::PathBuf;

use parallel_r1::cold_start::contamination::{
    ContaminationOptions, ContaminationReport, Index, MatchKind, contamination,
};
use parallel_r1::cold_start::write_without;
use parallel_r1::data::hub::Kind;

use super::super::generate::print_json;
use crate::hub;
use crate::sampling::positive;

/// Matches that are shown without `--json`.
const SHOWN: usize = 10;

/// Find rows whose problem is in an evaluation set
///
/// Exact matches have the same letters and digits; near ones share runs of words with one evaluation problem.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 data contamination train.jsonl --against math500.jsonl --against aime24.jsonl\n  \
    parallel-r1 data contamination train.jsonl --against math500.jsonl --out clean.jsonl")]
pub(super) struct Args {
    /// A .jsonl or .parquet file, or `org/name` or `org/name/FILE` on the Hugging Face Hub
    #[arg(value_name = "FILE")]
    file: String,
    /// A set that a model will be measured on; may be given several times
    #[arg(long, value_name = "FILE", required = true)]
    against: Vec<String>,
    /// Words of a run
    #[arg(long, value_name = "N", default_value_t = ContaminationOptions::default().ngram, value_parser = positive())]
    ngram: usize,
    /// The least share of common runs; above 1 only exact matches count
    #[arg(long, value_name = "S", default_value_t = ContaminationOptions::default().threshold)]
    threshold: f64,
    /// Write the rows without a match
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let options = ContaminationOptions { ngram: self.ngram, threshold: self.threshold };
        let mut index = Index::new(options);
        for set in &self.against {
            index.add_file(&hub::resolve(Kind::DataSet, set)?)?;
        }
        let file = hub::resolve(Kind::DataSet, &self.file)?;
        let report = contamination(&file, &index)?;
        if let Some(out) = &self.out {
            let kept = write_without(&file, out, &report.dropped)?;
            eprintln!("{}: {kept} of {} rows", out.display(), report.rows);
        }
        if self.json { print_json(&report) } else { print(&report) }
    }
}

fn print(report: &ContaminationReport) -> anyhow::Result<()> {
    let mut text = format!(
        "rows           {}\nexact matches  {}\nnear matches   {}\n",
        report.rows, report.exact, report.near
    );
    for found in report.matches.iter().take(SHOWN) {
        let how = match found.kind {
            MatchKind::Exact => "exact".to_owned(),
            MatchKind::Near => format!("{:.2}", found.overlap),
        };
        text += &format!("  {} is {} ({how})\n", found.id, found.with);
    }
    if report.matches.len() > SHOWN {
        text += &format!("  … {} more; --json lists all\n", report.matches.len() - SHOWN);
    }
    Ok(stdout().write_all(text.as_bytes())?)
}
