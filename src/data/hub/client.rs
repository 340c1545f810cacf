//! The Hub's HTTP: what a repository holds, what is known of a file, and its bytes.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use ureq::http::{HeaderMap, Method, Request, Response};
use ureq::{Agent, Body};

use super::cache::at;
use super::name::{Name, is_commit, is_inside};
use super::{Hub, HubError, Kind};

/// How often in a row a request is tried.
const ATTEMPTS: u32 = 5;
/// How long the Hub may take to answer, or to send the next bytes.
const SILENCE: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);
const MOST_REDIRECTS: usize = 8;
/// The longest list of a repository's files in bytes.
const LONGEST_LISTING: u64 = 64 << 20;

/// What stands in a path as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: &AsciiSet = &SEGMENT.remove(b'/');

/// Speaks to the Hub about one repository.
pub(super) struct Client<'a> {
    hub: &'a Hub,
    kind: Kind,
    name: &'a Name,
    agent: Agent,
}

/// What the Hub holds.
pub(super) struct Listing {
    pub(super) commit: String,
    pub(super) files: Vec<String>,
}

/// What the Hub says of a file.
pub(super) struct Remote {
    pub(super) etag: String,
    pub(super) size: u64,
}

/// Why a request failed.
pub(super) enum Trouble {
    /// It will fail again.
    Lasting(HubError),
    /// It may not fail again.
    Passing {
        reason: String,
        /// Whether some bytes came.
        moved: bool,
    },
}

impl From<HubError> for Trouble {
    fn from(error: HubError) -> Self {
        Self::Lasting(error)
    }
}

fn passing(reason: impl ToString) -> Trouble {
    Trouble::Passing { reason: reason.to_string(), moved: false }
}

impl<'a> Client<'a> {
    pub(super) fn new(hub: &'a Hub, kind: Kind, name: &'a Name) -> Result<Self, HubError> {
        if !["http://", "https://"].iter().any(|scheme| hub.endpoint.starts_with(scheme)) {
            return Err(HubError::Endpoint { endpoint: hub.endpoint.clone() });
        }
        let config = Agent::config_builder()
            .user_agent(concat!("parallel-r1/", env!("CARGO_PKG_VERSION")))
            // Else the length would be that of the compressed bytes.
            .accept_encoding("identity")
            .http_status_as_error(false)
            // `send` follows them: it knows where the token may go.
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .build();
        Ok(Self { hub, kind, name, agent: config.into() })
    }

    /// The commit of the revision and its files. Asked once: where the Hub is away, the cache may do.
    pub(super) fn listing(&self) -> Result<Listing, Trouble> {
        #[derive(Deserialize)]
        struct Info {
            sha: String,
            siblings: Vec<Sibling>,
        }
        #[derive(Deserialize)]
        struct Sibling {
            rfilename: String,
        }
        let revision = utf8_percent_encode(&self.name.revision, SEGMENT);
        let url =
            format!("{}/api/{}/{}/revision/{revision}", self.endpoint(), self.kind.plural(), self.name.repo);
        let response = self.send(&Method::GET, &url, 0)?;
        if response.status() == 404 {
            return Err(self.not_found(response.headers()).into());
        }
        self.check(&url, response.status().as_u16())?;
        let body = response.into_body().into_with_config().limit(LONGEST_LISTING).reader();
        let info: Info = serde_json::from_reader(body).map_err(|error| match error.classify() {
            serde_json::error::Category::Io => passing(error),
            _ => HubError::Reply { url: url.clone(), reason: format!("not the Hub's JSON: {error}") }.into(),
        })?;
        if !is_commit(&info.sha) {
            let reason = format!("`sha`: expected a commit, got {:?}", info.sha);
            return Err(HubError::Reply { url, reason }.into());
        }
        let files = info.siblings.into_iter().map(|file| file.rfilename).filter(|file| is_inside(file));
        Ok(Listing { commit: info.sha, files: files.collect() })
    }

    /// What the Hub says of a file.
    pub(super) fn describe(&self, commit: &str, file: &str) -> Result<Remote, HubError> {
        let url = self.url(commit, file);
        self.persist(&url, || {
            let response = self.send(&Method::HEAD, &url, 0)?;
            // A redirect to where the bytes lie describes the file as well.
            if !response.status().is_redirection() {
                self.check(&url, response.status().as_u16())?;
            }
            let header = |names: [&str; 2]| names.iter().find_map(|name| text(response.headers(), name));
            let etag = header(["x-linked-etag", "etag"]).and_then(file_name);
            let size = header(["x-linked-size", "content-length"]).and_then(|size| size.parse().ok());
            match (etag, size) {
                (Some(etag), Some(size)) => Ok(Remote { etag, size }),
                _ => {
                    let reason = "expected an ETag and a size in the answer's headers".into();
                    Err(HubError::Reply { url: url.clone(), reason }.into())
                }
            }
        })
    }

    /// Appends to `part` until it holds the whole file; `report` is told how much it holds.
    pub(super) fn download(
        &self,
        commit: &str,
        file: &str,
        remote: &Remote,
        part: &Path,
        report: &mut dyn FnMut(u64),
    ) -> Result<(), HubError> {
        let url = self.url(commit, file);
        self.persist(&url, || self.append(&url, remote.size, part, report))
    }

    fn append(&self, url: &str, size: u64, part: &Path, report: &mut dyn FnMut(u64)) -> Result<(), Trouble> {
        let mut out = OpenOptions::new().append(true).create(true).open(part).map_err(at(part))?;
        let mut have = out.metadata().map_err(at(part))?.len();
        if have > size {
            have = restart(&out, part)?;
        }
        if have == size {
            return Ok(());
        }
        let response = self.send(&Method::GET, url, have)?;
        match response.status().as_u16() {
            206 if starts_at(response.headers(), have) => {}
            200 | 206 if have == 0 => {}
            // The server sends all of it, or another piece.
            200 => have = restart(&out, part)?,
            206 | 416 => {
                restart(&out, part)?;
                return Err(passing("another range came than was asked for"));
            }
            status => self.check(url, status)?,
        }
        let before = have;
        let mut body = response.into_body().into_reader().take(size - have);
        let mut buffer = vec![0; 1 << 16];
        loop {
            report(have);
            let reason = match body.read(&mut buffer) {
                Ok(0) if have == size => return Ok(()),
                Ok(0) => format!("closed after {have} of {size} bytes"),
                Ok(n) => {
                    out.write_all(&buffer[..n]).map_err(at(part))?;
                    have += n as u64;
                    continue;
                }
                Err(error) => format!("after {have} of {size} bytes: {error}"),
            };
            return Err(Trouble::Passing { reason, moved: have > before });
        }
    }

    /// Tries again where that may help, with growing pauses.
    fn persist<T>(&self, url: &str, mut attempt: impl FnMut() -> Result<T, Trouble>) -> Result<T, HubError> {
        let mut failures = 0;
        loop {
            match attempt() {
                Ok(done) => return Ok(done),
                Err(Trouble::Lasting(error)) => return Err(error),
                Err(Trouble::Passing { reason, moved }) => {
                    failures = if moved { 1 } else { failures + 1 };
                    if failures == ATTEMPTS {
                        return Err(HubError::BrokenOff { url: url.into(), attempts: ATTEMPTS, reason });
                    }
                    std::thread::sleep(self.hub.pause * 2u32.pow(failures - 1));
                }
            }
        }
    }

    /// Sends a request and follows redirects. The token goes to the Hub alone, never to where it redirects to. HEAD stays
    /// at the Hub, which knows more of a file than whoever stores the bytes.
    fn send(&self, method: &Method, url: &str, from: u64) -> Result<Response<Body>, Trouble> {
        let (mut place, mut token) = (url.to_owned(), self.hub.token.as_deref());
        for _ in 0..MOST_REDIRECTS {
            let mut request = Request::builder().method(method).uri(&place);
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            if from > 0 {
                request = request.header("range", format!("bytes={from}-"));
            }
            let reply = |reason: String| HubError::Reply { url: url.into(), reason };
            let request = request
                .body(())
                .map_err(|error| reply(format!("the address or the token can't be sent: {error}")))?;
            let response = self.agent.run(request).map_err(passing)?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            match text(response.headers(), "location") {
                Some(path) if path.starts_with('/') => place = format!("{}{path}", origin(&place)),
                Some(_) if method == Method::HEAD => return Ok(response),
                Some(elsewhere) => (place, token) = (elsewhere.into(), None),
                None => return Err(reply("a redirect to nowhere".into()).into()),
            }
        }
        let reason = format!("more than {MOST_REDIRECTS} redirects");
        Err(HubError::Reply { url: url.into(), reason }.into())
    }

    /// What a status means that isn't special to a request.
    fn check(&self, url: &str, status: u16) -> Result<(), Trouble> {
        match status {
            200..300 => Ok(()),
            401 | 403 => Err(HubError::Denied {
                kind: self.kind,
                repo: self.name.repo.clone(),
                endpoint: self.hub.endpoint.clone(),
                status,
                token: self.hub.token.is_some(),
            }
            .into()),
            408 | 429 | 500..600 => Err(passing(format!("answered {status}"))),
            _ => Err(HubError::Status { url: url.into(), status }.into()),
        }
    }

    /// Refuses more of something than `limit`.
    pub(super) fn within(&self, unit: &'static str, limit: u64, got: u64) -> Result<(), HubError> {
        let (kind, repo) = (self.kind, self.name.repo.clone());
        if got > limit { Err(HubError::TooMuch { kind, repo, unit, limit, got }) } else { Ok(()) }
    }

    fn not_found(&self, headers: &HeaderMap) -> HubError {
        let (kind, repo) = (self.kind, self.name.repo.clone());
        match text(headers, "x-error-code") {
            Some("RevisionNotFound") => {
                HubError::Revision { kind, repo, revision: self.name.revision.clone() }
            }
            _ => HubError::Repository { kind, repo, endpoint: self.hub.endpoint.clone() },
        }
    }

    fn endpoint(&self) -> &str {
        self.hub.endpoint.trim_end_matches('/')
    }

    fn url(&self, commit: &str, file: &str) -> String {
        let folder = match self.kind {
            Kind::Model => "",
            Kind::DataSet => "datasets/",
        };
        let file = utf8_percent_encode(file, PATH);
        format!("{}/{folder}{}/resolve/{commit}/{file}", self.endpoint(), self.name.repo)
    }
}

/// Empties the file; how much it holds then.
fn restart(out: &File, part: &Path) -> Result<u64, HubError> {
    out.set_len(0).map_err(at(part))?;
    Ok(0)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// An ETag as the name of a blob, if it can be one.
fn file_name(etag: &str) -> Option<String> {
    let etag = etag.trim_start_matches("W/").trim_matches('"');
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    ((1..=128).contains(&etag.len()) && etag.chars().all(letter)).then(|| etag.to_owned())
}

/// Whether a `Content-Range: bytes START-END/SIZE` starts at `start`.
fn starts_at(headers: &HeaderMap, start: u64) -> bool {
    let first = || text(headers, "content-range")?.strip_prefix("bytes ")?.split('-').next()?.parse().ok();
    first() == Some(start)
}

/// `https://host:port` of a URL.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url, |end| &url[..host + end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_becomes_a_file_name_or_nothing() {
        assert_eq!(file_name("\"abc-1\"").as_deref(), Some("abc-1"));
        assert_eq!(file_name("W/\"abc\"").as_deref(), Some("abc"));
        for etag in ["", "\"\"", "../x", "a/b", "a b", "."] {
            assert_eq!(file_name(etag), None, "{etag}");
        }
        assert_eq!(file_name(&"a".repeat(129)), None);
    }

    #[test]
    fn the_origin_of_a_url_ends_at_its_host() {
        assert_eq!(origin("http://a:1/b/c"), "http://a:1");
        assert_eq!(origin("https://a"), "https://a");
    }
}
