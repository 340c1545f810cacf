//! The run folder: what a run leaves behind, and what it goes on from.
//!
//! ```text
//! RUN/recipe.toml            the resolved recipe
//! RUN/metrics.jsonl          one record a step
//! RUN/traces.jsonl           sampled responses
//! RUN/evaluations/NAME.json  results by tier
//! RUN/checkpoints/ARM/step-N config.json, model.safetensors, tokenizer.json, ... and
//!                            optimizer.safetensors, trainer.json
//! RUN/summary.json           written last: a run with it is finished
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::grpo::Collected;
use super::metrics::StageId;
use super::optim::AdamW;
use super::recipe::{Arm, Stage};
use super::stop::Climb;
use super::{Result, TrainError};
use crate::model::{Pretrained, Weights};

/// Where a trainer stands: everything besides weights and moments, since all random streams are keyed by the step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainerState {
    /// The arm.
    pub arm: String,
    /// The stage within the arm.
    pub stage: usize,
    /// Steps of that stage that are done.
    pub step: usize,
    /// Steps of the arm that are done.
    pub total_steps: usize,
    /// Steps that the stage's optimizer has taken.
    pub optimizer_steps: usize,
    /// Whether the stage is over: its steps are done, or what stops it has happened.
    #[serde(default)]
    pub finished: bool,
    /// For each of its steps the number that a stop rule looks at.
    #[serde(default)]
    pub history: Vec<f64>,
    /// Tokens that the stage has sampled, or learned from.
    #[serde(default)]
    pub tokens: u64,
    /// Where its tiers stand.
    #[serde(default)]
    pub climb: Climb,
}

/// A folder that holds one run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes the folder, or opens it to go on. A folder with a run in it is refused unless `resume` is asked for.
    pub fn open(path: &Path, recipe: &impl Serialize, resume: bool) -> Result<Self> {
        let run = Self { path: path.into() };
        let recipe_file = run.file("recipe.toml");
        if recipe_file.exists() && !resume {
            return Err(TrainError::Occupied { path: path.into() });
        }
        std::fs::create_dir_all(run.file("evaluations")).map_err(at(path))?;
        let text = toml::to_string(recipe)
            .map_err(|e| TrainError::Damaged { path: recipe_file.clone(), reason: e.to_string() })?;
        std::fs::write(&recipe_file, text).map_err(at(&recipe_file))?;
        Ok(run)
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a JSON file as a whole or not at all.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let path = self.file(name);
        let text = serde_json::to_string_pretty(value)
            .map_err(|e| TrainError::Damaged { path: path.clone(), reason: e.to_string() })?;
        let part = path.with_extension("part");
        std::fs::write(&part, text + "\n").map_err(at(&part))?;
        std::fs::rename(&part, &path).map_err(at(&path))
    }

    /// Reads a JSON file; `None` if there is none.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let path = self.file(name);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).map_err(at(&path))?;
        serde_json::from_str(&text).map(Some).map_err(|e| TrainError::Damaged { path, reason: e.to_string() })
    }

    fn arm(&self, arm: &str) -> PathBuf {
        self.path.join("checkpoints").join(arm)
    }

    /// Writes a checkpoint: into a folder beside its place first, so that a cut write leaves none. Returns its place.
    /// Weights that are not finite are refused, so that they never take the place of a good checkpoint.
    pub fn save(&self, model: &Pretrained, optim: &AdamW, state: &TrainerState) -> Result<PathBuf> {
        let place = self.at_step(&state.arm, state.total_steps);
        if let Some(name) = model.decoder.not_finite()? {
            return Err(TrainError::Diverged { name });
        }
        let part = place.with_extension("part");
        if part.exists() {
            std::fs::remove_dir_all(&part).map_err(at(&part))?;
        }
        model.save(&part, DType::F32)?;
        let moments = part.join(MOMENTS);
        safetensors::serialize_to_file(optim.state(), None::<HashMap<String, String>>, &moments)
            .map_err(|e| TrainError::Damaged { path: moments, reason: e.to_string() })?;
        let file = part.join(STATE);
        let text = serde_json::to_string_pretty(state)
            .map_err(|e| TrainError::Damaged { path: file.clone(), reason: e.to_string() })?;
        std::fs::write(&file, text).map_err(at(&file))?;
        if place.exists() {
            std::fs::remove_dir_all(&place).map_err(at(&place))?;
        }
        std::fs::rename(&part, &place).map_err(at(&place))?;
        Ok(place)
    }

    /// Where the checkpoint of an arm after so many steps lies.
    pub fn at_step(&self, arm: &str, total_steps: usize) -> PathBuf {
        self.arm(arm).join(format!("step-{total_steps}"))
    }

    /// Drops the records of a stage's steps after `step`, which a run that was killed made and will make again.
    pub fn forget_after(&self, stage: &StageId, step: usize) -> Result<()> {
        for path in [self.file(METRICS), self.file(TRACES)] {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let later = |line: &&str| {
                let Ok(record) = serde_json::from_str::<serde_json::Value>(line) else { return true };
                let same = record["arm"] == stage.arm.as_str() && record["stage"] == stage.name.as_str();
                same && record["step"].as_u64().is_some_and(|s| s > step as u64)
            };
            if text.lines().any(|line| later(&line)) {
                let kept: String = text.lines().filter(|l| !later(l)).map(|l| format!("{l}\n")).collect();
                std::fs::write(&path, kept).map_err(at(&path))?;
            }
        }
        Ok(())
    }

    /// Adds some responses of a step to `traces.jsonl`.
    pub fn append_traces(&self, stage: &StageId, step: usize, collected: &Collected) -> Result<()> {
        let path = self.file(TRACES);
        let mut file = File::options().create(true).append(true).open(&path).map_err(at(&path))?;
        for (problem, response) in collected.samples() {
            let row = serde_json::json!({
                "arm": stage.arm, "stage": stage.name, "step": step + 1,
                "problem": problem.problem, "answer": problem.answer, "response": response.rollout.text,
                "score": response.score, "tokens": response.rollout.trace.response_tokens(),
                "critical_path_tokens": response.rollout.trace.critical_path(),
            });
            writeln!(file, "{row}").map_err(at(&path))?;
        }
        Ok(())
    }

    /// The newest checkpoint of an arm, which must be one that the arm can have.
    pub fn newest(&self, arm: &Arm) -> Result<Option<(PathBuf, TrainerState)>> {
        let folder = self.arm(&arm.name);
        let entries = match std::fs::read_dir(&folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            entries => entries.map_err(at(&folder))?,
        };
        let mut newest: Option<(PathBuf, TrainerState)> = None;
        for entry in entries.flatten() {
            let (place, file) = (entry.path(), entry.path().join(STATE));
            // What was being written when the program was killed ends in `.part`.
            if place.extension().is_some() || !file.exists() {
                continue;
            }
            let text = std::fs::read_to_string(&file).map_err(at(&file))?;
            let state: TrainerState = serde_json::from_str(&text)
                .map_err(|e| TrainError::Damaged { path: file.clone(), reason: e.to_string() })?;
            if place != self.at_step(&arm.name, state.total_steps) || !state.fits(arm) {
                let reason =
                    format!("{state:?} is not a state of this place in the recipe's arm {:?}", arm.name);
                return Err(TrainError::Damaged { path: file, reason });
            }
            if newest.as_ref().is_none_or(|(_, best)| state.total_steps > best.total_steps) {
                newest = Some((place, state));
            }
        }
        Ok(newest)
    }
}

impl TrainerState {
    /// Whether an arm can be in this state.
    fn fits(&self, arm: &Arm) -> bool {
        let stages = || arm.stages.iter().take(self.stage);
        let most: usize = stages().map(Stage::steps).sum();
        // A stage that may end early has at least one step, if any.
        let least: usize =
            stages().map(|s| if s.stop.is_some() { s.steps().min(1) } else { s.steps() }).sum();
        let stage = arm.stages.get(self.stage);
        self.arm == arm.name
            && stage.is_some_and(|stage| self.step <= stage.steps())
            && self.total_steps.checked_sub(self.step).is_some_and(|before| (least..=most).contains(&before))
    }

    /// Steps of the arm before this stage.
    pub fn steps_before(&self) -> usize {
        self.total_steps - self.step
    }
}

/// The record of all steps.
pub const METRICS: &str = "metrics.jsonl";
const TRACES: &str = "traces.jsonl";
const MOMENTS: &str = "optimizer.safetensors";
const STATE: &str = "trainer.json";

/// Reads the optimizer of a checkpoint.
pub fn load_optimizer(checkpoint: &Path, state: &TrainerState, device: &Device) -> Result<AdamW> {
    let path = checkpoint.join(MOMENTS);
    let damaged = |e: candle_core::Error| TrainError::Damaged { path: path.clone(), reason: e.to_string() };
    let moments: Weights =
        candle_core::safetensors::load(&path, device).map_err(damaged)?.into_iter().collect();
    AdamW::from_state(&moments, state.optimizer_steps).map_err(damaged)
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> TrainError {
    let path = path.to_owned();
    move |source| TrainError::File { path, source }
}
