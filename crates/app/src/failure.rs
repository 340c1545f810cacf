//! What a person reads when something goes wrong: the error, its causes and, where there is one, a way out.
//!
//! The library's errors say what is wrong and where; how to go on from a shell is known here.

use std::io::ErrorKind;
use std::process::ExitCode;

use anstyle::{AnsiColor, Color, Style};
use parallel_r1::cold_start::generate::GenerateError;
use parallel_r1::data::DataError;
use parallel_r1::data::hub::HubError;
use parallel_r1::engine::EngineError;
use parallel_r1::eval::rollout::RolloutError;
use parallel_r1::model::ModelError;
use parallel_r1::train::TrainError;

const ERROR: Style = Style::new().bold().fg_color(Some(Color::Ansi(AnsiColor::Red)));
const HINT: Style = Style::new().bold().fg_color(Some(Color::Ansi(AnsiColor::Cyan)));

const FAILED: u8 = 1;
const MISUSED: u8 = 2;

/// An error of the command line itself.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    message: String,
    hint: String,
    code: u8,
}

impl Failure {
    /// Something that could not be done.
    pub(crate) fn error(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        Self { message: message.into(), hint: hint.into(), code: FAILED }.into()
    }

    /// Something that should not have been asked.
    pub(crate) fn misuse(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        Self { message: message.into(), hint: hint.into(), code: MISUSED }.into()
    }
}

/// Says what went wrong; the exit code that goes with it.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if reader_is_gone(error) {
        return ExitCode::SUCCESS;
    }
    let mut said = error.to_string();
    anstream::eprintln!("{ERROR}error:{ERROR:#} {said}");
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.contains(&cause) {
            anstream::eprintln!("  because: {cause}");
        }
        said = cause;
    }
    let Advice { code, hint } = advice(error);
    if let Some(hint) = hint {
        anstream::eprintln!("{HINT}hint:{HINT:#} {hint}");
    }
    ExitCode::from(code)
}

/// Whether whoever reads our output (`head`, a pager) has seen enough, which is no failure.
fn reader_is_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

struct Advice<'a> {
    code: u8,
    hint: Option<&'a str>,
}

impl<'a> Advice<'a> {
    fn failed(hint: impl Into<Option<&'a str>>) -> Self {
        Self { code: FAILED, hint: hint.into() }
    }

    fn misused(hint: impl Into<Option<&'a str>>) -> Self {
        Self { code: MISUSED, hint: hint.into() }
    }
}

fn advice(error: &anyhow::Error) -> Advice<'_> {
    if let Some(Failure { hint, code, .. }) = error.downcast_ref() {
        return Advice { code: *code, hint: Some(hint) };
    }
    let train = error.downcast_ref().map(of_training);
    let rollout = || error.downcast_ref().map(of_rollout);
    let engine = || error.downcast_ref().map(of_engine);
    let model = || error.downcast_ref().map(of_model);
    let data = || error.downcast_ref().map(of_data);
    let hub = || error.downcast_ref().map(of_hub);
    let generate = || error.downcast_ref().map(of_generation);
    let known = train.or_else(rollout).or_else(engine).or_else(model).or_else(data).or_else(hub);
    let known = known.or_else(generate);
    known.unwrap_or(Advice::failed(None))
}

fn of_training(error: &TrainError) -> Advice<'static> {
    match error {
        TrainError::Recipe { .. } => {
            Advice::misused("`parallel-r1 train --show` prints the default recipe, with its keys")
        }
        TrainError::Override { .. } => Advice::misused(
            "write `--set a.b=c` with a value as in TOML; lists are counted from 0, as in \
             `--set arms.0.stages.0.sft.steps=50`",
        ),
        TrainError::Occupied { .. } => {
            Advice::failed("`--resume` goes on with that run; `--out` names another folder")
        }
        TrainError::NoDemonstrations { .. } => {
            Advice::failed("look at the rows' tags and lengths; the error names the first row's fault")
        }
        TrainError::Diverged { .. } => Advice::failed(
            "`--resume` with a lower learning rate goes on from the checkpoint before it diverged",
        ),
        TrainError::External(_) => Advice::failed(
            "give it one request by hand: a line like {\"problem\": \"2 + 2?\", \"response\": \"4\", \"gold\": \"4\"}; it \
             answers with a line like {\"score\": 1}",
        ),
        TrainError::Data(error) => of_data(error),
        TrainError::Hub(error) => of_hub(error),
        TrainError::Model(error) => of_model(error),
        TrainError::Rollout(error) => of_rollout(error),
        _ => Advice::failed(None),
    }
}

fn of_rollout(error: &RolloutError) -> Advice<'static> {
    match error {
        RolloutError::Engine(error) => of_engine(error),
        RolloutError::Model(error) => of_model(error),
    }
}

fn of_engine(error: &EngineError) -> Advice<'static> {
    match error {
        EngineError::Params(_) => Advice::misused(None),
        EngineError::PromptTooLong { .. } => {
            Advice::failed("shorten the prompt, or take a model with more positions")
        }
        EngineError::CacheTooSmall { .. } => {
            Advice::failed("lower `--max-tokens` (in a recipe: raise engine.cache_tokens)")
        }
        EngineError::EmptyPrompt { .. } => Advice::failed("give a prompt with at least one character"),
        EngineError::NotFinite { .. } => {
            Advice::failed("go back to an earlier checkpoint; in training, lower the learning rate")
        }
        _ => Advice::failed(None),
    }
}

const A_FOLDER: &str = "a model folder holds config.json, tokenizer.json and model.safetensors (or its shards); a run \
    writes such folders as RUN/checkpoints/ARM/step-N";

fn of_model(error: &ModelError) -> Advice<'static> {
    match error {
        ModelError::Hub(error) => of_hub(error),
        ModelError::NoWeights { .. } => Advice::failed(A_FOLDER),
        ModelError::Read { source, .. } if source.kind() == ErrorKind::NotFound => Advice::failed(A_FOLDER),
        ModelError::NotFound { .. } => Advice::failed(
            "`--model embedded` is always there; scripts/fetch-smollm2 fetches a small real model",
        ),
        _ => Advice::failed(None),
    }
}

fn of_generation(error: &GenerateError) -> Advice<'static> {
    match error {
        GenerateError::AskedOtherwise { .. } => {
            Advice::failed("take the settings of that run again, or name another folder with `--out`")
        }
        GenerateError::Journal { .. } => {
            Advice::failed("mend or remove that line; what it says will be asked again")
        }
        GenerateError::SameId { .. } => Advice::failed("give each row an `id` of its own, or none at all"),
        GenerateError::NoProblems(_) => Advice::failed(A_ROW),
        GenerateError::Endpoint { .. } => Advice::misused("write it like `http://127.0.0.1:8000/v1`"),
        GenerateError::Denied { .. } => {
            Advice::failed("put the key into OPENAI_API_KEY, or name its variable with `--api-key-env`")
        }
        GenerateError::Refused { .. } => Advice::failed("check `--endpoint`, `--teacher` and the account"),
        GenerateError::GivenUp { .. } => Advice::failed(
            "the same command goes on once the teacher is up; `--request` changes what it is sent",
        ),
        GenerateError::Prompt { .. } => {
            Advice::failed("`--show-prompt` prints a built-in template to start from")
        }
        GenerateError::Prices { .. } => Advice::failed(
            "a table has a section for each model: `[\"NAME\"]`, `input = 0.5`, `output = 2.0`",
        ),
        GenerateError::Data(error) => of_data(error),
        GenerateError::Engine(error) => of_engine(error),
        GenerateError::Model(error) => of_model(error),
        _ => Advice::failed(None),
    }
}

fn of_hub(error: &HubError) -> Advice<'static> {
    Advice::failed(match error {
        HubError::Name { .. } | HubError::Repository { .. } => {
            "give a path, or a name on the Hub like `org/name`, `org/name/FILE` or `org/name@REVISION`"
        }
        HubError::Denied { token: false, .. } => {
            "check the name; for a private or gated repository set HF_TOKEN to a token from the Hub's settings"
        }
        HubError::Denied { .. } => {
            "check the name and HF_TOKEN; a gated repository has to be asked for on its page first"
        }
        HubError::Endpoint { .. } => "unset HF_ENDPOINT to ask https://huggingface.co",
        HubError::Offline { .. } => "unset HF_HUB_OFFLINE once, or point HF_HOME to a cache that has it",
        HubError::Unreachable { .. } => {
            "check the path or the network; HF_ENDPOINT names a mirror, HF_HOME a cache that has it"
        }
        HubError::BrokenOff { .. } | HubError::Damaged { .. } => "run it again: what has come is kept",
        HubError::Cache { .. } => "HF_HOME names another place for the cache",
        _ => return Advice::failed(None),
    })
}

const A_ROW: &str = r#"a row is one JSON object on a line of its own, like {"problem": "2 + 2?", "answer": "4"}; rows as published with GSM8K, MATH, AMC, AIME and DAPO are read as well"#;

fn of_data(error: &DataError) -> Advice<'static> {
    match error {
        DataError::Empty { .. }
        | DataError::Json { .. }
        | DataError::Missing { .. }
        | DataError::Wrong { .. }
        | DataError::LongLine { .. } => Advice::failed(A_ROW),
        DataError::Open { .. } => Advice::failed(
            "check the path; `countdown:3,4` or `arithmetic:chain-2` stands for generated problems, `org/name` for a data set on the Hub",
        ),
        DataError::Exhausted { .. } => Advice::failed("lower `--limit` (in a recipe: evaluation.problems)"),
        DataError::Setting { .. } => Advice::misused(None),
        DataError::Write { .. } => {
            Advice::failed("check that its folder is there, can be written, and has room")
        }
        DataError::Extension { .. } => Advice::failed("JSON lines and Parquet are read and written"),
        DataError::Mixed { .. } => Advice::failed("write a `.jsonl` file, whose rows may differ"),
        _ => Advice::failed(None),
    }
}
