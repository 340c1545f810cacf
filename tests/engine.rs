//! The engine on a real, tiny decoder: what it recorded is what a plain pass over the finished
//! trace gives, and no sample depends on its batch-mates, bit for bit.

use std::sync::Arc;

use parallel_r1::engine::{Engine, EngineOptions, Observer, Request, SamplingParams, Trace};
use parallel_r1::layout::{Structure, Target, targets};
use parallel_r1::model::{Config, Decoder, Weights};
use parallel_r1::prompt::tags::Controls;

const VOCAB: usize = 24;

fn controls() -> Controls {
    Controls { tags: Some([0, 1, 2, 3, 4, 5]), end: vec![6], newline: vec![7], path_rewind: 0 }
}

/// Random weights ten times as large as usual, so that what a token sees decides what it predicts.
fn decoder(seed: u64) -> Decoder {
    let config = Config::tiny(VOCAB);
    let small = Decoder::random(&config, seed).unwrap().weights().unwrap();
    let scaled = small.into_iter().map(|(name, tensor)| {
        let scale = if tensor.dims().len() == 1 { 1.0 } else { 10.0 };
        (name, (tensor * scale).unwrap())
    });
    Decoder::new(config, &scaled.collect::<Weights>()).unwrap()
}

fn requests() -> Vec<Request> {
    let prompt = |id: u64, len: u32| (0..len).map(|i| (i * 5 + id as u32) % VOCAB as u32).collect();
    [(0, 3, 6), (1, 41, 4), (2, 17, 7)]
        .map(|(id, len, samples)| Request { id, prompt: prompt(id, len), samples, first_sample: 0 })
        .to_vec()
}

fn params(structure: Structure) -> SamplingParams {
    SamplingParams {
        structure,
        num_paths: 3,
        max_blocks: 3,
        max_nesting: 2,
        max_response_tokens: 90,
        min_path_tokens: 4,
        reserve_tokens: 8,
        seed: 11,
        ..SamplingParams::default()
    }
}

fn sample(
    decoder: &Decoder,
    requests: &[Request],
    params: &SamplingParams,
    max_batch: usize,
) -> Vec<Vec<Trace>> {
    let options = EngineOptions { max_batch, ..EngineOptions::default() };
    let mut engine = Engine::new(decoder, &controls(), options);
    let traces = engine.generate(requests, params, &mut ()).unwrap();
    assert_eq!(engine.stats().reread_tokens, 0);
    traces
}

/// Log-probabilities of a trace's actions by one pass over all of it, without a cache.
fn recomputed(decoder: &Decoder, trace: &Trace) -> Vec<(usize, f32)> {
    let (layout, controls) = (&trace.layout, controls());
    let visibility = Arc::new(layout.visibility());
    let hidden = decoder.hidden(&trace.tokens, &layout.positions(), &visibility, None).unwrap();
    let logits: Vec<Vec<f32>> = decoder.logits(&hidden).unwrap().to_vec2().unwrap();
    let of = |target: Target| {
        let mut row = logits[target.predictor].clone();
        row.iter_mut().for_each(|logit| *logit /= trace.temperatures[target.token]);
        trace.allowed[target.token].mask(&mut row, &controls);
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let total: f32 = row.iter().map(|x| (x - top).exp()).sum();
        (target.token, row[trace.tokens[target.token] as usize] - top - total.ln())
    };
    targets(layout, &trace.sampled).unwrap().into_iter().map(of).collect()
}

#[test]
fn parity_of_a_sampled_trace_with_a_plain_pass_over_it() {
    let structures = [Structure::PathWindow, Structure::Causal, Structure::PathWindow];
    for (seed, structure) in (1..).zip(structures) {
        let decoder = decoder(seed);
        let temperatures = (0.8, Some(1.2));
        let params = SamplingParams {
            temperature: temperatures.0,
            path_temperature: temperatures.1,
            ..params(structure)
        };
        let traces: Vec<Trace> = sample(&decoder, &requests(), &params, 64).into_iter().flatten().collect();
        assert_eq!(traces.len(), 17);
        assert!(traces.iter().any(|trace| trace.blocks() > 0), "some of the traces have blocks");
        for trace in &traces {
            for (token, expected) in recomputed(&decoder, trace) {
                let recorded = trace.logprobs[token];
                let gap = (recorded - expected).abs();
                assert!(gap < 1e-4, "token {token}: recorded {recorded}, recomputed {expected}");
            }
        }
    }
}

#[test]
fn a_sample_does_not_depend_on_its_batch_mates_bit_for_bit() {
    for structure in [Structure::PathWindow, Structure::Causal] {
        let (decoder, params) = (decoder(5), params(structure));
        let together = sample(&decoder, &requests(), &params, 17);
        for (request, traces) in requests().iter().zip(&together) {
            for trace in traces {
                let alone = Request { samples: 1, first_sample: trace.sample, ..request.clone() };
                assert_eq!(&sample(&decoder, &[alone], &params, 1)[0][0], trace);
            }
        }
    }
}

#[test]
fn an_engine_can_be_used_again() {
    let (decoder, params) = (decoder(7), params(Structure::PathWindow));
    let mut engine = Engine::new(&decoder, &controls(), EngineOptions::default());
    let first = engine.generate(&requests(), &params, &mut ()).unwrap();
    assert_eq!(engine.generate(&requests(), &params, &mut ()).unwrap(), first);
}

/// Stops the first request after one sample.
struct OneIsEnough;

impl Observer for OneIsEnough {
    fn wants(&mut self, request: u64) -> bool {
        request != 0
    }
}

#[test]
fn a_request_left_early_leaves_the_others_as_they_are() {
    let (decoder, params) = (decoder(9), params(Structure::PathWindow));
    let all = sample(&decoder, &requests(), &params, 8);
    let options = EngineOptions { max_batch: 8, ..EngineOptions::default() };
    let mut engine = Engine::new(&decoder, &controls(), options);
    let some = engine.generate(&requests(), &params, &mut OneIsEnough).unwrap();
    assert!(!some[0].is_empty() && some[0].len() < all[0].len());
    assert_eq!(some[1..], all[1..]);
}
