//! Parts of a set, by the hash of the problem: all rows of a problem are on one side, whatever their order.

use std::path::{Path, PathBuf};

use super::likeness::{hash, squashed};
use crate::data::{Result, Rows, asked, write_rows};

/// One part.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The file to write.
    pub path: PathBuf,
    /// Its share of the problems; shares are taken in proportion to their sum.
    pub share: f64,
}

/// Which part a problem belongs to. A problem moves only if the shares before it change.
pub fn part_of(problem: &str, seed: u64, shares: &[f64]) -> usize {
    let total: f64 = shares.iter().sum();
    let point = hash(seed, squashed(problem).as_bytes()) as f64 / (u64::MAX as f64) * total;
    let ends = shares.iter().scan(0.0, |end, share| {
        *end += share;
        Some(*end)
    });
    ends.take_while(|&end| end <= point).count().min(shares.len().saturating_sub(1))
}

/// Writes the parts; gives the number of rows of each.
pub fn split(from: &Path, parts: &[Part], seed: u64) -> Result<Vec<usize>> {
    let shares: Vec<f64> = parts.iter().map(|part| part.share).collect();
    let write = |(own, part): (usize, &Part)| {
        write_rows(&part.path, || {
            let shares = shares.clone();
            Ok(Rows::open(from)?.filter_map(move |row| {
                let place = row.and_then(|row| Ok((part_of(&asked(&row)?.problem, seed, &shares), row)));
                match place {
                    Ok((part, row)) => (part == own).then_some(Ok(row.fields)),
                    Err(error) => Some(Err(error)),
                }
            }))
        })
    };
    parts.iter().enumerate().map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_on_one_side_and_sides_have_their_shares() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let row = |i: usize| format!("{{\"problem\": \"What is {} + 1?\", \"n\": {i}}}\n", i % 1000);
        std::fs::write(path("all.jsonl"), (0..2000).map(row).collect::<String>()).unwrap();
        let part = |name, share| Part { path: path(name), share };
        let parts = [part("train.jsonl", 8.0), part("test.jsonl", 2.0)];
        let counts = split(&path("all.jsonl"), &parts, 7).unwrap();
        assert_eq!(counts.iter().sum::<usize>(), 2000);
        assert!((340..460).contains(&counts[1]), "{counts:?}");
        let problems = |name| {
            let rows = Rows::open(&path(name)).unwrap();
            rows.map(|row| asked(&row.unwrap()).unwrap().problem).collect::<std::collections::BTreeSet<_>>()
        };
        let (train, test) = (problems("train.jsonl"), problems("test.jsonl"));
        assert_eq!((train.len() + test.len(), train.intersection(&test).count()), (1000, 0));
    }

    #[test]
    fn another_seed_splits_otherwise_and_spelling_does_not_matter() {
        let parts =
            |seed| (0..64).map(|i| part_of(&format!("Problem {i}"), seed, &[1.0, 1.0])).collect::<Vec<_>>();
        assert_eq!(parts(1), parts(1));
        assert_ne!(parts(1), parts(2));
        assert_eq!(
            part_of("What  is $1$?", 1, &[1.0, 1.0, 1.0]),
            part_of("what is 1 ?", 1, &[1.0, 1.0, 1.0])
        );
        assert_eq!((part_of("x", 1, &[0.0, 1.0]), part_of("x", 1, &[1.0, 0.0])), (1, 0));
    }
}
