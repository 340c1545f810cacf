//! Rows through work on all cores and out in their order, a bounded number at a time.

use std::path::Path;

use rayon::prelude::*;

use crate::data::{Result, Rows, write_rows};

/// As many rows are in memory at once.
const CHUNK: usize = 1_024;

/// Gives each row to `work`, on any core, and the results to `take`, in the order of the rows. Stops at the first error.
pub(super) fn in_order<T: Send, R: Send>(
    mut rows: impl Iterator<Item = Result<T>>,
    work: impl Fn(T) -> Result<R> + Sync,
    mut take: impl FnMut(R),
) -> Result<()> {
    loop {
        let chunk = rows.by_ref().take(CHUNK).collect::<Result<Vec<T>>>()?;
        if chunk.is_empty() {
            return Ok(());
        }
        let done: Vec<Result<R>> = chunk.into_par_iter().map(&work).collect();
        for result in done {
            take(result?);
        }
    }
}

/// Writes the rows of a file without some: `dropped` are their numbers from 0, in order. Gives how many stay.
pub fn write_without(from: &Path, to: &Path, dropped: &[u32]) -> Result<usize> {
    write_rows(to, || {
        let rows = (0u32..).zip(Rows::open(from)?);
        Ok(rows
            .filter(|(number, row)| row.is_err() || dropped.binary_search(number).is_err())
            .map(|(_, row)| Ok(row?.fields)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_the_first_error_ends_it() {
        let mut taken = Vec::new();
        in_order((0..3000).map(Ok), |n: usize| Ok(2 * n), |n| taken.push(n)).unwrap();
        assert_eq!(taken, (0..3000).map(|n| 2 * n).collect::<Vec<_>>());
        let absent = |n: usize| Rows::open(Path::new(&format!("{n}.jsonl"))).err().unwrap();
        let fail = |n: usize| if n >= 1500 { Err(absent(n)) } else { Ok(n) };
        let mut taken = 0;
        let error = in_order((0..3000).map(Ok), fail, |_| taken += 1).unwrap_err();
        assert_eq!((error.to_string().as_str(), taken), ("1500.jsonl: cannot be opened", 1500));
    }

    #[test]
    fn rows_are_left_out_by_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("a.jsonl"), "{\"n\":0}\n\n{\"n\":1}\n{\"n\":2}\n").unwrap();
        assert_eq!(write_without(&path("a.jsonl"), &path("b.jsonl"), &[0, 2]).unwrap(), 1);
        assert_eq!(std::fs::read_to_string(path("b.jsonl")).unwrap(), "{\"n\":1}\n");
    }
}
