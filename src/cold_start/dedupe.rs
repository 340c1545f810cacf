//! Rows that are there twice: exact copies, and near ones by MinHash with banding.
//!
//! A row is compared with the rows that were kept before it, so the first of a kind stays. What is remembered of a row
//! is a key, a signature and its places in the bands, whatever its length.

use std::collections::HashMap;
use std::path::Path;

use hashbrown::HashTable;
use serde::{Deserialize, Serialize};

use super::likeness::{Signature, VALUES, collapsed, hash, mixed64, numbers, signature, similarity};
use super::stream::in_order;
use crate::data::{Demonstration, Result, Row, Rows, asked, demonstration};

/// Bands of a signature: two texts meet where all values of a band are equal, so with probability
/// 1 - (1 - s^4)^16, which is 0.99 for a similarity s of 0.7.
const BANDS: usize = 16;
const BAND: usize = VALUES / BANDS;
/// Rows that may share a band's values; more say that the values are those of a phrase that all rows have.
const CROWD: usize = 16;
/// Copies that a report shows.
const EXAMPLES: usize = 10;

/// Which text makes two rows the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The problem: one row for each.
    Problem,
    /// The response.
    Response,
    /// Problem and response: several different responses to a problem stay.
    Both,
}

/// How alike rows have to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DedupeOptions {
    /// What is compared.
    pub basis: Basis,
    /// The least estimated share of common shingles (three words) of near copies; above 1 only exact copies count.
    /// Near copies have the same numbers.
    pub threshold: f64,
}

impl Default for DedupeOptions {
    fn default() -> Self {
        Self { basis: Basis::Both, threshold: 0.8 }
    }
}

/// What is compared of a text.
pub struct Fingerprint {
    exact: u128,
    numbers: u32,
    signature: Signature,
}

impl Fingerprint {
    /// Of a text.
    pub fn of(text: &str) -> Self {
        let collapsed = collapsed(text);
        let half = |seed| u128::from(hash(seed, collapsed.as_bytes()));
        Self {
            exact: half(3) << 64 | half(4),
            numbers: numbers(&collapsed),
            signature: signature(&collapsed),
        }
    }
}

/// A copy of a row that was kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copy {
    /// The row that it is a copy of, by its number among those added, from 0.
    pub of: u32,
    /// The estimated share of common shingles; `None` for an exact copy.
    pub similarity: Option<f64>,
}

/// Finds copies among rows that are added one after the other.
pub struct Deduper {
    threshold: f64,
    added: u32,
    exact: HashMap<u128, u32>,
    kept: Vec<Kept>,
    /// For each kept row and each of its bands `index * BANDS + band`, found by the band's values.
    bands: HashTable<u32>,
}

struct Kept {
    row: u32,
    numbers: u32,
    signature: Signature,
}

impl Deduper {
    /// With no rows yet.
    pub fn new(threshold: f64) -> Self {
        Self { threshold, added: 0, exact: HashMap::new(), kept: Vec::new(), bands: HashTable::new() }
    }

    /// Adds a row; says which earlier one it is a copy of.
    pub fn add(&mut self, text: &Fingerprint) -> Option<Copy> {
        let row = self.added;
        self.added += 1;
        if let Some(&of) = self.exact.get(&text.exact) {
            return Some(Copy { of, similarity: None });
        }
        self.exact.insert(text.exact, row);
        if self.threshold > 1.0 {
            return None;
        }
        if let Some(near) = self.near(text) {
            return Some(near);
        }
        self.keep(row, text);
        None
    }

    fn near(&self, text: &Fingerprint) -> Option<Copy> {
        let candidates = (0..BANDS).flat_map(|band| self.meeting(band, &text.signature));
        let copies = candidates.filter_map(|kept| {
            let similarity = similarity(&kept.signature, &text.signature);
            let copy = kept.numbers == text.numbers && similarity >= self.threshold;
            copy.then_some(Copy { of: kept.row, similarity: Some(similarity) })
        });
        copies.min_by_key(|copy| copy.of)
    }

    /// The kept rows with this band's values.
    fn meeting<'a>(&'a self, band: usize, signature: &'a Signature) -> impl Iterator<Item = &'a Kept> {
        let entries = self
            .bands
            .iter_hash(band_hash(band, signature))
            .filter(move |entry| **entry as usize % BANDS == band);
        let kept = entries.map(|&entry| &self.kept[entry as usize / BANDS]);
        kept.filter(move |kept| values(band, &kept.signature) == values(band, signature))
    }

    fn keep(&mut self, row: u32, text: &Fingerprint) {
        let index = self.kept.len();
        self.kept.push(Kept { row, numbers: text.numbers, signature: text.signature });
        for band in 0..BANDS {
            if self.meeting(band, &text.signature).take(CROWD).count() < CROWD {
                let kept = &self.kept;
                let hash_of = |entry: &u32| {
                    let (index, band) = (*entry as usize / BANDS, *entry as usize % BANDS);
                    band_hash(band, &kept[index].signature)
                };
                let entry = (index * BANDS + band) as u32;
                self.bands.insert_unique(band_hash(band, &text.signature), entry, hash_of);
            }
        }
    }
}

fn values(band: usize, signature: &Signature) -> &[u16] {
    &signature[band * BAND..][..BAND]
}

fn band_hash(band: usize, signature: &Signature) -> u64 {
    let together =
        values(band, signature).iter().fold(band as u64, |all, &value| all << 16 ^ u64::from(value));
    mixed64(together)
}

/// What deduplication says of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DedupeReport {
    /// How many rows there are.
    pub rows: usize,
    /// How many stay.
    pub kept: usize,
    /// How many are exact copies.
    pub exact: usize,
    /// How many are near copies.
    pub near: usize,
    /// The first copies, with the row that each is a copy of.
    pub examples: Vec<Example>,
    /// The numbers of the rows to leave out, from 0, in order.
    #[serde(skip)]
    pub dropped: Vec<u32>,
}

/// A copy, by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Example {
    /// The copy.
    pub id: String,
    /// The row it is a copy of, by its number in the file, from 1.
    pub of_row: u32,
    /// The estimated share of common shingles; absent for an exact copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
}

/// Finds the copies in a file. Memory grows with its rows by about 400 bytes each, not with their length.
pub fn dedupe(path: &Path, response_field: Option<&str>, options: DedupeOptions) -> Result<DedupeReport> {
    let fingerprint = |row: Row| {
        let (id, text) = text(&row, response_field, options.basis)?;
        Ok((id, Fingerprint::of(&text)))
    };
    let (mut deduper, mut report) = (Deduper::new(options.threshold), DedupeReport::default());
    in_order(Rows::open(path)?, fingerprint, |(id, fingerprint)| {
        let row = report.rows as u32;
        report.rows += 1;
        let Some(copy) = deduper.add(&fingerprint) else {
            report.kept += 1;
            return;
        };
        report.dropped.push(row);
        *(if copy.similarity.is_some() { &mut report.near } else { &mut report.exact }) += 1;
        if report.examples.len() < EXAMPLES {
            report.examples.push(Example { id, of_row: copy.of + 1, similarity: copy.similarity });
        }
    })?;
    Ok(report)
}

/// The id of a row, and the text that makes two rows the same.
fn text(row: &Row, response_field: Option<&str>, basis: Basis) -> Result<(String, String)> {
    if basis == Basis::Problem {
        let problem = asked(row)?;
        return Ok((problem.id, problem.problem));
    }
    let Demonstration { problem, response, .. } = demonstration(row, response_field)?;
    let text = if basis == Basis::Response { response } else { format!("{}\n{response}", problem.problem) };
    Ok((problem.id, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(threshold: f64, texts: &[&str]) -> Vec<Option<(u32, bool)>> {
        let mut deduper = Deduper::new(threshold);
        let mut add = |text: &&str| deduper.add(&Fingerprint::of(text));
        texts.iter().map(|text| add(text).map(|copy| (copy.of, copy.similarity.is_some()))).collect()
    }

    const TEXT: &str = "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May. \
        How many clips did Natalia sell altogether in April and May? Give the number of clips alone.";

    #[test]
    fn exact_and_near_copies_are_found_and_other_numbers_are_no_copies() {
        let spaced = TEXT.replace(' ', "\n ");
        let upper = TEXT.to_uppercase();
        let near = TEXT.replace("altogether", "in all");
        let number = TEXT.replace("48", "84");
        let texts = ["Another text with a few words in it.", TEXT, &spaced, &upper, &near, &number];
        let expected = [None, None, Some((1, false)), Some((1, false)), Some((1, true)), None];
        assert_eq!(copies(0.7, &texts), expected);
        let exact_alone = [None, None, Some((1, false)), Some((1, false)), None, None];
        assert_eq!(copies(2.0, &texts), exact_alone);
    }

    /// Every text shares its beginning with all others, so bands fill up; copies are found all the same.
    #[test]
    fn many_rows_with_one_beginning() {
        let text = |i: usize| {
            let word = |j: usize| format!("w{}", (i * 31 + j * 17) % 1009);
            let words: Vec<String> = (0..40).map(word).collect();
            format!("Solve the following problem step by step and explain it well. {}", words.join(" x "))
        };
        let mut texts: Vec<String> = (0..300).map(text).collect();
        texts.extend((0..300).map(|i| text(i) + " please"));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let found = copies(0.8, &texts);
        assert!(found[..300].iter().all(Option::is_none));
        for (i, copy) in found[300..].iter().enumerate() {
            assert_eq!(*copy, Some((i as u32, true)));
        }
    }

    #[test]
    fn the_basis_decides_which_rows_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let row = |problem: &str, response: &str| {
            format!("{{\"problem\": {problem:?}, \"response\": {response:?}}}\n")
        };
        std::fs::write(&path, row("a?", "b") + &row("a?", "c") + &row("d?", "b") + &row("a?", "b")).unwrap();
        let dropped = |basis| dedupe(&path, None, DedupeOptions { basis, threshold: 2.0 }).unwrap().dropped;
        assert_eq!(dropped(Basis::Problem), [1, 3]);
        assert_eq!(dropped(Basis::Response), [2, 3]);
        assert_eq!(dropped(Basis::Both), [3]);
    }
}
