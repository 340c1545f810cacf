//! `study`: ways of training, compared.

mod pictures;
mod tables;

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context;
use parallel_r1::study::samples::{Samples, made_of, measure};
use parallel_r1::study::training::Training;
use parallel_r1::study::{Cell, Results, Study, StudyArm, results};
use parallel_r1::train::TrainError;
use parallel_r1::train::checkpoint::RunFolder;
use parallel_r1::train::curriculum::{open_base, open_final, train};
use parallel_r1::train::recipe::{Recipe, Tier};
use serde::Serialize;

use super::DEVICE;
use super::generate::print_json;
use crate::failure::Failure;
use crate::hub;
use crate::interrupt::Interrupt;
use crate::lock::Lock;
use crate::progress::Progress;
use crate::recipes::Source;
use crate::watch::Watch;

/// Compare ways of training, over several seeds
///
/// Trains each arm of the study with each seed, has every model answer the same held-out problems, and says how much better
/// the arms are than the baseline: at the same budget of tokens, at the same latency, and against votes of the baseline that
/// cost as much. What is done is kept: started again, the study goes on where it was, and ends at once if nothing is missing.
/// recipes/study.toml is an example; docs/study has its results.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 study recipes/study.toml\n  \
    parallel-r1 study recipes/study.toml --seeds 1 --arms sequential,seen     # a part of it; the rest another time\n  \
    parallel-r1 study recipes/study.toml --only-results --docs docs/study")]
pub(crate) struct Args {
    /// The study, a TOML file
    study: String,
    /// The folder of its cells
    #[arg(long, value_name = "DIR", default_value = "runs/study")]
    out: PathBuf,
    /// Only these of its seeds
    #[arg(long, value_name = "N", value_delimiter = ',')]
    seeds: Vec<u64>,
    /// Make cells of these arms alone
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    arms: Vec<String>,
    /// Make no cell: only the results of those that are there
    #[arg(long)]
    only_results: bool,
    /// Write study.json, tables.md and pictures into this folder too
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
    /// Print the results as JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// What `study.json` holds.
#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    results: &'a Results,
    /// The program's version.
    version: &'static str,
    /// How it was called.
    command: String,
    machine: Machine,
    study: &'a Study,
}

#[derive(Serialize)]
struct Machine {
    cpu: Option<String>,
    threads: usize,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let study = self.study()?;
        let _lock = Lock::take(&self.out)?;
        let tiers = study.tiers()?;
        let mut cells = Vec::new();
        let work = Work { study: &study, out: &self.out, tiers: &tiers, interrupt: listen()? };
        let mut missing = Vec::new();
        for &seed in &study.seeds {
            for arm in &study.arms {
                let make = !self.only_results && (self.arms.is_empty() || self.arms.contains(&arm.name));
                match work.cell(arm, seed, make)? {
                    Some(cell) => cells.push(cell),
                    None => missing.push(format!("{} with seed {seed}", arm.name)),
                }
            }
        }
        if !missing.is_empty() {
            eprintln!("note: not there yet: {}", missing.join(", "));
        }
        self.report(&study, &results(&study, &cells))
    }

    fn study(&self) -> anyhow::Result<Study> {
        let source = match Path::new(&self.study).is_file() {
            true => Source::read(Path::new(&self.study))?,
            false => {
                return Err(Failure::misuse(
                    format!("{}: no such file", self.study),
                    "give a study in TOML; recipes/study.toml is one",
                ));
            }
        };
        let parsed = Study::parse(&source.name, &source.text, &source.folder);
        let mut study = parsed.map_err(|error| {
            Failure::misuse(error.to_string(), "recipes/README.md has the keys of a study and of its recipes")
        })?;
        if let Some(seed) = self.seeds.iter().find(|seed| !study.seeds.contains(seed)) {
            let hint = format!("its seeds are {:?}", study.seeds);
            return Err(Failure::misuse(format!("--seeds {seed}: the study has no such seed"), hint));
        }
        if let Some(name) = self.arms.iter().find(|name| study.arms.iter().all(|arm| arm.name != **name)) {
            let names: Vec<&str> = study.arms.iter().map(|arm| arm.name.as_str()).collect();
            let hint = format!("its arms are {}", names.join(", "));
            return Err(Failure::misuse(format!("--arms {name}: the study has no such arm"), hint));
        }
        if !self.seeds.is_empty() {
            study.seeds.retain(|seed| self.seeds.contains(seed));
        }
        Ok(study)
    }

    fn report(&self, study: &Study, results: &Results) -> anyhow::Result<()> {
        if results.seeds.is_empty() {
            return Err(Failure::error(
                "there are no results yet: no arm has a seed together with the baseline",
                "start it again without --only-results; it goes on where it was",
            ));
        }
        let machine = Machine { cpu: cpu(), threads: rayon::current_num_threads() };
        let record = Record {
            results,
            version: env!("CARGO_PKG_VERSION"),
            command: format!("parallel-r1 study {}", self.study),
            machine,
            study,
        };
        let text = serde_json::to_string_pretty(&record)? + "\n";
        write(&self.out.join("study.json"), &text)?;
        if let Some(docs) = &self.docs {
            std::fs::create_dir_all(docs).with_context(|| format!("{}: cannot be made", docs.display()))?;
            write(&docs.join("study.json"), &text)?;
            write(&docs.join("tables.md"), &tables::markdown(results))?;
            pictures::draw(results, docs)?;
        }
        if self.json {
            return print_json(&record);
        }
        Ok(stdout().write_all(tables::plain(results).as_bytes())?)
    }
}

fn listen() -> anyhow::Result<Interrupt> {
    Interrupt::listen("stopping at the next good place (again: at once)")
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))
}

/// The processor's name, where the system tells.
fn cpu() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// What makes cells, or finds them made.
struct Work<'a> {
    study: &'a Study,
    out: &'a Path,
    tiers: &'a [Tier],
    interrupt: Interrupt,
}

impl Work<'_> {
    /// A cell; `None` where it isn't there and shall not be made.
    fn cell(&self, arm: &StudyArm, seed: u64, make: bool) -> anyhow::Result<Option<Cell>> {
        let folder = self.study.cell(self.out, arm, seed);
        let kept = folder.join("cell.json");
        if !kept.is_file() && !make {
            return Ok(None);
        }
        let recipe = arm.recipe(seed);
        let local = recipe.localised(hub::resolve)?;
        let made_of = made_of(&recipe, &open_base(&local, &DEVICE)?)?;
        if kept.is_file() && std::fs::read_to_string(&kept)?.trim() != made_of {
            return Err(Failure::error(
                format!(
                    "{}: the cell was made by another recipe, or from another base model",
                    folder.display()
                ),
                "remove the folder, or give another --out",
            ));
        }
        let run = RunFolder::open(&folder, &recipe, true)?;
        write(&kept, &made_of)?;
        let mut answers = Vec::new();
        for paths in self.study.paths(arm) {
            let file = format!("answers-{paths}.json");
            let kept: Option<Samples> = run.read_json(&file)?;
            let samples = match kept.filter(|kept| kept.fingerprint == self.study.fingerprint(paths)) {
                Some(kept) => kept.problems,
                None if !make => return Ok(None),
                None => {
                    let made = self.answers(arm, seed, &run, &local, paths)?;
                    run.write_json(&file, &made)?;
                    made.problems
                }
            };
            answers.push((paths, samples));
        }
        Ok(Some(Cell { arm: arm.name.clone(), seed, training: Training::read(&folder)?, answers }))
    }

    fn answers(
        &self,
        arm: &StudyArm,
        seed: u64,
        run: &RunFolder,
        local: &Recipe,
        paths: usize,
    ) -> anyhow::Result<Samples> {
        let model = match open_final(&local.counted()?, run, &local.arms[0], &DEVICE)? {
            Some(model) => model,
            None => {
                eprintln!("{}, seed {seed}: {}", arm.name, run.file("").display());
                let mut watch = Watch::open(run, self.interrupt.clone())?;
                train(local, run, &mut watch, &DEVICE).map_err(stopped)?;
                drop(watch);
                open_final(&local.counted()?, run, &local.arms[0], &DEVICE)?
                    .context("training left no model")?
            }
        };
        let mut progress = Progress::new();
        let label = format!("{}, seed {seed}, {paths} paths: problems", arm.name);
        let mut goes_on = |done, total| {
            progress.count(&label, done, total, "");
            !self.interrupt.is_asked()
        };
        let samples =
            measure(self.study, arm, seed, paths, &model, self.tiers, &mut goes_on).map_err(stopped)?;
        progress.end();
        Ok(samples)
    }
}

fn stopped(error: TrainError) -> anyhow::Error {
    match error {
        TrainError::Cancelled => Failure::error("stopped", "the same command goes on from here"),
        error => error.into(),
    }
}
