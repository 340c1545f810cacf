//! Looks for inputs that are slow to judge: every pair of the fuzzers' tokens, repeated to some length.
//!
//!     worst_cases [BYTES]        65536 unless given
//!
//! Prints the slowest, with the milliseconds that each took.

use std::time::Instant;

use parallel_r1_verify::verify;

const TOKENS: &str = include_str!("../fuzz/latex.dict");
const MORE: [&str; 28] = [
    "½",
    "√",
    "π",
    "−",
    "×",
    "1",
    "-",
    "a",
    "answer",
    " ",
    "\n",
    "(",
    ")",
    "[",
    "1+",
    "x^",
    "_",
    "=",
    "0.",
    "$",
    "answer: ",
    "answer is ",
    "\\",
    "{",
    "}",
    ". ",
    "1 000 ",
    ", ",
];
const SHOWN: usize = 20;

fn main() {
    let bytes = std::env::args().nth(1).and_then(|bytes| bytes.parse().ok()).unwrap_or(1 << 16);
    let ascii = TOKENS.lines().map(|line| line.trim_matches('"')).filter(|token| !token.contains("\\x"));
    let mut tokens: Vec<String> = ascii.map(|token| token.replace("\\\\", "\\")).collect();
    tokens.extend(MORE.map(str::to_owned));
    let mut times: Vec<(u128, String)> = Vec::new();
    for first in &tokens {
        for second in &tokens {
            let piece = format!("{first}{second}");
            let text = piece.repeat(bytes / piece.len().max(1));
            for response in [text.clone(), format!("{text} 5"), format!("The answer is {text}")] {
                let start = Instant::now();
                let verdict = verify("5", &response);
                times.push((start.elapsed().as_micros(), format!("{piece:?}: {verdict}")));
            }
        }
    }
    times.sort_by(|a, b| b.cmp(a));
    println!("{} inputs", times.len());
    for (micros, what) in times.iter().take(SHOWN) {
        println!("{:8.2} ms  {what}", *micros as f64 / 1e3);
    }
}
