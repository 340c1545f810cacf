//! `data convert`: rows from one shape and file type to another.

use std::io::{Write, stdout};
use std::path::PathBuf;

use parallel_r1::cold_start::convert::{ConvertOptions, Form, convert};
use parallel_r1::data::hub::Kind;

use crate::hub;

/// Convert rows between JSON lines and Parquet, and between the shapes of trainers
///
/// Reads rows as published with GSM8K, MATH, AMC, AIME and DAPO, chats (`messages`) and this project's own. Texts stay as
/// they are; fields that a shape has no place for stay behind the others.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 data convert rows.jsonl rows.parquet\n  \
    parallel-r1 data convert clean.jsonl sft.parquet --form messages\n  \
    parallel-r1 data convert chats.parquet rows.jsonl --form rows")]
pub(super) struct Args {
    /// A .jsonl or .parquet file, or `org/name` or `org/name/FILE` on the Hugging Face Hub
    #[arg(value_name = "FROM")]
    from: String,
    /// The file to write; its extension, .jsonl or .parquet, says how
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// The shape to write
    #[arg(long, value_enum, default_value_t = Shape::Keep)]
    form: Shape,
    /// The field of the responses [default: the first of response, output, solution that is there]
    #[arg(long, value_name = "NAME")]
    response_field: Option<String>,
    /// A system message to put before the problem
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Shape {
    /// As they are
    Keep,
    /// id, problem, answer, source, level, response
    Rows,
    /// messages of user and assistant, as TRL's SFTTrainer and verl's SFT read them
    Messages,
    /// data_source, prompt and reward_model, as verl reads problems for reinforcement learning
    Verl,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let form = match self.form {
            Shape::Keep => Form::Keep,
            Shape::Rows => Form::Rows,
            Shape::Messages => Form::Messages,
            Shape::Verl => Form::Verl,
        };
        let options = ConvertOptions { form, response_field: self.response_field, system: self.system };
        let count = convert(&hub::resolve(Kind::DataSet, &self.from)?, &self.to, &options)?;
        Ok(writeln!(stdout(), "{}: {count} rows", self.to.display())?)
    }
}
