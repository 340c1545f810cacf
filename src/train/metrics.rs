//! One flat record a step, and the sinks that take it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Map, Value};

use super::{Result, TrainError};

/// Which stage of which arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageId {
    /// The arm.
    pub arm: String,
    /// The stage's name.
    pub name: String,
    /// Its index within the arm.
    pub index: usize,
    /// Where its random streams start.
    pub seed: u64,
    /// Its steps.
    pub steps: usize,
    /// Steps of the arm's earlier stages.
    pub steps_before: usize,
}

/// What was measured in one step.
#[derive(Clone, Debug)]
pub struct StepMetrics {
    /// The arm.
    pub arm: String,
    /// The stage.
    pub stage: String,
    /// The step, from 1.
    pub step: usize,
    /// Steps of the stage.
    pub steps: usize,
    values: Vec<(&'static str, f64)>,
}

impl StepMetrics {
    /// An empty record of step `step` (from 0).
    pub fn new(stage: &StageId, step: usize) -> Self {
        Self {
            arm: stage.arm.clone(),
            stage: stage.name.clone(),
            step: step + 1,
            steps: stage.steps,
            values: vec![],
        }
    }

    /// Adds a number.
    pub fn set(&mut self, name: &'static str, value: f64) {
        self.values.push((name, value));
    }

    /// A number by name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }

    /// All numbers.
    pub fn values(&self) -> &[(&'static str, f64)] {
        &self.values
    }

    /// The record as one JSON object.
    pub fn to_json(&self) -> Value {
        let mut record = Map::new();
        record.insert("arm".into(), self.arm.clone().into());
        record.insert("stage".into(), self.stage.clone().into());
        record.insert("step".into(), self.step.into());
        for (name, value) in &self.values {
            record.insert(
                (*name).into(),
                serde_json::Number::from_f64(*value).map_or(Value::Null, Value::Number),
            );
        }
        Value::Object(record)
    }
}

/// Takes the records of a run.
pub trait Sink {
    /// A stage begins (or goes on, after a resume, from step `first`).
    fn begin(&mut self, _stage: &StageId, _first: usize) -> Result<()> {
        Ok(())
    }

    /// A step is done.
    fn step(&mut self, metrics: &StepMetrics) -> Result<()>;

    /// Something a person should read.
    fn message(&mut self, _text: &str) {}

    /// An evaluation has finished `done` of `total` responses.
    fn evaluating(&mut self, _what: &str, _done: usize, _total: usize) {}

    /// Whether the run should stop after this step.
    fn cancelled(&mut self) -> bool {
        false
    }
}

/// `metrics.jsonl`, the record that everything else is drawn from.
pub struct JsonLines {
    path: std::path::PathBuf,
    file: BufWriter<File>,
}

impl JsonLines {
    /// Opens the file; a run that goes on appends to it.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::options().create(true).append(true).open(path);
        let file = file.map_err(|source| TrainError::File { path: path.into(), source })?;
        Ok(Self { path: path.into(), file: BufWriter::new(file) })
    }
}

impl Sink for JsonLines {
    fn step(&mut self, metrics: &StepMetrics) -> Result<()> {
        let line = metrics.to_json();
        let written = writeln!(self.file, "{line}").and_then(|()| self.file.flush());
        written.map_err(|source| TrainError::File { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_flat_and_not_a_number_is_null() {
        let stage =
            StageId { arm: "a".into(), name: "s".into(), index: 0, seed: 0, steps: 5, steps_before: 0 };
        let mut metrics = StepMetrics::new(&stage, 2);
        metrics.set("loss", 0.5);
        metrics.set("entropy", f64::NAN);
        let want = r#"{"arm":"a","stage":"s","step":3,"loss":0.5,"entropy":null}"#;
        assert_eq!(metrics.to_json().to_string(), want);
    }
}
