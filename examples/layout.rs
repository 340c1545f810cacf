//! What a parallel response looks like to engine and trainer: segments, positions, and who sees whom.
//!
//! cargo run --release --package parallel-r1 --example layout

use parallel_r1::layout::{Structure, parse};
use parallel_r1::model::Pretrained;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Pretrained::embedded(&candle_core::Device::Cpu)?.with_tags(0)?;
    let prompt = model.prompt("2 6 9 = 30")?;
    let text = "<Parallel><Path>9-2=7 no\n</Path><Path>ok\n</Path></Parallel>\n<Summary>done</Summary>";
    let response = model.tokenizer.encode_response(text)?;
    let parsed = parse(&prompt, &response, &*model.controls()?, Structure::PathWindow)?;

    for (id, (segment, range)) in parsed.layout.segments().iter().zip(parsed.layout.ranges()).enumerate() {
        let text = model.tokenizer.decode(&parsed.tokens[range])?;
        println!(
            "{id} {:?} after {:?}, from position {}: {text:?}",
            segment.role, segment.parents, segment.start
        );
    }

    println!("\nToken by token: position, whether it is an action, and what it sees (#)");
    let (positions, visibility) = (parsed.layout.positions(), parsed.layout.visibility());
    for (row, token) in parsed.tokens.iter().enumerate() {
        let sees: String = (0..=row).map(|key| if visibility.sees(row, key) { '#' } else { '.' }).collect();
        let action = if parsed.sampled[row] { 'a' } else { ' ' };
        let text = format!("{:?}", model.tokenizer.token(*token).unwrap_or_default());
        println!("{text:>14} {:>3} {action} {sees}", positions[row]);
    }
    Ok(())
}
