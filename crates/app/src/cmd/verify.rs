//! `verify`: judges answers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use parallel_r1_verify::cases::Case;
use parallel_r1_verify::{Options, Report, Verdict, verify_with};
use serde::Serialize;

use super::generate::print_json;
use crate::failure::Failure;

/// Longer rows are no cases.
const MAX_ROW: u64 = 64 << 20;
/// Of a text that disagrees, this much is shown.
const MAX_SHOWN: usize = 300;

/// Compare an answer with the gold one
///
/// ANSWER is a whole response; the answer that it states last is judged. Prints correct, incorrect, undecided (too large
/// to compare) or unreadable gold, and why; what was read goes to stderr.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 verify '\\frac{1}{2}' 'The answer is $0.5$'\n  \
    parallel-r1 verify --cases cases.jsonl --json\n\n\
    Exit codes: 0 correct, 1 not correct or a case disagrees, 2 called wrongly.")]
pub(crate) struct Args {
    /// The right answer, or a worked solution that ends in it
    #[arg(required_unless_present = "cases", allow_hyphen_values = true)]
    gold: Option<String>,
    /// The response to judge
    #[arg(required_unless_present = "cases", allow_hyphen_values = true)]
    answer: Option<String>,
    /// Judge a file of rows {"gold", "pred", "expect"?, "opts"?}, one JSON object a line (- for stdin), and print those
    /// that disagree with `expect`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["gold", "answer"])]
    cases: Option<PathBuf>,
    /// Print JSON: one object; of cases, one a line, the counts last
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let right = match (&self.cases, &self.gold, &self.answer) {
            (Some(file), ..) => cases(file, self.json)?,
            (_, Some(gold), Some(answer)) => pair(gold, answer, self.json)?,
            _ => false, // clap has asked for them
        };
        Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[derive(Serialize)]
struct Judged<'a> {
    verdict: String,
    reason: &'a str,
    extracted: Option<&'a str>,
    gold: Option<String>,
    answer: Option<String>,
}

impl<'a> Judged<'a> {
    fn new(report: &'a Report) -> Self {
        Self {
            verdict: report.verdict.to_string(),
            reason: &report.reason,
            extracted: report.extracted.as_deref(),
            gold: report.gold.as_ref().map(ToString::to_string),
            answer: report.answer.as_ref().map(ToString::to_string),
        }
    }
}

fn pair(gold: &str, answer: &str, json: bool) -> anyhow::Result<bool> {
    let report = verify_with(gold, answer, &Options::default());
    let judged = Judged::new(&report);
    if json {
        print_json(&judged)?;
    } else {
        writeln!(stdout(), "{report}")?;
        for (name, read) in [("gold", &judged.gold), ("answer", &judged.answer)] {
            if let Some(read) = read {
                eprintln!("{name} read as {}", shortened(read));
            }
        }
    }
    Ok(report.verdict == Verdict::Correct)
}

/// A row whose verdict is not the expected one, or that expects none.
#[derive(Serialize)]
struct Row<'a> {
    line: usize,
    expect: Option<bool>,
    #[serde(flatten)]
    judged: Judged<'a>,
}

#[derive(Default, Serialize)]
struct Counts {
    cases: usize,
    agree: usize,
    undecided: usize,
    max_ms: f64,
}

/// Judges the rows of a file; whether none disagrees.
fn cases(file: &Path, json: bool) -> anyhow::Result<bool> {
    let mut reader = open(file)?;
    let (mut counts, mut disagree, mut foreign) = (Counts::default(), 0, BTreeMap::<String, usize>::new());
    let mut out = stdout().lock();
    for line in 1.. {
        let Some(text) = next_line(&mut *reader, file, line)? else { break };
        if text.trim().is_empty() {
            continue;
        }
        let case = Case::parse(&text).map_err(|error| bad_row(file, line, error))?;
        for setting in &case.foreign {
            *foreign.entry(setting.clone()).or_default() += 1;
        }
        let start = Instant::now();
        let report = case.judge();
        counts.max_ms = counts.max_ms.max(start.elapsed().as_secs_f64() * 1e3);
        counts.cases += 1;
        counts.undecided += usize::from(report.verdict == Verdict::Undecided);
        let agrees = case.agrees(report.verdict);
        counts.agree += usize::from(agrees == Some(true));
        disagree += usize::from(agrees == Some(false));
        if agrees != Some(true) {
            let row = Row { line, expect: case.expect, judged: Judged::new(&report) };
            let shown = if json { serde_json::to_string(&row)? } else { in_words(&case, &report, line) };
            writeln!(out, "{shown}")?;
        }
    }
    for (setting, rows) in foreign {
        eprintln!("note: {rows} rows assume {setting}, a setting that has no counterpart here");
    }
    counts.max_ms = (counts.max_ms * 1e3).round() / 1e3;
    let Counts { cases, agree, undecided, max_ms } = counts;
    if json {
        writeln!(out, "{}", serde_json::to_string(&counts)?)?;
    } else {
        writeln!(
            out,
            "{cases} cases: {agree} agree, {disagree} disagree, {undecided} undecided; at most {max_ms} ms"
        )?;
    }
    Ok(disagree == 0)
}

fn in_words(case: &Case, report: &Report, line: usize) -> String {
    let expected = match case.expect {
        Some(true) => "expected correct, ",
        Some(false) => "expected not correct, ",
        None => "",
    };
    let (gold, pred) = (shortened(&case.gold), shortened(&case.pred));
    format!("line {line}: {expected}judged {report}\n  gold {gold}\n  pred {pred}")
}

/// The start of a long text, on one line.
fn shortened(text: &str) -> String {
    let line = text.replace('\n', " ");
    match line.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}

fn open(file: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    if file == Path::new("-") {
        return Ok(Box::new(stdin().lock()));
    }
    let opened = File::open(file).map_err(|error| {
        Failure::misuse(
            format!("{}: {error}", file.display()),
            "`--cases` takes a file of rows, or - for stdin",
        )
    })?;
    Ok(Box::new(BufReader::new(opened)))
}

fn next_line(reader: &mut dyn BufRead, file: &Path, line: usize) -> anyhow::Result<Option<String>> {
    let mut text = String::new();
    reader.take(MAX_ROW).read_line(&mut text).map_err(|error| bad_row(file, line, error))?;
    Ok((!text.is_empty()).then_some(text))
}

fn bad_row(file: &Path, line: usize, error: impl std::fmt::Display) -> anyhow::Error {
    Failure::misuse(
        format!("{}:{line}: {error}", file.display()),
        r#"a row is one JSON object on a line of its own, like {"gold": "1/2", "pred": "0.5", "expect": true}"#,
    )
}
