//! What a reader wants to know first: which model is better, and whether the run was sound.

use parallel_r1::eval::stats::Interval;
use parallel_r1::eval::{Evaluation, compare};
use serde::Serialize;

use super::arm::Arm;
use super::run::{Column, RunData};

/// A difference with a larger p-value may be chance.
const SIGNIFICANT: f64 = 0.05;
/// The law of the two log-probabilities, in f32.
const LARGEST_GAP: f64 = 1e-4;
/// The share of truncated responses from which the budget decides the result.
const TRUNCATED: f64 = 0.1;
/// An arm that opens blocks in fewer of its responses no longer thinks in parallel.
const PARALLEL: f64 = 0.05;
/// A policy that has kept less of its first entropy hardly explores any more.
const ENTROPY_KEPT: f64 = 0.1;
/// A move of the blocks by less, of the length of a response, says nothing.
const MOVED: f64 = 0.05;

/// How a verdict is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tone {
    /// Better than what it is compared with.
    Better,
    /// Worse.
    Worse,
    /// No clear difference.
    Level,
    /// Something sound.
    Sound,
    /// Something to look at.
    Warning,
    /// Neither good nor bad.
    Note,
}

/// A verdict.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) tone: Tone,
    /// In a few words.
    pub(super) title: String,
    /// What it rests on, or what to do.
    pub(super) detail: String,
    /// Tier by tier.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tiers: Vec<TierVerdict>,
}

/// The difference in mean@k on one tier.
#[derive(Debug, Serialize)]
pub(super) struct TierVerdict {
    tone: Tone,
    tier: String,
    problems: usize,
    before: f64,
    after: f64,
    interval: Option<Interval>,
    /// Where the results by problem are there.
    p_value: Option<f64>,
}

/// All verdicts on some runs: results first.
pub(super) fn verdicts(runs: &[RunData]) -> Vec<Verdict> {
    let several = runs.len() > 1;
    let mut found = Vec::new();
    for run in runs {
        let named = |name: &str| if several { format!("{} / {name}", run.name) } else { name.to_owned() };
        let last = last_columns(run);
        let base = run.columns.iter().find(|column| column.name == "base");
        for column in &last {
            found.extend(base.and_then(|base| against(&named("base"), base, &named(&column.name), column)));
        }
        for (i, rival) in last.iter().enumerate() {
            let ahead = &last[..i];
            found
                .extend(ahead.iter().filter_map(|c| against(&named(&rival.name), rival, &named(&c.name), c)));
        }
    }
    if let Some((first, others)) = runs.split_first() {
        for other in others {
            found.extend(across(first, other));
        }
    }
    for run in runs {
        found.extend(run.arms.iter().flat_map(|arm| soundness(run, arm, several)));
        let unfinished = (!run.finished).then(|| "the run is not finished".to_owned());
        let notes = unfinished.into_iter().chain(run.notes.iter().cloned());
        found.extend(notes.map(|note| verdict(Tone::Note, &format!("{}: {note}", run.name), "")));
    }
    found
}

fn verdict(tone: Tone, title: &str, detail: &str) -> Verdict {
    Verdict { tone, title: title.into(), detail: detail.into(), tiers: vec![] }
}

/// The last evaluation of each arm.
fn last_columns(run: &RunData) -> Vec<&Column> {
    let last = |arm: &Arm| run.columns.iter().rfind(|column| column.arm.as_ref() == Some(&arm.name));
    run.arms.iter().filter_map(last).collect()
}

/// The same arms of two runs.
fn across(first: &RunData, other: &RunData) -> Vec<Verdict> {
    let last = last_columns(first);
    let pair = |column: &Column| {
        let before = last.iter().find(|known| known.arm == column.arm)?;
        let name = |run: &RunData, column: &Column| format!("{} / {}", run.name, column.name);
        against(&name(first, before), before, &name(other, column), column)
    };
    last_columns(other).into_iter().filter_map(pair).collect()
}

/// `after` against `before`, on the tiers that both have.
fn against(before_name: &str, before: &Column, after_name: &str, after: &Column) -> Option<Verdict> {
    let both = after.full.iter().filter_map(|(tier, after)| Some((tier, before.full.get(tier)?, after)));
    let tiers: Vec<TierVerdict> =
        both.map(|(tier, before, after)| tier_verdict(tier, before, after)).collect();
    let count = |tone: Tone| tiers.iter().filter(|tier| tier.tone == tone).count();
    let (better, worse, all) = (count(Tone::Better), count(Tone::Worse), tiers.len());
    let (tone, said) = match (better, worse) {
        _ if all == 0 => return None,
        (0, 0) => (Tone::Level, "no clear difference".to_owned()),
        (_, 0) => (Tone::Better, format!("better on {better} of {all} tiers")),
        (0, _) => (Tone::Worse, format!("worse on {worse} of {all} tiers")),
        _ => (Tone::Level, format!("better on {better}, worse on {worse} of {all} tiers")),
    };
    let mut detail = costs(before, after);
    if tiers.iter().any(|tier| tier.p_value.is_none()) {
        detail += "; without results by problem, clear is only where the intervals do not overlap";
    }
    let title = format!("{after_name} against {before_name}: {said}");
    Some(Verdict { tone, title, detail, tiers })
}

/// What an answer takes, on the mean of the tiers that both have.
fn costs(before: &Column, after: &Column) -> String {
    let shared = |column: &Column, other: &Column, tokens: fn(&Evaluation) -> f64| {
        let known = column.full.iter().filter(|(tier, _)| other.full.contains_key(*tier));
        let all: Vec<f64> = known.map(|(_, evaluation)| tokens(evaluation)).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    let both = |tokens: fn(&Evaluation) -> f64| {
        format!("{:.0} → {:.0}", shared(before, after, tokens), shared(after, before, tokens))
    };
    let (all, chain) = (both(|e| e.means.total_tokens), both(|e| e.means.critical_path_tokens));
    format!("tokens an answer {all}, on its critical path {chain}")
}

fn tier_verdict(tier: &str, before: &Evaluation, after: &Evaluation) -> TierVerdict {
    let (was, is) = (before.mean_at_k, after.mean_at_k);
    let toned = |clear: bool| match clear {
        false => Tone::Level,
        true if is > was => Tone::Better,
        true => Tone::Worse,
    };
    let paired = compare(before, after, 0).ok();
    if let Some(difference) = paired.as_ref().and_then(|paired| paired.get("mean_at_k")) {
        let (interval, p) = (difference.interval, difference.p_value);
        return TierVerdict {
            tone: toned(p < SIGNIFICANT),
            tier: tier.into(),
            problems: paired.as_ref().map_or(0, |paired| paired.problems),
            before: difference.a,
            after: difference.b,
            interval,
            p_value: Some(p),
        };
    }
    let apart = |a: Interval, b: Interval| a.high < b.low || b.high < a.low;
    let clear = before.interval.zip(after.interval).is_some_and(|(a, b)| apart(a, b));
    let (tone, tier) = (toned(clear), tier.into());
    TierVerdict {
        tone,
        tier,
        problems: after.problems,
        before: was,
        after: is,
        interval: None,
        p_value: None,
    }
}

/// Whether an arm was trained soundly, and what its numbers say of how it thinks.
fn soundness(run: &RunData, arm: &Arm, several: bool) -> Vec<Verdict> {
    let name = if several { format!("{} / {}", run.name, arm.name) } else { arm.name.clone() };
    let largest = |metric: &str| arm.series.get(metric)?.max();
    let ends = |metric: &str| arm.series.get(metric)?.ends();
    let mut found = Vec::new();
    let mut say =
        |tone, title: String, detail: String| found.push(verdict(tone, &format!("{name}: {title}"), &detail));
    if let Some(gap) = largest("log_prob_gap_max") {
        let detail = format!("largest difference of a token's log-probability: {gap:.1e}");
        match gap <= LARGEST_GAP {
            true => say(Tone::Sound, "sampler and trainer agree".into(), detail),
            false => say(
                Tone::Warning,
                "sampler and trainer disagree".into(),
                detail + "; in f32 it should be below 1e-4",
            ),
        }
    }
    if arm.not_finite > 0 {
        let detail = "lower the learning rate, and go on from the checkpoint before".into();
        say(Tone::Warning, format!("values that are no finite numbers: {}", arm.not_finite), detail);
    }
    if let Some((_, truncated)) = ends("truncated").filter(|(_, last)| *last > TRUNCATED) {
        let detail = "they count as wrong; raise sampling.max_response_tokens".into();
        say(
            Tone::Warning,
            format!("{} of the last responses are cut by the budget", percent(truncated)),
            detail,
        );
    }
    if let Some((first, last)) =
        arm.policy_entropy.ends().filter(|(first, last)| *last < ENTROPY_KEPT * first)
    {
        let detail =
            format!("from {first:.3} to {last:.3} nats: samples of one problem hardly differ any more");
        say(Tone::Warning, "entropy has collapsed".into(), detail);
    }
    let parallel = ends("parallel_ratio").filter(|_| arm.structure.is_some());
    if let Some((first, last)) = parallel {
        let detail = format!(
            "parallel ratio from {} to {} during reinforcement learning",
            percent(first),
            percent(last)
        );
        match last < PARALLEL {
            true => say(Tone::Warning, "it hardly thinks in parallel any more".into(), detail),
            false => {
                say(Tone::Note, format!("{} of the responses use parallel blocks", percent(last)), detail)
            }
        }
    }
    if let Some((first, last)) = ends("block_position").filter(|(first, last)| (last - first).abs() > MOVED) {
        let (place, why) = match last > first {
            true => ("later", "from exploring at the start towards verifying at the end"),
            false => ("earlier", "towards exploring at the start"),
        };
        let detail = format!("from {} to {} of the response: {why}", percent(first), percent(last));
        say(Tone::Note, format!("blocks have moved {place}"), detail);
    }
    let last = run.columns.iter().rfind(|column| column.arm.as_ref() == Some(&arm.name));
    found.extend(last.and_then(|column| bottleneck(&name, column)));
    found
}

/// Where right answers are lost: in the paths, or after them.
fn bottleneck(name: &str, column: &Column) -> Option<Verdict> {
    let known = column
        .full
        .values()
        .filter_map(|e| Some((e.means.some_path_right?, e.means.answer_right_given_path?)));
    let known: Vec<(f64, f64)> = known.collect();
    let mean = |of: fn(&(f64, f64)) -> f64| known.iter().map(of).sum::<f64>() / known.len().max(1) as f64;
    let (some, given) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let (explored, consolidated) = (1.0 - some, some * (1.0 - given));
    let title = match explored >= consolidated {
        _ if known.is_empty() => return None,
        true => "most losses are in the paths (exploration)",
        false => "most losses are in the summary (consolidation)",
    };
    let detail = format!(
        "some path is right in {} of the responses with a block, and then the answer in {}",
        percent(some),
        percent(given)
    );
    Some(verdict(Tone::Note, &format!("{name}: {title}"), &detail))
}

fn percent(share: f64) -> String {
    crate::table::percent(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An evaluation as older runs have it, without results by problem.
    fn evaluation(mean: f64, some: f64, given: f64) -> Evaluation {
        let value = serde_json::json!({"problems": 20, "skipped": 0, "samples": 4, "mean_at_k": mean, "pass_at_k": 1.0,
            "maj_at_k": 0.0, "interval": {"low": mean - 0.1, "high": mean + 0.1}, "some_path_right": some,
            "answer_right_given_path": given, "total_tokens": 100.0 * mean, "critical_path_tokens": 50.0});
        serde_json::from_value(value).unwrap()
    }

    fn column(name: &str, tiers: &[(&str, Evaluation)]) -> Column {
        let full = tiers.iter().map(|(tier, evaluation)| ((*tier).to_owned(), evaluation.clone())).collect();
        Column { name: name.into(), full, ..Column::default() }
    }

    #[test]
    fn without_results_by_problem_the_intervals_decide() {
        let tone = |before, after| {
            tier_verdict("3", &evaluation(before, 0.5, 0.5), &evaluation(after, 0.5, 0.5)).tone
        };
        assert_eq!(
            (tone(0.2, 0.5), tone(0.5, 0.2), tone(0.4, 0.5)),
            (Tone::Better, Tone::Worse, Tone::Level)
        );
    }

    #[test]
    fn a_verdict_counts_the_tiers_that_both_have_and_says_what_it_cost() {
        let tier = |mean| evaluation(mean, 0.5, 0.5);
        let base = column("base", &[("3", tier(0.2)), ("4", tier(0.2)), ("5", tier(0.9))]);
        let better = column("rl", &[("3", tier(0.6)), ("4", tier(0.2))]);
        let verdict = against("base", &base, "rl", &better).unwrap();
        assert_eq!((verdict.tone, verdict.tiers.len()), (Tone::Better, 2));
        assert_eq!(verdict.title, "rl against base: better on 1 of 2 tiers");
        assert!(
            verdict.detail.starts_with("tokens an answer 20 → 40, on its critical path 50 → 50; without")
        );
        let mixed = column("rl", &[("3", tier(0.6)), ("4", tier(0.0))]);
        let swapped = column("rl", &[("3", tier(0.2)), ("4", tier(0.6))]);
        let verdict = against("a", &mixed, "b", &swapped).unwrap();
        assert_eq!(verdict.title, "b against a: better on 1, worse on 1 of 2 tiers");
        assert!(against("a", &column("a", &[]), "b", &base).is_none());
    }

    #[test]
    fn losses_are_found_where_they_are() {
        let said = |some, given| {
            bottleneck("a", &column("rl", &[("3", evaluation(0.5, some, given))])).unwrap().title
        };
        assert_eq!(said(0.4, 0.9), "a: most losses are in the paths (exploration)");
        assert_eq!(said(0.9, 0.5), "a: most losses are in the summary (consolidation)");
        assert!(bottleneck("a", &column("rl", &[])).is_none());
    }
}
