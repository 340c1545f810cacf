//! Which recipe a name means: one that is compiled in, or a file.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::failure::Failure;

/// The recipe of `train` without arguments.
pub(crate) const DEFAULT: &str = "default";

/// Recipes that are compiled in, so that they run from any folder.
const EMBEDDED: [(&str, &str); 4] = [
    (DEFAULT, include_str!("../../../recipes/default.toml")),
    ("countdown", include_str!("../../../recipes/countdown/default.toml")),
    ("countdown/smoke", include_str!("../../../recipes/countdown/smoke.toml")),
    ("countdown/base", include_str!("../../../recipes/countdown/base.toml")),
];

/// A recipe as text.
pub(crate) struct Source {
    /// How errors call it.
    pub(crate) name: String,
    /// What run folders are called after.
    pub(crate) stem: String,
    /// The text.
    pub(crate) text: String,
    /// Where its files are looked up. Absolute, so that the run can be resumed from anywhere.
    pub(crate) folder: PathBuf,
}

impl Source {
    /// The recipe of a name.
    pub(crate) fn find(name: &str) -> anyhow::Result<Self> {
        if let Some((name, text)) = EMBEDDED.iter().find(|(embedded, _)| *embedded == name) {
            let (stem, folder) = (name.replace('/', "-"), std::env::current_dir()?);
            return Ok(Self { name: format!("recipe {name}"), stem, text: (*text).into(), folder });
        }
        let path = Path::new(name);
        if !path.is_file() {
            let names: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
            return Err(Failure::error(
                format!("recipe {name:?}: no such file"),
                format!("give a TOML file, or one that is built in: {}", names.join(", ")),
            ));
        }
        Self::read(path)
    }

    /// The recipe in a file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
        let folder = std::path::absolute(path)?.parent().map(Path::to_path_buf).unwrap_or_default();
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { name, stem, text, folder })
    }
}
