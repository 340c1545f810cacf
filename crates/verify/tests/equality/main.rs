//! Pairs of answers and what mathematics says of them.

#![allow(clippy::unwrap_used)] // a test may panic

mod must;
mod must_not;
mod properties;

use parallel_r1_verify::{Options, Verdict, equal_with};

/// The rows whose verdict is not the expected one, with what was read.
fn judge(rows: &[(&str, &str)], expected: Verdict) -> Vec<String> {
    rows.iter()
        .filter_map(|(gold, answer)| {
            let report = equal_with(gold, answer, &Options::default());
            let read = |side: Option<&parallel_r1_verify::answer::Answer>| side.map(ToString::to_string);
            (report.verdict != expected).then(|| {
                format!(
                    "{gold} / {answer}\n    {report}: {:?} / {:?}",
                    read(report.gold.as_ref()),
                    read(report.answer.as_ref())
                )
            })
        })
        .collect()
}
