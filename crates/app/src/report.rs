//! Runs as a page for people: one HTML file with everything in it, or served while a run goes on.
//!
//! ```text
//! RUN/metrics.jsonl ──tail──▶ arm, series ──┐
//! RUN/traces.jsonl  ──tail──▶ traces ───────┼─ run ──▶ verdicts ──▶ JSON in a page (page/)
//! RUN/evaluations/  ────────────────────────┘                        │
//!                                                                     └─ serve: the same, live
//! ```
//!
//! The page draws itself from the JSON. Nothing of a run is ever written as markup: the JSON stands in a script element of
//! its own, `<` escaped, and the page's scripts put texts into the document as texts. So a model may write what it likes.
//! The charts are hand-made SVG: a chart library would be larger than all of the page, and the data is thinned before.

mod arm;
mod run;
mod serve;
mod series;
mod tail;
mod threads;
mod traces;
mod verdicts;

use std::path::Path;

use anyhow::Context;
use serde::Serialize;

pub(crate) use run::Run;
use run::RunData;
pub(crate) use serve::Dashboard;
use verdicts::{Verdict, verdicts};

/// The page, with places for its parts.
const PAGE: &str = include_str!("report/page/page.html");
const STYLE: &str = include_str!("report/page/style.css");
/// One after the other they are one script; the last begins to draw.
const SCRIPTS: [&str; 8] = [
    include_str!("report/page/dom.js"),
    include_str!("report/page/chart.js"),
    include_str!("report/page/threads.js"),
    include_str!("report/page/verdicts.js"),
    include_str!("report/page/results.js"),
    include_str!("report/page/training.js"),
    include_str!("report/page/traces.js"),
    include_str!("report/page/main.js"),
];

/// What the page is drawn from.
#[derive(Serialize)]
struct Data {
    /// Whether the page asks again.
    live: bool,
    verdicts: Vec<Verdict>,
    runs: Vec<RunData>,
}

/// The data of some runs as JSON.
fn data(runs: &[Run], live: bool) -> anyhow::Result<String> {
    let mut runs = runs.iter().map(Run::data).collect::<anyhow::Result<Vec<RunData>>>()?;
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    for run in runs.iter_mut().filter(|run| names.iter().filter(|name| **name == run.name).count() > 1) {
        run.name.clone_from(&run.folder);
    }
    Ok(serde_json::to_string(&Data { live, verdicts: verdicts(&runs), runs })?)
}

/// The page of some runs.
fn page(runs: &[Run], live: bool) -> anyhow::Result<String> {
    // In JSON, `<` only stands within strings; so escaped, nothing in it can end the script element.
    let data = data(runs, live)?.replace('<', "\\u003c");
    let parts = [("{{style}}", STYLE), ("{{data}}", &data), ("{{script}}", &SCRIPTS.concat())];
    let mut page = String::new();
    let mut rest = PAGE;
    for (place, part) in parts {
        let (before, after) =
            rest.split_once(place).with_context(|| format!("the page has no place for {place}"))?;
        page.push_str(before);
        page.push_str(part);
        rest = after;
    }
    Ok(page + rest)
}

/// Writes the page of some runs, as a whole or not at all.
pub(crate) fn write(runs: &[Run], path: &Path) -> anyhow::Result<()> {
    let part = path.with_extension("part");
    let written = std::fs::write(&part, page(runs, false)?).and_then(|()| std::fs::rename(&part, path));
    written.with_context(|| format!("{}: cannot be written", path.display()))
}
