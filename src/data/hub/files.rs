//! Which files of a repository are wanted.

use super::name::Name;
use super::{HubError, Kind};

/// What a name stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// A folder with these files.
    Folder(Vec<String>),
    /// One file.
    File(String),
}

impl Choice {
    /// The files.
    pub(super) fn files(&self) -> &[String] {
        match self {
            Self::Folder(files) => files,
            Self::File(file) => std::slice::from_ref(file),
        }
    }

    /// What a name stands for in a repository that holds `listing`.
    pub(super) fn of(kind: Kind, name: &Name, listing: &[String]) -> Result<Self, HubError> {
        let repo = || name.repo.clone();
        if let Some(file) = &name.file {
            let missing = || {
                let (repo, file, revision) = (repo(), file.clone(), name.revision.clone());
                HubError::File { kind, repo, file, revision }
            };
            return listing.contains(file).then(|| Self::File(file.clone())).ok_or_else(missing);
        }
        if kind == Kind::Model
            && let Some(files) = model_folder(listing)
        {
            return Ok(Self::Folder(files));
        }
        let mut files: Vec<String> = listing.iter().filter(|file| kind.is_file(file)).cloned().collect();
        match (kind, files.len()) {
            (_, 0) => Err(HubError::Nothing { kind, repo: repo() }),
            (Kind::DataSet, 1) => Ok(Self::File(files.swap_remove(0))),
            // One GGUF file, too, has to be named: its name says how it is quantised.
            _ => Err(HubError::Several { kind, repo: repo(), files }),
        }
    }
}

/// What stands beside the weights.
const SMALL: [&str; 8] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "adapter_config.json",
    INDEX,
];
const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
const ADAPTER: &str = "adapter_model.safetensors";

/// The files of a model or of an adapter in Hugging Face form; nothing where it isn't whole.
fn model_folder(listing: &[String]) -> Option<Vec<String>> {
    let has = |file: &str| listing.iter().any(|listed| listed == file);
    let model = has("config.json").then(|| weights(listing)).flatten();
    let adapter = (has("adapter_config.json") && has(ADAPTER)).then(|| vec![ADAPTER.to_owned()]);
    if model.is_none() && adapter.is_none() {
        return None;
    }
    let single = has(SINGLE);
    let small = SMALL.into_iter().filter(|file| has(file) && !(single && *file == INDEX)).map(str::to_owned);
    Some(small.chain(model.unwrap_or_default()).chain(adapter.unwrap_or_default()).collect())
}

/// The one file of weights, or all shards.
fn weights(listing: &[String]) -> Option<Vec<String>> {
    if listing.iter().any(|file| file == SINGLE) {
        return Some(vec![SINGLE.into()]);
    }
    if !listing.iter().any(|file| file == INDEX) {
        return None;
    }
    let shards: Vec<String> = listing.iter().filter(|file| shard_count(file).is_some()).cloned().collect();
    let count = shard_count(shards.first()?)?;
    (shards.len() == count).then_some(shards)
}

/// N of `model-I-of-N.safetensors`.
fn shard_count(file: &str) -> Option<usize> {
    let (index, count) = file.strip_prefix("model-")?.strip_suffix(".safetensors")?.split_once("-of-")?;
    index.parse::<usize>().ok()?;
    count.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(kind: Kind, name: &str, listing: &[&str]) -> Result<Choice, String> {
        let listing: Vec<String> = listing.iter().map(|file| (*file).to_owned()).collect();
        Choice::of(kind, &Name::parse(kind, name).unwrap(), &listing).map_err(|error| error.to_string())
    }

    fn folder(files: &[&str]) -> Result<Choice, String> {
        Ok(Choice::Folder(files.iter().map(|file| (*file).to_owned()).collect()))
    }

    #[test]
    fn a_model_is_what_its_folder_needs_and_nothing_else() {
        let listing = [
            ".gitattributes",
            "README.md",
            "config.json",
            "model.safetensors",
            "model.safetensors.index.json",
            "onnx/model.onnx",
            "pytorch_model.bin",
            "tokenizer.json",
            "x.gguf",
            "original/config.json",
        ];
        let expected = ["config.json", "tokenizer.json", "model.safetensors"];
        assert_eq!(choose(Kind::Model, "a/b", &listing), folder(&expected));
        let adapter = ["adapter_config.json", "adapter_model.safetensors"];
        assert_eq!(choose(Kind::Model, "a/b", &adapter), folder(&adapter));
        assert_eq!(choose(Kind::Model, "a/b/x.gguf", &listing), Ok(Choice::File("x.gguf".into())));
    }

    #[test]
    fn shards_come_all_or_not_at_all() {
        let (first, second) = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors");
        let whole = ["config.json", "model.safetensors.index.json", first, second];
        assert_eq!(choose(Kind::Model, "a/b", &whole), folder(&whole));
        let error = choose(Kind::Model, "a/b", &whole[..3]).unwrap_err();
        assert!(error.contains("safetensors"), "{error}");
    }

    #[test]
    fn where_there_are_several_files_they_are_listed() {
        let error = choose(Kind::Model, "a/b", &["config.json", "q4.gguf", "q8.gguf"]).unwrap_err();
        assert!(error.contains("as in `a/b/q4.gguf`: q4.gguf, q8.gguf"), "{error}");
        let tables = ["README.md", "data/train.parquet", "test.jsonl"];
        assert_eq!(choose(Kind::DataSet, "a/b", &tables[..2]), Ok(Choice::File(tables[1].into())));
        let error = choose(Kind::DataSet, "a/b", &tables).unwrap_err();
        assert!(
            error.contains("as in `a/b/data/train.parquet`") && error.contains(", test.jsonl"),
            "{error}"
        );
        let error = choose(Kind::DataSet, "a/b/x.jsonl@v2", &tables).unwrap_err();
        assert!(error.contains(r#"has no file "x.jsonl" (revision v2)"#), "{error}");
        let error = choose(Kind::DataSet, "a/b", &tables[..1]).unwrap_err();
        assert!(error.contains(".jsonl or .parquet"), "{error}");
        let many: Vec<String> = (0..30).map(|i| format!("{i}.jsonl")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(choose(Kind::DataSet, "a/b", &many).unwrap_err().ends_with("19.jsonl and 10 more"));
    }
}
