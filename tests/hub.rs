//! Names on the Hub, against a server that speaks its HTTP.

use std::path::PathBuf;
use std::time::Duration;

use candle_core::{DType, Device};
use parallel_r1::data::hub::{Event, Hub, HubError, Kind};
use parallel_r1::data::load_problems;
use parallel_r1::model::Pretrained;
use tempfile::TempDir;

use super::hub_server::{Asked, Server};

const MODEL: &str = "models/org/tiny";

/// A server, and a Hub with an empty cache that asks it.
fn hub() -> (Server, Hub, TempDir) {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let cache = folder.path().join("hub");
    let hub = Hub { endpoint: server.endpoint(), cache, token: None, offline: false, pause: Duration::ZERO };
    (server, hub, folder)
}

fn fetch(hub: &Hub, kind: Kind, name: &str) -> Result<PathBuf, HubError> {
    hub.fetch(kind, name, &mut |_| {})
}

fn message(hub: &Hub, kind: Kind, name: &str) -> String {
    fetch(hub, kind, name).unwrap_err().to_string()
}

/// How often each method was used.
fn counts(asked: &[Asked]) -> [usize; 2] {
    ["HEAD", "GET"].map(|method| asked.iter().filter(|asked| asked.method == method).count())
}

fn sha256(bytes: &[u8]) -> String {
    let sum = ring::digest::digest(&ring::digest::SHA256, bytes);
    sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A model as this program writes it, and files that nobody here needs.
fn put_model(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    Pretrained::embedded(&Device::Cpu).unwrap().save(folder.path(), DType::BF16).unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
        let (name, bytes) = (file.file_name(), std::fs::read(file.path()).unwrap());
        server.put_tagged(MODEL, name.to_str().unwrap(), &bytes, &sha256(&bytes));
    }
    for file in ["README.md", "pytorch_model.bin", "onnx/model.onnx", "original/config.json"] {
        server.put(MODEL, file, file.as_bytes());
    }
}

#[test]
fn a_model_is_downloaded_once_and_opens() {
    let (server, hub, _folder) = hub();
    let hub = Hub { token: Some("secret".into()), ..hub };
    put_model(&server);
    let mut seen = Vec::new();
    let place = hub.fetch(Kind::Model, "org/tiny", &mut |event| {
        if let Event::Download { done, total, .. } = event {
            seen.push((done, total));
        }
    });
    let place = place.unwrap();
    assert!(seen.is_sorted() && seen[0].0 == 0 && seen.iter().all(|(_, total)| *total == seen[0].1));
    assert_eq!(seen.last().unwrap().0, seen[0].1);

    let model = Pretrained::open(place.to_str().unwrap(), &Device::Cpu).unwrap();
    assert!(!model.prompt("3 7 12 = 45").unwrap().is_empty());
    let asked = server.asked();
    assert!(asked.iter().all(|asked| !asked.path.contains("onnx") && !asked.path.contains("README")));
    let (stored, others): (Vec<_>, Vec<_>) = asked.iter().partition(|asked| asked.path.starts_with("/cdn/"));
    assert!(others.iter().all(|asked| asked.token.as_deref() == Some("Bearer secret")), "{others:?}");
    assert!(stored.len() == 1 && stored[0].token.is_none(), "the token left the Hub: {stored:?}");

    let again = fetch(&hub, Kind::Model, "org/tiny").unwrap();
    assert_eq!((again, counts(&server.asked())), (place.clone(), [0, 1]));
    // A commit never changes, so the Hub need not be asked.
    let commit = place.file_name().unwrap().to_str().unwrap();
    assert_eq!(fetch(&hub, Kind::Model, &format!("org/tiny@{commit}")).unwrap(), place);
    assert_eq!(counts(&server.asked()), [0, 0]);
}

#[test]
fn the_cache_has_the_layout_of_huggingface_hub() {
    let (server, hub, _folder) = hub();
    put_model(&server);
    let place = fetch(&hub, Kind::Model, "org/tiny").unwrap();
    let repo = hub.cache.join("models--org--tiny");
    let commit = std::fs::read_to_string(repo.join("refs/main")).unwrap();
    assert_eq!(place, repo.join("snapshots").join(&commit));
    let weights = std::fs::read(place.join("model.safetensors")).unwrap();
    assert!(repo.join("blobs").join(sha256(&weights)).is_file());
    #[cfg(unix)]
    assert!(std::fs::read_link(place.join("model.safetensors")).unwrap().starts_with("../../blobs"));

    // Another commit brings the changed file alone.
    server.put(
        MODEL,
        "config.json",
        &[std::fs::read(place.join("config.json")).unwrap(), b"\n".into()].concat(),
    );
    server.asked();
    let newer = fetch(&hub, Kind::Model, "org/tiny").unwrap();
    assert_ne!(newer, place);
    assert!(newer.join("model.safetensors").is_file());
    assert!(server.asked().iter().all(|asked| !asked.path.starts_with("/cdn/")));
}

#[test]
fn a_filled_cache_needs_no_hub() {
    let (server, hub, _folder) = hub();
    let offline = Hub { offline: true, ..hub.clone() };
    put_model(&server);
    let absent = message(&offline, Kind::Model, "org/tiny");
    assert!(absent.contains("HF_HUB_OFFLINE") && absent.contains("org/tiny"), "{absent}");
    let place = fetch(&hub, Kind::Model, "org/tiny").unwrap();
    server.asked();
    assert_eq!(fetch(&offline, Kind::Model, "org/tiny").unwrap(), place);
    assert!(server.asked().is_empty(), "an offline Hub was asked");

    drop(server);
    let mut said = 0;
    let found = hub.fetch(Kind::Model, "org/tiny", &mut |event| {
        said += usize::from(matches!(event, Event::Unreachable { .. }))
    });
    assert_eq!((found.unwrap(), said), (place.clone(), 1));
    let absent = message(&hub, Kind::Model, "org/other");
    assert!(absent.contains("org/other") && absent.contains("can't be reached"), "{absent}");

    // A model of which something is missing is not there.
    std::fs::remove_file(place.join("model.safetensors")).unwrap();
    assert!(matches!(fetch(&offline, Kind::Model, "org/tiny"), Err(HubError::Offline { .. })));
}

/// A large file of a repository that has nothing else.
fn put_large(server: &Server) -> Vec<u8> {
    let bytes: Vec<u8> = (0..300_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    server.put_tagged("models/org/large", "q4.gguf", &bytes, &sha256(&bytes));
    bytes
}

const LARGE: &str = "org/large/q4.gguf";

fn ranges(asked: &[Asked]) -> Vec<Option<&str>> {
    let stored = asked.iter().filter(|asked| asked.path.starts_with("/cdn/"));
    stored.map(|asked| asked.range.as_deref()).collect()
}

#[test]
fn a_cut_download_goes_on_where_it_stopped() {
    let (server, hub, _folder) = hub();
    let bytes = put_large(&server);
    server.with(|state| state.cuts = vec![100_000, 0, 50_000]);
    let file = fetch(&hub, Kind::Model, LARGE).unwrap();
    assert!(std::fs::read(&file).unwrap() == bytes);
    let expected = [None, Some("bytes=100000-"), Some("bytes=100000-"), Some("bytes=150000-")];
    assert_eq!(ranges(&server.asked()), expected);
}

#[test]
fn a_download_that_broke_off_goes_on_in_the_next_run() {
    let (server, hub, _folder) = hub();
    let bytes = put_large(&server);
    server.with(|state| state.cuts = vec![1000, 0, 0, 0, 0]);
    let broken = message(&hub, Kind::Model, LARGE);
    assert!(broken.contains("broke off 5 times") && broken.contains("q4.gguf"), "{broken}");
    server.asked();
    let file = fetch(&hub, Kind::Model, LARGE).unwrap();
    assert!(std::fs::read(file).unwrap() == bytes);
    assert_eq!(ranges(&server.asked()), [Some("bytes=1000-")]);
}

#[test]
fn a_server_without_ranges_sends_the_file_again() {
    let (server, hub, _folder) = hub();
    let bytes = put_large(&server);
    server.with(|state| (state.cuts, state.no_ranges) = (vec![1000], true));
    let file = fetch(&hub, Kind::Model, LARGE).unwrap();
    assert!(std::fs::read(file).unwrap() == bytes);
}

#[test]
fn a_busy_hub_is_asked_again_and_otherwise_done_without() {
    let (server, hub, _folder) = hub();
    let bytes = put_large(&server);
    server.with(|state| state.busy = 1);
    assert!(message(&hub, Kind::Model, LARGE).contains("can't be reached: answered 503"));
    // It gets out of breath while it sends the file.
    server.with(|state| state.cuts = vec![1000]);
    let place = hub.fetch(Kind::Model, LARGE, &mut |event| {
        if matches!(event, Event::Download { done: 0, .. }) {
            server.with(|state| state.busy = 3);
        }
    });
    let place = place.unwrap();
    assert!(std::fs::read(&place).unwrap() == bytes);
    assert_eq!(server.with(|state| state.busy), 0);
    server.with(|state| state.busy = 1);
    assert_eq!(fetch(&hub, Kind::Model, LARGE).unwrap(), place);
}

#[test]
fn a_damaged_file_is_not_kept() {
    let (server, hub, _folder) = hub();
    let bytes = put_large(&server);
    let etag = sha256(&bytes);
    server.put_tagged("models/org/large", "q4.gguf", &bytes[1..], &etag);
    let damaged = message(&hub, Kind::Model, LARGE);
    assert!(damaged.contains("q4.gguf") && damaged.contains(&etag), "{damaged}");
    server.put_tagged("models/org/large", "q4.gguf", &bytes, &etag);
    assert!(std::fs::read(fetch(&hub, Kind::Model, LARGE).unwrap()).unwrap() == bytes);
    server.put_tagged("models/org/large", "q8.gguf", b"x", "../../../escaped");
    let odd = message(&hub, Kind::Model, "org/large/q8.gguf");
    assert!(odd.contains("expected an ETag"), "{odd}");
}

#[test]
fn a_private_repository_wants_the_right_token() {
    let (server, hub, _folder) = hub();
    put_large(&server);
    server.with(|state| state.token = Some("right".into()));
    let none = message(&hub, Kind::Model, LARGE);
    assert!(
        none.contains("org/large") && none.contains("401") && none.contains("no token was sent"),
        "{none}"
    );
    let wrong = Hub { token: Some("wrong".into()), ..hub.clone() };
    assert!(message(&wrong, Kind::Model, LARGE).contains("the token has no access"));
    let right = Hub { token: Some("right".into()), ..hub };
    assert!(fetch(&right, Kind::Model, LARGE).unwrap().is_file());
}

#[test]
fn what_the_hub_does_not_have_is_named() {
    let (server, hub, _folder) = hub();
    put_large(&server);
    for (name, said) in [
        (
            "org/none",
            r#"model "org/none": no such folder or file here, and no such repository on http://127"#,
        ),
        ("org/large@v2", r#"model "org/large" has no revision "v2""#),
        ("org/large/q5.gguf", r#"model "org/large" has no file "q5.gguf" (revision main)"#),
        ("org/large", "name one of its files, as in `org/large/q4.gguf`: q4.gguf"),
        ("embedded", "has the form `org/name`"),
    ] {
        let message = message(&hub, Kind::Model, name);
        assert!(message.contains(said), "{name}: {message}");
    }
    let hub = Hub { endpoint: "ftp://x".into(), ..hub };
    assert!(message(&hub, Kind::Model, "org/large").contains("HF_ENDPOINT"));
}

#[test]
fn a_data_set_is_its_only_table_or_the_one_that_is_named() {
    let (server, hub, _folder) = hub();
    let rows = br#"{"problem": "1+1?", "answer": "2"}"#;
    server.put("datasets/org/sums", "README.md", b"sums");
    server.put("datasets/org/sums", "data/easy sums.jsonl", rows);
    for name in ["org/sums", "org/sums/data/easy sums.jsonl"] {
        let file = fetch(&hub, Kind::DataSet, name).unwrap();
        let problems = load_problems(&file).unwrap();
        assert_eq!((problems[0].answer.as_str(), problems[0].source.as_str()), ("2", "easy sums"));
    }
    server.put("datasets/org/sums", "test.jsonl", rows);
    let several = message(&hub, Kind::DataSet, "org/sums");
    assert!(several.contains("name one of its files") && several.contains("test.jsonl"), "{several}");
    assert!(message(&hub, Kind::Model, "org/sums").contains("no such repository"));
}
