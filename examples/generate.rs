//! Samples one response and prints its segments with their log-probabilities.
//!
//! cargo run --release --package parallel-r1 --example generate -- MODEL 'PROMPT'

use parallel_r1::engine::{Engine, EngineOptions, Request, SamplingParams};
use parallel_r1::model::{EMBEDDED, Pretrained};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().unwrap_or(EMBEDDED.into());
    let prompt = arguments.next().unwrap_or("2 6 9 = 30".into());

    let model = Pretrained::open(&model, &candle_core::Device::Cpu)?;
    let controls = model.controls()?;
    let max_blocks = if controls.tags.is_some() { 4 } else { 0 };
    let params = SamplingParams { temperature: 0.7, max_blocks, ..SamplingParams::default() };
    let request = Request { id: 0, prompt: model.prompt(&prompt)?, samples: 1, first_sample: 0 };

    let mut engine = Engine::new(&model.decoder, &controls, EngineOptions::default());
    for trace in engine.generate(&[request], &params, &mut ())?.concat() {
        for (segment, range) in trace.layout.segments().iter().zip(trace.layout.ranges()) {
            let logprob: f32 = trace.logprobs[range.clone()].iter().sum();
            println!(
                "{:?} ({logprob:.2}): {:?}",
                segment.role,
                model.tokenizer.decode(&trace.tokens[range])?
            );
        }
        println!("{} tokens, {} of them one after the other", trace.response_tokens(), trace.critical_path());
    }
    Ok(())
}
