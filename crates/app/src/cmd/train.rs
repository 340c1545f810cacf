//! `train`: runs a recipe.

mod dry_run;

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context;
use parallel_r1::train::TrainError;
use parallel_r1::train::checkpoint::RunFolder;
use parallel_r1::train::curriculum::{self, Summary};
use parallel_r1::train::recipe::Recipe;

use super::DEVICE;
use super::generate::print_json;
use crate::failure::Failure;
use crate::hub;
use crate::interrupt::Interrupt;
use crate::lock::Lock;
use crate::recipes::{DEFAULT, Source};
use crate::report::{self, Dashboard, Run as Report};
use crate::table::aligned;
use crate::watch::Watch;

/// Train a model by a recipe
///
/// Without arguments: the whole curriculum on the embedded model, compared with a sequential model trained on about as many tokens.
/// The run folder holds the resolved recipe, metrics.jsonl, TensorBoard events, sampled traces, summary.json, report.html
/// and, in checkpoints/ARM/step-N, models that `generate` and `eval` take. Ctrl-C ends the run at the next step with a checkpoint.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 train\n  \
    parallel-r1 train --set seed=2 --set arms.0.stages.0.sft.steps=100 --out runs/two\n  \
    parallel-r1 train --resume --out runs/two\n  \
    parallel-r1 train recipes/gsm8k/smollm2.toml\n  \
    parallel-r1 train recipes/paper/seen.toml --dry-run")]
pub(crate) struct Args {
    /// A TOML file, or a built-in recipe: default, countdown, countdown/smoke, countdown/base [default: default]
    recipe: Option<String>,
    /// Change a key of the recipe; may be given several times. Lists are counted from 0
    #[arg(long, value_name = "a.b=c")]
    set: Vec<String>,
    /// The run folder [default: runs/RECIPE-N, with the next free N]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the run in the folder (without --out: the newest run of the recipe) from its newest checkpoint
    ///
    /// Without RECIPE, the run's own recipe is used. Where there is no checkpoint yet, the run starts; a finished run is
    /// left as it is.
    #[arg(long)]
    resume: bool,
    /// Serve the run's report on http://127.0.0.1:PORT/ while it goes on [default port: 8642, or any if that is taken]
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true)]
    dashboard: Option<Option<u16>>,
    /// Print the summary as JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Print the recipe as it would run, and stop
    #[arg(long)]
    show: bool,
    /// Check the recipe, print its stages with the steps, tokens, memory and time that they take, and stop
    #[arg(long)]
    dry_run: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let default = Source::find(self.recipe.as_deref().unwrap_or(DEFAULT))?;
        let runs = Runs { name: default.stem.clone() };
        let newest = || runs.newest().filter(|_| self.resume);
        let out = self.out.clone().or_else(newest);
        let kept = out.as_deref().filter(|_| self.resume).map(|out| out.join("recipe.toml"));
        let kept = kept.filter(|file| file.is_file());
        let source = match &kept {
            Some(file) if self.recipe.is_none() => Source::read(file)?,
            _ => default,
        };
        let recipe = Recipe::parse(&source.name, &source.text, &self.set, &source.folder)?;
        let text = toml::to_string(&recipe)?;
        if self.show {
            return Ok(write!(stdout(), "{text}")?);
        }
        if self.dry_run {
            return dry_run::dry_run(&source.name, &recipe, self.json);
        }
        if let Some(file) = kept.filter(|file| std::fs::read_to_string(file).is_ok_and(|old| old != text)) {
            eprintln!(
                "note: the recipe is not the one in {}; the run goes on with the new one",
                file.display()
            );
        }
        let out = out.map_or_else(|| runs.make(), Ok)?;
        let summary = self.train(&recipe, &out)?;
        if self.json { print_json(&summary) } else { print(&summary, &out) }
    }

    fn train(&self, recipe: &Recipe, out: &Path) -> anyhow::Result<Summary> {
        let _lock = Lock::take(out)?;
        let finished = out.join("summary.json");
        if self.resume && finished.is_file() {
            eprintln!("{}: this run is finished", out.display());
            let text = std::fs::read_to_string(&finished)?;
            return serde_json::from_str(&text).with_context(|| finished.display().to_string());
        }
        // Before the run folder has anything in it; the recipe in it keeps the names.
        let local = recipe.localised(hub::resolve)?;
        local.check_model()?;
        let run = RunFolder::open(out, recipe, self.resume)?;
        eprintln!("run folder {}", out.display());
        if let Some(port) = self.dashboard {
            eprintln!("dashboard  {}", Dashboard::start(out, port)?.url());
        }
        let interrupt =
            Interrupt::listen("stopping after this step, with a checkpoint (again: at once, without)")?;
        let mut watch = Watch::open(&run, interrupt)?;
        let result = curriculum::train(&local, &run, &mut watch, &DEVICE);
        drop(watch);
        if let Err(error) = Report::open(out).and_then(|run| report::write(&[run], &out.join("report.html")))
        {
            eprintln!("note: there is no report: {error:#}");
        }
        match result {
            Err(TrainError::Cancelled) => Err(Failure::error(
                "stopped, after a checkpoint was written",
                format!("`parallel-r1 train --resume --out {}` goes on from it", out.display()),
            )),
            result => Ok(result?),
        }
    }
}

/// The folders of the runs of one recipe, `runs/NAME-N`.
struct Runs {
    name: String,
}

impl Runs {
    const FOLDER: &'static str = "runs";

    fn path(&self, number: usize) -> PathBuf {
        Path::new(Self::FOLDER).join(format!("{}-{number}", self.name))
    }

    fn last(&self) -> usize {
        let entries = std::fs::read_dir(Self::FOLDER).into_iter().flatten().flatten();
        let number = |name: String| name.strip_prefix(&self.name)?.strip_prefix('-')?.parse().ok();
        entries.filter_map(|entry| number(entry.file_name().into_string().ok()?)).max().unwrap_or(0)
    }

    fn newest(&self) -> Option<PathBuf> {
        Some(self.last()).filter(|last| *last > 0).map(|last| self.path(last))
    }

    /// Makes the next folder; another process that starts at the same time gets another one.
    fn make(&self) -> anyhow::Result<PathBuf> {
        std::fs::create_dir_all(Self::FOLDER).context("runs: cannot be made")?;
        let mut number = self.last() + 1;
        loop {
            let path = self.path(number);
            match std::fs::create_dir(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                made => break made.map(|()| path.clone()).with_context(|| path.display().to_string()),
            }
        }
    }
}

fn print(summary: &Summary, out: &Path) -> anyhow::Result<()> {
    let mut text = String::new();
    if !summary.tiers.is_empty() {
        text += &results(summary);
        let samples = summary.tiers[0].samples;
        text += &format!(
            "Accuracy in %, mean of {samples} samples a problem. * reinforcement learning used it\n\n"
        );
    }
    let mut facts = vec![format!("run folder   {}", out.display())];
    let report = out.join("report.html");
    facts.extend(report.is_file().then(|| format!("report       {}", report.display())));
    facts.push(format!("time         {:.0} s", summary.seconds));
    facts.extend(summary.peak_memory_bytes.map(|bytes| format!("peak memory  {} MiB", bytes >> 20)));
    Ok(writeln!(stdout(), "{text}{}", facts.join("\n"))?)
}

fn results(summary: &Summary) -> String {
    let fixed = ["tier", "problems"].map(str::to_owned).into_iter();
    let mut rows = vec![fixed.chain(summary.columns.iter().cloned()).collect::<Vec<_>>()];
    for tier in &summary.tiers {
        let name = if tier.trained { format!("{} *", tier.name) } else { tier.name.clone() };
        let accuracy = summary.columns.iter().map(|column| match tier.accuracy.get(column) {
            Some(accuracy) => format!("{:.1}", 100.0 * accuracy),
            None => "-".into(),
        });
        rows.push([name, tier.problems.to_string()].into_iter().chain(accuracy).collect());
    }
    aligned(&rows)
}
