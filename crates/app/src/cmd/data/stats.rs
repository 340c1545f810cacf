//! `data stats`: what demonstrations are made of.

use std::io::{Write, stdout};

use parallel_r1::cold_start::stats::{Distribution, Stats, rough_tokens, stats};
use parallel_r1::data::hub::Kind;

use super::super::generate::print_json;
use crate::hub;
use crate::table::{aligned, percent};

/// Bars of a histogram, and characters of the longest.
const BARS: usize = 10;
const LONGEST: usize = 40;

/// Count blocks, paths and tokens of a file of demonstrations
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 data stats demonstrations.jsonl\n  \
    parallel-r1 data stats demonstrations.jsonl --model org/name --json")]
pub(super) struct Args {
    /// A .jsonl or .parquet file, or `org/name` or `org/name/FILE` on the Hugging Face Hub
    #[arg(value_name = "FILE")]
    file: String,
    /// Count the tokens of this model's tokenizer [default: words, numbers and signs]
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// The field of the responses [default: the first of response, output, solution that is there]
    #[arg(long, value_name = "NAME")]
    response_field: Option<String>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let file = hub::resolve(Kind::DataSet, &self.file)?;
        let field = self.response_field.as_deref();
        let stats = match &self.model {
            None => stats(&file, field, rough_tokens)?,
            Some(model) => {
                let tokenizer = hub::open(model)?.tokenizer;
                // A text that this tokenizer has no tokens for counts roughly.
                let tokens = |text: &str| {
                    tokenizer.encode_response(text).map_or_else(|_| rough_tokens(text), |ids| ids.len())
                };
                stats(&file, field, tokens)?
            }
        };
        if self.json { print_json(&stats) } else { print(&stats, self.model.as_deref()) }
    }
}

fn print(stats: &Stats, model: Option<&str>) -> anyhow::Result<()> {
    let unit = model.map_or("words, numbers and signs".to_owned(), |model| format!("tokens of {model}"));
    let mut text = format!(
        "rows          {}\nwith a block  {}  ({})\n\nlengths in {unit}\n",
        stats.rows,
        stats.with_block,
        percent(stats.with_block as f64 / stats.rows as f64)
    );
    text += &lengths(stats);
    text += "\nblocks per response\n";
    text += &bars(stats.blocks_per_response.iter().map(|(value, count)| (value.to_string(), *count)));
    text += "\npaths per block\n";
    text += &bars(stats.paths_per_block.iter().map(|(value, count)| (value.to_string(), *count)));
    for (title, permille) in [
        ("share of a response inside its blocks", &stats.inside_permille),
        ("where the first block begins, as a share of the response", &stats.first_block_permille),
    ] {
        text += &format!("\n{title}: {} on average\n", percent(permille.mean() / 1000.0));
        let counts = permille.histogram(BARS, 1000 / BARS).into_iter().enumerate();
        text += &bars(counts.map(|(bar, count)| (format!("{} %", 100 / BARS * bar), count)));
    }
    Ok(stdout().write_all(text.as_bytes())?)
}

fn lengths(stats: &Stats) -> String {
    let head = ["", "mean", "p10", "median", "p90", "max", "in all"].map(str::to_owned).to_vec();
    let row = |(name, of): (&str, &Distribution)| {
        let at = |share| of.quantile(share).to_string();
        vec![
            name.into(),
            format!("{:.1}", of.mean()),
            at(0.1),
            at(0.5),
            at(0.9),
            at(1.0),
            of.sum().to_string(),
        ]
    };
    let parts = [
        ("response", &stats.tokens),
        ("outside blocks", &stats.trunk_tokens),
        ("path", &stats.path_tokens),
        ("summary", &stats.summary_tokens),
        ("critical path", &stats.critical_tokens),
    ];
    aligned(&[head].into_iter().chain(parts.into_iter().map(row)).collect::<Vec<_>>())
}

/// A histogram: a line for each count, its bar in proportion to the largest.
fn bars(counts: impl Iterator<Item = (String, usize)>) -> String {
    let counts: Vec<(String, usize)> = counts.collect();
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let width = counts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, count): &(String, usize)| {
        let bar = "█".repeat((count * LONGEST).div_ceil(most));
        format!("  {name:>width$}  {bar} {count}\n")
    };
    counts.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        let text = bars([("1".to_owned(), 40), ("10".to_owned(), 1), ("11".to_owned(), 0)].into_iter());
        assert_eq!(text, format!("   1  {} 40\n  10  █ 1\n  11   0\n", "█".repeat(40)));
        assert_eq!(bars(std::iter::empty()), "");
    }
}
