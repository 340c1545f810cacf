//! What a recipe will take, before it runs: steps, tokens, memory and time.
//!
//! Tokens to learn from demonstrations are measured on the first of them; sampled tokens are counted as if every
//! response filled its budget, so they and the times are upper bounds. Time is arithmetic over the rate of this machine:
//! a token of a model with P parameters takes 2 P floating-point operations forward and 4 P backward.

use std::path::{Path, PathBuf};
use std::time::Instant;

use candle_core::{DType, Device, Tensor};
use serde::Serialize;

use super::Result;
use super::demonstrations::Demonstrations;
use super::problems::Problems;
use super::recipe::{Arm, DemonstrationData, GrpoConfig, Recipe, SftConfig, Stage};
use crate::model::{EMBEDDED, Info, Memory};
use crate::prompt::{Tag, Tokenizer};

/// Demonstrations that are measured.
const MEASURED: usize = 64;
/// Characters of a token of English and mathematics, where the tokenizer is not at hand.
const CHARACTERS_PER_TOKEN: f64 = 3.0;
/// The parts of the rate of a large product that training and sampling reach: 20,700 and 34,500 tokens a second of the
/// embedded model where a product runs at 218 GFLOP/s (`train`, its parallel arm, medians of metrics.jsonl).
const TRAINING_SHARE: f64 = 0.41;
const SAMPLING_SHARE: f64 = 0.24;

/// What a recipe takes.
#[derive(Clone, Debug, Serialize)]
pub struct Estimate {
    /// Each stage of each arm, in order.
    pub stages: Vec<StageEstimate>,
    /// Tokens that all evaluations sample, at most.
    pub evaluation_tokens: u64,
    /// Parameters of the model, where its files are at hand.
    pub parameters: Option<u64>,
    /// Bytes of memory, at the stage that takes most.
    pub memory: Option<u64>,
    /// Seconds on this machine, at most.
    pub seconds: Option<f64>,
    /// Files and names on the Hub that the recipe needs and that are not on this machine.
    pub missing: Vec<String>,
}

/// What a stage takes. What its files would tell is `None` where they are not at hand.
#[derive(Clone, Debug, Serialize)]
pub struct StageEstimate {
    /// The arm.
    pub arm: String,
    /// The stage.
    pub stage: String,
    /// `sft` or `grpo`.
    pub kind: &'static str,
    /// Optimizer steps (rounds of sampling for `grpo`), at most.
    pub steps: Option<u64>,
    /// Tokens that are sampled, at most.
    pub sampled_tokens: Option<u64>,
    /// Tokens that gradients are computed for, at most.
    pub learned_tokens: Option<u64>,
    /// Seconds on this machine, at most.
    pub seconds: Option<f64>,
}

/// Sizes of the model that is trained.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Number of parameters.
    pub parameters: u64,
    /// Memory by use.
    pub memory: Memory,
}

impl Sizes {
    /// The sizes of a recipe's model. Where its files are not here, what its name says: `Qwen3-4B-Base` has about 4
    /// billion parameters; the memory is then that of weights, gradients and moments alone. `None` if it says nothing.
    pub fn of(recipe: &Recipe) -> Result<Option<Self>> {
        if let Some(init) = &recipe.model.init {
            let config = init.config(Tokenizer::characters().vocab_size());
            return Ok(Some(Self {
                parameters: config.parameters() as u64,
                memory: Memory::new(&config, None),
            }));
        }
        let path = &recipe.model.path;
        if path != EMBEDDED && !Path::new(path).exists() {
            return Ok(Self::from_name(recipe.model.name()));
        }
        let info = Info::read(path)?;
        Ok(Some(Self { parameters: info.parameters, memory: info.memory }))
    }

    fn from_name(name: &str) -> Option<Self> {
        let unit = |part: &str| {
            let (unit, digits) = match part.to_ascii_uppercase().chars().next_back()? {
                'B' => (1e9, &part[..part.len() - 1]),
                'M' => (1e6, &part[..part.len() - 1]),
                _ => return None,
            };
            digits.parse::<f64>().ok().filter(|n| (0.0..1e6).contains(n)).map(|n| (n * unit) as u64)
        };
        let parameters = name.rsplit(['/', '-', '_']).find_map(unit)?;
        let weights = 4 * parameters; // f32
        let (run, train, train_lora) = (weights, 4 * weights, weights);
        let memory = Memory { run, cache_per_token: 0, train, train_lora, activations_per_token: 0 };
        Some(Self { parameters, memory })
    }
}

/// Floating-point operations a second of a large product on this machine, the best of a few tries.
pub fn product_rate(device: &Device) -> Result<f64> {
    const N: usize = 768;
    let a = Tensor::ones((N, N), DType::F32, device)?;
    let mut best = f64::INFINITY;
    for _ in 0..8 {
        let started = Instant::now();
        a.matmul(&a)?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok(2.0 * (N * N * N) as f64 / best.max(1e-9))
}

/// Estimates a recipe. `rate` is that of [`product_rate`]; without sizes there is no memory and no time.
pub fn estimate(recipe: &Recipe, sizes: Option<Sizes>, rate: f64) -> Result<Estimate> {
    let mut stages = Vec::new();
    for arm in &recipe.arms {
        for stage in &arm.stages {
            stages.push(stage_estimate(recipe, arm, stage, sizes, rate)?);
        }
    }
    let evaluation_tokens = evaluation_tokens(recipe);
    let sampling = sizes.map(|sizes| evaluation_tokens as f64 * forward(sizes) / (rate * SAMPLING_SHARE));
    let times: Option<Vec<f64>> = stages.iter().map(|stage| stage.seconds).chain([sampling]).collect();
    Ok(Estimate {
        stages,
        evaluation_tokens,
        parameters: sizes.map(|sizes| sizes.parameters),
        memory: sizes.map(|sizes| memory(recipe, sizes)),
        seconds: times.map(|times| times.iter().sum()),
        missing: missing(recipe),
    })
}

fn missing(recipe: &Recipe) -> Vec<String> {
    let stages = || recipe.arms.iter().flat_map(|arm| &arm.stages);
    let shown = stages().filter_map(|stage| stage.sft.as_ref()?.data.file.as_deref());
    let asked = stages().filter_map(|stage| stage.grpo.as_ref()).flat_map(|grpo| grpo.data.files());
    let tests = recipe.evaluation.iter().flat_map(|evaluation| &evaluation.files).map(PathBuf::as_path);
    let model = Some(Path::new(&recipe.model.path));
    let model = model.filter(|path| recipe.model.init.is_none() && *path != Path::new(EMBEDDED));
    let needed = model.into_iter().chain(shown).chain(asked).chain(tests);
    let mut missing: Vec<String> =
        needed.filter(|path| !path.exists()).map(|path| path.display().to_string()).collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

fn forward(sizes: Sizes) -> f64 {
    2.0 * sizes.parameters as f64
}

fn stage_estimate(
    recipe: &Recipe,
    arm: &Arm,
    stage: &Stage,
    sizes: Option<Sizes>,
    rate: f64,
) -> Result<StageEstimate> {
    let steps = steps(stage)?;
    if let Some(data) =
        stage.grpo.as_ref().map(|grpo| &grpo.data).filter(|data| data.files().all(Path::exists))
    {
        Problems::open(data)?; // whether they can be read
    }
    let (sampled, learned) = match (&stage.sft, &stage.grpo) {
        (Some(sft), _) => (Some(0), demonstrated(recipe, sft, steps)?),
        (_, Some(grpo)) => {
            (sampled(recipe, arm, grpo, steps, true), sampled(recipe, arm, grpo, steps, false))
        }
        (None, None) => (None, None),
    };
    let share = share_until_stop(stage, if stage.sft.is_some() { learned } else { sampled }, steps);
    let until_stop = |tokens: u64| (tokens as f64 * share).round() as u64;
    let (sampled, learned) = (sampled.map(until_stop), learned.map(until_stop));
    let seconds = |sizes: Sizes| {
        let sampling = sampled? as f64 * forward(sizes) / (rate * SAMPLING_SHARE);
        Some(sampling + learned? as f64 * 3.0 * forward(sizes) / (rate * TRAINING_SHARE))
    };
    Ok(StageEstimate {
        arm: arm.name.clone(),
        stage: stage.name.clone(),
        kind: if stage.sft.is_some() { "sft" } else { "grpo" },
        steps,
        sampled_tokens: sampled,
        learned_tokens: learned,
        seconds: sizes.and_then(seconds),
    })
}

/// The share of its `tokens` after which a stage ends that stops at a number of them: with the step that reaches it.
fn share_until_stop(stage: &Stage, tokens: Option<u64>, steps: Option<u64>) -> f64 {
    let most = stage.stop.as_ref().and_then(|stop| stop.tokens);
    let (Some(most), Some(tokens), Some(steps)) = (most, tokens, steps) else { return 1.0 };
    let of_step = tokens as f64 / steps.max(1) as f64;
    ((most as f64 + of_step) / tokens.max(1) as f64).min(1.0)
}

/// The steps of a stage; those of epochs only where the rows can be counted.
fn steps(stage: &Stage) -> Result<Option<u64>> {
    let in_epochs = stage.sft.as_ref().is_some_and(|s| s.epochs.is_some())
        || stage.grpo.as_ref().is_some_and(|g| g.epochs.is_some());
    let shown = stage.sft.as_ref().is_none_or(|sft| here(&sft.data));
    let asked = stage.grpo.as_ref().is_none_or(|grpo| grpo.data.files().all(Path::exists));
    if in_epochs && !(shown && asked) {
        return Ok(None);
    }
    Ok(Some(stage.counted()?.steps() as u64))
}

fn here(data: &DemonstrationData) -> bool {
    data.parts().iter().all(|part| part.file.as_ref().is_none_or(|file| file.exists()))
}

/// Tokens of the demonstrations that a stage sees.
fn demonstrated(recipe: &Recipe, sft: &SftConfig, steps: Option<u64>) -> Result<Option<u64>> {
    let Some(steps) = steps.filter(|_| here(&sft.data)) else { return Ok(None) };
    let rows = Demonstrations::open(&sft.data)?.rows(recipe.seed, 0, MEASURED)?;
    let characters: usize =
        rows.iter().map(|row| row.problem.problem.chars().count() + length(&row.response)).sum();
    let by_character = recipe.model.path == EMBEDDED || recipe.model.init.is_some();
    let per_token = if by_character { 1.0 } else { CHARACTERS_PER_TOKEN };
    let mean = characters as f64 / rows.len().max(1) as f64 / per_token;
    Ok(Some(((steps * sft.batch_size as u64) as f64 * mean).round() as u64))
}

/// Characters of a response, each tag as one.
fn length(response: &str) -> usize {
    let more = |tag: Tag| response.matches(tag.text()).count() * (tag.text().len() - 1);
    response.chars().count() - Tag::ALL.into_iter().map(more).sum::<usize>()
}

/// Tokens that a stage samples, its resampling rounds included, or else learns from.
fn sampled(recipe: &Recipe, arm: &Arm, grpo: &GrpoConfig, steps: Option<u64>, drawn: bool) -> Option<u64> {
    let sampling = grpo.sampling(&arm.sampling(&recipe.sampling));
    let rounds = if drawn { 1 + grpo.resample_rounds } else { grpo.num_iterations };
    let responses = steps?.saturating_mul((grpo.prompts * grpo.num_generations) as u64);
    Some(responses.saturating_mul((rounds * sampling.max_response_tokens) as u64))
}

fn evaluation_tokens(recipe: &Recipe) -> u64 {
    let Some(evaluation) = &recipe.evaluation else { return 0 };
    let tiers = evaluation.countdown.as_ref().map_or(0, |c| c.tiers.len())
        + evaluation.arithmetic.as_ref().map_or(0, |a| a.tiers.len())
        + evaluation.files.len();
    let stages = recipe.arms.iter().flat_map(|arm| &arm.stages).filter(|stage| stage.evaluate).count();
    let columns = stages + usize::from(recipe.model.init.is_none());
    let responses = columns * tiers * evaluation.problems * evaluation.samples;
    (responses as u64).saturating_mul(recipe.sampling.max_response_tokens as u64)
}

/// The largest of all stages: trained weights with gradients and moments, the activations of a micro-batch, the cache,
/// and a reference model where there is a KL term.
fn memory(recipe: &Recipe, sizes: Sizes) -> u64 {
    let Memory { run, cache_per_token, train, train_lora, activations_per_token, .. } = sizes.memory;
    let weights = if recipe.model.lora.is_some() { train_lora } else { train };
    let of_stage = |stage: &Stage| {
        let sft = stage.sft.as_ref().map_or(0, |sft| sft.micro_batch_tokens as u64 * activations_per_token);
        let grpo = stage.grpo.as_ref().map_or(0, |grpo| {
            let cache = recipe.engine.cache_tokens as u64 * cache_per_token;
            let reference = if grpo.beta == 0.0 { 0 } else { run };
            // Sampling and learning follow one another.
            reference + cache.max(grpo.micro_batch_tokens as u64 * activations_per_token)
        });
        sft.max(grpo)
    };
    let stages = recipe.arms.iter().flat_map(|arm| &arm.stages);
    weights + stages.map(of_stage).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMOKE: &str = include_str!("../../recipes/countdown/smoke.toml");

    fn recipe(overrides: &[&str]) -> Recipe {
        let overrides: Vec<String> = overrides.iter().map(|o| o.to_string()).collect();
        Recipe::parse("test.toml", SMOKE, &overrides, Path::new("")).unwrap()
    }

    #[test]
    fn tokens_and_time_by_hand() {
        let recipe = recipe(&["arms.0.stages.1.grpo.num_iterations=3"]);
        let sizes = Sizes::of(&recipe).unwrap();
        let estimate = estimate(&recipe, sizes, 1e9).unwrap();
        let easy = &estimate.stages[1];
        // 2 steps of 2 problems x 4 responses of at most 160 tokens; each may be sampled twice and is learned thrice.
        assert_eq!((easy.kind, easy.steps), ("grpo", Some(2)));
        assert_eq!(
            (easy.sampled_tokens, easy.learned_tokens),
            (Some(2 * 2 * 8 * 160), Some(3 * 2 * 8 * 160))
        );
        let parameters = estimate.parameters.unwrap() as f64;
        let operations = 2.0 * parameters * (5120.0 / SAMPLING_SHARE + 3.0 * 7680.0 / TRAINING_SHARE);
        assert!((easy.seconds.unwrap() - operations / 1e9).abs() < 1e-6);
        // 8 evaluations: the base and 7 stages; 2 tiers of 4 problems x 2 samples.
        assert_eq!(estimate.evaluation_tokens, 8 * 2 * 4 * 2 * 160);
        let cold = &estimate.stages[0];
        let each = cold.learned_tokens.unwrap() as f64 / (3.0 * 4.0);
        assert!(
            cold.sampled_tokens == Some(0) && (50.0..400.0).contains(&each),
            "{each} tokens a demonstration"
        );
        let sum: f64 = estimate.stages.iter().map(|stage| stage.seconds.unwrap()).sum();
        assert!(estimate.seconds.unwrap() > sum);
    }

    #[test]
    fn a_stage_that_stops_at_so_many_tokens_takes_those_and_a_step() {
        let of = |stop: &str| {
            let recipe = recipe(&["arms.0.stages.1.grpo.steps=10", stop]);
            estimate(&recipe, Sizes::of(&recipe).unwrap(), 1e9).unwrap().stages.swap_remove(1)
        };
        // A step: 2 problems x 4 responses of at most 160 tokens, perhaps sampled twice.
        let step = 2 * 8 * 160;
        assert_eq!(of("seed=1").sampled_tokens, Some(10 * step));
        let stopped = of("arms.0.stages.1.stop={tokens=5120}");
        assert_eq!((stopped.sampled_tokens, stopped.learned_tokens), (Some(3 * step), Some(3 * step / 2)));
        assert_eq!(of("arms.0.stages.1.stop={tokens=1000000}").sampled_tokens, Some(10 * step));
    }

    #[test]
    fn what_takes_more_memory_is_said_to() {
        let of = |overrides: &[&str]| {
            let recipe = recipe(overrides);
            memory(&recipe, Sizes::of(&recipe).unwrap().unwrap())
        };
        let plain = of(&["engine.cache_tokens=1024"]);
        assert!(of(&["engine.cache_tokens=1000000"]) > plain);
        assert!(of(&["engine.cache_tokens=1024", "arms.0.stages.0.sft.micro_batch_tokens=100000"]) > plain);
        assert!(of(&["engine.cache_tokens=1024", "arms.0.stages.1.grpo.beta=0"]) < plain);
    }

    #[test]
    fn a_name_says_how_large_a_model_is() {
        for (name, parameters) in [
            ("Qwen/Qwen3-4B-Base", Some(4_000_000_000)),
            ("Qwen/Qwen2.5-0.5B", Some(500_000_000)),
            ("org/SmolLM2-135M-Instruct", Some(135_000_000)),
            ("org/model", None),
            ("org/B-M-", None),
        ] {
            assert_eq!(Sizes::from_name(name).map(|sizes| sizes.parameters), parameters, "{name}");
        }
        let recipe = recipe(&["model.path=org/some-1B"]);
        assert_eq!(memory(&recipe, Sizes::of(&recipe).unwrap().unwrap()), 16_000_000_000 + 4_000_000_000);
        assert_eq!(length("<Parallel><Path>ab</Path>"), 5);
    }

    #[test]
    fn what_is_not_here_is_not_guessed() {
        let recipe = recipe(&[
            "model.path=org/model",
            "arms.0.stages.0.sft={epochs=2.0, batch_size=4, data={file=\"org/rows\"}}",
            "arms.0.stages.1.grpo.data={file=\"org/rows\"}",
        ]);
        let sizes = Sizes::of(&recipe).unwrap();
        let estimate = estimate(&recipe, sizes, 1e9).unwrap();
        assert_eq!(estimate.missing, ["org/model", "org/rows"]);
        assert_eq!((estimate.memory, estimate.seconds, estimate.parameters), (None, None, None));
        assert_eq!((estimate.stages[0].steps, estimate.stages[0].learned_tokens), (None, None));
        assert!(estimate.stages[1].steps.is_some() && estimate.stages[1].sampled_tokens.is_some());
    }

    #[test]
    fn a_machine_has_a_rate() {
        assert!(product_rate(&Device::Cpu).unwrap() > 1e6);
    }
}
