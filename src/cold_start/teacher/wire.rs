//! Chat completions as OpenAI, vLLM, llama.cpp, Ollama and others speak them: what is sent, and what comes, whole or as
//! a stream of events.

use std::io::{BufRead, BufReader, Read};

use serde_json::{Map, Value, json};

use super::super::budget::Usage;
use super::{EndpointOptions, Reply};
use crate::prompt::Message;

/// The longest line of a stream in bytes.
const LONGEST_LINE: u64 = 4 << 20;
/// How much of a message is shown.
const SHOWN: usize = 300;

/// What could not be read, and how much had come.
#[derive(Debug, PartialEq)]
pub(super) struct Broken {
    pub(super) reason: String,
    /// The answer's text so far, which the teacher may count.
    pub(super) text: String,
}

/// The request's body.
pub(super) fn body(messages: &[Message], sample: usize, options: &EndpointOptions) -> Value {
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| drop(body.insert(key.into(), value));
    set("model", json!(options.model));
    set("messages", json!(messages));
    set("max_tokens", json!(options.max_tokens));
    set("temperature", json!(options.temperature));
    if let Some(top_p) = options.top_p {
        set("top_p", json!(top_p));
    }
    set("seed", json!(options.seed.wrapping_add(sample as u64)));
    if options.stream {
        set("stream", json!(true));
        set("stream_options", json!({"include_usage": true}));
    }
    for (key, value) in &options.extra {
        set(key, value.clone());
    }
    // A null takes a field out: some servers refuse those that they don't know.
    body.retain(|_, value| !value.is_null());
    body.into()
}

/// Reads an answer; `streamed` says whether it comes as events.
pub(super) fn read(source: impl Read, streamed: bool, prompt_bytes: usize) -> Result<Reply, Broken> {
    let mut answer = Parts::default();
    let read = if streamed { answer.read_events(source) } else { answer.read_whole(source) };
    match read.and_then(|()| answer.checked()) {
        Ok(()) => Ok(answer.reply(prompt_bytes)),
        Err(reason) => Err(Broken { reason, text: answer.text }),
    }
}

/// Tokens of texts that nobody counted: about three bytes each.
pub(super) fn estimate(bytes: usize) -> u64 {
    bytes.div_ceil(3) as u64
}

/// What an error's body says, in short.
pub(super) fn error_text(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let message = value.pointer("/error/message").or(value.get("message")).or(value.get("error"));
    let text = message.and_then(Value::as_str).unwrap_or(body);
    shown(text.trim())
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.into(),
    }
}

/// An answer as far as it has come.
#[derive(Default)]
struct Parts {
    text: String,
    finish: Option<String>,
    usage: Option<Usage>,
    /// Whether the end was announced.
    ended: bool,
}

impl Parts {
    fn read_whole(&mut self, source: impl Read) -> Result<(), String> {
        let value: Value = serde_json::from_reader(source).map_err(|error| match error.classify() {
            serde_json::error::Category::Io | serde_json::error::Category::Eof => {
                format!("the answer broke off: {error}")
            }
            _ => format!("the answer isn't JSON: {error}"),
        })?;
        self.take(&value, "message")?;
        self.ended = true;
        Ok(())
    }

    fn read_events(&mut self, source: impl Read) -> Result<(), String> {
        let mut source = BufReader::new(source);
        loop {
            let mut line = Vec::new();
            let read = source.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            match read.map_err(|error| format!("the stream broke off: {error}"))? {
                0 => return Ok(()),
                n if n as u64 == LONGEST_LINE => return Err("an event of the stream is too long".into()),
                _ => {}
            }
            let line = String::from_utf8_lossy(&line);
            // Comments and the names of events say nothing here.
            let Some(event) = line.strip_prefix("data:").map(str::trim) else { continue };
            if event == "[DONE]" {
                self.ended = true;
                return Ok(());
            }
            let value: Value = serde_json::from_str(event)
                .map_err(|_| format!("an event of the stream isn't JSON: {}", shown(event)))?;
            self.take(&value, "delta")?;
        }
    }

    /// Takes in an object, whole or an event; the text is in `field` of its choice.
    fn take(&mut self, value: &Value, field: &str) -> Result<(), String> {
        if value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(format!("the teacher says: {}", error_text(&value.to_string())));
        }
        if let Some(usage) = value.get("usage") {
            let count = |name: &str| usage.get(name).and_then(Value::as_u64);
            let both = count("prompt_tokens").zip(count("completion_tokens"));
            let both =
                both.map(|(prompt_tokens, completion_tokens)| Usage { prompt_tokens, completion_tokens });
            self.usage = both.or(self.usage);
        }
        let Some(choice) = value.pointer("/choices/0") else { return Ok(()) };
        match choice.pointer(&format!("/{field}/content")) {
            Some(Value::String(text)) => self.text += text,
            Some(Value::Array(parts)) => {
                parts.iter().filter_map(|part| part["text"].as_str()).for_each(|text| self.text += text);
            }
            _ => {}
        }
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(finish.into());
        }
        Ok(())
    }

    fn checked(&self) -> Result<(), String> {
        match &self.finish {
            None if !self.ended => {
                Err(format!("the stream broke off after {} bytes of text", self.text.len()))
            }
            None if self.text.is_empty() => Err("the answer has no text: expected choices[0]".into()),
            _ => Ok(()),
        }
    }

    fn reply(&self, prompt_bytes: usize) -> Reply {
        let estimated =
            Usage { prompt_tokens: estimate(prompt_bytes), completion_tokens: estimate(self.text.len()) };
        Reply {
            text: self.text.clone(),
            truncated: self.finish.as_deref() == Some("length"),
            usage: self.usage.unwrap_or(estimated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> String {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
    }

    fn read(text: &str, streamed: bool) -> Result<Reply, Broken> {
        super::read(text.as_bytes(), streamed, 30)
    }

    #[test]
    fn a_stream_is_put_together() {
        let last = r#"data: {"choices": [{"delta": {}, "finish_reason": "length"}]}"#;
        let usage = r#"data:{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}"#;
        let text = format!(
            ": hello\r\nevent: x\n{}{}{last}\n\n{usage}\r\n\r\ndata: [DONE]\n",
            event("It is"),
            event(" 4.")
        );
        let usage = Usage { prompt_tokens: 7, completion_tokens: 2 };
        assert_eq!(read(&text, true), Ok(Reply { text: "It is 4.".into(), truncated: true, usage }));
    }

    #[test]
    fn a_stream_without_its_end_is_broken() {
        let cut = read(&event("It is"), true).unwrap_err();
        assert_eq!(
            (cut.reason.as_str(), cut.text.as_str()),
            ("the stream broke off after 5 bytes of text", "It is")
        );
        let bad = read(&format!("{}data: {{\"choi\n", event("It")), true).unwrap_err();
        assert_eq!(
            (bad.reason.as_str(), bad.text.as_str()),
            ("an event of the stream isn't JSON: {\"choi", "It")
        );
        let said = read("data: {\"error\": {\"message\": \"overloaded\"}}\n", true).unwrap_err();
        assert_eq!(said.reason, "the teacher says: overloaded");
    }

    #[test]
    fn a_whole_answer_is_read_or_refused() {
        let whole = json!({"choices": [{"message": {"content": "It is 4.", "reasoning_content": "2 + 2"},
                           "finish_reason": "stop"}]});
        let usage = Usage { prompt_tokens: 10, completion_tokens: 3 };
        assert_eq!(
            read(&whole.to_string(), false),
            Ok(Reply { text: "It is 4.".into(), truncated: false, usage }),
            "estimated where nothing is counted"
        );
        let parts = json!({"choices": [{"message": {"content": [{"type": "text", "text": "4"}]}}]});
        assert_eq!(read(&parts.to_string(), false).unwrap().text, "4");
        let reason = |text: &str| read(text, false).unwrap_err().reason;
        assert!(reason("{\"choices\": [").starts_with("the answer broke off"));
        assert!(reason("<html>").starts_with("the answer isn't JSON"));
        assert_eq!(reason("{}"), "the answer has no text: expected choices[0]");
    }

    #[test]
    fn fields_of_the_body_can_be_set_and_taken_out() {
        let extra = json!({"max_tokens": null, "max_completion_tokens": 9});
        let extra = extra.as_object().unwrap().clone();
        let options = EndpointOptions { model: "m".into(), seed: 3, extra, ..EndpointOptions::default() };
        let body = body(&[Message::user("2 + 2?")], 2, &options);
        assert_eq!(body["messages"], json!([{"role": "user", "content": "2 + 2?"}]));
        assert_eq!((&body["seed"], &body["max_completion_tokens"]), (&json!(5), &json!(9)));
        assert!(body.get("max_tokens").is_none() && body.get("top_p").is_none());
    }

    #[test]
    fn errors_are_told_in_short() {
        assert_eq!(error_text(r#"{"error": {"message": "no such model", "code": 404}}"#), "no such model");
        assert_eq!(error_text(r#"{"error": "busy"}"#), "busy");
        assert_eq!(error_text(" <html> "), "<html>");
        assert_eq!(error_text(&"x".repeat(999)).chars().count(), SHOWN + 1);
    }
}
