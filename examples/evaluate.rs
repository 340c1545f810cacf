//! Measures a model on Countdown problems that no training has seen.
//!
//! cargo run --release --package parallel-r1 --example evaluate -- MODEL

use parallel_r1::data::Split;
use parallel_r1::data::countdown::{Tier, problems};
use parallel_r1::engine::{EngineOptions, SamplingParams};
use parallel_r1::eval::evaluate;
use parallel_r1::model::{EMBEDDED, Pretrained};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or(EMBEDDED.into());
    let model = Pretrained::open(&name, &candle_core::Device::Cpu)?;
    let max_blocks = if model.tokenizer.has_tags() { 1 } else { 0 };
    let params = SamplingParams { max_blocks, max_response_tokens: 320, ..SamplingParams::default() };
    for tier in [Tier::Three, Tier::Four] {
        let problems = problems(tier, Split::Test, 0, 50)?;
        let result = evaluate(&model, &problems, 4, &params, EngineOptions::default(), &mut |_, _| {})?;
        let (accuracy, tokens) = (100.0 * result.mean_at_k, result.means.total_tokens);
        println!("tier {tier}: {accuracy:.1} % right, {tokens:.0} tokens an answer");
    }
    Ok(())
}
