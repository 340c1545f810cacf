//! Names on the Hub, checked before anything is asked: `org/name`, `org/name/FILE`, each with `@REVISION` or without.

use super::{HubError, Kind};

/// The longest name in bytes.
const LONGEST: usize = 512;

/// Endings of files, which repositories don't have: such a name is the path of a file that is missing.
const FILES: [&str; 7] = [".gguf", ".safetensors", ".jsonl", ".parquet", ".json", ".csv", ".toml"];

/// A repository, its revision, and perhaps one of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// `org/name`.
    pub(super) repo: String,
    /// A branch, a tag or a commit.
    pub(super) revision: String,
    /// A file in it.
    pub(super) file: Option<String>,
}

impl Name {
    /// Reads a name. What looks like a path to a missing file is none.
    pub(super) fn parse(kind: Kind, text: &str) -> Result<Self, HubError> {
        Self::read(kind, text).map_err(|reason| HubError::Name { kind, text: text.into(), reason })
    }

    fn read(kind: Kind, text: &str) -> Result<Self, &'static str> {
        if text.len() > LONGEST {
            return Err("longer than names on the Hub are");
        }
        let (path, revision) = text.split_once('@').unwrap_or((text, "main"));
        let mut parts = path.splitn(3, '/');
        let (Some(org), Some(name), file) = (parts.next(), parts.next(), parts.next()) else {
            return Err("a name on the Hub has the form `org/name`");
        };
        if !is_label(org) || !is_label(name) {
            return Err("a name on the Hub consists of letters, digits, `-`, `_` and `.`");
        }
        match file {
            None if FILES.iter().any(|ending| name.ends_with(ending)) => {
                return Err("a file on the Hub has the form `org/name/FILE`");
            }
            Some(file) if !is_inside(file) || !kind.is_file(file) => return Err(kind.expected_file()),
            _ => {}
        }
        let revision_letter = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if !is_inside(revision) || revision.starts_with('-') || !revision.chars().all(revision_letter) {
            return Err("the revision after `@` is a branch, a tag or a commit");
        }
        Ok(Self { repo: format!("{org}/{name}"), revision: revision.into(), file: file.map(str::to_owned) })
    }
}

/// Whether a text can be the name of an organisation or a repository.
fn is_label(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let edge = |c: char| c == '-' || c == '.';
    (1..=96).contains(&text.len())
        && text.chars().all(letter)
        && !text.starts_with(edge)
        && !text.ends_with(edge)
        && !text.contains("--")
        && !text.contains("..")
}

/// Whether a path with `/` stays inside its folder, on any system.
pub(super) fn is_inside(path: &str) -> bool {
    let sound = |part: &str| !matches!(part, "" | "." | "..");
    path.split('/').all(sound) && !path.contains(['\\', ':']) && !path.chars().any(char::is_control)
}

/// Whether a revision is a commit, whose files never change.
pub(super) fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, text: &str) -> Option<(String, String, Option<String>)> {
        Name::parse(kind, text).ok().map(|name| (name.repo, name.revision, name.file))
    }

    #[test]
    fn names_have_a_repository_a_revision_and_perhaps_a_file() {
        let name = |repo: &str, revision: &str, file: Option<&str>| {
            Some((repo.into(), revision.into(), file.map(str::to_owned)))
        };
        assert_eq!(read(Kind::Model, "org/Some-model_1.5"), name("org/Some-model_1.5", "main", None));
        assert_eq!(read(Kind::Model, "org/m@refs/pr/1"), name("org/m", "refs/pr/1", None));
        assert_eq!(read(Kind::Model, "org/m/Q4.GGUF@v1"), name("org/m", "v1", Some("Q4.GGUF")));
        let file = "main/test 0.parquet";
        assert_eq!(read(Kind::DataSet, &format!("org/d/{file}")), name("org/d", "main", Some(file)));
    }

    #[test]
    fn paths_and_anything_odd_are_no_names() {
        for text in [
            "embedded",
            "",
            "/",
            "a/",
            "/a/b",
            "./a",
            "../a",
            "a/..",
            "a//b",
            "~/a",
            "a/b c",
            "a/b?x",
            "a/ä",
            "C:/a",
            "a--b/c",
            "-a/b",
            "a/b.",
            "a/b@",
            "a/b@../x",
            "a/b@x y",
            "a/b@-x",
            "a/b@x@y",
            "runs/x/checkpoints/y",
            "models/x.gguf",
            "a/b/../x.gguf",
            "a/b/x.bin",
            "a/b/c:x.gguf",
        ] {
            assert_eq!(read(Kind::Model, text), None, "{text}");
        }
        for text in
            ["data/train.jsonl", "data/train.parquet", "a/b/train.csv", "../../shared/x.jsonl", "countdown:3"]
        {
            assert_eq!(read(Kind::DataSet, text), None, "{text}");
        }
        assert_eq!(read(Kind::Model, &format!("a/{}", "b".repeat(97))), None);
        assert_eq!(read(Kind::Model, &format!("a/b/{}.gguf", "c".repeat(600))), None);
    }
}
