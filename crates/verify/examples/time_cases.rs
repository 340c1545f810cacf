//! Judges the rows of a file and prints, for each, its verdict and the nanoseconds that it took:
//!
//!     time_cases FILE.jsonl
//!
//! `benches/peers/verify` compares these with those of other judges.

use std::error::Error;
use std::time::Instant;

use parallel_r1_verify::Verdict;
use parallel_r1_verify::cases::Case;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: time_cases FILE.jsonl")?;
    let rows = std::fs::read_to_string(file)?;
    let cases = rows.lines().map(Case::parse).collect::<Result<Vec<_>, _>>()?;
    for case in &cases {
        let start = Instant::now();
        let report = case.judge();
        let time = start.elapsed();
        println!("{} {}", report.verdict == Verdict::Correct, time.as_nanos());
    }
    Ok(())
}
