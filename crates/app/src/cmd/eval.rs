//! `eval`: measures a model.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use parallel_r1::data::arithmetic::Arithmetic;
use parallel_r1::data::benchmarks::benchmark;
use parallel_r1::data::countdown::Countdown;
use parallel_r1::data::family::{Family, Source};
use parallel_r1::data::hub::Kind;
use parallel_r1::data::{Problem, Split, load_problems};
use parallel_r1::engine::{EngineOptions, SamplingParams};
use parallel_r1::eval::stats::Interval;
use parallel_r1::eval::{Evaluation, consolidate, evaluate};
use serde::Serialize;

use super::generate::print_json;
use crate::chat_options::ChatOptions;
use crate::failure::Failure;
use crate::hub::{self, ModelArgs};
use crate::progress::Progress;
use crate::sampling::{Defaults, SamplingArgs, positive};
use crate::table::percent;

/// The model's own distribution, as in training.
const DEFAULTS: Defaults = Defaults { temperature: 1.0, path_temperature: 1.0, top_p: 1.0 };

/// Problems of each generated tier, unless `--limit` says otherwise.
const GENERATED: usize = 100;

/// Measure a model on problems with known answers
///
/// Samples K responses to each problem and judges their answers. mean@K is the share of right responses, pass@K the share
/// of problems with at least one, maj@K the share of problems whose most frequent answer is right. `--sequential` forbids
/// parallel blocks, `--votes` lets N samples agree on each answer. docs/evaluation.md explains every number.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 eval --data countdown:3,4 --samples 4\n  \
    parallel-r1 eval --model org/name --data aime25 --samples 16 --max-tokens 3000 --json > parallel.json\n  \
    parallel-r1 eval --model org/name --data aime25 --samples 16 --max-tokens 3000 --sequential --json > sequential.json\n  \
    parallel-r1 compare sequential.json parallel.json\n  \
    parallel-r1 eval --model MODEL.gguf --data gsm8k_test.jsonl --limit 20 --json")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// A .jsonl or .parquet file, `org/name` or `org/name/FILE` on the Hugging Face Hub, a benchmark that is there (gsm8k,
    /// math500, amc23, aime24, aime25, mmlu), or `countdown:3,4` or `arithmetic:chain-2`: generated test problems of these
    /// tiers
    #[arg(long, value_name = "FILE")]
    data: String,
    /// Responses to each problem, K
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = positive())]
    samples: usize,
    /// Only the first N problems of the file, or N of each generated tier [default: all, or 100 of each tier]
    #[arg(long, value_name = "N", value_parser = positive())]
    limit: Option<usize>,
    /// Answer by consolidation: each answer is the winner of a vote among up to N samples
    ///
    /// Equal answers vote together. A vote ends once the remaining samples can't change it. An answer then counts the
    /// tokens of all its samples, and the critical path of the longest.
    #[arg(long, value_name = "N", value_parser = positive())]
    votes: Option<usize>,
    /// Print one JSON object instead of a table, with each problem's result, as `parallel-r1 compare` takes it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    chat: ChatOptions,
    #[command(flatten)]
    sampling: SamplingArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let problems = self.problems()?;
        let mut model = self.model.open()?;
        self.chat.apply(&mut model)?;
        let params = self.sampling.params(&model, &self.model.model, DEFAULTS)?;
        let mut progress = Progress::new();
        let (what, options) =
            (if self.votes.is_some() { "answers" } else { "responses" }, EngineOptions::default());
        let mut count = |done, total| progress.count(what, done, total, "");
        let samples = self.samples;
        let evaluation = match self.votes {
            None => evaluate(&model, &problems, samples, &params, options, &mut count)?,
            Some(votes) => consolidate(&model, &problems, samples, votes, &params, options, &mut count)?,
        };
        progress.end();
        if evaluation.problems == 0 {
            return Err(Failure::error(
                format!("{}: no row has a gold answer that can be read", self.data),
                "look at the rows' `answer`: a number, a fraction or an expression is expected",
            ));
        }
        if evaluation.skipped > 0 {
            eprintln!("note: {} problems left out: their gold answers can't be read", evaluation.skipped);
        }
        match self.json {
            true => print_json(&Results {
                model: &self.model.model,
                data: &self.data,
                sampling: &params,
                evaluation,
            }),
            false => print(&evaluation),
        }
    }

    fn problems(&self) -> anyhow::Result<Vec<Problem>> {
        match Generated::parse(&self.data) {
            Some(generated) => {
                generated?.problems(Split::Test, self.sampling.seed(), self.limit.unwrap_or(GENERATED))
            }
            None => {
                let mut rows = load_problems(&rows(&self.data)?)?;
                rows.truncate(self.limit.unwrap_or(usize::MAX));
                Ok(rows)
            }
        }
    }
}

/// The file of a name, be it that of a benchmark, of a data set on the Hub, or the file's own.
fn rows(data: &str) -> anyhow::Result<PathBuf> {
    let named = benchmark(data).filter(|_| !Path::new(data).exists());
    Ok(hub::resolve(Kind::DataSet, named.map_or(data, |known| known.hub))?)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Results<'a> {
    model: &'a str,
    data: &'a str,
    sampling: &'a SamplingParams,
    #[serde(flatten)]
    evaluation: Evaluation,
}

/// Tiers of a family of generated problems.
pub(super) enum Generated {
    Countdown(Source<Countdown>),
    Arithmetic(Source<Arithmetic>),
}

impl Generated {
    /// Reads `countdown`, `countdown:3,4`, or likewise `arithmetic`; `None` of anything else.
    pub(super) fn parse(data: &str) -> Option<anyhow::Result<Self>> {
        let (family, names) = data.split_once(':').unwrap_or((data, ""));
        match family {
            "countdown" => Some(tiers(data, names).map(Self::Countdown)),
            "arithmetic" => Some(tiers(data, names).map(Self::Arithmetic)),
            _ => None,
        }
    }

    /// The first `count` problems of each tier.
    pub(super) fn problems(&self, split: Split, seed: u64, count: usize) -> anyhow::Result<Vec<Problem>> {
        match self {
            Self::Countdown(source) => each_tier(source, split, seed, count),
            Self::Arithmetic(source) => each_tier(source, split, seed, count),
        }
    }
}

fn each_tier<F: Family>(
    source: &Source<F>,
    split: Split,
    seed: u64,
    count: usize,
) -> anyhow::Result<Vec<Problem>> {
    let tiers = source.each().map(|tier| tier.problems(split, seed, count));
    Ok(tiers.collect::<Result<Vec<_>, _>>()?.concat())
}

/// The tiers of these names, all of the family if there is none.
fn tiers<F: Family>(data: &str, names: &str) -> anyhow::Result<Source<F>> {
    if names.is_empty() {
        return Ok(Source { tiers: F::TIERS.to_vec(), weights: None });
    }
    let tier = |name: &str| {
        let found = F::TIERS.iter().copied().find(|tier| tier.to_string() == name.trim());
        found.ok_or_else(|| {
            let known: Vec<String> = F::TIERS.iter().map(ToString::to_string).collect();
            Failure::misuse(
                format!("--data {data}: no tier {name:?}"),
                format!("the tiers are {}", known.join(", ")),
            )
        })
    };
    Ok(Source { tiers: names.split(',').map(tier).collect::<anyhow::Result<_>>()?, weights: None })
}

fn print(evaluation: &Evaluation) -> anyhow::Result<()> {
    let rows = [accuracies(evaluation), responses(evaluation), levels(evaluation)].concat();
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines: String = rows.into_iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect();
    Ok(stdout().write_all(lines.as_bytes())?)
}

/// A name with its value.
type Line = (String, String);

fn accuracies(evaluation: &Evaluation) -> Vec<Line> {
    let k = evaluation.samples;
    let mut rows = vec![
        ("problems".into(), evaluation.problems.to_string()),
        (format!("mean@{k}"), with_interval(evaluation.mean_at_k, evaluation.interval)),
        (format!("pass@{k}"), with_interval(evaluation.pass_at_k, evaluation.pass_interval)),
        (format!("maj@{k}"), with_interval(evaluation.maj_at_k, evaluation.maj_interval)),
    ];
    let between = |k: &&usize| **k > 1 && **k < evaluation.samples;
    for k in evaluation.pass_at.keys().filter(between) {
        let (pass, maj) = (evaluation.pass_at.get(k), evaluation.maj_at.get(k));
        rows.extend(pass.map(|rate| (format!("  pass@{k}"), percent(*rate))));
        rows.extend(maj.map(|rate| (format!("  maj@{k}"), percent(*rate))));
    }
    rows
}

fn responses(evaluation: &Evaluation) -> Vec<Line> {
    let means = &evaluation.means;
    let mut rows: Vec<Line> = Vec::new();
    if let Some(votes) = &evaluation.consolidation {
        rows.push(("samples a vote".into(), format!("{:.1} of {}", votes.finished, votes.votes)));
        rows.push(("agreement".into(), percent(votes.agreement)));
        rows.push(("by confidence".into(), percent(votes.by_confidence)));
        rows.push(("tokens an answer".into(), format!("{:.1}", votes.spent_tokens)));
    }
    let number = |name: &str, value: f64, unit: &str| (name.to_owned(), format!("{value:.1}{unit}"));
    let share = |name: &str, value: f64| (name.to_owned(), percent(value));
    rows.push(share("parallel ratio", means.parallel_ratio));
    rows.push(share("well formed", means.well_formed));
    rows.push(share("truncated", means.truncated));
    rows.push(number("tokens", means.total_tokens, ""));
    rows.push(share("  forced", means.forced));
    rows.push(number("critical path", means.critical_path_tokens, " tokens"));
    if means.blocks > 0.0 {
        rows.push(number("blocks", means.blocks, ""));
        rows.extend(means.paths_per_block.map(|paths| number("  paths", paths, "")));
        rows.push(number("  cut paths", means.cut_paths, " a response"));
        rows.extend(means.block_position.map(|at| share("  position", at)));
        rows.extend(means.path_diversity.map(|diversity| share("  path diversity", diversity)));
        rows.extend(means.first_words_differ.map(|differ| share("  first words differ", differ)));
    }
    rows.extend(means.some_path_right.map(|right| share("some path right", right)));
    rows.extend(means.answer_right_given_path.map(|right| share("  then answer right", right)));
    rows
}

fn levels(evaluation: &Evaluation) -> Vec<Line> {
    let k = evaluation.samples;
    evaluation
        .by_level
        .iter()
        .map(|(level, rate)| (format!("mean@{k}, level {level}"), percent(*rate)))
        .collect()
}

fn with_interval(rate: f64, interval: Option<Interval>) -> String {
    match interval {
        Some(Interval { low, high }) => {
            format!("{}  (95 %: {:.1} to {:.1})", percent(rate), 100.0 * low, 100.0 * high)
        }
        None => percent(rate),
    }
}

#[cfg(test)]
mod tests {
    use parallel_r1::data::benchmarks::BENCHMARKS;

    use super::*;

    #[test]
    fn the_help_names_every_benchmark() {
        let mut command = <Args as clap::Args>::augment_args(clap::Command::new("eval"));
        let help = command.render_long_help().to_string();
        assert!(BENCHMARKS.iter().all(|known| help.contains(known.name)), "{help}");
    }
}
