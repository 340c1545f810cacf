//! Faults of summaries: they have to say something, and nothing that no path found.

use std::ops::Range;

use super::{CheckOptions, Fault, FaultKind};
use crate::prompt::tags::{Block, Outline};
use crate::reward::{numbers, words};

pub(super) fn faults(response: &str, outline: &Outline, options: &CheckOptions) -> Vec<Fault> {
    let fault = |block: &Block| {
        let range = block.summary.clone()?;
        let kind = judge(response, &range, &block.paths, options)?;
        Some(Fault::new(kind, response, range.start))
    };
    outline.blocks.iter().filter_map(fault).collect()
}

fn judge(
    response: &str,
    summary: &Range<usize>,
    paths: &[Range<usize>],
    options: &CheckOptions,
) -> Option<FaultKind> {
    let text = &response[summary.clone()];
    if text.trim().is_empty() {
        return Some(FaultKind::EmptySummary);
    }
    let says = words(text).filter(|word| word.starts_with(char::is_alphanumeric)).count();
    if says < options.min_summary_words && !text.contains(char::is_numeric) {
        return Some(FaultKind::TrivialSummary);
    }
    let paths: Vec<&str> = paths.iter().map(|path| &response[path.clone()]).collect();
    contradicts(text, &paths).then_some(FaultKind::ContradictingSummary)
}

/// Whether a summary mentions the last number of no path, and its own last number is in no path. Paths may as well
/// have worked out parts that the summary puts together, so a new number alone is no contradiction.
fn contradicts(summary: &str, paths: &[&str]) -> bool {
    let found: Vec<Vec<f64>> = paths.iter().map(|path| numbers(path)).collect();
    let stated = numbers(summary);
    let Some(result) = stated.last() else { return false };
    let concluded: Option<Vec<&f64>> = found.iter().map(|numbers| numbers.last()).collect();
    concluded.is_some_and(|concluded| {
        !concluded.is_empty()
            && !concluded.iter().any(|number| stated.contains(number))
            && !found.iter().flatten().any(|number| number == result)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kinds, with_block};
    use super::FaultKind::*;
    use super::*;

    #[test]
    fn a_summary_says_something_that_a_path_found() {
        for (summary, expected) in [
            ("", vec![EmptySummary]),
            ("\n ", vec![EmptySummary]),
            ("Done.", vec![TrivialSummary]),
            ("...", vec![TrivialSummary]),
            ("12", vec![]),
            ("Both paths agree.", vec![]),
            ("The paths give 12 apples.", vec![]),
            ("The answer is 15.", vec![ContradictingSummary]),
            ("Adding up, 24 in total.", vec![ContradictingSummary]),
            ("12 and 12 make 24.", vec![]),
        ] {
            let block = format!(
                "<Path>Adding 5 and 7 gives 12.</Path><Path>From 7 count on: 12.0.</Path></Parallel>\n\
                 <Summary>{summary}</Summary>"
            );
            assert_eq!(kinds(&with_block(&block)), expected, "{summary}");
        }
    }

    #[test]
    fn without_numbers_nothing_contradicts() {
        assert!(!contradicts("15", &["no number", "12"]));
        assert!(!contradicts("15", &[]));
    }
}
