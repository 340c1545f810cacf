//! The law: the log-probability that the engine recorded for a sampled token is the trainer's, whatever the number
//! of paths, blocks and batch-mates. Random models, random structures, both ways of computing.

use std::collections::BTreeSet;
use std::sync::Arc;

use candle_core::Tensor;
use parallel_r1::engine::{EngineOptions, EngineStats, Finish, Request, SamplingParams, Trace};
use parallel_r1::layout::{Role, Segment, Structure};
use parallel_r1::model::{Decoder, Gradients, Precision};
use parallel_r1::prompt::tags::{Control, Controls, Grammar, Tag};
use parallel_r1::train::batch::{MicroBatch, Sequence, columns, split};
use parallel_r1::train::loss::{ActionData, Clip, policy_loss};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::toys::{adapted, configs, controls, decoder, distance, flat, requests, sample};

/// In f32, over sums of up to some hundred terms.
const TOLERANCE: f32 = 1e-4;

/// A model, what to sample from it and how, all drawn from a seed.
struct Case {
    decoder: Decoder,
    controls: Arc<Controls>,
    requests: Vec<Request>,
    params: SamplingParams,
    options: EngineOptions,
    micro_batch_tokens: usize,
}

impl Case {
    fn random(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let configs = configs();
        let config = &configs[seed as usize % configs.len()];
        let structure = if rng.random() { Structure::PathWindow } else { Structure::Causal };
        let groups: Vec<(usize, usize)> = (0..rng.random_range(1..5usize))
            .map(|_| (rng.random_range(1..40usize), rng.random_range(1..7usize)))
            .collect();
        // Blocks within paths need few paths and much room; cut paths need little.
        let deep = seed.is_multiple_of(3);
        let min_path = rng.random_range(3..6usize);
        let params = SamplingParams {
            structure,
            temperature: [1.0, 0.7, 1.4][rng.random_range(0..3usize)],
            path_temperature: [None, Some(1.2), Some(0.8)][rng.random_range(0..3usize)],
            num_paths: if deep { 1 + seed as usize / 3 % 2 } else { 1 + seed as usize / 4 % 5 },
            max_blocks: if deep { 12 } else { rng.random_range(1..6) },
            max_nesting: if deep { 3 } else { 1 },
            max_response_tokens: if deep { 240 } else { rng.random_range(40..160) },
            max_path_tokens: (!deep && rng.random()).then(|| rng.random_range(min_path..10)),
            min_path_tokens: min_path,
            reserve_tokens: rng.random_range(4..10),
            seed,
            ..SamplingParams::default()
        };
        Self {
            decoder: decoder(config, seed, [5.0, 10.0, 15.0][rng.random_range(0..3usize)]),
            controls: Arc::new(Controls { path_rewind: seed as u32 % 5, ..(*controls()).clone() }),
            requests: requests(&groups),
            params,
            options: EngineOptions { max_batch: rng.random_range(1..40), ..EngineOptions::default() },
            micro_batch_tokens: rng.random_range(1..900),
        }
    }

    fn traces(&self) -> (Vec<Trace>, EngineStats) {
        let (groups, stats) =
            sample(&self.decoder, &self.controls, &self.requests, &self.params, self.options);
        (groups.into_iter().flatten().collect(), stats)
    }

    /// The trainer's log-probability and entropy of every token of every trace; not a number where none is due.
    fn trained(&self, traces: &[Trace]) -> Vec<Vec<(f32, f32)>> {
        let sequences: Vec<Sequence> = traces.iter().map(Sequence::from).collect();
        let mut result: Vec<Vec<(f32, f32)>> =
            traces.iter().map(|trace| vec![(f32::NAN, f32::NAN); trace.tokens.len()]).collect();
        for run in split(&sequences, self.micro_batch_tokens) {
            let micro = MicroBatch::new(&sequences, run).unwrap();
            let scored = micro.score(&self.decoder, &self.controls).unwrap();
            let (log_probs, entropies) = columns(scored.pairs()).unwrap();
            for ((action, log_prob), entropy) in micro.actions().iter().zip(log_probs).zip(entropies) {
                let place = &mut result[action.sequence][action.token];
                assert!(place.0.is_nan(), "{action:?} stands twice in the micro-batches");
                *place = (log_prob, entropy);
            }
        }
        result
    }
}

/// What the random cases have exercised, so that the test can't pass for want of structure.
#[derive(Debug, Default)]
struct Coverage {
    path_counts: BTreeSet<usize>,
    several_blocks: [usize; 2],
    nested: usize,
    cut_paths: usize,
    truncated: usize,
    complete: usize,
    moved_back: usize,
}

impl Coverage {
    fn add(&mut self, trace: &Trace) {
        let segments = trace.layout.segments();
        let joins = segments.iter().filter(|segment| segment.role == Role::Join);
        self.path_counts.extend(joins.map(|join| join.parents.len()));
        let structure = usize::from(trace.structure == Structure::Causal);
        self.several_blocks[structure] += usize::from(trace.blocks() >= 2);
        let in_path = |id: &usize| segments[*id].role == Role::Path;
        let inner = |role| move |segment: &&Segment| segment.role == role;
        self.nested +=
            segments.iter().filter(inner(Role::Path)).filter(|s| s.parents.iter().any(in_path)).count();
        let back = |s: &Segment| s.role == Role::Path && s.start < trace.layout.end(s.parents[0]);
        self.moved_back += usize::from(segments.iter().any(back));
        self.cut_paths += trace.cut_paths();
        self.truncated += usize::from(trace.truncated());
        self.complete += usize::from(trace.finish.last() == Some(&Finish::Sampled));
    }

    fn check(&self) {
        assert_eq!(self.path_counts, (1..=5).collect(), "numbers of paths: {self:?}");
        let enough = [
            self.several_blocks[0],
            self.several_blocks[1],
            self.nested,
            self.cut_paths,
            self.truncated,
            self.complete,
            self.moved_back,
        ];
        assert!(enough.iter().all(|&count| count >= 10), "the cases exercise too little: {self:?}");
    }
}

#[test]
fn parity_of_recorded_and_trained_log_probabilities() {
    let mut coverage = Coverage::default();
    for seed in 0..48 {
        let case = Case::random(seed);
        let (traces, stats) = case.traces();
        let mut entropy = 0.0;
        for (trace, trained) in traces.iter().zip(case.trained(&traces)) {
            coverage.add(trace);
            for (token, (log_prob, token_entropy)) in trained.into_iter().enumerate() {
                assert_eq!(trace.sampled[token], !log_prob.is_nan(), "seed {seed}, token {token}");
                if trace.sampled[token] {
                    let gap = (trace.logprobs[token] - log_prob).abs();
                    let recorded = trace.logprobs[token];
                    assert!(gap < TOLERANCE, "seed {seed}, token {token}: {recorded} and {log_prob}");
                    entropy += f64::from(token_entropy);
                }
            }
        }
        let mean_gap = (entropy - stats.entropy).abs() / stats.sampled_tokens as f64;
        assert!(mean_gap < f64::from(TOLERANCE), "seed {seed}: entropies {entropy} and {}", stats.entropy);
    }
    coverage.check();
}

#[test]
fn parity_with_adapters_and_in_bfloat16() {
    for seed in 0..28 {
        let mut case = Case::random(seed);
        let precision = if seed % 4 < 2 { Precision::Bf16 } else { Precision::F32 };
        let plain = case.decoder.copy().unwrap();
        let decoder = if seed % 2 == 0 { adapted(case.decoder, seed) } else { case.decoder };
        case.decoder = decoder.with_precision(precision).unwrap();
        let (traces, _) = case.traces();
        let mut moved = 0f32;
        for (trace, trained) in traces.iter().zip(case.trained(&traces)) {
            for (token, (log_prob, _)) in trained.into_iter().enumerate().filter(|(i, _)| trace.sampled[*i]) {
                let gap = (trace.logprobs[token] - log_prob).abs();
                assert!(gap < TOLERANCE, "seed {seed}, {precision:?}, token {token}: off by {gap}");
            }
        }
        case.decoder = plain;
        for (trace, trained) in traces.iter().zip(case.trained(&traces)) {
            let gaps = trace.logprobs.iter().zip(trained).map(|(ours, (other, _))| (ours - other).abs());
            moved = moved.max(gaps.filter(|gap| gap.is_finite()).fold(0.0, f32::max));
        }
        assert!(seed % 4 == 3 || moved > 1e-3, "seed {seed}: adapter and rounding change nothing ({moved})");
    }
}

#[test]
fn parity_of_greedy_answers_and_of_models_without_tags() {
    for seed in 0..6 {
        let mut case = Case::random(seed);
        if seed % 2 == 0 {
            // Greedy: recorded and trained at temperature 1.
            (case.params.temperature, case.params.path_temperature) = (0.0, None);
        } else {
            // A tokenizer without the tags: ids 0 to 5 are words like others, and everything is one chain.
            case.controls = Arc::new(Controls { tags: None, end: vec![6], newline: vec![7], path_rewind: 0 });
        }
        let (traces, _) = case.traces();
        for (trace, trained) in traces.iter().zip(case.trained(&traces)) {
            assert!(seed % 2 == 0 || trace.layout.segments().len() == 2);
            for (token, (log_prob, _)) in trained.into_iter().enumerate().filter(|(i, _)| trace.sampled[*i]) {
                let gap = (trace.logprobs[token] - log_prob).abs();
                assert!(gap < TOLERANCE, "seed {seed}, token {token}");
            }
        }
    }
}

#[test]
fn parity_of_recorded_legal_sets_and_the_grammar() {
    // The engine may take away tags that its limits forbid; nothing else.
    let limited = [Tag::Parallel, Tag::Path].map(Control::Tag);
    let mut limits_met = 0;
    for seed in 0..24 {
        let case = Case::random(seed);
        for trace in case.traces().0 {
            let mut grammar = Grammar::new(&case.controls);
            for token in trace.prompt_len..trace.tokens.len() {
                let (id, allowed, legal) = (trace.tokens[token], trace.allowed[token], grammar.allowed());
                if trace.sampled[token] {
                    assert!(allowed.permits(id, &case.controls), "seed {seed}, token {token}");
                    let missing = limited.iter().filter(|&&c| legal.contains(c) && !allowed.contains(c));
                    let restored = missing.fold(allowed, |set, &control| set.with(control));
                    assert_eq!(restored, legal, "seed {seed}, token {token}");
                    limits_met += usize::from(allowed != legal);
                }
                grammar.push(id).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
            }
            assert!(trace.truncated() || grammar.finished(), "seed {seed}");
        }
    }
    assert!(limits_met > 100, "limits were met only {limits_met} times");
}

#[test]
fn parity_of_a_sample_alone_and_among_sixteen_others_bit_for_bit() {
    for seed in 0..16 {
        let mut case = Case::random(seed);
        case.requests = requests(&[(5, 1), (33, 7), (1, 4), (18, 5)]);
        case.options.max_batch = 17;
        let (together, _) = case.traces();
        assert_eq!(together.len(), 17);
        let wanted = Request { samples: 1, ..case.requests[0].clone() };
        let later = Request { samples: 1, first_sample: 3, ..case.requests[1].clone() };
        for (request, index) in [(wanted, 0), (later, 1 + 3)] {
            case.requests = vec![request];
            let (alone, _) = case.traces();
            let bits = |trace: &Trace| trace.logprobs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(alone[0].tokens, together[index].tokens, "seed {seed}");
            assert_eq!(bits(&alone[0]), bits(&together[index]), "seed {seed}");
            assert_eq!(alone[0], together[index], "seed {seed}");
        }
    }
}

/// Loss and gradients of some sequences, in one micro-batch for each run.
fn learned(decoder: &Decoder, sequences: &[Sequence], runs: Vec<std::ops::Range<usize>>) -> (f64, Gradients) {
    let clip = Clip { epsilon_low: 0.2, epsilon_high: 0.28, dual: None, beta: 0.1 };
    let (mut loss, mut gradients) = (0.0, Gradients::default());
    let total: usize = sequences.iter().map(Sequence::actions).sum();
    for run in runs {
        let micro = MicroBatch::new(sequences, run).unwrap();
        let controls = controls();
        let scored = micro.score(decoder, &controls).unwrap();
        let log_probs = scored.pairs().narrow(1, 0, 1).unwrap().squeeze(1).unwrap();
        let now = flat(&log_probs);
        // Advantages and old log-probabilities that depend on the action, not on the packing.
        let advantages = micro.actions().iter().map(|a| (a.sequence % 3) as f32 - 0.9).collect();
        let of = |shift: f32| -> Vec<f32> {
            let gap = |token: usize| shift * [1.0, -0.5, 0.25][token % 3];
            micro.actions().iter().zip(&now).map(|(a, now)| now + gap(a.token)).collect()
        };
        let weights = vec![1.0 / total as f32; now.len()];
        let data = ActionData { advantages, old: of(0.1), reference: Some(of(0.4)), weights };
        let part: Tensor = policy_loss(&log_probs, &data, clip).unwrap();
        loss += f64::from(part.to_scalar::<f32>().unwrap());
        scored.backward(&part, &mut gradients).unwrap();
    }
    (loss, gradients)
}

#[test]
fn parity_of_a_packed_group_and_its_traces_one_by_one() {
    for seed in 0..12 {
        let mut case = Case::random(seed);
        case.requests = requests(&[(9, 5), (14, 3)]);
        let sequences: Vec<Sequence> = case.traces().0.iter().map(Sequence::from).collect();
        let n = sequences.len();
        let (packed_loss, packed) = learned(&case.decoder, &sequences, split(&sequences, usize::MAX));
        let (loss, single) = learned(&case.decoder, &sequences, (0..n).map(|i| i..i + 1).collect());
        let gap = (packed_loss - loss).abs() / loss.abs();
        assert!(gap < 1e-5, "seed {seed}: loss {packed_loss} packed, {loss} one by one");
        for name in case.decoder.vars().keys() {
            let (a, b) = (flat(packed.get(name).unwrap()), flat(single.get(name).unwrap()));
            let gap = distance(&a, &b);
            assert!(gap < 1e-5, "seed {seed}, {name}: gradients differ by {gap:e} of their norm");
        }
    }
}
