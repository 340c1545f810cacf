//! Rows whose problem is in a set that a model will be measured on.
//!
//! The evaluation sets are indexed, the rows stream by: exactly the same text (letters and digits alone), or many of
//! the same runs of words.

use std::path::Path;

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

use super::likeness::{plain_words, runs, squashed};
use super::stream::in_order;
use crate::data::{Result, Row, Rows, asked};

/// When a problem counts as one of an evaluation set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContaminationOptions {
    /// Words of a run.
    pub ngram: usize,
    /// The least share of a problem's runs that one evaluation problem has, or of that one's runs that the problem has;
    /// above 1 only exact copies count.
    pub threshold: f64,
}

impl Default for ContaminationOptions {
    fn default() -> Self {
        Self { ngram: 8, threshold: 0.5 }
    }
}

/// How a problem matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchKind {
    /// The same letters and digits.
    Exact,
    /// Many of the same runs of words.
    Near,
}

/// A row whose problem is in an evaluation set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Match {
    /// The row.
    pub id: String,
    /// The evaluation problem.
    pub with: String,
    /// How they match.
    pub kind: MatchKind,
    /// The share of common runs, the larger of both directions; 1 for an exact match.
    pub overlap: f64,
}

/// Problems to be measured on. Memory grows with their text.
pub struct Index {
    options: ContaminationOptions,
    ids: Vec<String>,
    exact: HashMap<String, u32>,
    /// How many runs each problem has.
    runs: Vec<u32>,
    postings: HashMap<u64, Vec<u32>>,
}

impl Index {
    /// Without problems.
    pub fn new(options: ContaminationOptions) -> Self {
        Self { options, ids: Vec::new(), exact: HashMap::new(), runs: Vec::new(), postings: HashMap::new() }
    }

    /// Adds the problems of a file.
    pub fn add_file(&mut self, path: &Path) -> Result<()> {
        for row in Rows::open(path)? {
            let problem = asked(&row?)?;
            self.add(problem.id, &problem.problem);
        }
        Ok(())
    }

    /// Adds a problem.
    pub fn add(&mut self, id: String, text: &str) {
        let problem = self.ids.len() as u32;
        self.ids.push(id);
        self.exact.entry(squashed(text)).or_insert(problem);
        let runs = self.distinct_runs(text);
        self.runs.push(runs.len() as u32);
        for run in runs {
            self.postings.entry(run).or_default().push(problem);
        }
    }

    /// How many problems there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The evaluation problem that a text matches best, the first of those that match it equally.
    pub fn find(&self, id: &str, text: &str) -> Option<Match> {
        let found = |problem: u32, kind, overlap| Match {
            id: id.to_owned(),
            with: self.ids[problem as usize].clone(),
            kind,
            overlap,
        };
        if let Some(&problem) = self.exact.get(&squashed(text)) {
            return Some(found(problem, MatchKind::Exact, 1.0));
        }
        let (problem, overlap) = self.nearest(text)?;
        (overlap >= self.options.threshold).then(|| found(problem, MatchKind::Near, overlap))
    }

    fn nearest(&self, text: &str) -> Option<(u32, f64)> {
        let runs = self.distinct_runs(text);
        let mut common: HashMap<u32, u32> = HashMap::new();
        for run in &runs {
            for &problem in self.postings.get(run).into_iter().flatten() {
                *common.entry(problem).or_default() += 1;
            }
        }
        let overlap = |(problem, common): (u32, u32)| {
            let fewer = (runs.len() as u32).min(self.runs[problem as usize]);
            (problem, f64::from(common) / f64::from(fewer))
        };
        let better = |a: &(u32, f64), b: &(u32, f64)| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0));
        common.into_iter().map(overlap).max_by(better)
    }

    /// The runs of a text; none of one that is shorter than a run, which only an exact copy can match.
    fn distinct_runs(&self, text: &str) -> Vec<u64> {
        let lower = text.to_lowercase();
        let words = plain_words(&lower);
        if words.len() < self.options.ngram {
            return Vec::new();
        }
        let mut runs: Vec<u64> = runs(&words, self.options.ngram).collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    }
}

/// What a set has of evaluation sets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ContaminationReport {
    /// How many rows there are.
    pub rows: usize,
    /// How many match an evaluation problem.
    pub contaminated: usize,
    /// How many are exactly the same.
    pub exact: usize,
    /// How many have much of one.
    pub near: usize,
    /// Which they are.
    pub matches: Vec<Match>,
    /// The numbers of these rows, from 0, in order.
    #[serde(skip)]
    pub dropped: Vec<u32>,
}

/// Compares the problems of a file with an index.
pub fn contamination(path: &Path, index: &Index) -> Result<ContaminationReport> {
    let mut report = ContaminationReport::default();
    let compare = |row: Row| {
        let problem = asked(&row)?;
        Ok(index.find(&problem.id, &problem.problem))
    };
    in_order(Rows::open(path)?, compare, |found| {
        let row = report.rows as u32;
        report.rows += 1;
        let Some(found) = found else { return };
        report.contaminated += 1;
        *(if found.kind == MatchKind::Exact { &mut report.exact } else { &mut report.near }) += 1;
        report.matches.push(found);
        report.dropped.push(row);
    })?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Each of the 8 walls of a room is painted in one of 3 colours. How many ways are there to paint \
        the room, if no two walls beside each other may have the same colour?";

    #[test]
    fn copies_in_other_words_are_found() {
        let mut index = Index::new(ContaminationOptions::default());
        index.add("short".into(), "What is $2+2$?");
        index.add("walls".into(), TEXT);
        assert_eq!((index.len(), index.is_empty()), (2, false));
        let found = |text: &str| index.find("x", text).map(|found| (found.with, found.kind));
        let walls = |kind| Some(("walls".to_owned(), kind));
        assert_eq!(found(&TEXT.replace("8 walls", "$8$  walls")), walls(MatchKind::Exact));
        assert_eq!(found(&TEXT.replace("Each of", "Every one of")), walls(MatchKind::Near));
        assert_eq!(
            found(&format!("Solve it, and put the answer in a box. {TEXT} Think.")),
            walls(MatchKind::Near)
        );
        assert_eq!(found("what is 2 + 2 ?"), Some(("short".to_owned(), MatchKind::Exact)));
        assert_eq!(found("What is 22?"), None);
        assert_eq!(
            found("How many ways are there to paint a fence with 3 colours, if each board has one?"),
            None
        );
        let strict = Index::new(ContaminationOptions { threshold: 1.1, ..index.options });
        assert_eq!(strict.find("x", TEXT), None);
    }

    /// What is known of two published sets.
    #[test]
    fn real_sets_overlap() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
        let (rows, evaluation) = (folder.join("dapo_2k.jsonl"), folder.join("math_train.jsonl"));
        if !rows.exists() {
            eprintln!("SKIPPED real_sets_overlap: {} is not there", rows.display());
            return;
        }
        let mut index = Index::new(ContaminationOptions::default());
        index.add_file(&evaluation).unwrap();
        let report = contamination(&rows, &index).unwrap();
        assert_eq!((report.rows, report.exact), (2000, 289));
        assert!(report.near > 0 && report.contaminated == report.exact + report.near, "{}", report.near);
        eprintln!("{} near matches", report.near);
    }
}
