//! Names on the Hub, with a bar for what has to be downloaded.

use std::path::PathBuf;

use parallel_r1::data::hub::{Event, Hub, HubError, Kind};
use parallel_r1::model::Pretrained;

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

/// Opens the model of a `--model` argument.
pub(crate) fn open(name: &str) -> anyhow::Result<Pretrained> {
    let path = resolve(Kind::Model, name)?;
    Ok(Pretrained::open(&path.to_string_lossy(), &DEVICE)?)
}
