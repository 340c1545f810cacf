//! This project's side of the comparisons in `benches/peers`, and a bench that runs alone:
//!
//!     cargo bench --workspace --bench speed -- train_135m sample_embedded [--rounds 5]
//!
//! A case is a name out of `benches/peers/cases.json`, or a JSON object like those there. Each gets a round that warms
//! up and then `--rounds` (3) timed ones, of which the median is printed. `benches/peers/run` uses two more forms:
//!
//!     speed --serve CASE         for every line on stdin one round, and its result as a line of JSON on stdout
//!     speed --write-model NAME FOLDER
//!
//! Models have the named shape and random weights; both sides of a comparison load the same. Threads are set as everywhere
//! by `RAYON_NUM_THREADS`.

mod block;
mod case;
mod grpo;
mod machine;
mod sample;
mod texts;
mod train;

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use case::{Case, Kind};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What a round has done: `units` of work, and what else is worth a word.
struct Done {
    units: usize,
    notes: Value,
}

/// Work that can be done again and again.
trait Work {
    fn round(&mut self) -> Result<Done>;
}

fn main() -> Result<()> {
    // SAFETY: no other thread runs yet.
    #[allow(unsafe_code)]
    unsafe {
        parallel_r1::kernels::calm_candle()
    };
    // `cargo bench` adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // On a thread of the pool, as in the program.
    rayon::scope(|_| match arguments[..] {
        ["--serve", case] => serve(&Case::find(case)?),
        ["--write-model", name, folder] => case::write(name, Path::new(folder)),
        [ref cases @ .., "--rounds", rounds] => alone(cases, rounds.parse()?),
        ref cases => alone(cases, 3),
    })
}

fn work(case: &Case) -> Result<Box<dyn Work>> {
    Ok(match case.work {
        Kind::Train => Box::new(train::Training::new(case)?),
        Kind::Sample => Box::new(sample::Sampling::new(case)?),
        Kind::Grpo => Box::new(grpo::Grpo::new(case)?),
        Kind::Block => Box::new(block::Block::new(case)?),
        Kind::Reread => Box::new(block::Reread::new(case)?),
        Kind::Machine => Box::new(machine::Machine),
        Kind::Verify => return Err("verify: benches/peers/verify measures the judge".into()),
    })
}

fn timed(work: &mut dyn Work) -> Result<Value> {
    let start = Instant::now();
    let Done { units, notes } = work.round()?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(json!({"units": units, "seconds": seconds, "peak_mib": peak_mib(), "notes": notes}))
}

fn serve(case: &Case) -> Result<()> {
    let mut work = work(case)?;
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lock().lines() {
        line?;
        writeln!(out, "{}", timed(work.as_mut())?)?;
    }
    Ok(())
}

fn alone(cases: &[&str], rounds: usize) -> Result<()> {
    if cases.is_empty() {
        println!("cases: machine {}", case::names()?.join(" "));
    }
    for name in cases {
        let case = Case::find(name)?;
        let mut work = work(&case)?;
        timed(work.as_mut())?;
        let results = (0..rounds.max(1)).map(|_| timed(work.as_mut())).collect::<Result<Vec<_>>>()?;
        let mut seconds: Vec<f64> = results.iter().filter_map(|r| r["seconds"].as_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        let last = &results[results.len() - 1];
        let rate = last["units"].as_f64().unwrap_or(0.0) / median;
        println!("{}: {rate:.1} units/s, {median:.4} s a round; {}", case.name, last);
    }
    Ok(())
}

/// The most memory that this process ever had, in MiB, where the system says it.
fn peak_mib() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? / 1024)
}
