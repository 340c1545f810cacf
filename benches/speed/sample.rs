//! Responses of a fixed length: nothing ends them but their budget.

use std::time::Instant;

use parallel_r1::engine::{
    Engine, EngineOptions, EngineStats, Observer, Request, SamplingParams, TokenEvent, Trace,
};
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

/// Notes when the first token came: the prompts were read then.
#[derive(Default)]
struct FirstToken(Option<Instant>);

impl Observer for FirstToken {
    fn token(&mut self, _: &TokenEvent) {
        self.0.get_or_insert_with(Instant::now);
    }
}

/// The responses to each request, and what the engine did for them.
pub(super) fn generate(
    decoder: &Decoder,
    controls: &Controls,
    requests: &[Request],
    params: &SamplingParams,
    observer: &mut dyn Observer,
) -> Result<(Vec<Vec<Trace>>, EngineStats)> {
    let mut engine = Engine::new(decoder, controls, OPTIONS);
    let traces = engine.generate(requests, params, observer)?;
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
        let (start, mut first) = (Instant::now(), FirstToken::default());
        let (traces, stats) =
            generate(&self.decoder, &Controls::default(), &self.requests, &self.params, &mut first)?;
        let sampled: usize = traces.iter().flatten().map(Trace::response_tokens).sum();
        if sampled != self.tokens {
            return Err(format!("expected {} tokens, got {sampled}", self.tokens).into());
        }
        let prompts = first.0.map_or(0.0, |first| (first - start).as_secs_f64());
        Ok(Done { units: sampled, notes: json!({"passes": stats.steps, "seconds_to_first_token": prompts}) })
    }
}
