//! The cache on disk, laid out as Python's `huggingface_hub` does, so that both use the same files:
//!
//! ```text
//! CACHE/models--org--name/blobs/ETAG              the bytes, each file once
//! CACHE/models--org--name/blobs/ETAG.incomplete   what has come so far
//! CACHE/models--org--name/snapshots/COMMIT/FILE   a link to a blob
//! CACHE/models--org--name/refs/REVISION           the commit of a branch or tag
//! CACHE/.locks/models--org--name/ETAG.lock        held while a blob is written
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use super::name::is_commit;
use super::{HubError, Kind};

/// More files than a snapshot has that is of use here.
const MOST_FILES: usize = 100_000;

/// The part of the cache that belongs to one repository.
pub(super) struct Cache {
    repo: PathBuf,
    locks: PathBuf,
}

impl Cache {
    pub(super) fn new(cache: &Path, kind: Kind, repo: &str) -> Self {
        let folder = format!("{}--{}", kind.plural(), repo.replace('/', "--"));
        Self { repo: cache.join(&folder), locks: cache.join(".locks").join(folder) }
    }

    /// The commit that a revision was when it was last asked for.
    pub(super) fn commit(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.into());
        }
        let mut text = String::new();
        File::open(self.repo.join("refs").join(revision)).ok()?.take(64).read_to_string(&mut text).ok()?;
        Some(text.trim().to_owned()).filter(|commit| is_commit(commit))
    }

    /// Remembers which commit a revision is.
    pub(super) fn point(&self, revision: &str, commit: &str) -> Result<(), HubError> {
        if is_commit(revision) || self.commit(revision).as_deref() == Some(commit) {
            return Ok(());
        }
        let path = self.repo.join("refs").join(revision);
        make_parent(&path)?;
        std::fs::write(&path, commit).map_err(at(&path))
    }

    /// The folder of a commit's files.
    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.repo.join("snapshots").join(commit)
    }

    /// The files of a commit that are here, as the Hub names them.
    pub(super) fn files(&self, commit: &str) -> Vec<String> {
        let mut found = Vec::new();
        list(&self.snapshot(commit), "", &mut found);
        found.sort();
        found
    }

    /// Whether a file of a commit is here.
    pub(super) fn has(&self, commit: &str, file: &str) -> bool {
        self.snapshot(commit).join(file).is_file()
    }

    /// Where the bytes of a file lie.
    pub(super) fn blob(&self, etag: &str) -> PathBuf {
        self.repo.join("blobs").join(etag)
    }

    /// Where they lie while they come.
    pub(super) fn part(&self, etag: &str) -> Result<PathBuf, HubError> {
        let part = self.repo.join("blobs").join(format!("{etag}.incomplete"));
        make_parent(&part).map(|()| part)
    }

    /// Waits until no other process writes the blob; the lock lasts as long as the file.
    pub(super) fn lock(&self, etag: &str) -> Result<File, HubError> {
        let path = self.locks.join(format!("{etag}.lock"));
        make_parent(&path)?;
        let file = File::create(&path).map_err(at(&path))?;
        match file.lock() {
            // Some network file systems have no locks.
            Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(at(&path)(error)),
            _ => Ok(file),
        }
    }

    /// Makes a blob a file of a commit.
    pub(super) fn link(&self, commit: &str, file: &str, etag: &str) -> Result<(), HubError> {
        let path = self.snapshot(commit).join(file);
        make_parent(&path)?;
        if path.is_symlink() {
            std::fs::remove_file(&path).map_err(at(&path))?;
        }
        let up = "../".repeat(file.split('/').count() + 1);
        symlink(Path::new(&format!("{up}blobs/{etag}")), &self.blob(etag), &path).map_err(at(&path))
    }
}

#[cfg(unix)]
fn symlink(relative: &Path, _blob: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(relative, path)
}

/// Elsewhere links need rights that a user may lack.
#[cfg(not(unix))]
fn symlink(_relative: &Path, blob: &Path, path: &Path) -> io::Result<()> {
    std::fs::copy(blob, path).map(|_| ())
}

/// An error about a path.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> HubError {
    let path = path.to_owned();
    move |source| HubError::Cache { path, source }
}

fn make_parent(path: &Path) -> Result<(), HubError> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent).map_err(at(parent))
}

/// Collects the files below a folder; folders that are links are left alone, for they could lead in a circle.
fn list(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
        if kind.is_dir() {
            list(&entry.path(), &format!("{prefix}{name}/"), found);
        } else if found.len() < MOST_FILES && entry.path().is_file() {
            found.push(format!("{prefix}{name}"));
        }
    }
}

/// Whether a file is the one that its ETag names. Large files are named by their SHA-256; other tags say nothing that
/// all servers agree on.
pub(super) fn is_intact(path: &Path, etag: &str) -> io::Result<bool> {
    if etag.len() != 64 {
        return Ok(true);
    }
    let mut file = File::open(path)?;
    let (mut sum, mut buffer) = (Context::new(&SHA256), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => sum.update(&buffer[..n]),
        }
    }
    let hex: String = sum.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(hex == etag.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linked_blob_is_a_file_of_the_commit_also_in_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), Kind::DataSet, "org/name");
        let commit = "0123456789".repeat(4);
        std::fs::write(cache.part("tag").unwrap(), "").unwrap();
        std::fs::write(cache.blob("tag"), "rows").unwrap();
        for file in ["x.jsonl", "data/deep/y.jsonl"] {
            assert!(!cache.has(&commit, file));
            cache.link(&commit, file, "tag").unwrap();
            cache.link(&commit, file, "tag").unwrap();
            assert_eq!(std::fs::read(cache.snapshot(&commit).join(file)).unwrap(), b"rows");
        }
        assert_eq!(cache.files(&commit), ["data/deep/y.jsonl", "x.jsonl"]);
        assert!(folder.path().join("datasets--org--name/snapshots").is_dir());
    }

    #[test]
    fn a_revision_is_the_commit_it_was_last() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), Kind::Model, "org/name");
        let commit = "a1".repeat(20);
        assert_eq!(cache.commit("main"), None);
        assert_eq!(cache.commit(&commit).as_ref(), Some(&commit));
        cache.point("refs/pr/1", &commit).unwrap();
        assert_eq!(cache.commit("refs/pr/1"), Some(commit));
        cache.point("main", "no commit").unwrap();
        assert_eq!(cache.commit("main"), None);
    }

    #[test]
    fn a_sha256_guards_the_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blob");
        std::fs::write(&path, "abc").unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(is_intact(&path, sum).unwrap() && is_intact(&path, "any-other-tag").unwrap());
        std::fs::write(&path, "abd").unwrap();
        assert!(!is_intact(&path, sum).unwrap());
    }
}
