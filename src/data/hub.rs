//! Names on the Hugging Face Hub, `org/name`, become local files: from the cache, or by a download into it.
//!
//! Environment variables, cache and token file are those of Python's `huggingface_hub`, so that both share what one of
//! them has fetched. A download that was cut off goes on where it stopped; where the Hub can't be reached, the cache
//! answers.

mod cache;
mod client;
mod error;
mod files;
mod name;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::HubError;

use cache::{Cache, at, is_intact};
use client::{Client, Listing, Remote, Trouble};
use files::Choice;
use name::{Name, is_commit};

/// More bytes than any model here has.
const MOST_BYTES: u64 = 1 << 42;
/// More files than any model here has.
const MOST_FILES: u64 = 1000;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder in Hugging Face form, or one of a repository's GGUF files.
    Model,
    /// A JSONL or Parquet file.
    DataSet,
}

impl Kind {
    fn plural(self) -> &'static str {
        match self {
            Self::Model => "models",
            Self::DataSet => "datasets",
        }
    }

    /// Whether a file is one that can stand for itself.
    fn is_file(self, file: &str) -> bool {
        let endings: &[&str] = match self {
            Self::Model => &["gguf"],
            Self::DataSet => &["jsonl", "parquet"],
        };
        let ending = Path::new(file).extension();
        endings.iter().any(|end| ending.is_some_and(|ending| ending.eq_ignore_ascii_case(end)))
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Model => "config.json and all its safetensors, or a .gguf file",
            Self::DataSet => "a .jsonl or .parquet file",
        }
    }

    fn expected_file(self) -> &'static str {
        match self {
            Self::Model => "a file of a repository on the Hub is `org/name/FILE.gguf`",
            Self::DataSet => {
                "a file of a data set on the Hub is `org/name/FILE.jsonl` or `org/name/FILE.parquet`"
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::DataSet => "data set",
        })
    }
}

/// Whether a text has the form of a name on the Hub. Local paths may have it too, and go first.
pub fn is_name(kind: Kind, text: &str) -> bool {
    Name::parse(kind, text).is_ok()
}

/// What happens on the way.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// So much is here of what has to be downloaded.
    Download {
        /// The file that is coming.
        file: &'a str,
        /// Bytes of all files that are here.
        done: u64,
        /// Bytes of all files.
        total: u64,
    },
    /// The Hub can't be reached; the cache is used as it is.
    Unreachable {
        /// The Hub's address.
        endpoint: &'a str,
        /// Why not.
        reason: &'a str,
    },
}

/// Where names are looked up.
#[derive(Clone)]
pub struct Hub {
    /// The Hub's address.
    pub endpoint: String,
    /// The folder that keeps what was downloaded.
    pub cache: PathBuf,
    /// Who asks, for private and gated repositories.
    pub token: Option<String>,
    /// Whether the cache alone is used.
    pub offline: bool,
    /// The pause before a request is tried again, doubled each time.
    pub pause: Duration,
}

impl Hub {
    /// The Hub of the environment: `HF_ENDPOINT`, `HF_HOME`, `HF_HUB_CACHE`, `HF_TOKEN`, `HF_TOKEN_PATH` and
    /// `HF_HUB_OFFLINE`, with the defaults of Python's `huggingface_hub`.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let trimmed = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let first = |names: &[&str]| names.iter().find_map(|name| variable(name).and_then(trimmed));
        let path = |name: &str| first(&[name]).map(PathBuf::from);
        let user = || path("HOME").or(path("USERPROFILE")).unwrap_or_default();
        let user_cache = || path("XDG_CACHE_HOME").unwrap_or_else(|| user().join(".cache"));
        let home = path("HF_HOME").unwrap_or_else(|| user_cache().join("huggingface"));
        let cache =
            path("HF_HUB_CACHE").or(path("HUGGINGFACE_HUB_CACHE")).unwrap_or_else(|| home.join("hub"));
        let token_file = path("HF_TOKEN_PATH").unwrap_or_else(|| home.join("token"));
        let kept = || std::fs::read_to_string(&token_file).ok().and_then(trimmed);
        let offline = first(&["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]).unwrap_or_default();
        Self {
            endpoint: first(&["HF_ENDPOINT"]).unwrap_or_else(|| "https://huggingface.co".into()),
            cache,
            token: first(&["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]).or_else(kept),
            offline: ["1", "ON", "YES", "TRUE"].contains(&offline.to_ascii_uppercase().as_str()),
            pause: Duration::from_millis(500),
        }
    }

    /// The local file or folder that a text stands for: a name on the Hub is fetched; what exists, and what has not the
    /// form of such a name, is returned as it is.
    pub fn resolve(
        &self,
        kind: Kind,
        text: &str,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<PathBuf, HubError> {
        let path = PathBuf::from(text);
        if path.exists() || !is_name(kind, text) { Ok(path) } else { self.fetch(kind, text, events) }
    }

    /// The local file or folder of a name on the Hub, downloaded where the cache hasn't it.
    ///
    /// A model `org/name` is a folder with what it needs to run, `org/name/FILE.gguf` that file; a data set `org/name` is
    /// its only table, `org/name/FILE.jsonl` or `.parquet` that file. `@REVISION` after any of them takes another branch,
    /// tag or commit than `main`.
    pub fn fetch(
        &self,
        kind: Kind,
        text: &str,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<PathBuf, HubError> {
        let name = Name::parse(kind, text)?;
        let cache = Cache::new(&self.cache, kind, &name.repo);
        if self.offline {
            let absent = || HubError::Offline { kind, name: text.into(), cache: self.cache.clone() };
            return cached(kind, &name, &cache).ok_or_else(absent);
        }
        if is_commit(&name.revision)
            && let Some(path) = cached(kind, &name, &cache)
        {
            return Ok(path);
        }
        let client = Client::new(self, kind, &name)?;
        let listing = match client.listing() {
            Ok(listing) => listing,
            Err(Trouble::Lasting(error)) => return Err(error),
            Err(Trouble::Passing { reason, .. }) => {
                let Some(path) = cached(kind, &name, &cache) else {
                    let (cache, endpoint) = (self.cache.clone(), self.endpoint.clone());
                    return Err(HubError::Unreachable { kind, name: text.into(), cache, endpoint, reason });
                };
                events(Event::Unreachable { endpoint: &self.endpoint, reason: &reason });
                return Ok(path);
            }
        };
        let choice = Choice::of(kind, &name, &listing.files)?;
        download(&client, &cache, &listing, choice.files(), events)?;
        cache.point(&name.revision, &listing.commit)?;
        Ok(place(&cache, &listing.commit, &choice))
    }
}

/// What a name stands for in the cache, if it is there as a whole.
fn cached(kind: Kind, name: &Name, cache: &Cache) -> Option<PathBuf> {
    let commit = cache.commit(&name.revision)?;
    let choice = Choice::of(kind, name, &cache.files(&commit)).ok()?;
    Some(place(cache, &commit, &choice))
}

fn place(cache: &Cache, commit: &str, choice: &Choice) -> PathBuf {
    let folder = cache.snapshot(commit);
    match choice {
        Choice::Folder(_) => folder,
        Choice::File(file) => folder.join(file),
    }
}

/// Brings the files of a commit that the cache lacks.
fn download(
    client: &Client<'_>,
    cache: &Cache,
    listing: &Listing,
    files: &[String],
    events: &mut dyn FnMut(Event<'_>),
) -> Result<(), HubError> {
    let commit = &listing.commit;
    let missing: Vec<&String> = files.iter().filter(|file| !cache.has(commit, file)).collect();
    client.within("files", MOST_FILES, missing.len() as u64)?;
    let described = missing.into_iter().map(|file| Ok((file, client.describe(commit, file)?)));
    let described: Vec<(&String, Remote)> = described.collect::<Result<_, HubError>>()?;
    let total = described.iter().fold(0, |total: u64, (_, remote)| total.saturating_add(remote.size));
    client.within("bytes", MOST_BYTES, total)?;
    let mut before = 0;
    for (file, remote) in described {
        let mut report = |have| events(Event::Download { file, done: before + have, total });
        bring(client, cache, commit, file, &remote, &mut report)?;
        cache.link(commit, file, &remote.etag)?;
        before += remote.size;
    }
    Ok(())
}

/// Brings the bytes of one file, unless they are here under another name or commit.
fn bring(
    client: &Client<'_>,
    cache: &Cache,
    commit: &str,
    file: &str,
    remote: &Remote,
    report: &mut dyn FnMut(u64),
) -> Result<(), HubError> {
    let _lock = cache.lock(&remote.etag)?;
    let blob = cache.blob(&remote.etag);
    if blob.is_file() {
        return Ok(());
    }
    let part = cache.part(&remote.etag)?;
    client.download(commit, file, remote, &part, report)?;
    if !is_intact(&part, &remote.etag).map_err(at(&part))? {
        std::fs::remove_file(&part).map_err(at(&part))?;
        return Err(HubError::Damaged { file: file.into(), expected: remote.etag.clone() });
    }
    std::fs::rename(&part, &blob).map_err(at(&blob))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(variables: &[(&str, &str)]) -> Hub {
        Hub::from_variables(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_means_what_it_means_to_huggingface_hub() {
        let plain = hub(&[("HOME", "/h")]);
        assert_eq!(plain.endpoint, "https://huggingface.co");
        assert_eq!(plain.cache, Path::new("/h/.cache/huggingface/hub"));
        assert!(!plain.offline);
        assert_eq!(hub(&[("XDG_CACHE_HOME", "/c")]).cache, Path::new("/c/huggingface/hub"));
        let home = [("HF_HOME", "/hf"), ("XDG_CACHE_HOME", "/c"), ("HF_HUB_OFFLINE", "yes")];
        assert_eq!(hub(&home).cache, Path::new("/hf/hub"));
        assert!(hub(&home).offline);
        let set = hub(&[
            ("HF_HOME", "/hf"),
            ("HF_HUB_CACHE", "/x"),
            ("HF_ENDPOINT", "http://h"),
            ("HF_HUB_OFFLINE", "0"),
        ]);
        assert_eq!((set.cache.as_path(), set.endpoint.as_str()), (Path::new("/x"), "http://h"));
        assert!(!set.offline);
    }

    #[test]
    fn the_token_is_in_a_variable_or_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        assert_eq!(hub(&[("HF_HOME", home)]).token, None);
        std::fs::write(folder.path().join("token"), "kept\n").unwrap();
        assert_eq!(hub(&[("HF_HOME", home)]).token.as_deref(), Some("kept"));
        assert_eq!(hub(&[("HF_HOME", home), ("HF_TOKEN", " given ")]).token.as_deref(), Some("given"));
        assert_eq!(hub(&[("HF_HOME", home), ("HF_TOKEN_PATH", "/nowhere")]).token, None);
    }

    #[test]
    fn what_exists_or_has_another_form_is_left_as_it_is() {
        let hub = Hub { offline: true, ..hub(&[]) };
        let mut silent = |_: Event<'_>| {};
        for text in ["embedded", "no/such/folder/here", "src/data", "data/none.jsonl", "models/none.gguf"] {
            assert_eq!(hub.resolve(Kind::Model, text, &mut silent).unwrap(), Path::new(text));
        }
        let error = hub.resolve(Kind::Model, "org/name", &mut silent).unwrap_err();
        assert!(matches!(error, HubError::Offline { .. }), "{error}");
    }
}
