//! `eval`: measures a model.

use std::io::{Write, stdout};

use parallel_r1::data::countdown::{Split, Tier, problems};
use parallel_r1::data::hub::Kind;
use parallel_r1::data::{Problem, load_problems};
use parallel_r1::engine::EngineOptions;
use parallel_r1::eval::{Evaluation, evaluate};

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
/// of problems with at least one, maj@K the share of problems whose most frequent answer is right.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 eval --data countdown:3,4 --samples 4\n  \
    parallel-r1 eval --model MODEL.gguf --data gsm8k_test.jsonl --limit 20 --json")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// A .jsonl or .parquet file, `org/name` or `org/name/FILE` on the Hugging Face Hub, or `countdown:3,4`: generated test
    /// problems of these tiers
    #[arg(long, value_name = "FILE")]
    data: String,
    /// Responses to each problem, K
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = positive())]
    samples: usize,
    /// Only the first N problems of the file, or N of each generated tier [default: all, or 100 of each tier]
    #[arg(long, value_name = "N", value_parser = positive())]
    limit: Option<usize>,
    /// Print one JSON object instead of a table
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
        let mut count = |done, total| progress.count("responses", done, total, "");
        let options = EngineOptions::default();
        let evaluation = evaluate(&model, &problems, self.samples, &params, options, &mut count)?;
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
        if self.json { print_json(&evaluation) } else { print(&evaluation) }
    }

    fn problems(&self) -> anyhow::Result<Vec<Problem>> {
        let Some(tiers) = generated(&self.data) else {
            let mut rows = load_problems(&hub::resolve(Kind::DataSet, &self.data)?)?;
            rows.truncate(self.limit.unwrap_or(usize::MAX));
            return Ok(rows);
        };
        let mut all = Vec::new();
        for tier in tiers? {
            all.extend(problems(tier, Split::Test, self.sampling.seed(), self.limit.unwrap_or(GENERATED))?);
        }
        Ok(all)
    }
}

/// The tiers of `countdown` or `countdown:3,4`; `None` of anything else.
pub(super) fn generated(data: &str) -> Option<anyhow::Result<Vec<Tier>>> {
    let (kind, names) = data.split_once(':').unwrap_or((data, ""));
    if kind != "countdown" {
        return None;
    }
    if names.is_empty() {
        return Some(Ok(Tier::ALL.to_vec()));
    }
    let known = || Tier::ALL.map(Tier::name).join(", ");
    let tier = |name: &str| {
        let found = Tier::ALL.into_iter().find(|tier| tier.name() == name.trim());
        found.ok_or_else(|| {
            Failure::misuse(format!("--data {data}: no tier {name:?}"), format!("the tiers are {}", known()))
        })
    };
    Some(names.split(',').map(tier).collect())
}

fn print(evaluation: &Evaluation) -> anyhow::Result<()> {
    let k = evaluation.samples;
    let mean = match evaluation.interval {
        Some(range) => {
            let (low, high) = (100.0 * range.low, 100.0 * range.high);
            format!("{}  (95 %: {low:.1} to {high:.1})", percent(evaluation.mean_at_k))
        }
        None => percent(evaluation.mean_at_k),
    };
    let mut rows = vec![
        ("problems".into(), evaluation.problems.to_string()),
        (format!("mean@{k}"), mean),
        (format!("pass@{k}"), percent(evaluation.pass_at_k)),
        (format!("maj@{k}"), percent(evaluation.maj_at_k)),
        ("parallel ratio".into(), percent(evaluation.parallel_ratio)),
        ("well formed".into(), percent(evaluation.well_formed)),
        ("truncated".into(), percent(evaluation.truncated)),
        ("tokens".into(), format!("{:.1}", evaluation.total_tokens)),
        ("critical path".into(), format!("{:.1} tokens", evaluation.critical_path_tokens)),
    ];
    let known = |name: &str, rate: Option<f64>| rate.map(|rate| (name.to_owned(), percent(rate)));
    rows.extend(known("some path right", evaluation.some_path_right));
    rows.extend(known("  then answer right", evaluation.answer_right_given_path));
    for (level, rate) in &evaluation.by_level {
        rows.push((format!("mean@{k}, level {level}"), percent(*rate)));
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines: String = rows.into_iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect();
    Ok(stdout().write_all(lines.as_bytes())?)
}
