//! The flags that say how a response is sampled, shared by `generate` and `eval`.

use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;
use parallel_r1::engine::SamplingParams;
use parallel_r1::layout::Structure;
use parallel_r1::model::Pretrained;

use crate::failure::Failure;

/// How responses are sampled.
#[derive(clap::Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Divides the logits; 0 takes the likeliest token [default: 0.2 in generate, 0.6 with votes, 1 in eval]
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,
    /// The temperature inside paths [default: --temperature; without it 1, so that paths differ]
    #[arg(long, value_name = "T")]
    path_temperature: Option<f32>,
    /// Draw only from the likeliest tokens that together have this probability [default: 0.95 in generate, 1 in eval]
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Tokens of a response, at most
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = positive())]
    max_tokens: usize,
    /// Paths of a parallel block [default: 3]
    #[arg(long, value_name = "N", value_parser = positive(), conflicts_with = "sequential")]
    num_paths: Option<usize>,
    /// Whether the paths of a block see each other [default: path_window]
    #[arg(long, value_enum, conflicts_with = "sequential")]
    structure: Option<StructureArg>,
    /// Answer in one stream, without parallel blocks
    #[arg(long)]
    sequential: bool,
    /// Where all random streams start
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

/// Settings that nobody asked for.
#[derive(Clone, Copy)]
pub(crate) struct Defaults {
    /// Temperature outside paths.
    pub(crate) temperature: f32,
    /// Temperature inside paths, where no temperature was asked for at all.
    pub(crate) path_temperature: f32,
    /// Top-p.
    pub(crate) top_p: f32,
}

/// How paths see each other.
#[derive(Clone, Copy, ValueEnum)]
enum StructureArg {
    /// Paths don't see each other and run at the same time
    #[value(name = "path_window", alias = "path-window")]
    PathWindow,
    /// One stream: later paths see earlier ones
    Causal,
}

/// A whole number of at least 1.
pub(crate) fn positive() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

impl SamplingArgs {
    /// The seed.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The settings for a model.
    pub(crate) fn params(
        &self,
        model: &Pretrained,
        name: &str,
        defaults: Defaults,
    ) -> anyhow::Result<SamplingParams> {
        let tags = model.tokenizer.has_tags();
        if !tags && (self.num_paths.is_some() || self.structure.is_some()) {
            return Err(Failure::error(
                format!(
                    "model {name}: its tokenizer has no <Parallel> tag, so it can't answer in parallel paths"
                ),
                "train it to do so first (`parallel-r1 train`); without `--num-paths` and `--structure` it answers in \
                 one stream",
            ));
        }
        let free = self.temperature.is_none();
        let base = SamplingParams {
            temperature: self.temperature.unwrap_or(defaults.temperature),
            path_temperature: self.path_temperature.or(free.then_some(defaults.path_temperature)),
            top_p: self.top_p.unwrap_or(defaults.top_p),
            max_response_tokens: self.max_tokens,
            seed: self.seed,
            // `branches` draws blocks one after another.
            max_nesting: 1,
            ..SamplingParams::default()
        };
        let params = if tags && !self.sequential {
            let structure = match self.structure {
                Some(StructureArg::Causal) => Structure::Causal,
                Some(StructureArg::PathWindow) | None => Structure::PathWindow,
            };
            SamplingParams { structure, num_paths: self.num_paths.unwrap_or(base.num_paths), ..base }
        } else {
            SamplingParams { structure: Structure::Causal, max_blocks: 0, ..base }
        };
        params.validate().map_err(|error| {
            let flag = error.field.replace('_', "-");
            Failure::misuse(
                format!("--{flag}: expected {}, got {}", error.expected, error.got),
                "`--help` explains the flag",
            )
        })?;
        if let Some(notice) = params.notice() {
            eprintln!("note: {notice}");
        }
        Ok(params)
    }
}
