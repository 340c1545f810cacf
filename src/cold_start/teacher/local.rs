//! A teacher on this machine: any model that the engine runs, one's own checkpoint too. Then a round of teaching is
//! rejection sampling: the model learns from those of its answers that pass the checks.

use serde_json::json;

use super::super::budget::{Budget, Hold, Usage};
use super::super::generate::{Result, digest};
use super::{Ask, Asks, Outcome, Reply, Teacher};
use crate::engine::{Engine, EngineOptions, Observer, Request, SamplingParams, Trace};
use crate::model::{ModelError, Pretrained};

/// Answers that are asked for at a time: enough to fill passes, few enough to hear of soon.
const CHUNK: usize = 64;

/// A teacher on this machine.
pub struct Local<'a> {
    model: &'a Pretrained,
    name: String,
    params: SamplingParams,
    options: EngineOptions,
}

impl<'a> Local<'a> {
    /// A model called `name` in rows.
    pub fn new(model: &'a Pretrained, name: &str, params: SamplingParams, options: EngineOptions) -> Self {
        Self { model, name: name.into(), params, options }
    }

    fn prompt(&self, ask: &Ask) -> Result<Vec<u32>, ModelError> {
        let text = self.model.template.render(&ask.messages, true)?;
        Ok(self.model.tokenizer.encode_prompt(&text)?)
    }
}

/// A question on its way through the engine.
struct Asked<'a> {
    ask: Ask,
    id: u64,
    prompt: Vec<u32>,
    hold: Option<Hold<'a>>,
}

impl Teacher for Local<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn fingerprint(&self) -> String {
        json!([self.name, self.params, self.model.template.source()]).to_string()
    }

    fn answer(
        &self,
        asks: Asks<'_>,
        budget: &Budget,
        stop: &(dyn Fn() -> bool + Sync),
        done: &mut dyn FnMut(Outcome) -> Result<()>,
    ) -> Result<()> {
        let controls = self.model.controls()?;
        let mut engine = Engine::new(&self.model.decoder, &controls, self.options);
        let positions = self.model.decoder.config().position_limit();
        let mut next = None;
        while !stop() {
            let mut chunk = Vec::new();
            while chunk.len() < CHUNK
                && let Some(ask) = next.take().or_else(|| asks.next()).transpose()?
            {
                let prompt = self.prompt(&ask)?;
                if prompt.len() >= positions {
                    let reason =
                        format!("the prompt has {} tokens, the model {positions} positions", prompt.len());
                    done(Outcome { number: ask.number, reply: Err(reason), spent: Default::default() })?;
                    continue;
                }
                let most = Usage {
                    prompt_tokens: prompt.len() as u64,
                    completion_tokens: self.params.max_response_tokens as u64,
                };
                let Some(hold) = budget.try_reserve(most) else {
                    next = Some(Ok(ask));
                    break;
                };
                chunk.push(Asked { id: digest(&ask.problem), ask, prompt, hold: Some(hold) });
            }
            if chunk.is_empty() {
                break;
            }
            let requests = requests(&chunk);
            let mut chunk = Chunk { teacher: self, chunk, stop, done, failed: Ok(()) };
            engine.generate(&requests, &self.params, &mut chunk)?;
            chunk.failed?;
        }
        Ok(())
    }
}

/// One request for neighbours that ask the same, so that their prompt is read once.
fn requests(chunk: &[Asked<'_>]) -> Vec<Request> {
    let neighbours = |a: &Asked<'_>, b: &Asked<'_>| {
        a.id == b.id && a.prompt == b.prompt && a.ask.sample + 1 == b.ask.sample
    };
    let request = |run: &[Asked<'_>]| Request {
        id: run[0].id,
        prompt: run[0].prompt.clone(),
        samples: run.len(),
        first_sample: run[0].ask.sample,
    };
    chunk.chunk_by(neighbours).map(request).collect()
}

/// Hands on what the engine completes.
struct Chunk<'a, 'b> {
    teacher: &'a Local<'a>,
    chunk: Vec<Asked<'b>>,
    stop: &'a (dyn Fn() -> bool + Sync),
    done: &'a mut dyn FnMut(Outcome) -> Result<()>,
    failed: Result<()>,
}

impl Chunk<'_, '_> {
    fn take(&mut self, trace: &Trace) -> Result<()> {
        let asked = |one: &Asked<'_>| one.id == trace.request && one.ask.sample == trace.sample;
        let found = self.chunk.iter_mut().find(|one| one.hold.is_some() && asked(one));
        let Some((number, hold)) = found.and_then(|one| Some((one.ask.number, one.hold.take()?))) else {
            return Ok(());
        };
        let text = self.teacher.model.tokenizer.decode(trace.response()).map_err(ModelError::from)?;
        let usage = Usage {
            prompt_tokens: trace.prompt_len as u64,
            completion_tokens: trace.response_tokens() as u64,
        };
        let reply = Ok(Reply { text, truncated: trace.truncated(), usage });
        (self.done)(Outcome { number, reply, spent: hold.settle(usage) })
    }
}

impl Observer for Chunk<'_, '_> {
    fn sample_done(&mut self, trace: &Trace) {
        if self.failed.is_ok() {
            self.failed = self.take(trace);
        }
    }

    fn cancelled(&mut self) -> bool {
        self.failed.is_err() || (self.stop)()
    }
}
