//! A server on this machine that imitates teachers: it speaks chat completions, whole and streamed, and is slow, busy,
//! broken or talks nonsense where a test planned that. It notes what it was asked.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How one request is answered.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// With this text.
    Say(String),
    /// With this text, which the limit cut off.
    CutShort(String),
    /// With this text, after a while.
    Slow(Duration, String),
    /// With this status and body, and perhaps a `Retry-After`.
    Status(u16, &'static str, Option<&'static str>),
    /// With the first half of this text; then the connection breaks.
    Break(String),
    /// With something that is no JSON.
    BadJson,
    /// Not at all: the connection is closed.
    HangUp,
}

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The last message.
    pub(crate) prompt: String,
    /// The request's `seed`, which numbers the samples where a run starts at seed 0.
    pub(crate) sample: u64,
    /// The key that was sent.
    pub(crate) key: Option<String>,
    /// The request's body.
    pub(crate) body: Value,
}

type Answer = Box<dyn Fn(&Asked) -> Act + Send>;

/// What the server plans and remembers.
pub(crate) struct State {
    /// What comes first, by a text that the prompt contains.
    plans: HashMap<String, VecDeque<Act>>,
    /// What comes otherwise.
    answer: Answer,
    /// The key without which nothing is answered.
    pub(crate) key: Option<String>,
    pub(crate) asked: Vec<Asked>,
    /// Requests that came before a `Retry-After` of the server was over.
    pub(crate) early: usize,
    opens: Option<Instant>,
    /// Answers that went out whole, as (prompt, sample).
    pub(crate) answered: Vec<(String, u64)>,
}

/// The running server; it ends when dropped.
pub(crate) struct TeacherServer {
    port: u16,
    state: Arc<Mutex<State>>,
    ended: Arc<Mutex<bool>>,
    thread: Option<JoinHandle<()>>,
}

impl TeacherServer {
    /// A server that answers so where nothing else is planned.
    pub(crate) fn start(answer: impl Fn(&Asked) -> Act + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State {
            plans: HashMap::new(),
            answer: Box::new(answer),
            key: None,
            asked: vec![],
            early: 0,
            opens: None,
            answered: vec![],
        };
        let (state, ended) = (Arc::new(Mutex::new(state)), Arc::new(Mutex::new(false)));
        let (shared, end) = (state.clone(), ended.clone());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if *end.lock().unwrap() {
                    break;
                }
                let (stream, shared) = (stream.unwrap(), shared.clone());
                // Whoever asks may go away in between.
                std::thread::spawn(move || while serve(&stream, &shared).unwrap_or(false) {});
            }
        });
        Self { port, state, ended, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    /// Plans what requests whose prompt contains `text` are answered first, in this order.
    pub(crate) fn plan(&self, text: &str, acts: impl IntoIterator<Item = Act>) {
        self.with(|state| state.plans.entry(text.into()).or_default().extend(acts));
    }
}

impl Drop for TeacherServer {
    fn drop(&mut self) {
        *self.ended.lock().unwrap() = true;
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.thread.take().map(JoinHandle::join);
    }
}

/// Answers one request; whether the connection stays open for more.
fn serve(mut stream: &TcpStream, state: &Mutex<State>) -> std::io::Result<bool> {
    let Some(asked) = read(stream)? else { return Ok(false) };
    let act = {
        let mut state = state.lock().unwrap();
        state.asked.push(asked.clone());
        let early = state.opens.is_some_and(|opens| Instant::now() < opens);
        state.early += usize::from(early);
        next(&mut state, &asked)
    };
    if let Act::Status(_, _, Some(wait)) = act
        && let Ok(seconds) = wait.parse()
    {
        state.lock().unwrap().opens = Some(Instant::now() + Duration::from_secs_f64(seconds));
    }
    let streamed = asked.body["stream"] == json!(true);
    match act {
        Act::Status(status, body, wait) => {
            let wait = wait.map(|wait| format!("Retry-After: {wait}\r\n")).unwrap_or_default();
            let head = format!("HTTP/1.1 {status} X\r\n{wait}Content-Length: {}\r\n\r\n", body.len());
            stream.write_all((head + body).as_bytes())?;
            return Ok(true);
        }
        Act::HangUp => return Ok(false),
        Act::BadJson if streamed => {
            write!(stream, "{EVENTS}{}data: {{\"choices\": [{{\"del\n\n", event("Well"))?;
        }
        Act::BadJson => stream.write_all(whole("<html>Bad gateway</html>").as_bytes())?,
        Act::Break(text) if streamed => {
            write!(stream, "{EVENTS}")?;
            let pieces = pieces(&text);
            for piece in &pieces[..pieces.len() / 2] {
                stream.write_all(event(piece).as_bytes())?;
            }
        }
        Act::Break(text) => {
            let reply = whole(&object(&text, "stop"));
            let half = (0..=reply.len() - 9).rev().find(|&at| reply.is_char_boundary(at)).unwrap();
            stream.write_all(&reply.as_bytes()[..half])?;
        }
        Act::Slow(..) | Act::Say(_) | Act::CutShort(_) => {
            let (text, finish) = match act {
                Act::Slow(time, text) => {
                    std::thread::sleep(time);
                    (text, "stop")
                }
                Act::CutShort(text) => (text, "length"),
                Act::Say(text) => (text, "stop"),
                _ => unreachable!(),
            };
            // Before it is sent: a test may look as soon as it has come.
            state.lock().unwrap().answered.push((asked.prompt, asked.sample));
            if !streamed {
                stream.write_all(whole(&object(&text, finish)).as_bytes())?;
                return Ok(true);
            }
            write!(stream, "{EVENTS}: comment\n\n")?;
            for piece in pieces(&text) {
                stream.write_all(event(&piece).as_bytes())?;
            }
            let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
            let usage = json!({"choices": [], "usage": usage(&text)});
            write!(stream, "data: {last}\n\ndata: {usage}\n\ndata: [DONE]\n\n")?;
        }
    }
    Ok(false)
}

const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n";

fn next(state: &mut State, asked: &Asked) -> Act {
    if state.key.is_some() && asked.key != state.key {
        return Act::Status(401, r#"{"error": {"message": "who are you?"}}"#, None);
    }
    let plan = state.plans.iter_mut().find(|(text, acts)| asked.prompt.contains(*text) && !acts.is_empty());
    plan.and_then(|(_, acts)| acts.pop_front()).unwrap_or_else(|| (state.answer)(asked))
}

fn read(stream: &TcpStream) -> std::io::Result<Option<Asked>> {
    let (mut reader, mut line) = (BufReader::new(stream), String::new());
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    assert_eq!(line, "POST /v1/chat/completions HTTP/1.1\r\n");
    let (mut length, mut key) = (0, None);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value)) {
            Some((name, value)) if name == "content-length" => length = value.parse().unwrap(),
            Some((name, value)) if name == "authorization" => {
                key = value.strip_prefix("Bearer ").map(str::to_owned)
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let prompt = messages.last().unwrap()["content"].as_str().unwrap().to_owned();
    Ok(Some(Asked { prompt, sample: body["seed"].as_u64().unwrap(), key, body }))
}

/// Tokens as a test can count them: ten for each prompt, one for each four characters of an answer.
fn usage(text: &str) -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": text.chars().count().div_ceil(4)})
}

fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(4).map(|piece| piece.iter().collect()).collect()
}

fn event(text: &str) -> String {
    format!(
        "data: {}\n\n",
        json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]})
    )
}

fn object(text: &str, finish: &str) -> String {
    let message = json!({"role": "assistant", "content": text, "reasoning_content": "hm"});
    json!({"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage(text)})
        .to_string()
}

fn whole(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
