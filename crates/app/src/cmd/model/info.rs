//! `model info`: what a model is made of and what it needs, from its files alone.

use std::io::{Write, stdout};

use parallel_r1::model;

use super::super::generate::print_json;
use crate::hub;

/// Print what a model holds and what it needs
///
/// Reads the files' heads, not the weights (a model on the Hub is downloaded first). The memory is an estimate: `run` is the weights (quantised ones as they are)
/// and the cache of keys and values, `train` the weights, gradients and AdamW's moments in f32, and what a pass keeps of
/// each token of a micro-batch.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 model info SmolLM2-135M-Instruct.Q4_1.gguf\n  \
    parallel-r1 model info RUN/checkpoints/ARM/step-N --json")]
pub(super) struct Info {
    /// The model: a folder, an adapter, a GGUF file, `org/name` on the Hugging Face Hub, or `embedded`
    #[arg(value_name = "MODEL")]
    model: String,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let info = model::Info::read(&hub::model(&self.model)?)?;
        if self.json { print_json(&info) } else { print(&info) }
    }
}

fn print(info: &model::Info) -> anyhow::Result<()> {
    let (config, memory) = (&info.config, &info.memory);
    let kind = match &info.base {
        Some(base) => format!("LoRA adapter of {base}"),
        None => info.kind.into(),
    };
    let head = if config.tie_word_embeddings { "head tied to the embedding" } else { "head of its own" };
    let spare = config.vocab_size.saturating_sub(info.tokens);
    let types = info.tensors.iter().map(|(dtype, count)| format!("{count} {dtype}")).collect::<Vec<_>>();
    let mut rows = vec![
        ("kind", kind),
        ("family", config.model_type.name().into()),
        ("parameters", format!("{}, {head}", millions(info.parameters))),
        (
            "layers",
            format!(
                "{} of width {}, MLP {}",
                config.num_hidden_layers, config.hidden_size, config.intermediate_size
            ),
        ),
        (
            "heads",
            format!(
                "{} for queries, {} for keys and values, of width {}",
                config.num_attention_heads,
                config.kv_heads(),
                config.head_dim()
            ),
        ),
        ("vocabulary", format!("{} tokens, {spare} spare rows", info.tokens)),
        ("tags", tags(info)),
        ("chat template", if info.chat_template { "its own" } else { "none (the plain format)" }.into()),
        ("positions", format!("{}{}", info.positions, scaled(config))),
        ("stored", format!("{}: {}", bytes(info.stored_bytes), types.join(", "))),
        (
            "to run",
            format!("{} and {} for 1,000 tokens", bytes(memory.run), bytes(1000 * memory.cache_per_token)),
        ),
    ];
    let pass = bytes(1000 * memory.activations_per_token);
    let train = |weights| format!("{} and {pass} for 1,000 tokens of a micro-batch", bytes(weights));
    rows.push(("to train", train(memory.train)));
    rows.push(("  with LoRA", train(memory.train_lora)));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: String = rows.into_iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect();
    Ok(stdout().write_all(lines.as_bytes())?)
}

fn tags(info: &model::Info) -> String {
    match (info.tags, info.path_rewind) {
        (false, _) => "none (`train` adds them)".into(),
        (true, 0) => "all six".into(),
        (true, by) => format!("all six; paths stand {by} positions further back"),
    }
}

fn scaled(config: &model::Config) -> &'static str {
    match config.rope_scaling {
        None => "",
        Some(model::RopeScaling::Linear { .. }) => ", rotary base scaled (linear)",
        Some(model::RopeScaling::Llama3 { .. }) => ", rotary base scaled (llama3)",
        Some(model::RopeScaling::Yarn(_)) => ", rotary base scaled (yarn)",
    }
}

fn millions(count: u64) -> String {
    match count {
        0..1_000_000 => format!("{:.0} thousand", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} million", count as f64 / 1e6),
        _ => format!("{:.2} billion", count as f64 / 1e9),
    }
}

fn bytes(count: u64) -> String {
    let (mib, gib) = (count as f64 / f64::from(1 << 20), count as f64 / f64::from(1 << 30));
    if gib < 1.0 { format!("{mib:.1} MiB") } else { format!("{gib:.1} GiB") }
}
