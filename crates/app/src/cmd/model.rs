//! `model`: works on models.

mod info;

use std::io::Write;
use std::path::{Path, PathBuf};

use candle_core::DType;
use clap::{Subcommand, ValueEnum};
use parallel_r1::data::hub::Kind;

use crate::failure::Failure;
use crate::hub;

/// Work on models
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Info(info::Info),
    Export(Export),
    Import(Import),
}

/// Write a model again as a bare Hugging Face folder
///
/// A checkpoint of a run becomes a model to ship: weights, configuration, tokenizer and chat template, without the
/// optimizer's state. An adapter is merged into its base model. transformers, vLLM and llama.cpp's converter read the
/// folder.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  parallel-r1 model export runs/base/checkpoints/base/step-6000 my-model")]
struct Export {
    /// The model: a folder, an adapter, a GGUF file, `org/name` on the Hugging Face Hub, or `embedded`
    #[arg(value_name = "MODEL")]
    model: String,
    /// Where to write it: a new or empty folder
    out: PathBuf,
    /// The type of the weights
    #[arg(long, value_enum, default_value_t = WeightType::Bf16)]
    dtype: WeightType,
}

/// Write a GGUF file as a Hugging Face folder
///
/// The weights are dequantised; configuration, tokenizer and chat template are rebuilt from the file's metadata.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  parallel-r1 model import SmolLM2-135M-Instruct.Q4_1.gguf --out smollm2")]
struct Import {
    /// The file, or `org/name/FILE.gguf` on the Hugging Face Hub
    #[arg(value_name = "FILE")]
    file: String,
    /// Where to write it: a new or empty folder
    #[arg(long)]
    out: PathBuf,
    /// The type of the weights; f32 keeps the dequantised numbers as they are
    #[arg(long, value_enum, default_value_t = WeightType::F32)]
    dtype: WeightType,
}

#[derive(Clone, Copy, ValueEnum)]
enum WeightType {
    /// Half the size, 8 bits of precision
    Bf16,
    /// Half the size, 11 bits of precision, numbers up to 65,504
    F16,
    /// As trained
    F32,
}

impl From<WeightType> for DType {
    fn from(kind: WeightType) -> Self {
        match kind {
            WeightType::Bf16 => Self::BF16,
            WeightType::F16 => Self::F16,
            WeightType::F32 => Self::F32,
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Info(args) => args.run(),
            Command::Export(args) => write(&args.model, &args.out, args.dtype),
            Command::Import(args) => args.run(),
        }
    }
}

impl Import {
    fn run(self) -> anyhow::Result<()> {
        let file = hub::resolve(Kind::Model, &self.file)?;
        if file.is_dir() {
            return Err(Failure::misuse(
                format!("{}: expected a GGUF file, got a folder", self.file),
                "`parallel-r1 model export` writes a folder again",
            ));
        }
        write(&self.file, &self.out, self.dtype)
    }
}

fn write(model: &str, out: &Path, dtype: WeightType) -> anyhow::Result<()> {
    // What is there already would stay beside what is written, and could be taken for a part of it.
    if std::fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::misuse(
            format!("{}: the folder is not empty", out.display()),
            "name another one, or empty it",
        ));
    }
    hub::open(model)?.save_merged(out, dtype.into())?;
    writeln!(std::io::stdout(), "{}", out.display())?;
    Ok(())
}
