//! `train --dry-run`: what a recipe would do and take, without doing it.

use std::io::{Write, stdout};

use parallel_r1::data::hub::Hub;
use parallel_r1::train::estimate::{Estimate, Sizes, StageEstimate, estimate, product_rate};
use parallel_r1::train::recipe::{Recipe, Warning};
use serde::Serialize;

use crate::cmd::DEVICE;
use crate::cmd::generate::print_json;
use crate::table::aligned;

const NOTE: &str = "Sampled tokens, and so times, are upper bounds: as if every response filled its budget and no stage \
    ended before its steps or tokens.\nMemory is what a run needs at least.";

/// What is printed as JSON.
#[derive(Serialize)]
struct Report {
    recipe: String,
    model: String,
    #[serde(flatten)]
    estimate: Estimate,
    warnings: Vec<String>,
}

/// Checks a recipe and says what it takes. Nothing is fetched and no folder is made: what lies on the Hub counts where
/// it is in the cache already.
pub(super) fn dry_run(name: &str, recipe: &Recipe, json: bool) -> anyhow::Result<()> {
    let hub = Hub { offline: true, ..Hub::from_env() };
    let local = recipe
        .localised(|kind, name| Ok(hub.resolve(kind, name, &mut |_| {}).unwrap_or_else(|_| name.into())))?;
    let sizes = Sizes::of(&local)?;
    local.check_model()?;
    let rate = if sizes.is_some() { product_rate(&DEVICE)? } else { 1.0 };
    let report = Report {
        recipe: name.into(),
        model: recipe.model.init.as_ref().map_or(recipe.model.name().into(), |_| "random weights".into()),
        estimate: estimate(&local, sizes, rate)?,
        warnings: recipe.warnings().iter().map(Warning::to_string).collect(),
    };
    if json { print_json(&report) } else { Ok(write!(stdout(), "{}", text(&report))?) }
}

fn text(report: &Report) -> String {
    let estimate = &report.estimate;
    let head = ["arm", "stage", "kind", "steps", "tokens sampled", "tokens learned", "time"];
    let stage = |stage: &StageEstimate| {
        [
            stage.arm.clone(),
            stage.stage.clone(),
            stage.kind.into(),
            known(stage.steps, |steps| steps.to_string()),
            known(stage.sampled_tokens, tokens),
            known(stage.learned_tokens, tokens),
            known(stage.seconds, time),
        ]
        .to_vec()
    };
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(estimate.stages.iter().map(stage));
    let parameters = known(estimate.parameters, |n| format!("{:.1} M parameters", n as f64 / 1e6));
    let mut lines = vec![
        format!("recipe       {}", report.recipe),
        format!("model        {}, {parameters}", report.model),
        String::new(),
        aligned(&rows),
        format!("evaluation   {} tokens", tokens(estimate.evaluation_tokens)),
        format!("memory       {}", known(estimate.memory, memory)),
        format!("time         {}", known(estimate.seconds, time)),
        String::new(),
        NOTE.into(),
    ];
    if !estimate.missing.is_empty() {
        lines.push(format!("Not on this machine yet, so unknown (?): {}", estimate.missing.join(", ")));
    }
    lines.extend(report.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines.join("\n") + "\n"
}

fn known<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "?".into(), show)
}

fn tokens(count: u64) -> String {
    match count {
        0 => "-".into(),
        1..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{:.0} k", count as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.0} M", count as f64 / 1e6),
        _ => format!("{:.0} G", count as f64 / 1e9),
    }
}

fn memory(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s if s < 360_000.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_size() {
        let counts = [0, 12, 123_456, 12_345_678, 12_345_678_901];
        assert_eq!(counts.map(tokens), ["-", "12", "123 k", "12 M", "12 G"]);
        assert_eq!([5.0, 120.0, 7200.0, 1e6].map(time), ["5 s", "2 min", "2 h", "12 days"]);
    }
}
