//! Token ids as other programs can compare them: reads a JSON value a line on stdin, writes a JSON list of ids a line.
//!
//! echo '[{"role": "user", "content": "2 + 2?"}]' | cargo run --release --package parallel-r1 --example tokenize -- MODEL
//!
//! A conversation is rendered by the model's chat template. A text is taken as it is: as a prompt, whose special tokens
//! are tokens, or, after `MODEL piece`, as a piece of a response, where they are text.

use std::io::{BufWriter, Write, stdin, stdout};

use parallel_r1::model::{EMBEDDED, Pretrained};
use parallel_r1::prompt::Message;

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Input {
    Text(String),
    Conversation(Vec<Message>),
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or(EMBEDDED.into());
    let piece = arguments.next().is_some_and(|kind| kind == "piece");

    let model = Pretrained::open(&name, &candle_core::Device::Cpu)?;
    let mut out = BufWriter::new(stdout().lock());
    for line in stdin().lines() {
        let ids = match serde_json::from_str(&line?)? {
            Input::Text(text) if piece => model.tokenizer.encode_piece(&text)?,
            Input::Text(text) => model.tokenizer.encode_prompt(&text)?,
            Input::Conversation(messages) => {
                model.tokenizer.encode_prompt(&model.template.render(&messages, true)?)?
            }
        };
        writeln!(out, "{}", serde_json::to_string(&ids)?)?;
    }
    Ok(out.flush()?)
}
