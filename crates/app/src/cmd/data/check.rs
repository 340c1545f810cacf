//! `data check`: what is wrong with demonstrations, and where.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::PathBuf;

use parallel_r1::cold_start::check::{CheckOptions, FaultKind, Report, check_file, clean_rows};
use parallel_r1::data::hub::Kind;
use parallel_r1::data::write_rows;

use super::super::generate::print_json;
use crate::hub;
use crate::table::percent;

/// Name every fault of a file of demonstrations
///
/// Looks at the tags, the final answer, paths that refer to each other or repeat each other, summaries, breaks, length and
/// language. Warnings are suspicions, counted apart.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 data check demonstrations.jsonl\n  \
    parallel-r1 data check demonstrations.parquet --json\n  \
    parallel-r1 data check raw.jsonl --out clean.jsonl")]
pub(super) struct Args {
    /// A .jsonl or .parquet file, or `org/name` or `org/name/FILE` on the Hugging Face Hub
    #[arg(value_name = "FILE")]
    file: String,
    /// The field of the responses [default: the first of response, output, solution that is there]
    #[arg(long, value_name = "NAME")]
    response_field: Option<String>,
    /// Write the rows without faults, repaired where a fault has only one reading
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// What is a fault, here and in `data cold-start`.
#[derive(clap::Args)]
#[command(next_help_heading = "Checks")]
pub(super) struct Limits {
    /// The fewest paths of a block
    #[arg(long, value_name = "N", default_value_t = CheckOptions::default().min_paths)]
    min_paths: usize,
    /// How deep blocks may nest; 1 allows none inside a path
    #[arg(long, value_name = "N", default_value_t = CheckOptions::default().max_nesting)]
    max_nesting: usize,
    /// The most characters of a response
    #[arg(long, value_name = "N", default_value_t = CheckOptions::default().max_chars)]
    max_chars: usize,
    /// The BLEU from which two paths of a block count as one told twice
    #[arg(long, value_name = "B", default_value_t = CheckOptions::default().duplicate_bleu)]
    duplicate_bleu: f64,
    /// Allow responses in another language than their problem's
    #[arg(long)]
    any_language: bool,
}

impl Limits {
    pub(super) fn options(&self) -> CheckOptions {
        CheckOptions {
            min_paths: self.min_paths,
            max_nesting: self.max_nesting,
            max_chars: self.max_chars,
            duplicate_bleu: self.duplicate_bleu,
            same_language: !self.any_language,
            ..CheckOptions::default()
        }
    }
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let (file, options) = (hub::resolve(Kind::DataSet, &self.file)?, self.limits.options());
        let field = self.response_field.as_deref();
        let report = check_file(&file, field, &options)?;
        if let Some(out) = &self.out {
            let kept = write_rows(out, || clean_rows(&file, field, &options))?;
            eprintln!("{}: {kept} of {} rows", out.display(), report.rows);
        }
        if self.json { print_json(&report) } else { print(&report) }
    }
}

fn print(report: &Report) -> anyhow::Result<()> {
    let share = |count: usize| format!("{count}  ({})", percent(count as f64 / report.rows as f64));
    let counts = |counts: &BTreeMap<usize, usize>| {
        counts.iter().map(|(value, count)| format!("{value}: {count}")).collect::<Vec<_>>().join("   ")
    };
    let mut text = format!(
        "rows                 {}\nwith a block         {}\nwell formed          {}\nright answer         {} of {} \
         with a readable gold answer\nblocks per response  {}\npaths per block      {}\n",
        report.rows,
        share(report.with_block),
        share(report.well_formed),
        report.correct,
        report.judged,
        counts(&report.blocks_per_response),
        counts(&report.paths_per_block),
    );
    for (title, rows) in [("faults", &report.faults), ("warnings", &report.warnings)] {
        text += &format!("\n{title}{}\n", if rows.is_empty() { ": none" } else { "" });
        for (kind, ids) in rows {
            text += &kind_lines(*kind, ids.len(), report);
        }
    }
    Ok(stdout().write_all(text.as_bytes())?)
}

fn kind_lines(kind: FaultKind, count: usize, report: &Report) -> String {
    let mut lines = format!("  {kind}: {count} {}\n", if count == 1 { "row" } else { "rows" });
    for (id, fault) in report.examples.get(&kind).into_iter().flatten() {
        lines += &format!("    {id}, byte {}: {}\n", fault.at, fault.text);
    }
    lines
}
