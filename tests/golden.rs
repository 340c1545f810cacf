//! Numbers that transformers computed, for each family of models, kind of rotary scaling and form of storage (made by
//! `tests/reference/families.py`): logits, loss, gradients and a greedy continuation. And an answer of SmolLM2.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::{Device, Tensor};
use parallel_r1::engine::{Engine, EngineOptions, Request, SamplingParams};
use parallel_r1::kernels::Draw;
use parallel_r1::layout::{Layout, Role};
use parallel_r1::model::{Batch, Decoder, Gradients, Pretrained, load};
use parallel_r1::prompt::{AllowedSet, Controls};
use serde::Deserialize;
use serde_json::Value;

use super::toys::flat;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The folder of the golden model `name`.
pub(crate) fn model_folder(name: &str) -> PathBuf {
    repository().join("tests/golden/models").join(name)
}

/// What `tests/reference/families.py` writes beside a model.
#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
    loss: f32,
    gradients: BTreeMap<String, Gradient>,
    greedy: Greedy,
}

/// Tokens laid out somehow, and the logits of some of their rows.
#[derive(Deserialize)]
pub(crate) struct Case {
    name: String,
    segments: Vec<Segment>,
    tokens: Vec<u32>,
    rows: Vec<usize>,
    logits: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct Segment {
    role: Role,
    parents: Vec<usize>,
    len: usize,
}

/// Some rows of the gradient of the first case's mean cross-entropy, and two numbers about all of it.
#[derive(Deserialize)]
struct Gradient {
    rows: Vec<usize>,
    values: Vec<Vec<f32>>,
    largest: f32,
    norm: f32,
}

#[derive(Deserialize)]
struct Greedy {
    prompt: Vec<u32>,
    tokens: Vec<u32>,
}

impl Case {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        for Segment { role, parents, len } in &self.segments {
            layout.push(*role, parents, *len);
        }
        layout
    }

    fn hidden(&self, model: &Decoder) -> Tensor {
        let layout = self.layout();
        model.hidden(&self.tokens, &layout.positions(), &Arc::new(layout.visibility()), None).unwrap()
    }

    /// The model's logits are these, up to 1e-4 of the largest.
    pub(crate) fn check(&self, model: &Decoder) {
        let logits: Vec<Vec<f32>> = model.logits(&self.hidden(model)).unwrap().to_vec2().unwrap();
        let got: Vec<f32> = self.rows.iter().flat_map(|&row| logits[row].clone()).collect();
        let expected = self.logits.concat();
        let gap = largest_gap(&got, &expected) / largest(&expected);
        assert!(gap < 1e-4, "{}: the logits are off by {gap:e} of the largest", self.name);
    }

    /// The mean cross-entropy of predicting each token from those before it, and its gradients.
    fn learned(&self, model: &Decoder) -> (f32, Gradients) {
        let predictors: Vec<u32> = (0..self.tokens.len() as u32 - 1).collect();
        let draw = |&token: &u32| Draw { token, allowed: AllowedSet::ALL, temperature: 1.0 };
        let draws = Arc::new(self.tokens[1..].iter().map(draw).collect());
        let layout = self.layout();
        let visibility = Arc::new(layout.visibility());
        let (positions, controls) = (layout.positions(), Arc::new(Controls::default()));
        let batch = Batch {
            tokens: &self.tokens,
            positions: &positions,
            visibility: &visibility,
            predictors: &predictors,
            draws: &draws,
            controls: &controls,
            recompute: false,
        };
        let scored = model.score(batch).unwrap();
        let loss = scored.pairs().narrow(1, 0, 1).unwrap().mean_all().unwrap().neg().unwrap();
        let (value, mut gradients) = (loss.to_scalar().unwrap(), Gradients::default());
        scored.backward(&loss, &mut gradients).unwrap();
        (value, gradients)
    }
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |a, x| a.max(x.abs()))
}

fn largest_gap(got: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(got.len(), expected.len());
    got.iter().zip(expected).fold(0.0, |a, (x, y)| a.max((x - y).abs()))
}

/// Loss and gradients are transformers', up to 1e-3 of the largest entry of each.
fn check_gradients(golden: &Golden, model: &Decoder) {
    let (loss, grads) = golden.cases[0].learned(model);
    assert!((loss - golden.loss).abs() < 1e-4 * golden.loss);
    for (name, Gradient { rows, values, largest, norm }) in &golden.gradients {
        let grad = flat(grads.get(name).unwrap_or_else(|| panic!("{name} has no gradient")));
        let width = values[0].len();
        let got: Vec<f32> = rows.iter().flat_map(|row| grad[row * width..][..width].to_vec()).collect();
        let gap = largest_gap(&got, &values.concat()) / largest;
        assert!(gap < 1e-3, "{name}: the gradient is off by {gap:e} of its largest entry");
        let got = grad.iter().map(|g| g * g).sum::<f32>().sqrt();
        assert!((got - norm).abs() < 1e-3 * norm, "{name}: the gradient's norm is {got}, expected {norm}");
    }
}

/// The engine, with its cache, continues a prompt by the same tokens.
fn check_greedy(greedy: &Greedy, model: &Decoder) {
    let params = SamplingParams {
        temperature: 0.0,
        max_blocks: 0,
        max_response_tokens: greedy.tokens.len(),
        ..SamplingParams::default()
    };
    let controls = Controls::default();
    let request = Request { id: 0, prompt: greedy.prompt.clone(), samples: 1, first_sample: 0 };
    let mut engine = Engine::new(model, &controls, EngineOptions::default());
    let traces = engine.generate(&[request], &params, &mut ()).unwrap();
    assert_eq!(greedy.tokens.len(), 64);
    assert_eq!(traces[0][0].response(), greedy.tokens);
}

fn golden(name: &str) -> Golden {
    serde_json::from_str(&std::fs::read_to_string(model_folder(name).join("expected.json")).unwrap()).unwrap()
}

fn agrees(name: &str) {
    let (golden, model) = (golden(name), load(&model_folder(name), &Device::Cpu).unwrap());
    golden.cases.iter().for_each(|case| case.check(&model));
    check_gradients(&golden, &model);
    check_greedy(&golden.greedy, &model);
}

macro_rules! families {
    ($($test:ident $folder:literal)*) => {
        $(#[test]
        fn $test() {
            agrees($folder);
        })*

        const FAMILIES: &[&str] = &[$($folder),*];
    };
}

families! {
    llama_as_in_transformers "llama"
    llama_with_biases_as_in_transformers "llama-biased"
    llama_in_f16_as_in_transformers "llama-f16"
    llama_with_linear_scaling_as_in_transformers "llama-linear"
    llama_with_llama3_scaling_as_in_transformers "llama-llama3"
    llama_with_yarn_as_in_transformers "llama-yarn"
    llama_with_yarn_and_its_factors_as_in_transformers "llama-yarn-factors"
    llama_with_yarn_and_mscale_as_in_transformers "llama-yarn-mscale"
    qwen2_as_in_transformers "qwen2"
    qwen2_in_bf16_as_in_transformers "qwen2-bf16"
    qwen2_with_yarn_as_in_transformers "qwen2-yarn"
    qwen3_in_shards_as_in_transformers "qwen3"
    qwen3_tied_and_padded_as_in_transformers "qwen3-tied"
}

#[test]
fn every_golden_model_is_tested() {
    let folders = std::fs::read_dir(model_folder("")).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> = folders
        .filter(|folder| folder.path().join("expected.json").is_file())
        .map(|folder| folder.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, FAMILIES);
}

/// The configuration as transformers 4 wrote it, the kind of scaling under `key`.
fn old_form(mut config: Value, key: &str) -> Value {
    let fields = config.as_object_mut().unwrap();
    let mut rope = fields.remove("rope_parameters").unwrap();
    let rope = rope.as_object_mut().unwrap();
    fields.insert("rope_theta".into(), rope.remove("rope_theta").unwrap());
    let kind = rope.remove("rope_type").unwrap();
    let scaling = if kind == "default" {
        Value::Null
    } else {
        rope.insert(key.into(), kind);
        Value::Object(rope.clone())
    };
    fields.insert("rope_scaling".into(), scaling);
    let dtype = fields.remove("dtype").unwrap();
    fields.insert("torch_dtype".into(), dtype);
    config
}

#[test]
fn configurations_of_transformers_4_mean_the_same() {
    for name in ["llama", "llama-linear", "llama-llama3", "llama-yarn-factors", "qwen2-yarn", "qwen3-tied"] {
        for key in ["rope_type", "type"] {
            let folder = tempfile::tempdir().unwrap();
            let (from, to) = (model_folder(name), folder.path());
            std::fs::copy(from.join("model.safetensors"), to.join("model.safetensors")).unwrap();
            let config = std::fs::read_to_string(from.join("config.json")).unwrap();
            let config = old_form(serde_json::from_str(&config).unwrap(), key);
            std::fs::write(to.join("config.json"), config.to_string()).unwrap();
            let model = load(to, &Device::Cpu).unwrap_or_else(|e| panic!("{name} with {key}: {e}"));
            golden(name).cases[0].check(&model);
        }
    }
}

#[test]
fn smollm2_knows_the_capital_of_france() {
    let file = repository().join("models/SmolLM2-135M-Instruct.Q4_1.gguf");
    if !file.is_file() {
        eprintln!("skipped: {} is missing (scripts/fetch-smollm2 fetches it)", file.display());
        return;
    }
    let model = Pretrained::open_to_train(&file.to_string_lossy(), &Device::Cpu).unwrap();
    let prompt = model.prompt("What is the capital of France?").unwrap();
    let controls = model.controls().unwrap();
    let params = SamplingParams { temperature: 0.0, max_response_tokens: 24, ..SamplingParams::default() };
    let request = Request { id: 0, prompt, samples: 1, first_sample: 0 };
    let mut engine = Engine::new(&model.decoder, &controls, EngineOptions::default());
    let traces = engine.generate(&[request], &params, &mut ()).unwrap();
    let answer = model.tokenizer.decode(traces[0][0].response()).unwrap();
    assert!(answer.contains("Paris"), "the answer: {answer:?}");
    assert!(!traces[0][0].truncated(), "the answer should end by itself: {answer:?}");
    println!("{answer}");
}
