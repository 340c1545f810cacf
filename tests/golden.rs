//! Numbers that another program made: a tiny Llama against transformers, and an answer of SmolLM2.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::Device;
use parallel_r1::engine::{Engine, EngineOptions, Request, SamplingParams};
use parallel_r1::layout::{Layout, Role};
use parallel_r1::model::{Pretrained, load};
use serde::Deserialize;

use super::toys::flat;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// What `tests/reference/llama_tiny.py` writes.
#[derive(Deserialize)]
struct Golden {
    made_by: serde_json::Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    segments: Vec<Segment>,
    tokens: Vec<u32>,
    logits: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct Segment {
    role: Role,
    parents: Vec<usize>,
    len: usize,
}

#[test]
fn a_tiny_llama_has_the_logits_that_transformers_gives_it() {
    let folder = repository().join("tests/golden/llama-tiny");
    let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let golden: Golden = serde_json::from_str(&text).unwrap();
    let model = load(&folder, &Device::Cpu).unwrap();
    assert_eq!(golden.cases.len(), 2, "{}", golden.made_by);
    for case in golden.cases {
        let mut layout = Layout::default();
        for Segment { role, parents, len } in case.segments {
            layout.push(role, &parents, len);
        }
        let visibility = Arc::new(layout.visibility());
        let hidden = model.hidden(&case.tokens, &layout.positions(), &visibility, None).unwrap();
        let logits = flat(&model.logits(&hidden).unwrap());
        let expected = case.logits.concat();
        assert_eq!(logits.len(), expected.len());
        let largest = expected.iter().fold(0f32, |a, x| a.max(x.abs()));
        let gap = logits.iter().zip(&expected).fold(0f32, |a, (x, y)| a.max((x - y).abs()));
        let made_by = &golden.made_by;
        assert!(gap < 1e-4 * largest, "{}: logits up to {largest}, off by {gap:e} ({made_by})", case.name);
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
