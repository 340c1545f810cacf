//! `generate`: answers a prompt.

use std::io::{IsTerminal, Read, Write, stdout};

use anyhow::Context;
use parallel_r1::engine::{Engine, EngineOptions, Request, SamplingParams, Trace};
use parallel_r1::model::Pretrained;

use super::votes;
use crate::branches::{Live, Printer};
use crate::chat_options::ChatOptions;
use crate::failure::Failure;
use crate::hub::ModelArgs;
use crate::response::Response;
use crate::sampling::{Defaults, SamplingArgs, positive};

/// Likely text from paths that differ.
const ONE: Defaults = Defaults { temperature: 0.2, path_temperature: 1.0, top_p: 0.95 };
/// Votes are worth something where the samples differ.
const MANY: Defaults = Defaults { temperature: 0.6, ..ONE };

/// The longest prompt on stdin in bytes, more than a model reads.
const LONGEST_PROMPT: u64 = 1 << 20;

/// Answer a prompt
///
/// The answer is streamed. Paths of a parallel block run at the same time; on a terminal they are drawn as such, elsewhere
/// the text stands with its tags. A model whose tokenizer has no tags answers in one stream.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 generate \"3 7 12 = 45\"\n  \
    parallel-r1 generate --model RUN/checkpoints/parallel/step-N --num-paths 4 \"3 7 12 = 45\"\n  \
    echo \"What is 12 * 13?\" | parallel-r1 generate --model MODEL.gguf --votes 5 -")]
pub(crate) struct Args {
    /// What to answer; `-` reads it from stdin
    prompt: String,
    #[command(flatten)]
    model: ModelArgs,
    /// Take the prompt as it is, without the model's chat template; special tokens in it count, and none is added
    #[arg(long)]
    raw: bool,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
    /// Sample N answers and return one of those that most agree on
    ///
    /// Equal answers vote together. Sampling stops early once no other answer can win. Where no sample states an answer,
    /// the one that the model was surest of is returned.
    #[arg(long, value_name = "N", value_parser = positive(), help_heading = "Votes")]
    votes: Option<usize>,
    /// Print all samples of a vote as well
    #[arg(long, requires = "votes", help_heading = "Votes")]
    return_paths: bool,
    #[command(flatten)]
    chat: ChatOptions,
    #[command(flatten)]
    sampling: SamplingArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let prompt = self.prompt()?;
        let mut model = self.model.open()?;
        self.chat.apply(&mut model)?;
        let defaults = if self.votes.is_some() { MANY } else { ONE };
        let params = self.sampling.params(&model, &self.model.model, defaults)?;
        let tokens = match self.raw {
            true => model.tokenizer.encode_prompt(&prompt)?,
            false => model.prompt(&prompt)?,
        };
        let request = Request { id: 0, prompt: tokens, samples: self.votes.unwrap_or(1), first_sample: 0 };
        match self.votes {
            Some(_) => votes::run(&model, &prompt, &request, &params, self.json, self.return_paths),
            None if self.json => {
                let trace = sample(&model, &request, &params, &mut ())?.pop();
                let trace = trace.context("the engine returned no sample")?;
                print_json(&Response::new(&trace, &model)?)
            }
            None => stream(&model, &request, &params),
        }
    }

    fn prompt(&self) -> anyhow::Result<String> {
        let prompt = match self.prompt.as_str() {
            "-" => read_prompt(std::io::stdin())?,
            prompt => prompt.into(),
        };
        let prompt = prompt.trim_end_matches(['\r', '\n']);
        if prompt.trim().is_empty() {
            return Err(Failure::misuse(
                "the prompt is empty",
                "write it after the flags, or `-` to read stdin",
            ));
        }
        Ok(prompt.into())
    }
}

fn read_prompt(stdin: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    stdin.take(LONGEST_PROMPT + 1).read_to_end(&mut bytes).context("the prompt on stdin can't be read")?;
    if bytes.len() as u64 > LONGEST_PROMPT {
        return Err(Failure::misuse(
            format!("the prompt on stdin: expected at most {LONGEST_PROMPT} bytes, got more"),
            "give one problem; `parallel-r1 eval` answers those of a file",
        ));
    }
    String::from_utf8(bytes).context("the prompt on stdin is not UTF-8 text")
}

/// The samples of one request.
pub(super) fn sample(
    model: &Pretrained,
    request: &Request,
    params: &SamplingParams,
    observer: &mut dyn parallel_r1::engine::Observer,
) -> anyhow::Result<Vec<Trace>> {
    let controls = model.controls()?;
    let mut engine = Engine::new(&model.decoder, &controls, EngineOptions::default());
    Ok(engine.generate(std::slice::from_ref(request), params, observer)?.pop().unwrap_or_default())
}

fn stream(model: &Pretrained, request: &Request, params: &SamplingParams) -> anyhow::Result<()> {
    let controls = model.controls()?;
    let (out, drawn) = (anstream::stdout().lock(), stdout().is_terminal());
    let mut live = Live::new(Printer::new(out, drawn, &model.tokenizer, &controls));
    let traces = sample(model, request, params, &mut live)?;
    live.finish()?;
    if traces.iter().any(Trace::truncated) {
        eprintln!("note: cut off after {} tokens (--max-tokens)", params.max_response_tokens);
    }
    Ok(())
}

/// Prints a value as JSON.
pub(super) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(writeln!(stdout(), "{text}")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_on_stdin_has_an_end() {
        assert_eq!(read_prompt("3 7 12 = 45\n".as_bytes()).unwrap(), "3 7 12 = 45\n");
        let error = read_prompt(std::io::repeat(b'x')).unwrap_err().to_string();
        assert_eq!(error, "the prompt on stdin: expected at most 1048576 bytes, got more");
        let error = read_prompt([0xff].as_slice()).unwrap_err().to_string();
        assert_eq!(error, "the prompt on stdin is not UTF-8 text");
    }
}
