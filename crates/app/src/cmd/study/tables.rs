//! A study's results as tables: short ones for the terminal, all of them for its documentation.

use parallel_r1::study::Results;
use parallel_r1::study::bootstrap::Estimate;
use parallel_r1::study::results::{ArmResults, Headline, Setting, TierResults};

use crate::table::aligned;

/// What a reader wants first.
pub(super) fn plain(results: &Results) -> String {
    let mut rows = vec![header(results)];
    rows.extend(settings(results).map(|(arm, setting)| row(arm, setting)));
    format!(
        "{}Accuracy in %: mean of {} samples a problem and of the seeds; at most {} tokens an answer.\n\n{}",
        aligned(&rows),
        results.samples,
        results.max_tokens,
        headlines(results)
    )
}

fn headlines(results: &Results) -> String {
    let line = |what: &str, headline: &Option<Headline>| match headline {
        Some(h) => format!("{what}: {} ({}, {} paths)\n", gain(&h.gain), h.recipe, h.paths),
        None => String::new(),
    };
    line(
        &format!("gain over {} on all tiers at equal tokens ({})", results.baseline, results.max_tokens),
        &results.relative_gain_mean_equal_tokens,
    ) + &line(
        &format!(
            "gain over {} on {} at equal latency ({} tokens one after the other)",
            results.baseline,
            results.hardest.join(" and "),
            results.critical_tokens
        ),
        &results.relative_gain_hardest_equal_latency,
    )
}

fn settings(results: &Results) -> impl Iterator<Item = (&ArmResults, &Setting)> {
    results.arms.iter().flat_map(|arm| arm.settings.iter().map(move |setting| (arm, setting)))
}

fn name(arm: &ArmResults, setting: &Setting) -> String {
    match arm.settings.len() {
        1 => arm.name.clone(),
        _ => format!("{}, {} paths", arm.name, setting.paths),
    }
}

fn seeds(arm: &ArmResults) -> String {
    arm.seeds.len().to_string()
}

fn header(results: &Results) -> Vec<String> {
    let tiers = results.arms.first().and_then(|arm| arm.settings.first()).map_or(&[][..], |s| &s.tiers);
    let tiers = tiers.iter().map(|tier| tier.name.clone());
    [vec!["arm".to_owned(), "seeds".into(), "mean".into()], tiers.collect()].concat()
}

fn row(arm: &ArmResults, setting: &Setting) -> Vec<String> {
    let tiers = setting.tiers.iter().map(|tier| hundredths(tier.accuracy.value));
    [vec![name(arm, setting), seeds(arm), hundredths(setting.accuracy.value)], tiers.collect()].concat()
}

fn hundredths(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn gain(estimate: &Estimate) -> String {
    format!(
        "{:+.1} % (95 %: {:+.1} to {:+.1})",
        100.0 * estimate.value,
        100.0 * estimate.low,
        100.0 * estimate.high
    )
}

fn with_interval(estimate: &Estimate) -> String {
    format!("{} ({} to {})", hundredths(estimate.value), hundredths(estimate.low), hundredths(estimate.high))
}

/// All tables, in Markdown.
pub(super) fn markdown(results: &Results) -> String {
    let head = "<!-- Made by `parallel-r1 study`; docs/study/README.md explains it. -->\n\n";
    let mut text = head.to_owned();
    text += &headlines(results).lines().map(|line| format!("- {line}\n")).collect::<String>();
    text += "\n## Accuracy within the budget (%)\n";
    text += &table(header(results), settings(results).map(|(arm, setting)| row(arm, setting)));
    text += "\n## Gains over the baseline, and over its votes at the same spend\n";
    text += &gains(results);
    text += &format!("\n## At equal latency: {} tokens one after the other (%)\n", results.critical_tokens);
    text += &table(
        header(results),
        settings(results).map(|(arm, setting)| {
            let late: Vec<f64> = setting.tiers.iter().map(|tier| tier.at_latency.value).collect();
            let mean = late.iter().sum::<f64>() / late.len().max(1) as f64;
            [
                vec![name(arm, setting), seeds(arm), hundredths(mean)],
                late.into_iter().map(hundredths).collect(),
            ]
            .concat()
        }),
    );
    text += "\n## How the answers look\n";
    text += &looks(results);
    text += "\n## Training\n";
    text + &training(results)
}

fn table(header: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule =
        header.iter().enumerate().map(|(i, _)| if i == 0 { "---" } else { "--:" }.to_owned()).collect();
    line(header) + &line(rule) + &rows.map(line).collect::<String>()
}

fn gains(results: &Results) -> String {
    let header = [
        "arm",
        "mean accuracy",
        "equal tokens",
        "hardest, equal latency",
        "votes",
        "over votes",
        "over votes, hardest",
    ];
    let rows = settings(results).map(|(arm, setting)| {
        let none = || "-".to_owned();
        let known = |estimate: Option<Estimate>| estimate.map_or_else(none, |estimate| gain(&estimate));
        let base = setting.against_baseline.as_ref();
        let votes = setting.against_votes.as_ref();
        vec![
            name(arm, setting),
            with_interval(&setting.accuracy),
            known(base.and_then(|g| g.mean_equal_tokens)),
            known(base.and_then(|g| g.hardest_equal_latency)),
            votes.map_or_else(none, |v| v.votes.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")),
            known(votes.and_then(|v| v.gains.mean_equal_tokens)),
            known(votes.and_then(|v| v.gains.hardest_equal_latency)),
        ]
    });
    table(header.map(str::to_owned).to_vec(), rows)
}

fn looks(results: &Results) -> String {
    let header = [
        "arm",
        "tier",
        "accuracy",
        "pass@k",
        "maj@k",
        "tokens",
        "critical path",
        "parallel",
        "block position",
        "cut",
        "some path right",
        "then right",
    ];
    let known = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), hundredths);
    let rows = settings(results)
        .flat_map(|(arm, setting)| setting.tiers.iter().map(move |tier| (arm, setting, tier)));
    let row = |(arm, setting, tier): (&ArmResults, &Setting, &TierResults)| {
        vec![
            name(arm, setting),
            tier.name.clone(),
            with_interval(&tier.accuracy),
            hundredths(tier.pass_at_k),
            hundredths(tier.maj_at_k),
            format!("{:.0}", tier.tokens),
            format!("{:.0}", tier.critical_path_tokens),
            hundredths(tier.parallel_ratio),
            known(tier.block_position),
            hundredths(tier.truncated),
            known(tier.some_path_right),
            known(tier.answer_right_given_path),
        ]
    };
    table(header.map(str::to_owned).to_vec(), rows.map(row))
}

fn training(results: &Results) -> String {
    let header = ["arm", "seed", "stage", "steps", "tokens", "seconds"];
    let mut rows = Vec::new();
    for arm in &results.arms {
        for (seed, stages) in arm.seeds.iter().zip(&arm.training) {
            for stage in stages {
                rows.push(vec![
                    arm.name.clone(),
                    seed.to_string(),
                    stage.name.clone(),
                    stage.steps.to_string(),
                    stage.tokens.to_string(),
                    format!("{:.0}", stage.seconds),
                ]);
            }
        }
    }
    table(header.map(str::to_owned).to_vec(), rows.into_iter())
}
