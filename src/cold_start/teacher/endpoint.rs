//! A teacher behind an OpenAI-compatible endpoint: several requests at a time, each tried again where that may help.

use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, SystemTime};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};
use ureq::Agent;
use ureq::http::{Request, StatusCode};

use super::super::budget::{Budget, Spent, Usage};
use super::super::generate::{GenerateError, Result};
use super::pause::{Gate, asked_for, backoff};
use super::wire::{self, Broken};
use super::{Ask, Asks, Outcome, Reply, Teacher};

const CONNECT: Duration = Duration::from_secs(10);
/// The longest answer in bytes, as JSON.
const LONGEST_ANSWER: u64 = 32 << 20;
/// How much of a refusal is read.
const LONGEST_REFUSAL: u64 = 16 << 10;
/// After so many failures in a row, further requests would fail as well.
const GIVE_UP: usize = 16;

/// How an endpoint is asked.
#[derive(Clone)] // and no Debug, which would show the key
pub struct EndpointOptions {
    /// The address up to and with `/v1`, or all of it up to `/chat/completions`.
    pub url: String,
    /// Sent as a bearer token, to this address only.
    pub key: Option<String>,
    /// The model that the endpoint shall answer with.
    pub model: String,
    /// Requests under way at a time.
    pub concurrency: usize,
    /// How often a request is sent at most.
    pub attempts: u32,
    /// The pause after the first failure; each further one doubles it. A server's `Retry-After` goes before.
    pub pause: Duration,
    /// How long an answer may take from the first byte sent to the last received.
    pub timeout: Duration,
    /// Whether to have answers streamed, which keeps connections through proxies alive.
    pub stream: bool,
    /// Tokens of an answer at most, thinking included.
    pub max_tokens: u64,
    /// The sampling temperature.
    pub temperature: f64,
    /// The share of likeliest tokens, where it is to be sent.
    pub top_p: Option<f64>,
    /// Sample i is asked for with seed + i.
    pub seed: u64,
    /// Fields of the request that replace those above; null takes one out.
    pub extra: Map<String, Value>,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self {
            url: "http://127.0.0.1:8000/v1".into(),
            key: None,
            model: String::new(),
            concurrency: 8,
            attempts: 6,
            pause: Duration::from_secs(1),
            timeout: Duration::from_secs(600),
            stream: true,
            max_tokens: 4096,
            temperature: 0.7,
            top_p: None,
            seed: 0,
            extra: Map::new(),
        }
    }
}

/// A teacher behind an endpoint.
pub struct Endpoint {
    options: EndpointOptions,
    url: String,
    agent: Agent,
    gate: Gate,
    failures: AtomicUsize,
}

/// Why a try failed, and what it took.
struct Trouble {
    kind: Kind,
    usage: Usage,
}

enum Kind {
    /// All requests will fail.
    Fatal(Box<GenerateError>),
    /// This request will fail again.
    Lasting(String),
    /// It may not fail again; the server may have said when.
    Passing(String, Option<Duration>),
}

impl From<Kind> for Trouble {
    fn from(kind: Kind) -> Self {
        Self { kind, usage: Usage::default() }
    }
}

impl Endpoint {
    /// Checks the address; nothing is sent yet.
    pub fn new(options: EndpointOptions) -> Result<Self> {
        let base = options.url.trim_end_matches('/');
        if !["http://", "https://"].iter().any(|scheme| base.starts_with(scheme)) {
            return Err(GenerateError::Endpoint { endpoint: options.url });
        }
        let path = if base.ends_with("/chat/completions") { "" } else { "/chat/completions" };
        let config = Agent::config_builder()
            .user_agent(concat!("parallel-r1/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            // The key goes to this address alone.
            .max_redirects(0)
            .max_idle_connections_per_host(options.concurrency)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(options.timeout))
            .build();
        let (url, agent) = (format!("{base}{path}"), config.into());
        Ok(Self { options, url, agent, gate: Gate::default(), failures: AtomicUsize::new(0) })
    }

    fn work(
        &self,
        asks: &Mutex<Asks<'_>>,
        budget: &Budget,
        stop: &(dyn Fn() -> bool + Sync),
        done: &mpsc::Sender<Result<Outcome>>,
    ) {
        while !stop() {
            let ask = asks.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            let Some(outcome) = ask.map(|ask| self.persist(&ask?, budget, stop)) else { return };
            let last = !matches!(outcome, Ok(Some(_)));
            let Some(outcome) = outcome.transpose() else { return };
            if done.send(outcome).is_err() || last {
                return;
            }
        }
    }

    /// Asks until there is an answer or no hope; `None` where nothing was sent.
    fn persist(
        &self,
        ask: &Ask,
        budget: &Budget,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Outcome>> {
        let body = wire::body(&ask.messages, ask.sample, &self.options).to_string();
        // A token has at least one byte, so no request takes more than this.
        let most = Usage { prompt_tokens: body.len() as u64, completion_tokens: self.options.max_tokens };
        let mut chance = ChaCha8Rng::seed_from_u64(ask.number as u64);
        let (mut spent, mut pause, mut last) = (Spent::default(), Duration::ZERO, String::new());
        for attempt in 1..=self.options.attempts.max(1) {
            let hold = if self.gate.wait(pause, stop) { budget.reserve(most) } else { None };
            let Some(hold) = hold else {
                let reply = Err(format!("stopped before it was tried again: {last}"));
                return Ok((attempt > 1).then_some(Outcome { number: ask.number, reply, spent }));
            };
            let trouble = match self.attempt(&body) {
                Ok(reply) => {
                    spent += hold.settle(reply.usage);
                    self.failures.store(0, Ordering::Relaxed);
                    return Ok(Some(Outcome { number: ask.number, reply: Ok(reply), spent }));
                }
                Err(trouble) => trouble,
            };
            spent += hold.settle(trouble.usage);
            match trouble.kind {
                Kind::Fatal(error) => return Err(*error),
                Kind::Lasting(reason) => {
                    last = reason;
                    break;
                }
                Kind::Passing(reason, wish) => {
                    last = reason;
                    pause = backoff(self.options.pause, attempt, chance.random());
                    if let Some(wish) = wish {
                        self.gate.close(wish);
                        pause = Duration::ZERO;
                    }
                }
            }
        }
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if failures == GIVE_UP {
            return Err(GenerateError::GivenUp { failures, reason: last });
        }
        Ok(Some(Outcome { number: ask.number, reply: Err(last), spent }))
    }

    fn attempt(&self, body: &str) -> Result<Reply, Trouble> {
        let refused = |reason| self.refused(reason);
        let mut request = Request::post(&self.url).header("content-type", "application/json");
        if let Some(key) = &self.options.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let request = request
            .body(body)
            .map_err(|error| refused(format!("the address or the key can't be sent: {error}")))?;
        let response = self.agent.run(request).map_err(|error| Kind::Passing(error.to_string(), None))?;
        let (head, body_of) = response.into_parts();
        let source = body_of.into_with_config();
        if head.status != StatusCode::OK {
            let mut text = String::new();
            // A refusal counts with or without its explanation.
            let _ = source.reader().take(LONGEST_REFUSAL).read_to_string(&mut text);
            let wish = asked_for(&head.headers, SystemTime::now());
            return Err(self.refusal(head.status.as_u16(), &text, wish).into());
        }
        let kind = head.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let streamed = kind.starts_with("text/event-stream");
        let broken = |Broken { reason, text }| {
            // Whoever answers half may count the half.
            let counted = if text.is_empty() { 0 } else { wire::estimate(body.len()) };
            let usage = Usage { prompt_tokens: counted, completion_tokens: wire::estimate(text.len()) };
            Trouble { kind: Kind::Passing(reason, None), usage }
        };
        wire::read(source.limit(LONGEST_ANSWER).reader(), streamed, body.len()).map_err(broken)
    }

    /// What a status means.
    fn refusal(&self, status: u16, text: &str, wish: Option<Duration>) -> Kind {
        let reason = format!("answered {status}: {}", wire::error_text(text));
        match status {
            401 | 403 => {
                let (url, key) = (self.url.clone(), self.options.key.is_some());
                Kind::Fatal(GenerateError::Denied { url, status, key }.into())
            }
            // Neither an empty account nor a wrong address mends itself.
            300..=399 | 402 | 404 | 405 => self.refused(reason),
            429 if text.contains("insufficient_quota") => self.refused(reason),
            408 | 409 | 425 | 429 | 500.. => Kind::Passing(reason, wish),
            _ => Kind::Lasting(reason),
        }
    }

    fn refused(&self, reason: String) -> Kind {
        Kind::Fatal(GenerateError::Refused { url: self.url.clone(), reason }.into())
    }
}

impl Teacher for Endpoint {
    fn name(&self) -> &str {
        &self.options.model
    }

    fn fingerprint(&self) -> String {
        let EndpointOptions { model, max_tokens, temperature, top_p, seed, extra, .. } = &self.options;
        json!([model, max_tokens, temperature, top_p, seed, extra]).to_string()
    }

    fn answer(
        &self,
        asks: Asks<'_>,
        budget: &Budget,
        stop: &(dyn Fn() -> bool + Sync),
        done: &mut dyn FnMut(Outcome) -> Result<()>,
    ) -> Result<()> {
        let (asks, failed) = (Mutex::new(asks), AtomicBool::new(false));
        let stop = || failed.load(Ordering::Relaxed) || stop();
        let mut first = Ok(());
        std::thread::scope(|scope| {
            let (send, outcomes) = mpsc::channel();
            for _ in 0..self.options.concurrency.max(1) {
                let (send, asks, stop) = (send.clone(), &asks, &stop);
                scope.spawn(move || self.work(asks, budget, stop, &send));
            }
            drop(send);
            // To the end, after an error too: what comes then is paid for.
            for outcome in outcomes {
                let result = outcome.and_then(&mut *done);
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                if first.is_ok() {
                    first = result;
                }
            }
        });
        first
    }
}
