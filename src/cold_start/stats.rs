//! What demonstrations are made of: blocks, paths, tokens by part, how much is inside blocks, and where they begin.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::stream::in_order;
use crate::data::{Result, Rows, demonstration};
use crate::prompt::tags::outline;
use crate::reward::words;

/// Numbers as they came, by value; grows with the different values alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    counts: BTreeMap<usize, usize>,
    len: usize,
    sum: usize,
}

impl Distribution {
    /// Takes a number.
    pub fn add(&mut self, value: usize) {
        *self.counts.entry(value).or_default() += 1;
        self.len += 1;
        self.sum += value;
    }

    /// How often each number came.
    pub fn counts(&self) -> &BTreeMap<usize, usize> {
        &self.counts
    }

    /// How many numbers came.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none came.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them together.
    pub fn sum(&self) -> usize {
        self.sum
    }

    /// Their mean; 0 of none.
    pub fn mean(&self) -> f64 {
        if self.len == 0 { 0.0 } else { self.sum as f64 / self.len as f64 }
    }

    /// The least number that at least this share of them doesn't exceed; 0 of none.
    pub fn quantile(&self, share: f64) -> usize {
        let mut left = (share * self.len as f64).ceil().max(1.0) as usize;
        for (&value, &count) in &self.counts {
            if left <= count {
                return value;
            }
            left -= count;
        }
        0
    }

    /// How many numbers are in each of `bins` ranges of one width from 0, and that width. The last range takes the rest.
    pub fn histogram(&self, bins: usize, width: usize) -> Vec<usize> {
        let mut histogram = vec![0; bins];
        for (&value, &count) in &self.counts {
            histogram[(value / width.max(1)).min(bins - 1)] += count;
        }
        histogram
    }
}

/// A distribution in six numbers.
#[derive(Serialize)]
struct Described {
    mean: f64,
    min: usize,
    p10: usize,
    median: usize,
    p90: usize,
    max: usize,
}

impl Serialize for Distribution {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let at = |share| self.quantile(share);
        let described = Described {
            mean: self.mean(),
            min: at(0.0),
            p10: at(0.1),
            median: at(0.5),
            p90: at(0.9),
            max: at(1.0),
        };
        described.serialize(serializer)
    }
}

/// What a set of demonstrations is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// How many rows there are.
    pub rows: usize,
    /// How many have a block.
    pub with_block: usize,
    /// How many rows have so many blocks.
    pub blocks_per_response: BTreeMap<usize, usize>,
    /// How many blocks have so many paths.
    pub paths_per_block: BTreeMap<usize, usize>,
    /// Tokens of a response, tags not counted.
    pub tokens: Distribution,
    /// Tokens of a response outside blocks.
    pub trunk_tokens: Distribution,
    /// Tokens of a path.
    pub path_tokens: Distribution,
    /// Tokens of a summary.
    pub summary_tokens: Distribution,
    /// Tokens on the critical path of a response: of each block the longest path.
    pub critical_tokens: Distribution,
    /// Of the responses with a block, how many thousandths of the tokens are in paths and summaries.
    pub inside_permille: Distribution,
    /// Of the responses with a block, how many thousandths of the tokens stand before the first.
    pub first_block_permille: Distribution,
}

/// What one response is made of.
struct Parts {
    trunk: usize,
    paths: Vec<Vec<usize>>,
    summaries: Vec<usize>,
    before: Option<usize>,
}

/// Measures a file. `tokens` counts those of a text; without a tokenizer, [`rough_tokens`] does.
pub fn stats(
    path: &Path,
    response_field: Option<&str>,
    tokens: impl Fn(&str) -> usize + Sync,
) -> Result<Stats> {
    let mut stats = Stats::default();
    let measure = |row| {
        let response = demonstration(&row, response_field)?.response;
        Ok(parts(&response, &tokens))
    };
    in_order(Rows::open(path)?, measure, |parts| stats.add(&parts))?;
    Ok(stats)
}

/// Words, numbers and signs: about what a tokenizer for English and mathematics makes of a text.
pub fn rough_tokens(text: &str) -> usize {
    words(text).count()
}

/// Counts a text's parts. A nested block counts as text of the path that it is in.
fn parts(text: &str, tokens: impl Fn(&str) -> usize) -> Parts {
    let outline = outline(text);
    let outer: Vec<_> = outline.blocks.iter().filter(|block| block.nesting == 1).collect();
    let (mut trunk, mut done) = (0, 0);
    for block in &outer {
        trunk += tokens(&text[done..block.range.start]);
        done = block.range.end;
    }
    trunk += tokens(&text[done..]);
    let of = |range: &std::ops::Range<usize>| tokens(&text[range.clone()]);
    Parts {
        trunk,
        paths: outer.iter().map(|block| block.paths.iter().map(of).collect()).collect(),
        summaries: outer.iter().filter_map(|block| block.summary.as_ref()).map(of).collect(),
        before: outer.first().map(|block| tokens(&text[..block.range.start])),
    }
}

impl Stats {
    fn add(&mut self, parts: &Parts) {
        let Parts { trunk, paths, summaries, before } = parts;
        self.rows += 1;
        self.with_block += usize::from(!paths.is_empty());
        *self.blocks_per_response.entry(paths.len()).or_default() += 1;
        for block in paths {
            *self.paths_per_block.entry(block.len()).or_default() += 1;
            block.iter().for_each(|&tokens| self.path_tokens.add(tokens));
        }
        summaries.iter().for_each(|&tokens| self.summary_tokens.add(tokens));
        let summed: usize = summaries.iter().sum();
        let inside = paths.iter().flatten().sum::<usize>() + summed;
        let longest: usize = paths.iter().map(|block| block.iter().max().copied().unwrap_or(0)).sum();
        self.tokens.add(trunk + inside);
        self.trunk_tokens.add(*trunk);
        self.critical_tokens.add(trunk + summed + longest);
        if let Some(before) = before {
            let all = (trunk + inside).max(1);
            self.inside_permille.add(1000 * inside / all);
            self.first_block_permille.add(1000 * before / all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_response_are_counted() {
        let text = "a b <Parallel><Path>c d e</Path><Path>f</Path></Parallel>\n<Summary>g h</Summary> i j k.";
        let mut stats = Stats::default();
        stats.add(&parts(text, rough_tokens));
        stats.add(&parts("x y", rough_tokens));
        assert_eq!((stats.rows, stats.with_block), (2, 1));
        assert_eq!(stats.blocks_per_response, [(0, 1), (1, 1)].into());
        assert_eq!(stats.paths_per_block, [(2, 1)].into());
        assert_eq!(stats.tokens.counts(), &[(2, 1), (12, 1)].into());
        assert_eq!(stats.trunk_tokens.counts(), &[(2, 1), (6, 1)].into());
        assert_eq!(stats.path_tokens.counts(), &[(1, 1), (3, 1)].into());
        assert_eq!(stats.critical_tokens.counts(), &[(2, 1), (11, 1)].into());
        assert_eq!((stats.inside_permille.sum(), stats.first_block_permille.sum()), (500, 166));
        let json = serde_json::to_value(&stats).unwrap();
        assert_eq!(json["tokens"]["mean"], 7.0);
    }

    #[test]
    fn quantiles_by_hand() {
        let mut numbers = Distribution::default();
        assert!(numbers.is_empty() && numbers.quantile(0.5) == 0);
        [5, 1, 3, 3, 9].into_iter().for_each(|number| numbers.add(number));
        assert_eq!([0.0, 0.2, 0.21, 0.5, 0.9, 1.0].map(|share| numbers.quantile(share)), [1, 1, 3, 3, 9, 9]);
        assert_eq!((numbers.len(), numbers.mean()), (5, 4.2));
        assert_eq!(numbers.histogram(3, 2), [1, 2, 2]);
    }
}
