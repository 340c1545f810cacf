//! A million rows through the check and through deduplication: rows a second, and the most memory the process ever had.
//!
//!     cargo bench --workspace --bench cold_start [-- ROWS]
//!
//! The rows are synthetic: demonstrations of several shapes and lengths, one in ten with a fault, one in twenty a copy
//! of an earlier one, one in twenty such a copy with one word more. Memory is what Linux says; elsewhere it isn't printed.

use std::error::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use parallel_r1::cold_start::check::{CheckOptions, check_file};
use parallel_r1::cold_start::dedupe::{DedupeOptions, dedupe};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ROWS: usize = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` adds `--bench`.
    let rows = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(ROWS);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("rows.jsonl");
    write(&path, rows)?;
    println!("{rows} rows, {:.0} MB", std::fs::metadata(&path)?.len() as f64 / 1e6);
    timed("check", rows, || {
        let report = check_file(&path, None, &CheckOptions::default())?;
        Ok(format!("{} well formed, {} right", report.well_formed, report.correct))
    })?;
    timed("dedupe", rows, || {
        let report = dedupe(&path, None, DedupeOptions::default())?;
        Ok(format!("{} exact and {} near copies", report.exact, report.near))
    })
}

fn timed(
    name: &str,
    rows: usize,
    work: impl Fn() -> Result<String, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let found = work()?;
    let rate = rows as f64 / start.elapsed().as_secs_f64();
    let peak = peak_mib().map_or(String::new(), |mib| format!(", at most {mib} MiB"));
    println!("{name}: {rate:.0} rows/s{peak} ({found})");
    Ok(())
}

/// The most memory that this process ever had, in MiB.
fn peak_mib() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? / 1024)
}

fn write(path: &Path, rows: usize) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::new(File::create(path)?);
    for row in 0..rows as u64 {
        let copy = row % 10 == 9;
        let (problem, answer, mut response) = demonstration(if copy { row - 7 } else { row });
        if copy && row % 20 == 9 {
            response += " Indeed.";
        }
        let line = serde_json::json!({"id": format!("row-{row}"), "problem": problem, "answer": answer, "response": response});
        writeln!(file, "{line}")?;
    }
    Ok(file.flush()?)
}

const NAMES: [&str; 8] = ["Natalia", "Ezekiel", "Frankie", "Julia", "Bernard", "Ming", "Olu", "Priya"];
const THINGS: [&str; 8] = ["clips", "apples", "stickers", "books", "marbles", "coins", "shells", "stamps"];
const WORDS: [&str; 16] = [
    "the",
    "first",
    "count",
    "then",
    "adding",
    "because",
    "so",
    "total",
    "each",
    "group",
    "number",
    "carefully",
    "again",
    "which",
    "makes",
    "clear",
];

fn demonstration(content: u64) -> (String, String, String) {
    let mut rng = ChaCha8Rng::seed_from_u64(content);
    let (a, b) = (rng.random_range(2..900u32), rng.random_range(2..900u32));
    let (name, thing) = (NAMES[rng.random_range(0..8)], THINGS[rng.random_range(0..8)]);
    let problem = format!(
        "{name} has {a} {thing} and gets {b} more at the market on day {content}. How many are there now?"
    );
    let mut prose =
        |words: usize| (0..words).fold(String::new(), |text, _| text + WORDS[rng.random_range(0..16)] + " ");
    let mut response = format!("{name} starts with {a} {thing}. {}\n\n", prose(30));
    for _ in 0..1 + content % 2 {
        let mut paths = String::new();
        for path in 0..2 + content % 3 / 2 {
            let _ = write!(paths, "<Path>\n{}{a} + {b} = {} by way {path}.\n</Path>\n", prose(25), a + b);
        }
        let _ = write!(
            response,
            "<Parallel>\n{paths}</Parallel>\n<Summary>\n{}{} {thing}.\n</Summary>\n\n",
            prose(8),
            a + b
        );
    }
    let _ = write!(response, "So there are {} {thing}.\n\nFinal Answer: {}", a + b, a + b);
    if content % 10 == 3 {
        response = response.replacen("</Summary>", "", 1);
    }
    (problem, (a + b).to_string(), response)
}
