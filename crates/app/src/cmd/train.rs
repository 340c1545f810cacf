//! `train`: runs a recipe.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use parallel_r1::train::checkpoint::RunFolder;
use parallel_r1::train::metrics::{JsonLines, Sink, StageId, StepMetrics};
use parallel_r1::train::recipe::Recipe;
use parallel_r1::train::{Result, curriculum};

/// Trains a model by a recipe.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The recipe, a TOML file.
    recipe: PathBuf,
    /// Changes a key of the recipe.
    #[arg(long = "set", value_name = "a.b=c")]
    set: Vec<String>,
    /// The run folder.
    #[arg(long)]
    out: PathBuf,
    /// Goes on with the run in the folder.
    #[arg(long)]
    resume: bool,
}

struct Watch {
    file: JsonLines,
}

impl Sink for Watch {
    fn begin(&mut self, stage: &StageId, first: usize) -> Result<()> {
        eprintln!("{} / {}: steps {}..{}", stage.arm, stage.name, first, stage.steps);
        Ok(())
    }

    fn step(&mut self, metrics: &StepMetrics) -> Result<()> {
        let values: Vec<String> = metrics.values().iter().map(|(n, v)| format!("{n} {v:.4}")).collect();
        eprintln!("{}/{} {}", metrics.step, metrics.steps, values.join("  "));
        self.file.step(metrics)
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let text =
            std::fs::read_to_string(&self.recipe).with_context(|| self.recipe.display().to_string())?;
        let name = self.recipe.display().to_string();
        let folder = self.recipe.parent().unwrap_or("".as_ref());
        let recipe = Recipe::parse(&name, &text, &self.set, folder)?;
        let run = RunFolder::open(&self.out, &recipe, self.resume)?;
        let mut watch = Watch { file: JsonLines::open(&run.file("metrics.jsonl"))? };
        let summary = curriculum::train(&recipe, &run, &mut watch, &candle_core::Device::Cpu)?;
        println!("{}", serde_json::to_string_pretty(&summary)?);
        Ok(ExitCode::SUCCESS)
    }
}
