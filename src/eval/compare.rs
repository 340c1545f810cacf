//! Two evaluations on the same problems, compared problem by problem.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::benchmark::{Evaluation, RESAMPLES};
use super::paired::sign_flip_test;
use super::row::ProblemResult;
use super::stats::{Interval, bootstrap_interval, mean};

/// How a figure of B differs from that of A. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The figure, such as `mean_at_k`.
    pub figure: String,
    /// Its mean in A.
    pub a: f64,
    /// Its mean in B.
    pub b: f64,
    /// B - A.
    pub difference: f64,
    /// The 95 % interval of the difference: paired bootstrap over problems.
    pub interval: Option<Interval>,
    /// The difference as a part of A; `None` where that is zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    /// Of the sign-flip permutation test, two-sided.
    pub p_value: f64,
    /// Problems on which the figure is higher in B.
    pub higher: usize,
    /// Problems on which it is lower in B.
    pub lower: usize,
}

/// Two evaluations on the problems that both have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Problems in both.
    pub problems: usize,
    /// Problems in A alone.
    pub only_a: usize,
    /// Problems in B alone.
    pub only_b: usize,
    /// The k of pass@k: the samples of the evaluation that has fewer.
    pub k: usize,
    /// `mean_at_k`, `pass_at_k`, `maj_at_k`, `total_tokens`, `critical_path_tokens`.
    pub differences: Vec<Difference>,
}

impl Comparison {
    /// A difference by the name of its figure.
    pub fn get(&self, figure: &str) -> Option<&Difference> {
        self.differences.iter().find(|difference| difference.figure == figure)
    }
}

/// Why two evaluations can't be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// One of them keeps no results by problem.
    #[error("{which} has no results by problem (`rows`)")]
    NoRows {
        /// "the first" or "the second".
        which: &'static str,
    },
    /// No problem is in both.
    #[error("no problem is in both; the first has {a:?}, the second {b:?}")]
    NothingInCommon {
        /// A problem of the first.
        a: String,
        /// A problem of the second.
        b: String,
    },
    /// The same id stands for different problems.
    #[error("problem {id:?} differs between the two: its text or its gold answer has changed")]
    Changed {
        /// The problem.
        id: String,
    },
}

/// Compares B with A. The same seed gives the same intervals and p-values.
pub fn compare(a: &Evaluation, b: &Evaluation, seed: u64) -> Result<Comparison, CompareError> {
    for (evaluation, which) in [(a, "the first"), (b, "the second")] {
        if evaluation.rows.is_empty() {
            return Err(CompareError::NoRows { which });
        }
    }
    let pairs = pairs(&a.rows, &b.rows)?;
    if pairs.is_empty() {
        let (a, b) = (a.rows[0].id.clone(), b.rows[0].id.clone());
        return Err(CompareError::NothingInCommon { a, b });
    }
    let samples = pairs.iter().map(|(a, b)| a.samples.min(b.samples));
    let k = samples.min().unwrap_or(1);
    type Figure<'a> = &'a dyn Fn(&ProblemResult) -> f64;
    let figures: [(&str, Figure); 5] = [
        ("mean_at_k", &ProblemResult::mean_at_k),
        ("pass_at_k", &|row| row.pass_at(k).unwrap_or(0.0)),
        ("maj_at_k", &|row| row.majority),
        ("total_tokens", &|row| row.total_tokens),
        ("critical_path_tokens", &|row| row.critical_path_tokens),
    ];
    let differences = figures.into_iter().map(|(name, figure)| {
        let values: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (figure(a), figure(b))).collect();
        difference(name, &values, seed)
    });
    Ok(Comparison {
        problems: pairs.len(),
        only_a: a.rows.len() - pairs.len(),
        only_b: b.rows.len() - pairs.len(),
        k,
        differences: differences.collect(),
    })
}

/// The problems that both have, in the order of A. Where an id occurs several times, the first meets the first.
fn pairs<'a>(
    a: &'a [ProblemResult],
    b: &'a [ProblemResult],
) -> Result<Vec<(&'a ProblemResult, &'a ProblemResult)>, CompareError> {
    let mut waiting: HashMap<&str, Vec<&ProblemResult>> = HashMap::new();
    for row in b.iter().rev() {
        waiting.entry(&row.id).or_default().push(row);
    }
    let mut pairs = Vec::new();
    for row in a {
        let Some(other) = waiting.get_mut(row.id.as_str()).and_then(Vec::pop) else { continue };
        if other.fingerprint != row.fingerprint {
            return Err(CompareError::Changed { id: row.id.clone() });
        }
        pairs.push((row, other));
    }
    Ok(pairs)
}

/// `values` has a figure in A and in B for each problem, at least one.
fn difference(figure: &str, values: &[(f64, f64)], seed: u64) -> Difference {
    let average =
        |of: fn(&(f64, f64)) -> f64| mean(&values.iter().map(of).collect::<Vec<_>>()).unwrap_or(0.0);
    let (a, b) = (average(|pair| pair.0), average(|pair| pair.1));
    let differences: Vec<f64> = values.iter().map(|(a, b)| b - a).collect();
    Difference {
        figure: figure.into(),
        a,
        b,
        difference: b - a,
        interval: bootstrap_interval(&differences, 0.95, RESAMPLES, seed),
        relative: (a != 0.0).then(|| (b - a) / a),
        p_value: sign_flip_test(&differences, seed).unwrap_or(1.0),
        higher: differences.iter().filter(|d| **d > 0.0).count(),
        lower: differences.iter().filter(|d| **d < 0.0).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, right: usize, tokens: f64) -> ProblemResult {
        ProblemResult {
            id: id.into(),
            fingerprint: format!("of {id}"),
            level: None,
            samples: 4,
            right,
            majority: f64::from(right > 2),
            total_tokens: tokens,
            critical_path_tokens: tokens / 2.0,
        }
    }

    fn evaluation(rows: Vec<ProblemResult>) -> Evaluation {
        let empty = serde_json::json!({
            "problems": rows.len(), "skipped": 0, "samples": 4, "mean_at_k": 0.0, "interval": null, "pass_at_k": 0.0,
            "maj_at_k": 0.0,
        });
        Evaluation { rows, ..serde_json::from_value(empty).unwrap() }
    }

    #[test]
    fn problems_are_paired_by_id() {
        let a =
            evaluation(vec![row("p", 1, 10.0), row("q", 2, 10.0), row("r", 0, 10.0), row("only", 4, 10.0)]);
        let b = evaluation(vec![row("r", 0, 20.0), row("q", 4, 20.0), row("p", 3, 20.0)]);
        let comparison = compare(&a, &b, 0).unwrap();
        assert_eq!((comparison.problems, comparison.only_a, comparison.only_b), (3, 1, 0));
        let accuracy = comparison.get("mean_at_k").unwrap();
        assert_eq!((accuracy.a, accuracy.b), (0.25, 7.0 / 12.0));
        assert!((accuracy.difference - 1.0 / 3.0).abs() < 1e-12);
        assert!((accuracy.relative.unwrap() - 4.0 / 3.0).abs() < 1e-12);
        assert_eq!((accuracy.higher, accuracy.lower), (2, 0));
        // Differences 1/2, 1/2, 0: of four signs two are as far.
        assert_eq!(accuracy.p_value, 0.5);
        let interval = accuracy.interval.unwrap();
        assert_eq!((interval.low, interval.high), (0.0, 0.5));
        let tokens = comparison.get("total_tokens").unwrap();
        assert_eq!((tokens.difference, tokens.p_value, tokens.interval.unwrap().low), (10.0, 0.25, 10.0));
        assert_eq!(comparison.get("maj_at_k").unwrap().b, 2.0 / 3.0);
    }

    #[test]
    fn an_id_that_occurs_twice_meets_its_like() {
        let a = evaluation(vec![row("p", 1, 1.0), row("p", 2, 1.0)]);
        let b = evaluation(vec![row("p", 1, 1.0), row("p", 2, 1.0), row("p", 4, 1.0)]);
        let comparison = compare(&a, &b, 0).unwrap();
        assert_eq!((comparison.problems, comparison.only_b), (2, 1));
        assert_eq!(comparison.get("mean_at_k").unwrap().difference, 0.0);
    }

    #[test]
    fn what_cannot_be_compared_is_named() {
        let (none, some) = (evaluation(vec![]), evaluation(vec![row("p", 1, 1.0)]));
        assert_eq!(compare(&some, &none, 0), Err(CompareError::NoRows { which: "the second" }));
        let other = evaluation(vec![row("q", 1, 1.0)]);
        let error = compare(&some, &other, 0).unwrap_err().to_string();
        assert_eq!(error, "no problem is in both; the first has \"p\", the second \"q\"");
        let changed = evaluation(vec![ProblemResult { fingerprint: "new".into(), ..row("p", 1, 1.0) }]);
        assert_eq!(compare(&some, &changed, 0), Err(CompareError::Changed { id: "p".into() }));
    }
}
