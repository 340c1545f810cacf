//! The records of one arm, stage after stage, as series over its steps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::series::Series;

/// More kinds of numbers than any trainer writes; beyond, a file is not what it seems.
const MOST_SERIES: usize = 200;

/// One line of `metrics.jsonl`.
#[derive(Deserialize)]
struct Record {
    arm: String,
    stage: String,
    step: usize,
    #[serde(flatten)]
    values: Map<String, Value>,
}

/// A stage as far as it has come.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Stage {
    /// Its name.
    pub(super) name: String,
    /// `sft` or `grpo`.
    pub(super) kind: &'static str,
    /// Steps of the arm's earlier stages.
    pub(super) from: usize,
    /// The same with this stage's own.
    pub(super) to: usize,
    /// Steps that it is to have, where that is known.
    pub(super) planned: Option<usize>,
    /// What it is rewarded for, where that is known.
    pub(super) reward: Option<String>,
}

/// An arm as far as it has come.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Arm {
    /// Its name.
    pub(super) name: String,
    /// How its paths see each other; `None` of a sequential one, or where that isn't known.
    pub(super) structure: Option<String>,
    /// Its stages.
    pub(super) stages: Vec<Stage>,
    /// All numbers by name.
    pub(super) series: BTreeMap<String, Series>,
    /// The entropy in reinforcement learning alone: that of demonstrations is another thing.
    #[serde(skip)]
    pub(super) policy_entropy: Series,
    /// Values that were no finite numbers.
    pub(super) not_finite: usize,
}

/// Adds a line of the file to the arms; `false` if it is no record.
pub(super) fn record(arms: &mut Vec<Arm>, line: &str) -> bool {
    let Ok(Record { arm, stage, step, values }) = serde_json::from_str::<Record>(line) else { return false };
    let at = arms.iter().position(|known| known.name == arm).unwrap_or_else(|| {
        arms.push(Arm { name: arm, ..Arm::default() });
        arms.len() - 1
    });
    let arm = &mut arms[at];
    let step = arm.advance(stage, step, if values.contains_key("reward") { "grpo" } else { "sft" });
    let number = |name: &str| values.get(name).and_then(Value::as_f64);
    if let Some((tokens, seconds)) = number("sampled_tokens").zip(number("seconds_rollout")) {
        arm.series.entry("sampled_tokens_per_second".into()).or_default().push(step, tokens / seconds);
    }
    if let Some(entropy) = number("entropy").filter(|_| values.contains_key("reward")) {
        arm.policy_entropy.push(step, entropy);
    }
    for (name, value) in values {
        arm.not_finite += usize::from(value.is_null());
        let known = arm.series.len() < MOST_SERIES || arm.series.contains_key(&name);
        if let Some(value) = value.as_f64().filter(|_| known) {
            arm.series.entry(name).or_default().push(step, value);
        }
    }
    true
}

impl Arm {
    /// A step of a stage is done; the arm's step that it is.
    fn advance(&mut self, stage: String, step: usize, kind: &'static str) -> usize {
        let from = self.stages.last().map_or(0, |last| last.to);
        let at = self.stages.iter().position(|known| known.name == stage).unwrap_or_else(|| {
            self.stages.push(Stage { name: stage, kind, from, to: from, planned: None, reward: None });
            self.stages.len() - 1
        });
        let stage = &mut self.stages[at];
        stage.to = stage.to.max(stage.from.saturating_add(step));
        stage.from.saturating_add(step)
    }

    /// Steps done before a stage.
    pub(super) fn before(&self, stage: &str) -> usize {
        self.stages.iter().find(|known| known.name == stage).map_or(0, |stage| stage.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_follow_each_other_on_one_axis() {
        let mut arms = Vec::new();
        for line in [
            r#"{"arm": "a", "stage": "sft", "step": 1, "loss": 2.0}"#,
            r#"{"arm": "a", "stage": "sft", "step": 2, "loss": null}"#,
            r#"{"arm": "a", "stage": "rl", "step": 1, "loss": 0.5, "reward": 1}"#,
            r#"{"arm": "b", "stage": "rl", "step": 1, "reward": -1}"#,
        ] {
            assert!(record(&mut arms, line), "{line}");
        }
        assert!(!record(&mut arms, "{}") && !record(&mut arms, "[1"));
        let a = serde_json::to_value(&arms[0]).unwrap();
        assert_eq!(a["series"]["loss"], serde_json::json!({"x": [1.0, 3.0], "y": [2.0, 0.5]}));
        assert_eq!(a["series"]["reward"]["x"], serde_json::json!([3.0]));
        assert_eq!(
            (&a["stages"][1]["from"], &a["stages"][1]["to"], &a["stages"][1]["kind"]),
            (&2.into(), &3.into(), &"grpo".into())
        );
        assert_eq!((arms[0].not_finite, arms[0].before("rl")), (1, 2));
        assert_eq!((arms[1].name.as_str(), arms[1].before("nowhere")), ("b", 0));
    }
}
