//! The flags that say who teaches, and how.

use std::time::Duration;

use parallel_r1::cold_start::teacher::{Endpoint, EndpointOptions, Local, Teacher};
use parallel_r1::engine::{EngineOptions, SamplingParams};
use parallel_r1::layout::Structure;
use parallel_r1::model::Pretrained;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::hub;
use crate::sampling::positive;

/// Who teaches.
#[derive(clap::Args)]
#[command(next_help_heading = "Teacher")]
pub(super) struct Args {
    /// The address of an OpenAI-compatible endpoint, up to `/v1`
    #[arg(long, value_name = "URL", requires = "teacher")]
    endpoint: Option<String>,
    /// The model that the endpoint shall answer with
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    teacher: Option<String>,
    /// A model on this machine instead: a folder, an adapter, a GGUF file, `org/name` on the Hub, or `embedded`
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// The environment variable that holds the endpoint's key
    #[arg(long, value_name = "VAR", default_value = "OPENAI_API_KEY")]
    api_key_env: String,
    /// Requests under way at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = positive())]
    concurrency: usize,
    /// How often a request is sent before it counts as failed
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    attempts: u32,
    /// Seconds that one answer may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, value_parser = seconds)]
    timeout: f64,
    /// Seconds before a failed request is sent again, doubled each time; a server's Retry-After goes before
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pause: f64,
    /// Have answers sent in one piece, for servers that can't stream
    #[arg(long)]
    no_stream: bool,
    /// Fields of the request as a JSON object, put over the usual ones; null takes one out
    ///
    /// Like {"max_tokens": null, "max_completion_tokens": 8192, "reasoning_effort": "low"}.
    #[arg(long, value_name = "JSON", value_parser = object)]
    request: Option<Map<String, Value>>,
    /// Divides the logits
    #[arg(long, value_name = "T", default_value_t = 0.7)]
    temperature: f64,
    /// Draw only from the likeliest tokens that together have this probability [default: the endpoint's, or 1]
    #[arg(long, value_name = "P")]
    top_p: Option<f64>,
    /// Tokens of an answer, thinking included [default: 4096, or 512 for --model]
    #[arg(long, value_name = "N", value_parser = positive())]
    max_tokens: Option<usize>,
    /// Paths of a parallel block of --model
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = positive())]
    num_paths: usize,
    /// Where random streams start
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

fn object(argument: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(argument).map_err(|error| format!("expected a JSON object: {error}"))
}

fn seconds(argument: &str) -> Result<f64, String> {
    let number = argument.parse().ok().filter(|&seconds| (0.0..=1e6).contains(&seconds));
    number.ok_or_else(|| "expected a number of seconds".into())
}

impl Args {
    pub(super) fn is_local(&self) -> bool {
        self.model.is_some()
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// What the teacher is called in rows and in price tables.
    pub(super) fn name(&self) -> String {
        self.model.clone().or_else(|| self.teacher.clone()).unwrap_or_default()
    }

    /// Opens the teacher for some work. `separate` solutions have no blocks.
    pub(super) fn with<T>(
        &self,
        separate: bool,
        work: impl FnOnce(&dyn Teacher) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let Some(name) = &self.model else { return work(&Endpoint::new(self.endpoint())?) };
        let model = hub::open(name)?;
        let params = self.params(&model, separate)?;
        work(&Local::new(&model, name, params, EngineOptions::default()))
    }

    fn endpoint(&self) -> EndpointOptions {
        let key = std::env::var(&self.api_key_env).ok().filter(|key| !key.is_empty());
        EndpointOptions {
            url: self.endpoint.clone().unwrap_or_default(),
            key,
            model: self.name(),
            concurrency: self.concurrency,
            attempts: self.attempts,
            pause: Duration::from_secs_f64(self.pause),
            timeout: Duration::from_secs_f64(self.timeout),
            stream: !self.no_stream,
            max_tokens: self.max_tokens.unwrap_or(4096) as u64,
            temperature: self.temperature,
            top_p: self.top_p,
            seed: self.seed,
            extra: self.request.clone().unwrap_or_default(),
        }
    }

    fn params(&self, model: &Pretrained, separate: bool) -> anyhow::Result<SamplingParams> {
        let base = SamplingParams {
            temperature: self.temperature as f32,
            top_p: self.top_p.unwrap_or(1.0) as f32,
            max_response_tokens: self.max_tokens.unwrap_or(512),
            num_paths: self.num_paths,
            seed: self.seed,
            ..SamplingParams::default()
        };
        let params = match model.tokenizer.has_tags() && !separate {
            true => base,
            false => SamplingParams { structure: Structure::Causal, max_blocks: 0, ..base },
        };
        params.validate().map_err(|error| {
            let flag = error.field.replace('_', "-");
            let message = format!("--{flag}: expected {}, got {}", error.expected, error.got);
            Failure::misuse(message, "`--help` explains the flag")
        })?;
        Ok(params)
    }
}
