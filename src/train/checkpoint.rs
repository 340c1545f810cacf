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
use super::{Result, TrainError};
use crate::model::{Pretrained, Weights};

/// Where a trainer stands: everything besides weights and moments, since all random streams are keyed by the step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
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
    pub fn save(&self, model: &Pretrained, optim: &AdamW, state: &TrainerState) -> Result<PathBuf> {
        let place = self.arm(&state.arm).join(format!("step-{}", state.total_steps));
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

    /// The checkpoint of an arm after so many steps, if there is one.
    pub fn at_step(&self, arm: &str, total_steps: usize) -> Option<PathBuf> {
        Some(self.arm(arm).join(format!("step-{total_steps}"))).filter(|folder| folder.is_dir())
    }

    /// Adds some responses of a step to `traces.jsonl`.
    pub fn append_traces(&self, stage: &StageId, step: usize, collected: &Collected) -> Result<()> {
        let path = self.file("traces.jsonl");
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

    /// The newest checkpoint of an arm.
    pub fn newest(&self, arm: &str) -> Result<Option<(PathBuf, TrainerState)>> {
        let folder = self.arm(arm);
        let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(None) };
        let mut newest: Option<(PathBuf, TrainerState)> = None;
        for entry in entries.flatten() {
            let file = entry.path().join(STATE);
            if entry.path().extension().is_some() || !file.exists() {
                continue;
            }
            let text = std::fs::read_to_string(&file).map_err(at(&file))?;
            let state: TrainerState = serde_json::from_str(&text)
                .map_err(|e| TrainError::Damaged { path: file, reason: e.to_string() })?;
            if newest.as_ref().is_none_or(|(_, best)| state.total_steps > best.total_steps) {
                newest = Some((entry.path(), state));
            }
        }
        Ok(newest)
    }
}

const MOMENTS: &str = "optimizer.safetensors";
const STATE: &str = "trainer.json";

/// Reads the optimizer of a checkpoint.
pub fn load_optimizer(checkpoint: &Path, state: &TrainerState, device: &Device) -> Result<AdamW> {
    let moments: Weights =
        candle_core::safetensors::load(checkpoint.join(MOMENTS), device)?.into_iter().collect();
    Ok(AdamW::from_state(&moments, state.optimizer_steps)?)
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> TrainError {
    let path = path.to_owned();
    move |source| TrainError::File { path, source }
}
