//! `data cold-start`: problems and a teacher to demonstrations.

mod teacher;

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{ArgGroup, ValueEnum};
use parallel_r1::cold_start::budget::{self, Budget, Price};
use parallel_r1::cold_start::check::CheckOptions;
use parallel_r1::cold_start::contamination::{ContaminationOptions, Index};
use parallel_r1::cold_start::generate::{
    Generation, Journal, Problems, Report, Settings, Shape, Tally, Watch,
};
use parallel_r1::cold_start::prompts::{BUILT_IN, Template};
use parallel_r1::data::Split;
use parallel_r1::data::hub::Kind;
use parallel_r1::data::{Problem, load_problems};

use super::super::eval::Generated;
use super::super::generate::print_json;
use super::check::Limits;
use crate::failure::Failure;
use crate::hub;
use crate::interrupt::Interrupt;
use crate::lock::Lock;
use crate::progress::Progress;
use crate::sampling::positive;

/// Problems of each generated tier, unless `--limit` says otherwise.
const GENERATED: usize = 100;
/// Answers to each problem where several become one demonstration.
const TO_ASSEMBLE: usize = 8;

/// Make demonstrations of parallel thinking with a teacher
///
/// The teacher is a model behind an OpenAI-compatible endpoint, or one on this machine, one's own checkpoint too. Its
/// answers are written to DIR/journal.jsonl as they come. Those that pass all checks become DIR/data.jsonl, which `train`
/// reads; the others, with what is wrong with them and where, DIR/rejected.jsonl; the account of both is DIR/report.json.
/// Ctrl-C stops when the answers under way have come. The same command goes on where it stopped and pays for no answer
/// twice.
#[derive(clap::Args)]
#[command(group = ArgGroup::new("who").required(true).args(["endpoint", "model", "show_prompt"]))]
#[command(after_help = "Examples:\n  \
    parallel-r1 data cold-start gsm8k_train.jsonl --endpoint http://127.0.0.1:8000/v1 --teacher Qwen3-8B --out cold\n  \
    parallel-r1 data cold-start math.jsonl --endpoint https://HOST/v1 --teacher NAME --shape assembled --samples 8 \\\n      \
    --summary-prompt summary --prices prices.toml --max-cost 5 --out cold\n  \
    parallel-r1 data cold-start countdown:3 --model embedded --shape assembled --out cold\n  \
    parallel-r1 data cold-start --prompt strict --show-prompt > my-prompt.md")]
pub(crate) struct Args {
    /// A .jsonl or .parquet file, `org/name/FILE` on the Hugging Face Hub, or `countdown:3,4` or
    /// `arithmetic:chain-2`: training tasks of these tiers
    #[arg(value_name = "PROBLEMS", required_unless_present = "show_prompt")]
    problems: Option<String>,
    /// The folder for journal, rows and report
    #[arg(long, value_name = "DIR", required_unless_present = "show_prompt")]
    out: Option<PathBuf>,
    /// Only the first N problems of the file, or N of each generated tier [default: all, or 100 of each tier]
    #[arg(long, value_name = "N", value_parser = positive())]
    limit: Option<usize>,
    /// Leave out problems that are in this evaluation set, too: the same text, or many of the same runs of words; may be
    /// given several times
    #[arg(long, value_name = "FILE")]
    against: Vec<String>,
    /// Print the report as JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    teacher: teacher::Args,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    budget: BudgetArgs,
}

/// What demonstrations shall look like.
#[derive(clap::Args)]
#[command(next_help_heading = "Demonstrations")]
struct Form {
    /// What the teacher is asked: parallel, strict, plain, bare (the problem alone), or a file [default: parallel, or
    /// plain for assembled ones; bare for --model]
    #[arg(long, value_name = "NAME|FILE")]
    prompt: Option<String>,
    /// Print the prompt's template, to be edited, and stop
    #[arg(long)]
    show_prompt: bool,
    /// Answers to each problem [default: 1, or 8 for assembled demonstrations]
    #[arg(long, value_name = "K", value_parser = positive())]
    samples: Option<usize>,
    /// What answers have to be, and what becomes of them [default: parallel, or any with the prompts plain and bare]
    #[arg(long, value_enum)]
    shape: Option<ShapeArg>,
    /// Keep at most N demonstrations of a problem, those that differ most [default: all that differ]
    #[arg(long, value_name = "N", value_parser = positive())]
    keep: Option<usize>,
    /// Leave out a demonstration whose share of three-word runs in common with an earlier one is at least S; above 1 only
    /// exact copies
    #[arg(long, value_name = "S", default_value_t = 0.8)]
    similarity: f64,
    /// Paths of an assembled demonstration, at most
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = positive())]
    paths: usize,
    /// The form of an assembled demonstration: a template
    #[arg(long, value_name = "FILE", default_value = "assembly")]
    assembly: String,
    /// Have the teacher write the summaries of assembled demonstrations, asked with this prompt (built in: summary)
    ///
    /// A summary that fails the checks is replaced by the assembly's own.
    #[arg(long, value_name = "NAME|FILE")]
    summary_prompt: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShapeArg {
    /// Answers with or without parallel blocks
    Any,
    /// Answers with at least one block
    Parallel,
    /// Separate solutions, of which those that differ most become the paths of one block
    Assembled,
}

impl From<ShapeArg> for Shape {
    fn from(shape: ShapeArg) -> Self {
        match shape {
            ShapeArg::Any => Shape::Any,
            ShapeArg::Parallel => Shape::Parallel,
            ShapeArg::Assembled => Shape::Assembled,
        }
    }
}

/// What may be spent, on the whole run with all its parts.
#[derive(clap::Args)]
#[command(next_help_heading = "Budget of the whole run")]
struct BudgetArgs {
    /// Requests sent, failed ones too
    #[arg(long, value_name = "N")]
    max_requests: Option<u64>,
    /// Tokens of prompts and answers
    #[arg(long, value_name = "N")]
    max_total_tokens: Option<u64>,
    /// Money, in the currency of --prices
    #[arg(long, value_name = "X", requires = "prices")]
    max_cost: Option<f64>,
    /// A TOML file with the prices of a million tokens of models: `["NAME"]`, `input = 0.5`, `output = 2.0`
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.form.show_prompt {
            return self.form.show(self.prompt_name());
        }
        let (problems, out) =
            self.problems.as_deref().zip(self.out.as_deref()).context("clap requires both")?;
        let problems = self.problems(problems)?;
        let settings = self.form.settings(self.prompt_name(), self.shape(), self.limits.options())?;
        let price = match &self.budget.prices {
            Some(table) => Price::read(table, &self.teacher.name())?,
            None => Price::default(),
        };
        let report = self.teacher.with(settings.shape == Shape::Assembled, |teacher| {
            let generation = Generation { problems: &problems, teacher, settings: &settings };
            self.generate(&generation, price, out)
        })?;
        if self.json {
            print_json(&report)?
        } else {
            print(&report, out)?
        }
        match report.complete {
            true => Ok(()),
            false => Err(Failure::error(
                format!("{} answers are missing", report.unanswered),
                "the same command goes on; where the budget is spent, with more of it",
            )),
        }
    }

    fn generate(&self, generation: &Generation<'_>, price: Price, out: &Path) -> anyhow::Result<Report> {
        let _lock = Lock::take(out)?;
        let mut journal = Journal::open(&out.join("journal.jsonl"))?;
        let budget = Budget::new(self.budget.limits(), price, journal.spent());
        let interrupt = Interrupt::listen("stopping when the answers under way have come (again: at once)")?;
        let mut progress = Progress::new();
        let mut watch = Watch {
            stop: &|| interrupt.is_asked(),
            progress: &mut |tally| progress.count(label(tally), tally.done, tally.total, &message(tally)),
        };
        let asked = generation.ask(&mut journal, &budget, &mut watch);
        progress.end();
        if budget.exhausted() {
            eprintln!("note: the budget is spent");
        }
        // After an error too: what has come is there to be used.
        let report = generation.collect(&mut journal, out)?;
        asked?;
        Ok(report)
    }

    fn problems(&self, name: &str) -> anyhow::Result<Problems> {
        let mut problems = Problems::new(self.read(name)?)?;
        let mut index = Index::new(ContaminationOptions::default());
        for file in &self.against {
            index.add_file(&hub::resolve(Kind::DataSet, file)?)?;
        }
        problems.leave_out(|problem| index.find(&problem.id, &problem.problem).is_some());
        match problems.asked.is_empty() {
            false => Ok(problems),
            true => Err(Failure::error(
                "all problems are in the evaluation sets",
                "look at `--against`: `parallel-r1 data contamination` shows what matches what",
            )),
        }
    }

    fn read(&self, name: &str) -> anyhow::Result<Vec<Problem>> {
        let Some(generated) = Generated::parse(name) else {
            let mut rows = load_problems(&hub::resolve(Kind::DataSet, name)?)?;
            rows.truncate(self.limit.unwrap_or(usize::MAX));
            return Ok(rows);
        };
        generated?.problems(Split::Train, self.teacher.seed(), self.limit.unwrap_or(GENERATED))
    }

    fn prompt_name(&self) -> &str {
        let default = match (self.teacher.is_local(), self.form.shape) {
            (true, _) => "bare",
            (false, Some(ShapeArg::Assembled)) => "plain",
            (false, _) => "parallel",
        };
        self.form.prompt.as_deref().unwrap_or(default)
    }

    fn shape(&self) -> Shape {
        let default = match self.prompt_name() {
            "plain" | "bare" => ShapeArg::Any,
            _ => ShapeArg::Parallel,
        };
        self.form.shape.unwrap_or(default).into()
    }
}

impl Form {
    fn show(&self, name: &str) -> anyhow::Result<()> {
        let built_in = BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
        let read = || std::fs::read_to_string(name).with_context(|| format!("{name}: cannot be read"));
        Ok(stdout().write_all(built_in.map_or_else(read, Ok)?.as_bytes())?)
    }

    fn settings(&self, prompt: &str, shape: Shape, check: CheckOptions) -> anyhow::Result<Settings> {
        let default = if shape == Shape::Assembled { TO_ASSEMBLE } else { 1 };
        Ok(Settings {
            prompt: Template::find(prompt)?,
            samples: self.samples.unwrap_or(default),
            shape,
            keep: self.keep.unwrap_or(usize::MAX),
            paths: self.paths,
            assembly: Template::find(&self.assembly)?,
            summary: self.summary_prompt.as_deref().map(Template::find).transpose()?,
            check,
            duplicate_similarity: self.similarity,
        })
    }
}

impl BudgetArgs {
    fn limits(&self) -> budget::Limits {
        budget::Limits { requests: self.max_requests, tokens: self.max_total_tokens, cost: self.max_cost }
    }
}

fn label(tally: &Tally) -> &'static str {
    if tally.summaries { "summaries" } else { "answers" }
}

fn message(tally: &Tally) -> String {
    let mut parts = Vec::new();
    if tally.answered > 0 {
        let share = 100.0 * tally.accepted as f64 / tally.answered as f64;
        parts.push(format!("{share:.0} % accepted"));
    }
    if tally.failed > 0 {
        parts.push(format!("{} failed", tally.failed));
    }
    let spent = &tally.spent;
    parts.push(format!("{} tokens", spent.prompt_tokens + spent.completion_tokens));
    if spent.cost > 0.0 {
        parts.push(format!("cost {:.2}", spent.cost));
    }
    parts.join("  ")
}

fn print(report: &Report, out: &Path) -> anyhow::Result<()> {
    let spent = &report.spent;
    let mut rows = vec![
        ("problems".to_owned(), report.problems.to_string()),
        ("answers".into(), format!("{} of {}", report.accepted + report.rejected, report.wanted)),
        ("accepted".into(), report.accepted.to_string()),
    ];
    let some = |name: &str, count: usize| (count > 0).then(|| (name.to_owned(), count.to_string()));
    rows.extend(some("gold unreadable", report.unreadable.count));
    rows.extend(some("contaminated", report.contaminated.count));
    rows.extend(some("failed", report.failed.count));
    rows.extend(some("rejected", report.rejected));
    for (reason, count) in &report.reasons {
        rows.push((format!("  {reason}"), format!("{}  ({})", count.count, count.examples.join(", "))));
    }
    rows.extend(some("too few solutions", report.too_few_solutions.count));
    rows.extend(some("assembled, rejected", report.assembled_rejected.count));
    rows.extend(some("summaries by teacher", report.summaries_by_teacher));
    rows.extend(some("not kept", report.not_kept));
    rows.extend(some("duplicates", report.duplicates.count));
    rows.extend(report.repairs.iter().map(|(kind, count)| (format!("repaired {kind}"), count.to_string())));
    rows.push(("rows".into(), format!("{}  {}", report.rows, out.join("data.jsonl").display())));
    rows.push(("requests".into(), spent.requests.to_string()));
    rows.push(("tokens".into(), format!("{} + {}", spent.prompt_tokens, spent.completion_tokens)));
    if spent.cost > 0.0 {
        rows.push(("cost".into(), format!("{:.4}", spent.cost)));
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines: String = rows.into_iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect();
    Ok(stdout().write_all(lines.as_bytes())?)
}
