//! What a model makes of a text, as JSON, to compare with another implementation: the text's tokens, the logits that
//! follow its last token (with --all: each token), and a greedy continuation.
//!
//! cargo run --release --package parallel-r1 --example logits -- MODEL \
//!     [--ids 1,2,3 | --text TEXT | --chat MESSAGE] [--all] [--greedy TOKENS] [--dequantise]
//!
//! --text is encoded as the tokenizer does, --chat first put into the model's chat template. Tags steer nothing here.
//! --dequantise turns a GGUF file's quantised weights into f32 first.

use std::error::Error;
use std::sync::Arc;

use candle_core::Device;
use parallel_r1::engine::{Engine, EngineOptions, Request, SamplingParams};
use parallel_r1::layout::{Layout, Role};
use parallel_r1::model::{EMBEDDED, Pretrained};
use parallel_r1::prompt::{Controls, Message};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().filter(|a| !a.starts_with("--")).map_or(EMBEDDED, |a| a.as_str());
    let model = match arguments.contains(&"--dequantise".into()) {
        true => Pretrained::open_to_train(name, &Device::Cpu)?,
        false => Pretrained::open(name, &Device::Cpu)?,
    };
    let (text, tokens) = input(&model, &arguments)?;
    let mut output = json!({ "text": text, "tokens": tokens });
    output["logits"] = logits(&model, &tokens, arguments.contains(&"--all".into()))?;
    if let Some(count) = option(&arguments, "--greedy") {
        output["greedy"] = json!(greedy(&model, tokens, count.parse()?)?);
    }
    println!("{output}");
    Ok(())
}

/// What follows `name` among the arguments.
fn option<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|a| a == name)?;
    arguments.get(at + 1).map(String::as_str)
}

/// The text, where one was given, and its tokens.
fn input(model: &Pretrained, arguments: &[String]) -> Result<(Option<String>, Vec<u32>), Box<dyn Error>> {
    if let Some(ids) = option(arguments, "--ids") {
        return Ok((None, ids.split(',').map(|id| id.trim().parse()).collect::<Result<_, _>>()?));
    }
    if let Some(message) = option(arguments, "--chat") {
        let text = model.template.render(&[Message::user(message)], true)?;
        let tokens = model.prompt(message)?;
        return Ok((Some(text), tokens));
    }
    let text = option(arguments, "--text").ok_or("expected --ids, --text or --chat")?;
    Ok((Some(text.into()), model.tokenizer.encode_text(text)?))
}

/// The logits after the last token, or after each: `[tokens, vocab]`.
fn logits(model: &Pretrained, tokens: &[u32], all: bool) -> Result<Value, Box<dyn Error>> {
    let mut layout = Layout::default();
    layout.push(Role::Prompt, &[], tokens.len());
    let visibility = Arc::new(layout.visibility());
    let hidden = model.decoder.hidden(tokens, &layout.positions(), &visibility, None)?;
    let rows: Vec<Vec<f32>> = model.decoder.logits(&hidden)?.to_vec2()?;
    Ok(if all { json!(rows) } else { json!(rows.last()) })
}

/// The likeliest token, again and again; an end-of-text token is one like another.
fn greedy(model: &Pretrained, prompt: Vec<u32>, count: usize) -> Result<Vec<u32>, Box<dyn Error>> {
    let params = SamplingParams {
        temperature: 0.0,
        max_blocks: 0,
        max_response_tokens: count,
        ..SamplingParams::default()
    };
    let request = Request { id: 0, prompt, samples: 1, first_sample: 0 };
    let traces = Engine::new(&model.decoder, &Controls::default(), EngineOptions::default()).generate(
        &[request],
        &params,
        &mut (),
    )?;
    Ok(traces[0][0].response().to_vec())
}
