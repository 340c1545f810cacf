//! How a cell was trained: what each stage took, and how the model changed on the way.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::train::checkpoint::METRICS;
use crate::train::{Result, TrainError};

/// The training of one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Its stages.
    pub stages: Vec<StageTaken>,
    /// Its steps of reinforcement learning.
    #[serde(skip)]
    pub steps: Vec<Step>,
}

/// What a stage took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageTaken {
    /// The stage.
    pub name: String,
    /// Its steps.
    pub steps: usize,
    /// Tokens that it sampled, or learned from where it sampled none.
    pub tokens: u64,
    /// Wall time.
    pub seconds: f64,
}

/// One step of reinforcement learning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Tokens that were sampled before and in it.
    pub tokens: u64,
    /// Share of right responses.
    pub accuracy: f64,
    /// Share of responses with a block.
    pub parallel_ratio: f64,
    /// Where blocks start, from 0 to 1.
    pub block_position: Option<f64>,
}

impl Training {
    /// Reads the records of a run.
    pub fn read(run: &Path) -> Result<Self> {
        let path = run.join(METRICS);
        let text = std::fs::read_to_string(&path)
            .map_err(|source| TrainError::File { path: path.clone(), source })?;
        let mut training = Self::default();
        for line in text.lines() {
            let record: Value = serde_json::from_str(line)
                .map_err(|e| TrainError::Damaged { path: path.clone(), reason: e.to_string() })?;
            training.take(&record);
        }
        Ok(training)
    }

    fn take(&mut self, record: &Value) {
        let number = |name: &str| record[name].as_f64();
        let name = record["stage"].as_str().unwrap_or_default();
        if self.stages.last().is_none_or(|stage| stage.name != name) {
            self.stages.push(StageTaken { name: name.into(), steps: 0, tokens: 0, seconds: 0.0 });
        }
        let stage = self.stages.last_mut().expect("one was pushed");
        stage.steps += 1;
        stage.tokens += number("sampled_tokens").or(number("tokens")).unwrap_or(0.0) as u64;
        stage.seconds += number("seconds").unwrap_or(0.0);
        if let (Some(accuracy), Some(sampled)) = (number("accuracy"), number("sampled_tokens")) {
            self.steps.push(Step {
                tokens: self.steps.last().map_or(0, |step| step.tokens) + sampled as u64,
                accuracy,
                parallel_ratio: number("parallel_ratio").unwrap_or(0.0),
                block_position: number("block_position"),
            });
        }
    }
}

/// A stretch of training, averaged over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Tokens that had been sampled at its end.
    pub tokens: u64,
    /// Share of right responses.
    pub accuracy: f64,
    /// Share of responses with a block.
    pub parallel_ratio: f64,
    /// Where blocks start.
    pub block_position: Option<f64>,
}

/// Stretches of a curve.
const STRETCHES: u64 = 16;

/// The steps of some runs in stretches of equally many tokens; stretches without steps are left out.
pub fn curve(trainings: &[&Training]) -> Vec<CurvePoint> {
    let steps = || trainings.iter().flat_map(|training| &training.steps);
    let width = steps().map(|step| step.tokens).max().unwrap_or(0).div_ceil(STRETCHES).max(1);
    let point = |stretch: u64| {
        let (from, to) = (stretch * width, (stretch + 1) * width);
        let within: Vec<&Step> = steps().filter(|step| (from + 1..=to).contains(&step.tokens)).collect();
        let mean = |values: Vec<f64>| crate::eval::stats::mean(&values);
        Some(CurvePoint {
            tokens: to,
            accuracy: mean(within.iter().map(|step| step.accuracy).collect())?,
            parallel_ratio: mean(within.iter().map(|step| step.parallel_ratio).collect())?,
            block_position: mean(within.iter().filter_map(|step| step.block_position).collect()),
        })
    };
    (0..STRETCHES).filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stages_and_steps_by_hand() {
        let mut training = Training::default();
        for record in [
            json!({"stage": "sft", "step": 1, "tokens": 50, "seconds": 1.0}),
            json!({"stage": "sft", "step": 2, "tokens": 30, "seconds": 2.0}),
            json!({"stage": "rl", "step": 1, "sampled_tokens": 160, "accuracy": 0.5, "parallel_ratio": 1.0}),
            json!({"stage": "rl", "step": 2, "sampled_tokens": 160, "accuracy": 0.75, "parallel_ratio": 0.5,
                   "block_position": 0.25}),
        ] {
            training.take(&record);
        }
        let taken: Vec<(&str, usize, u64)> =
            training.stages.iter().map(|stage| (stage.name.as_str(), stage.steps, stage.tokens)).collect();
        assert_eq!(taken, [("sft", 2, 80), ("rl", 2, 320)]);
        let points = curve(&[&training, &training]);
        // 320 tokens in 16 stretches of 20: the steps end at 160 and 320.
        assert_eq!(
            points.iter().map(|p| (p.tokens, p.accuracy)).collect::<Vec<_>>(),
            [(160, 0.5), (320, 0.75)]
        );
        assert_eq!((points[0].block_position, points[1].block_position), (None, Some(0.25)));
    }
}
