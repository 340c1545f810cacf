//! The page of a run while it goes on, at an address of this machine.
//!
//! Two fixed answers to GET need no web framework, and the small blocking servers are no longer kept (the last release of
//! tiny_http is of 2022). So this is a socket, one connection after the other, with bounds on what a client may send and on
//! how long it may take. It listens on 127.0.0.1 only, and answers only requests that name this machine as their host:
//! another site's page, whose name has been pointed here, gets nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::{Run, data, page};
use crate::failure::Failure;

/// Where the dashboard is, unless asked otherwise.
pub(crate) const PORT: u16 = 8642;
/// A longer request is no browser's.
const LARGEST_REQUEST: u64 = 16 << 10;
/// How long a client may take to ask, or to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server of a run's page, on a thread of its own until the process ends.
pub(crate) struct Dashboard {
    address: SocketAddr,
}

impl Dashboard {
    /// Serves a run folder, which need not be there yet. Without a port, on the usual one or, if that is taken, on any.
    pub(crate) fn start(folder: &Path, port: Option<u16>) -> anyhow::Result<Self> {
        let listen = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = match port {
            None => listen(PORT).or_else(|_| listen(0)).context("the dashboard can't listen on 127.0.0.1")?,
            Some(port) => listen(port).map_err(|error| {
                let hint = "`--dashboard` without a port takes a free one";
                Failure::error(format!("the dashboard can't listen on 127.0.0.1:{port}: {error}"), hint)
            })?,
        };
        let address = listener.local_addr().context("the dashboard has no address")?;
        let mut run = [Run::new(folder)];
        let serve = move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away is no concern of the run.
                let _ = answer(stream, address, &mut run);
            }
        };
        std::thread::Builder::new()
            .name("dashboard".into())
            .spawn(serve)
            .context("the dashboard can't start")?;
        Ok(Self { address })
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

fn answer(mut stream: TcpStream, address: SocketAddr, run: &mut [Run; 1]) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = Request::read(&stream)?;
    let (status, kind, body) = match request.target.as_str() {
        _ if !request.is_for(address) => {
            ("403 Forbidden", TEXT, "this page is for this machine only\n".into())
        }
        _ if request.method != "GET" => ("405 Method Not Allowed", TEXT, "only GET\n".into()),
        target @ ("/" | "/data.json") => {
            let made = run[0].refresh().and_then(|()| match target {
                "/" => Ok(("text/html; charset=utf-8", page(run, true)?)),
                _ => Ok(("application/json", data(run, true)?)),
            });
            match made {
                Ok((kind, body)) => ("200 OK", kind, body),
                Err(error) => ("500 Internal Server Error", TEXT, format!("{error:#}\n")),
            }
        }
        _ => ("404 Not Found", TEXT, "no such page\n".into()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    Ok(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()))?)
}

const TEXT: &str = "text/plain; charset=utf-8";

struct Request {
    method: String,
    target: String,
    host: String,
}

impl Request {
    /// The first line and the host of a request; its other lines are read and forgotten.
    fn read(stream: &TcpStream) -> std::io::Result<Self> {
        let mut lines = BufReader::new(stream.take(LARGEST_REQUEST)).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        let mut words = first.split_whitespace().map(str::to_owned);
        let mut request = Self {
            method: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            host: String::new(),
        };
        for line in lines {
            let line = line?;
            match line.split_once(':') {
                _ if line.is_empty() => break,
                Some((name, value)) if name.eq_ignore_ascii_case("host") => {
                    request.host = value.trim().to_owned()
                }
                _ => {}
            }
        }
        Ok(request)
    }

    /// Whether it names this server.
    fn is_for(&self, address: SocketAddr) -> bool {
        [address.to_string(), format!("localhost:{}", address.port())].contains(&self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(dashboard: &Dashboard, request: &str) -> String {
        let mut stream = TcpStream::connect(dashboard.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    #[test]
    fn a_run_is_served_as_it_grows_and_to_this_machine_only() {
        let folder = tempfile::tempdir().unwrap();
        let dashboard = Dashboard::start(folder.path(), Some(0)).unwrap();
        let host = dashboard.address.to_string();
        let get = |target: &str, host: &str| {
            ask(&dashboard, &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
        };
        assert!(get("/", &host).starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"));
        assert!(get("/data.json", &host).contains("\"arms\":[]"));
        let line = "{\"arm\": \"parallel\", \"stage\": \"s\", \"step\": 1, \"loss\": 0.5}\n";
        std::fs::write(folder.path().join("metrics.jsonl"), line).unwrap();
        let local = format!("localhost:{}", dashboard.address.port());
        assert!(get("/data.json", &local).contains("\"name\":\"parallel\""));
        assert!(get("/../metrics.jsonl", &host).starts_with("HTTP/1.1 404"));
        assert!(get("/data.json", "evil.example").starts_with("HTTP/1.1 403"));
        assert!(
            ask(&dashboard, &format!("POST / HTTP/1.1\r\nHost: {host}\r\n\r\n")).starts_with("HTTP/1.1 405")
        );
        assert!(ask(&dashboard, "\r\n\r\n").starts_with("HTTP/1.1 403"));
        assert!(Dashboard::start(folder.path(), Some(dashboard.address.port())).is_err());
        assert!(dashboard.url().starts_with("http://127.0.0.1:"));
    }
}
