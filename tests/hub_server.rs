//! A server on this machine that speaks the Hub's HTTP: lists of files, relative redirects, large files on another host,
//! ETags, ranges, tokens. It notes what it was asked, and breaks connections off on demand.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) range: Option<String>,
    pub(crate) token: Option<String>,
}

struct File {
    bytes: Vec<u8>,
    etag: String,
}

/// What the server holds and how it behaves.
#[derive(Default)]
pub(crate) struct State {
    /// `models/org/name` or `datasets/org/name` to files.
    repos: BTreeMap<String, BTreeMap<String, File>>,
    pub(crate) asked: Vec<Asked>,
    /// The token without which nothing is answered.
    pub(crate) token: Option<String>,
    /// For each of the next large files: how many bytes are sent before the connection is closed.
    pub(crate) cuts: Vec<usize>,
    /// How many of the next requests are turned away.
    pub(crate) busy: usize,
    /// Whether ranges are ignored.
    pub(crate) no_ranges: bool,
}

impl State {
    fn commit(&self, repo: &str) -> String {
        let names: Vec<_> = self.repos[repo].iter().map(|(name, file)| (name, &file.etag)).collect();
        format!("{:040x}", hash(&names))
    }
}

/// The running server; it ends when dropped.
pub(crate) struct Server {
    port: u16,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                // The last reference but this one is gone: the server was dropped.
                if Arc::strong_count(&shared) == 1 {
                    break;
                }
                // Whoever asks may go away in between.
                let _ = serve(stream.unwrap(), port, &shared);
            }
        });
        Self { port, state, thread: Some(thread) }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    /// Adds a file; its ETag is a hash of no standard.
    pub(crate) fn put(&self, repo: &str, file: &str, bytes: &[u8]) {
        self.put_tagged(repo, file, bytes, &format!("{:016x}", hash(&bytes)));
    }

    pub(crate) fn put_tagged(&self, repo: &str, file: &str, bytes: &[u8], etag: &str) {
        let entry = File { bytes: bytes.into(), etag: etag.into() };
        self.with(|state| state.repos.entry(repo.into()).or_default().insert(file.into(), entry));
    }

    /// What was asked since the last time.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.with(|state| std::mem::take(&mut state.asked))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state = Arc::default();
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.thread.take().map(JoinHandle::join);
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn serve(stream: TcpStream, port: u16, state: &Mutex<State>) -> std::io::Result<()> {
    let mut lines = BufReader::new(&stream).lines();
    let first = lines.next().unwrap_or(Ok(String::new()))?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut asked = Asked { method, path, range: None, token: None };
    for line in lines {
        let line = line?;
        match line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())) {
            Some((name, value)) if name == "range" => asked.range = Some(value),
            Some((name, value)) if name == "authorization" => asked.token = Some(value),
            Some(_) => {}
            None => break,
        }
    }
    let mut state = state.lock().unwrap();
    state.asked.push(asked.clone());
    let (head, body) = answer(&mut state, &asked, port);
    let mut stream = &stream;
    write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(&body)
}

/// The status line with the headers, and the bytes that follow them.
fn answer(state: &mut State, asked: &Asked, port: u16) -> (String, Vec<u8>) {
    if state.busy > 0 {
        state.busy -= 1;
        return ("503 Service Unavailable\r\nContent-Length: 0".into(), vec![]);
    }
    let path = asked.path.trim_start_matches('/');
    if let Some(etag) = path.strip_prefix("cdn/") {
        return stored(state, asked, etag);
    }
    let right = state.token.as_ref().map(|token| format!("Bearer {token}"));
    if right.is_some() && asked.token != right {
        return ("401 Unauthorized\r\nX-Error-Code: GatedRepo\r\nContent-Length: 0".into(), vec![]);
    }
    if let Some((repo, revision)) = path.strip_prefix("api/").and_then(|rest| rest.split_once("/revision/")) {
        return listing(state, repo, revision);
    }
    let cached = path.strip_prefix("api/resolve-cache/");
    let place = cached.map_or_else(|| path.replacen("/resolve/", "/", 1), str::to_owned);
    let place =
        if place.starts_with("datasets/") || cached.is_some() { place } else { format!("models/{place}") };
    let parts: Vec<&str> = place.splitn(5, '/').collect();
    let [kind, org, name, commit, file] = parts[..] else { return not_found("RepoNotFound") };
    let repo = format!("{kind}/{org}/{name}");
    let file_name = file.replace("%20", " ");
    let Some(file) = state.repos.get(&repo).and_then(|files| files.get(&file_name)) else {
        return not_found("EntryNotFound");
    };
    assert_eq!(commit, state.commit(&repo), "asked for {}", asked.path);
    let (etag, size) = (&file.etag, file.bytes.len());
    let large = [".safetensors", ".gguf", ".parquet"].iter().any(|end| file_name.ends_with(end));
    match (large, cached) {
        // Another name of this machine, so that it counts as another host.
        (true, _) => {
            let tags = format!("ETag: \"pointer\"\r\nX-Linked-Etag: \"{etag}\"\r\nX-Linked-Size: {size}");
            let place = format!("http://localhost:{port}/cdn/{etag}");
            (
                format!(
                    "302 Found\r\nX-Repo-Commit: {commit}\r\n{tags}\r\nLocation: {place}\r\nContent-Length: 0"
                ),
                vec![],
            )
        }
        (false, None) => {
            let place = format!("/api/resolve-cache/{place}");
            (format!("307 Temporary Redirect\r\nLocation: {place}\r\nContent-Length: 0"), vec![])
        }
        (false, Some(_)) => {
            let head = format!("200 OK\r\nETag: W/\"{etag}\"\r\nContent-Length: {size}");
            (head, if asked.method == "HEAD" { vec![] } else { file.bytes.clone() })
        }
    }
}

fn not_found(code: &str) -> (String, Vec<u8>) {
    (format!("404 Not Found\r\nX-Error-Code: {code}\r\nContent-Length: 0"), vec![])
}

fn listing(state: &State, repo: &str, revision: &str) -> (String, Vec<u8>) {
    let Some(files) = state.repos.get(repo) else { return not_found("RepoNotFound") };
    let commit = state.commit(repo);
    if revision != "main" && revision != commit {
        return not_found("RevisionNotFound");
    }
    let siblings: Vec<String> = files.keys().map(|file| format!(r#"{{"rfilename": "{file}"}}"#)).collect();
    let body = format!(r#"{{"sha": "{commit}", "siblings": [{}]}}"#, siblings.join(", "));
    (format!("200 OK\r\nContent-Type: application/json\r\nContent-Length: {}", body.len()), body.into())
}

/// A large file, or the asked part of it.
fn stored(state: &mut State, asked: &Asked, etag: &str) -> (String, Vec<u8>) {
    let found = state.repos.values().flat_map(BTreeMap::values).find(|file| file.etag == etag);
    let Some(file) = found else { return not_found("EntryNotFound") };
    let size = file.bytes.len();
    let range = asked.range.as_deref().filter(|_| !state.no_ranges);
    let start = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let start: usize = start.unwrap_or(0);
    let mut body = file.bytes[start..].to_vec();
    let status = match range {
        Some(_) => format!("206 Partial Content\r\nContent-Range: bytes {start}-{}/{size}", size - 1),
        None => "200 OK".into(),
    };
    let head = format!("{status}\r\nContent-Length: {}", body.len());
    if !state.cuts.is_empty() {
        body.truncate(state.cuts.remove(0));
    }
    (head, body)
}
