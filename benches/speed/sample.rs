//! Responses of a fixed length: nothing ends them but their budget.

use parallel_r1::engine::{Engine, EngineOptions, EngineStats, Request, SamplingParams, Trace};
use parallel_r1::model::Decoder;
use parallel_r1::prompt::Controls;
use serde_json::json;

use super::case::Case;
use super::{Done, Result, Work, texts};

/// As many branches in a pass as there are.
pub(super) const OPTIONS: EngineOptions = EngineOptions { max_batch: 512, cache_tokens: 1 << 18 };

/// Samples whole batches, each with another seed.
pub(super) struct Sampling {
    decoder: Decoder,
    requests: Vec<Request>,
    params: SamplingParams,
    tokens: usize,
}

/// The requests of a case, numbered from `first` on.
pub(super) fn requests(case: &Case, vocab: usize) -> Vec<Request> {
    let request = |i| Request {
        id: i as u64,
        prompt: texts::prompt(case, i, vocab),
        samples: case.group,
        first_sample: 0,
    };
    (0..case.prompts).map(request).collect()
}

/// One stream, of exactly `tokens` tokens where nothing ends it earlier.
pub(super) fn sequential(tokens: usize) -> SamplingParams {
    SamplingParams { max_blocks: 0, max_response_tokens: tokens, ..SamplingParams::default() }
}

/// The responses to each request, and what the engine did for them.
pub(super) fn generate(
    decoder: &Decoder,
    controls: &Controls,
    requests: &[Request],
    params: &SamplingParams,
) -> Result<(Vec<Vec<Trace>>, EngineStats)> {
    let mut engine = Engine::new(decoder, controls, OPTIONS);
    let traces = engine.generate(requests, params, &mut ())?;
    Ok((traces, engine.stats()))
}

impl Sampling {
    pub(super) fn new(case: &Case) -> Result<Self> {
        let decoder = case.model()?;
        let requests = requests(case, decoder.config().vocab_size);
        let tokens = case.responses() * case.response;
        Ok(Self { decoder, requests, params: sequential(case.response), tokens })
    }
}

impl Work for Sampling {
    fn round(&mut self) -> Result<Done> {
        self.params.seed += 1;
        let (traces, stats) = generate(&self.decoder, &Controls::default(), &self.requests, &self.params)?;
        let sampled: usize = traces.iter().flatten().map(Trace::response_tokens).sum();
        if sampled != self.tokens {
            return Err(format!("expected {} tokens, got {sampled}", self.tokens).into());
        }
        Ok(Done { units: sampled, notes: json!({"passes": stats.steps}) })
    }
}
