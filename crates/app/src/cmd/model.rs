//! `model`: works on model folders.

use std::io::Write;
use std::path::{Path, PathBuf};

use candle_core::DType;
use clap::{Subcommand, ValueEnum};

use crate::failure::Failure;
use crate::hub;

/// Work on model folders
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Export(Export),
}

/// Write a model again as a bare Hugging Face folder
///
/// A checkpoint of a run becomes a model to ship: weights, configuration, tokenizer and chat template, without the
/// optimizer's state. A GGUF file works as well; its weights are dequantised.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  parallel-r1 model export runs/base/checkpoints/base/step-6000 my-model")]
struct Export {
    /// The model: a folder, a GGUF file, `org/name` on the Hugging Face Hub, or `embedded`
    #[arg(value_name = "FOLDER")]
    model: String,
    /// Where to write it
    out: PathBuf,
    /// The type of the weights
    #[arg(long, value_enum, default_value_t = WeightType::Bf16)]
    dtype: WeightType,
}

#[derive(Clone, Copy, ValueEnum)]
enum WeightType {
    /// Half the size, 8 bits of precision
    Bf16,
    /// As trained
    F32,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Export(args) => args.run(),
        }
    }
}

impl Export {
    fn run(self) -> anyhow::Result<()> {
        if same_place(Path::new(&self.model), &self.out) {
            return Err(Failure::misuse(
                format!("{}: is the model itself, which would be overwritten", self.out.display()),
                "name another folder",
            ));
        }
        let model = hub::open(&self.model)?;
        let dtype = match self.dtype {
            WeightType::Bf16 => DType::BF16,
            WeightType::F32 => DType::F32,
        };
        model.save(&self.out, dtype)?;
        writeln!(std::io::stdout(), "{}", self.out.display())?;
        Ok(())
    }
}

fn same_place(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
