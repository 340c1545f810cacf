//! A task that the smallest model learns in seconds: say a digit, straight away or after a block of two paths.
//! Demonstrations say any digit; the reward wants a 7.

use std::fmt::Write;
use std::path::Path;

use candle_core::Device;
use parallel_r1::train::checkpoint::RunFolder;
use parallel_r1::train::curriculum::{Summary, train};
use parallel_r1::train::metrics::{Sink, StageId, StepMetrics};
use parallel_r1::train::recipe::Recipe;
use parallel_r1::train::{Result, TrainError};

const RECIPE: &str = r#"
seed = 3

[model.init]
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 2
num_attention_heads = 2
max_position_embeddings = 128

[sampling]
num_paths = 2
max_blocks = 1
max_response_tokens = 32
max_path_tokens = 5
min_path_tokens = 3
reserve_tokens = 8

[[arms]]
name = "parallel"
structure = "path_window"

[[arms.stages]]
name = "imitate"
[arms.stages.sft]
steps = 60
batch_size = 16
micro_batch_tokens = 200
optim = { lr = 1e-2 }
data = { file = "shown.jsonl" }

[[arms.stages]]
name = "explore"
[arms.stages.grpo]
steps = 40
prompts = 3
num_generations = 32
micro_batch_tokens = 600
beta = 0.01
resample_rounds = 1
reward = "accuracy"
optim = { lr = 3e-3, schedule = "constant", weight_decay = 0.0 }
data = { file = "asked.jsonl" }

[evaluation]
problems = 3
samples = 4
files = ["asked.jsonl"]
"#;

/// Writes the data into `folder` and reads the recipe, with `overrides`.
pub(crate) fn recipe(folder: &Path, overrides: &[&str]) -> Recipe {
    let (mut shown, mut asked) = (String::new(), String::new());
    for i in 0..40 {
        let (digit, other) = (i % 10, i * 7 % 10);
        let response = if i % 4 == 0 {
            format!("Answer: {digit}")
        } else {
            format!(
                "<Parallel><Path>{digit}</Path><Path>{other}</Path></Parallel>\n<Summary>{digit}</Summary>\n\
                 Answer: {digit}"
            )
        };
        let problem = ["a digit?", "say one", "which?"][i % 3];
        writeln!(shown, "{}", serde_json::json!({ "problem": problem, "response": response })).unwrap();
    }
    for (i, problem) in ["a digit?", "say one", "which?"].iter().enumerate() {
        let row = serde_json::json!({ "id": i.to_string(), "problem": problem, "answer": "7" });
        writeln!(asked, "{row}").unwrap();
    }
    std::fs::write(folder.join("shown.jsonl"), shown).unwrap();
    std::fs::write(folder.join("asked.jsonl"), asked).unwrap();
    let overrides: Vec<String> = overrides.iter().map(|&o| o.to_owned()).collect();
    Recipe::parse("digits", RECIPE, &overrides, folder).unwrap()
}

/// Keeps the records of a run and can stop it.
#[derive(Default)]
pub(crate) struct Records {
    /// The records, in order.
    pub(crate) steps: Vec<StepMetrics>,
    /// Where stages began or went on.
    pub(crate) begun: Vec<(String, usize)>,
    /// What a person should read.
    pub(crate) said: Vec<String>,
    /// Stop after so many steps.
    pub(crate) stop_after: Option<usize>,
}

impl Records {
    /// A number of every step of a stage.
    pub(crate) fn of(&self, stage: &str, name: &str) -> Vec<f64> {
        self.steps.iter().filter(|m| m.stage == stage).map(|m| m.get(name).unwrap()).collect()
    }
}

impl Sink for Records {
    fn begin(&mut self, stage: &StageId, first: usize) -> Result<()> {
        self.begun.push((stage.name.clone(), first));
        Ok(())
    }

    fn step(&mut self, metrics: &StepMetrics) -> Result<()> {
        self.steps.push(metrics.clone());
        Ok(())
    }

    fn message(&mut self, text: &str) {
        self.said.push(text.to_owned());
    }

    fn cancelled(&mut self) -> bool {
        self.stop_after.is_some_and(|stop| self.steps.len() >= stop)
    }
}

/// Runs the recipe in `run`, from the start or from where an earlier call was stopped. `None` if it was stopped.
pub(crate) fn run(recipe: &Recipe, run: &Path, records: &mut Records) -> Option<Summary> {
    let folder = RunFolder::open(run, recipe, run.exists()).unwrap();
    match train(recipe, &folder, records, &Device::Cpu) {
        Ok(summary) => Some(summary),
        Err(TrainError::Cancelled) => None,
        Err(error) => panic!("{error}"),
    }
}
