//! Small random models and prompts, and the arithmetic that several tests share.

use std::sync::Arc;

use candle_core::Tensor;
use parallel_r1::engine::{Engine, EngineOptions, EngineStats, Request, SamplingParams, Trace};
use parallel_r1::layout::{Structure, parse};
use parallel_r1::model::{Config, Decoder, Family, LoraConfig, RopeScaling, Weights, Yarn};
use parallel_r1::prompt::{AllowedSet, Control, Controls};
use parallel_r1::train::batch::Sequence;

/// Tokens of the toy models: the six tags, end-of-text, newline, and words.
pub(crate) const VOCAB: usize = 24;

/// What steers structure among them.
pub(crate) fn controls() -> Arc<Controls> {
    Arc::new(Controls { tags: Some([0, 1, 2, 3, 4, 5]), end: vec![6], newline: vec![7], path_rewind: 0 })
}

/// Shapes that take different ways through the kernels: grouped queries or not, head widths that fill vector
/// registers or don't, heads wider than the model, tied and untied output heads, the three families, scaled positions.
pub(crate) fn configs() -> Vec<Config> {
    let llama = |hidden, inner, layers, heads| Config::llama(VOCAB, hidden, inner, layers, heads);
    vec![
        Config::tiny(VOCAB),
        Config { tie_word_embeddings: false, ..llama(24, 40, 3, 3) },
        Config { num_key_value_heads: Some(1), head_dim: Some(6), ..llama(24, 20, 2, 4) },
        Config {
            num_key_value_heads: Some(2),
            head_dim: Some(16),
            tie_word_embeddings: false,
            ..llama(20, 28, 1, 6)
        },
        Config::tiny(VOCAB).of_family(Family::Qwen2),
        Config { head_dim: Some(16), tie_word_embeddings: false, ..Config::tiny(VOCAB) }
            .of_family(Family::Qwen3),
        Config {
            attention_bias: true,
            mlp_bias: true,
            rope_scaling: Some(RopeScaling::Yarn(Yarn {
                factor: 4.0,
                original_max_position_embeddings: Some(32),
                ..Yarn::default()
            })),
            ..Config::tiny(VOCAB)
        },
    ]
}

/// A random model with its matrices `scale` times as large as usual, so that what a token sees decides what it
/// predicts. (As they are, all distributions are nearly flat, and a test that sees nothing would pass.) Vectors (norms,
/// biases) vary by element.
pub(crate) fn decoder(config: &Config, seed: u64, scale: f64) -> Decoder {
    let weights = Decoder::random(config, seed).unwrap().weights().unwrap();
    let scaled = weights.into_iter().map(|(name, tensor)| {
        let tensor = if tensor.rank() > 1 { (tensor * scale).unwrap() } else { varied(&tensor) };
        (name, tensor)
    });
    Decoder::new(config.clone(), &scaled.collect::<Weights>()).unwrap()
}

fn varied(vector: &Tensor) -> Tensor {
    let waves = (0..vector.elem_count()).map(|i| 0.2 * (1.7 * i as f32 + 0.3).sin()).collect::<Vec<_>>();
    (vector + Tensor::from_vec(waves, vector.shape(), vector.device()).unwrap()).unwrap()
}

/// The same model with an adapter that changes something, and trainable rows of the tags.
pub(crate) fn adapted(decoder: Decoder, seed: u64) -> Decoder {
    let lora = LoraConfig { r: 3, lora_alpha: 6.0, ..LoraConfig::default() };
    let mut decoder = decoder.with_lora(&lora, &[0, 1, 2, 3, 4, 5], "toy", seed).unwrap();
    for (_, var) in decoder.vars().iter().filter(|(name, _)| name.contains("lora_B")) {
        let data = (0..var.elem_count()).map(|i| 0.1 * (i as f32 * 0.7).sin()).collect::<Vec<_>>();
        var.set(&Tensor::from_vec(data, var.shape(), var.device()).unwrap()).unwrap();
    }
    decoder.refresh().unwrap();
    decoder
}

/// A prompt of `len` tokens, tags among them, which are inert there.
pub(crate) fn prompt(id: u64, len: usize) -> Vec<u32> {
    (0..len as u64).map(|i| ((i * 5 + id * 7 + i * i % 3) % VOCAB as u64) as u32).collect()
}

/// Requests for `samples` responses each, to prompts of different lengths.
pub(crate) fn requests(groups: &[(usize, usize)]) -> Vec<Request> {
    let request = |(id, &(len, samples)): (usize, &(usize, usize))| Request {
        id: id as u64,
        prompt: prompt(id as u64, len),
        samples,
        first_sample: 0,
    };
    groups.iter().enumerate().map(request).collect()
}

/// Samples all requests; also what the engine counted.
pub(crate) fn sample(
    decoder: &Decoder,
    controls: &Controls,
    requests: &[Request],
    params: &SamplingParams,
    options: EngineOptions,
) -> (Vec<Vec<Trace>>, EngineStats) {
    let mut engine = Engine::new(decoder, controls, options);
    let traces = engine.generate(requests, params, &mut ()).unwrap();
    (traces, engine.stats())
}

/// A demonstration, with temperatures and legal sets as a sampled one might have them.
pub(crate) fn demonstration(prompt: &[u32], response: &[u32], structure: Structure) -> Sequence {
    let mut sequence = Sequence::from(parse(prompt, response, &controls(), structure).unwrap());
    for (i, temperature) in sequence.temperatures.iter_mut().enumerate() {
        *temperature = [1.0, 0.7, 1.3][i % 3];
    }
    for (allowed, &token) in sequence.allowed.iter_mut().zip(&sequence.tokens).step_by(2) {
        // As if the limit of blocks had been reached.
        if token != 0 && *allowed != AllowedSet::NONE {
            *allowed = allowed.without(Control::Tag(parallel_r1::prompt::Tag::Parallel));
        }
    }
    sequence
}

/// Two paths and a summary, then a block with a block in its first path; 8.. are words.
pub(crate) const FORK_JOIN: &[u32] = &[
    9, 10, 0, 2, 11, 12, 13, 3, 2, 14, 3, 1, 7, 4, 15, 16, 5, 17, // one block
    0, 2, 18, 0, 2, 19, 3, 2, 20, 8, 3, 1, 7, 4, 21, 5, 3, 2, 22, 23, 3, 2, 9, 3, 1, 7, 4, 10, 5, 11, 6,
];

/// All elements of a tensor.
pub(crate) fn flat(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

/// `|a - b| / |b|`, of vectors.
pub(crate) fn distance(a: &[f32], b: &[f32]) -> f64 {
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
    let gap = norm(&mut a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    gap / norm(&mut b.iter().map(|b| f64::from(*b))).max(f64::MIN_POSITIVE)
}
