//! Faults of the tags: the grammar's, and the limits that a data set sets itself.

use super::{CheckOptions, Fault, FaultKind};
use crate::prompt::tags::{FaultKind as Grammar, Outline};

pub(super) fn faults(response: &str, outline: &Outline, options: &CheckOptions) -> Vec<Fault> {
    let grammar = outline.faults.iter().map(|fault| Fault::new(named(fault.kind), response, fault.byte));
    let limits = outline.blocks.iter().flat_map(|block| {
        let few = (1..options.min_paths).contains(&block.paths.len()).then_some(FaultKind::TooFewPaths);
        let deep = (block.nesting > options.max_nesting).then_some(FaultKind::NestedTooDeep);
        few.into_iter().chain(deep).map(|kind| Fault::new(kind, response, block.range.start))
    });
    grammar.chain(limits).collect()
}

fn named(kind: Grammar) -> FaultKind {
    match kind {
        Grammar::UnclosedPath => FaultKind::UnclosedPath,
        Grammar::UnclosedBlock => FaultKind::UnclosedBlock,
        Grammar::UnclosedSummary => FaultKind::UnclosedSummary,
        Grammar::MissingSummary => FaultKind::MissingSummary,
        Grammar::EmptyBlock => FaultKind::EmptyBlock,
        Grammar::PathOutsideBlock => FaultKind::PathOutsideBlock,
        Grammar::TextInBlock => FaultKind::TextInBlock,
        Grammar::TextBeforeSummary => FaultKind::TextBeforeSummary,
        // Text has no end-of-text token, and its spacing is no fault.
        Grammar::StrayTag(_) | Grammar::AfterEnd | Grammar::Spacing => FaultKind::StrayTag,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kinds, with_block};
    use super::super::{Answer, CheckOptions, inspect, tests::problem};
    use super::FaultKind::*;

    #[test]
    fn limits_are_kept() {
        let summary = "</Parallel>\n<Summary>That makes 12.</Summary>";
        let one = format!("<Path>5 + 7 = 12.</Path>{summary}");
        assert_eq!(kinds(&with_block(&one)), [TooFewPaths]);
        let nested = format!(
            "<Path>Add: <Parallel><Path>5 + 7 = 12.</Path><Path>7 and 5 more are 12.</Path>{summary}</Path>\
             <Path>Count: 12.</Path>{summary}"
        );
        assert_eq!(kinds(&with_block(&nested)), [NestedTooDeep]);
    }

    #[test]
    fn a_fault_says_where_it_is() {
        let problem = problem("How many?", "3");
        let response = "It is\n3.</Path>\nFinal Answer: 3";
        let inspection = inspect(&Answer::new(&problem, response), &CheckOptions::default());
        let fault = &inspection.faults[0];
        assert_eq!((fault.kind, fault.at), (StrayTag, 8));
        assert_eq!(fault.text, "It is 3.</Path> Final Answer: 3");
        assert!(!inspection.well_formed() && !inspection.accepted());
    }
}
