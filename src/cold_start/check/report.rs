//! What a whole set is: counts, rows by kind of fault, and examples.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Fault, FaultKind, Inspection};

/// Examples kept of each kind.
const EXAMPLES: usize = 3;

/// What the check of a set says. It grows with the faults alone, by a row id each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How many rows there are.
    pub rows: usize,
    /// How many have at least one block.
    pub with_block: usize,
    /// How many have tags that follow the grammar, or none.
    pub well_formed: usize,
    /// How many end in the gold answer.
    pub correct: usize,
    /// How many have a gold answer that can be read.
    pub judged: usize,
    /// The ids of the rows with faults, by kind.
    pub faults: BTreeMap<FaultKind, Vec<String>>,
    /// The ids of the rows with warnings, by kind.
    pub warnings: BTreeMap<FaultKind, Vec<String>>,
    /// How many rows have so many blocks.
    pub blocks_per_response: BTreeMap<usize, usize>,
    /// How many blocks have so many paths.
    pub paths_per_block: BTreeMap<usize, usize>,
    /// The first rows of each kind, with the place and the text there.
    pub examples: BTreeMap<FaultKind, Examples>,
}

/// The first rows with a kind of fault.
pub type Examples = Vec<(String, Fault)>;

impl Report {
    /// Counts one row.
    pub fn add(&mut self, id: &str, inspection: &Inspection) {
        self.rows += 1;
        self.with_block += usize::from(inspection.blocks() > 0);
        self.well_formed += usize::from(inspection.well_formed());
        self.correct += usize::from(inspection.correct == Some(true));
        self.judged += usize::from(inspection.correct.is_some());
        *self.blocks_per_response.entry(inspection.blocks()).or_default() += 1;
        for &paths in &inspection.paths {
            *self.paths_per_block.entry(paths).or_default() += 1;
        }
        let mut seen = Vec::new();
        for fault in &inspection.faults {
            if !seen.contains(&fault.kind) {
                seen.push(fault.kind);
                self.note(id, fault);
            }
        }
    }

    fn note(&mut self, id: &str, fault: &Fault) {
        let rows = if fault.kind.is_warning() { &mut self.warnings } else { &mut self.faults };
        rows.entry(fault.kind).or_default().push(id.to_owned());
        let examples = self.examples.entry(fault.kind).or_default();
        if examples.len() < EXAMPLES {
            examples.push((id.to_owned(), fault.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::problem;
    use super::super::{Answer, CheckOptions, inspect};
    use super::*;

    #[test]
    fn a_row_counts_once_for_each_kind() {
        let (problem, mut report) = (problem("How many?", "3"), Report::default());
        for (id, response) in [
            ("a", "Answer: 3"),
            ("b", "</Path></Path> Answer: 4"),
            ("c", "<Parallel><Path>3</Path></Parallel><Summary>It is 3.</Summary>Answer: 3"),
        ] {
            report.add(id, &inspect(&Answer::new(&problem, response), &CheckOptions::default()));
        }
        let json = serde_json::to_value(&report).unwrap();
        let faults = serde_json::json!({"stray_tag": ["b"], "too_few_paths": ["c"], "wrong_answer": ["b"]});
        assert_eq!(json["faults"], faults);
        assert_eq!((report.rows, report.with_block, report.well_formed, report.correct), (3, 1, 2, 2));
        assert_eq!(json["blocks_per_response"], serde_json::json!({"0": 2, "1": 1}));
        assert_eq!(json["paths_per_block"], serde_json::json!({"1": 1}));
        assert_eq!(json["examples"]["wrong_answer"][0][1]["text"], "4");
    }
}
