//! Names on the Hub, with a bar for what has to be downloaded.

use std::path::PathBuf;

use parallel_r1::data::hub::{Event, Hub, HubError, Kind};
use parallel_r1::model::{Pretrained, adapter_base};

use crate::cmd::DEVICE;
use crate::progress::Progress;

/// The local file or folder of a name; what is no name on the Hub is returned as it is.
pub(crate) fn resolve(kind: Kind, name: &str) -> Result<PathBuf, HubError> {
    let mut progress = Progress::new();
    Hub::from_env().resolve(kind, name, &mut |event| match event {
        Event::Download { file, done, total } => {
            progress.bytes(&format!("download {name}"), done, total, file);
        }
        Event::Unreachable { endpoint, reason } => {
            progress.note(&format!(
                "note: {endpoint} can't be reached ({reason}); {name} is taken from the cache"
            ));
        }
        _ => {}
    })
}

/// The path (or other name) under which a `--model` argument is opened, once everything that it needs is here: the base
/// model of an adapter, too.
pub(crate) fn model(name: &str) -> anyhow::Result<String> {
    let path = resolve(Kind::Model, name)?;
    if let Some(base) = adapter_base(&path)?
        && !path.join(&base).exists()
    {
        resolve(Kind::Model, &base)?;
    }
    Ok(path.to_string_lossy().into_owned())
}

/// Opens the model of a `--model` argument.
pub(crate) fn open(name: &str) -> anyhow::Result<Pretrained> {
    Ok(Pretrained::open(&model(name)?, &DEVICE)?)
}

/// Which model, in `generate` and `eval`.
#[derive(clap::Args)]
pub(crate) struct ModelArgs {
    /// A folder in Hugging Face form, an adapter, a GGUF file, `org/name` on the Hugging Face Hub, or `embedded`
    #[arg(long, value_name = "M", default_value = parallel_r1::model::EMBEDDED)]
    pub(crate) model: String,
    /// Turn a GGUF file's quantised weights into f32 first
    ///
    /// That is the model that training starts from: it takes more memory, and its activations aren't rounded to 8 bits.
    #[arg(long, visible_alias = "dequantize")]
    dequantise: bool,
}

impl ModelArgs {
    pub(crate) fn open(&self) -> anyhow::Result<Pretrained> {
        if !self.dequantise {
            return open(&self.model);
        }
        Ok(Pretrained::open_to_train(&model(&self.model)?, &DEVICE)?)
    }
}
