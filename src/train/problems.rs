//! Problems to learn from. Which ones a step takes depends on the seed, the step and the tier that has been reached.

use std::cmp::Ordering;
use std::path::Path;

use super::Result;
use super::demonstrations::epoch_indices;
use super::recipe::{ProblemData, Progression, TierData};
use crate::data::arithmetic::ArithmeticSource;
use crate::data::countdown::CountdownSource;
use crate::data::{DataError, Problem, Split, load_problems};

/// The problems of a stage, by tier.
pub struct Problems {
    sources: Vec<Source>,
    /// What each tier's share of a step is where all are mixed.
    shares: Vec<f64>,
    /// Tokens of a response to problems of each tier, at most, where a tier says so.
    max_response_tokens: Vec<Option<usize>>,
    /// Whether there is a present tier, and how much the easier ones keep.
    progression: Option<Progression>,
}

/// Where problems come from.
enum Source {
    /// Countdown tasks of the training split, drawn anew for each step.
    Countdown(CountdownSource),
    /// Long arithmetic likewise.
    Arithmetic(ArithmeticSource),
    /// Rows of a file, shuffled once an epoch.
    Rows(Vec<Problem>),
}

/// A problem and the tier that it was drawn from.
pub struct Drawn {
    /// The tier, counted from 0.
    pub tier: usize,
    /// The problem.
    pub problem: Problem,
}

impl Problems {
    /// Opens the data of a stage (checked by [`Recipe::parse`](super::recipe::Recipe::parse)).
    pub fn open(data: &ProblemData) -> Result<Self> {
        let mut sources = data.tiers.iter().map(Source::open).collect::<Result<Vec<_>>>()?;
        if let Some(file) = &data.file {
            sources.push(rows(file, &data.levels, data.limit)?);
        }
        // A mixture of tiers is one stream with its own weights.
        if data.progression.is_none() {
            sources.extend(data.countdown.iter().cloned().map(Source::Countdown));
            sources.extend(data.arithmetic.iter().cloned().map(Source::Arithmetic));
        } else {
            sources.extend(data.countdown.iter().flat_map(|source| source.each()).map(Source::Countdown));
            sources.extend(data.arithmetic.iter().flat_map(|source| source.each()).map(Source::Arithmetic));
        }
        let shares = match data.tiers.as_slice() {
            [] => vec![1.0; sources.len()],
            tiers => tiers.iter().map(|tier| f64::from(tier.share)).collect(),
        };
        let mut max_response_tokens: Vec<_> =
            data.tiers.iter().map(|tier| tier.max_response_tokens).collect();
        max_response_tokens.resize(sources.len(), None);
        Ok(Self { sources, shares, max_response_tokens, progression: data.progression.clone() })
    }

    /// Number of tiers.
    pub fn tiers(&self) -> usize {
        self.sources.len()
    }

    /// Tokens of a response to problems of a tier, at most; `None` where the stage decides.
    pub fn max_response_tokens(&self, tier: usize) -> Option<usize> {
        self.max_response_tokens[tier]
    }

    /// When the next tier begins, where tiers follow one another.
    pub fn progression(&self) -> Option<&Progression> {
        self.progression.as_ref()
    }

    /// Number of rows; generated tasks are without number, so they count none.
    pub fn count(&self) -> usize {
        let rows = |source: &Source| match source {
            Source::Countdown(_) | Source::Arithmetic(_) => 0,
            Source::Rows(rows) => rows.len(),
        };
        self.sources.iter().map(rows).sum()
    }

    /// The `n` problems of a draw; a step's first draw and its resampling rounds have numbers of their own. `tier` is
    /// the present one of a progression.
    pub fn draw(&self, seed: u64, number: usize, n: usize, tier: usize) -> Result<Vec<Drawn>> {
        let mut drawn = Vec::with_capacity(n);
        for (tier, (source, count)) in self.sources.iter().zip(self.counts(n, tier)).enumerate() {
            // An odd multiplier keeps the streams of the tiers apart; the first has the seed itself.
            let seed = seed.wrapping_add((tier as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93));
            let problems = source.draw(seed, number, count)?;
            drawn.extend(problems.into_iter().map(|problem| Drawn { tier, problem }));
        }
        Ok(drawn)
    }

    /// How many of `n` problems each tier gives.
    fn counts(&self, n: usize, tier: usize) -> Vec<usize> {
        let Some(progression) = &self.progression else { return apportion(n, &self.shares) };
        let share = |other: usize| match other.cmp(&tier) {
            Ordering::Less => progression.keep / tier as f64,
            Ordering::Equal if tier == 0 => 1.0,
            Ordering::Equal => 1.0 - progression.keep,
            Ordering::Greater => 0.0,
        };
        apportion(n, &(0..self.sources.len()).map(share).collect::<Vec<_>>())
    }
}

impl Source {
    fn open(tier: &TierData) -> Result<Self> {
        let countdown = tier.countdown.clone().map(Self::Countdown);
        let generated = countdown.or_else(|| tier.arithmetic.clone().map(Self::Arithmetic));
        let of_file = || rows(tier.file.as_deref().unwrap_or(Path::new("")), &tier.levels, tier.limit);
        generated.map_or_else(of_file, Ok)
    }

    fn draw(&self, seed: u64, number: usize, n: usize) -> Result<Vec<Problem>> {
        match self {
            Self::Countdown(source) => {
                Ok(source.problems(Split::Train, seed.wrapping_add(number as u64), n)?)
            }
            Self::Arithmetic(source) => {
                Ok(source.problems(Split::Train, seed.wrapping_add(number as u64), n)?)
            }
            Self::Rows(rows) => {
                Ok(epoch_indices(rows.len(), seed, number * n, n).map(|i| rows[i].clone()).collect())
            }
        }
    }
}

/// The rows of some levels of a file, all of them if none is named.
fn rows(file: &Path, levels: &[String], limit: Option<usize>) -> Result<Source> {
    let mut rows = load_problems(file)?;
    rows.retain(|row| levels.is_empty() || row.level.as_ref().is_some_and(|level| levels.contains(level)));
    if rows.is_empty() {
        let got = match levels {
            [] => format!("none in {}", file.display()),
            levels => format!("none of {} in {}", levels.join(", "), file.display()),
        };
        return Err(DataError::Setting { field: "levels", expected: "levels that rows have", got }.into());
    }
    rows.truncate(limit.unwrap_or(usize::MAX));
    Ok(Source::Rows(rows))
}

/// `n` as whole numbers in proportion to the shares: rounded down, what is left to the largest remainders.
pub(super) fn apportion(n: usize, shares: &[f64]) -> Vec<usize> {
    let total: f64 = shares.iter().sum();
    let exact: Vec<f64> = shares.iter().map(|share| n as f64 * share / total).collect();
    let mut counts: Vec<usize> = exact.iter().map(|count| count.floor() as usize).collect();
    let mut by_remainder: Vec<usize> = (0..shares.len()).collect();
    by_remainder.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let left = n - counts.iter().sum::<usize>();
    by_remainder.into_iter().cycle().take(left).for_each(|i| counts[i] += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::countdown::Tier;

    #[test]
    fn shares_become_whole_numbers() {
        for (n, shares, counts) in [
            (10, vec![1.0], vec![10]),
            (10, vec![1.0, 1.0, 2.0], vec![3, 2, 5]),
            (7, vec![0.2, 0.8], vec![1, 6]),
            (3, vec![0.1, 0.1, 0.8], vec![0, 0, 3]),
            (0, vec![1.0, 2.0], vec![0, 0]),
        ] {
            assert_eq!(apportion(n, &shares), counts, "{n} by {shares:?}");
        }
    }

    fn tiers(problems: &Problems, tier: usize) -> Vec<(usize, String)> {
        let drawn = problems.draw(1, 3, 10, tier).unwrap();
        drawn.into_iter().map(|d| (d.tier, d.problem.level.unwrap())).collect()
    }

    #[test]
    fn the_present_tier_leads_and_the_easier_ones_keep_their_share() {
        let countdown =
            CountdownSource { tiers: vec![Tier::Three, Tier::Four, Tier::FourHard], weights: None };
        let progression = Progression { keep: 0.2, ..Progression::default() };
        let data = ProblemData {
            countdown: Some(countdown),
            progression: Some(progression),
            ..ProblemData::default()
        };
        let problems = Problems::open(&data).unwrap();
        let of = |tier: usize, level: &str, n: usize| vec![(tier, level.to_owned()); n];
        assert_eq!(tiers(&problems, 0), of(0, "3", 10));
        assert_eq!(tiers(&problems, 1), [of(0, "3", 2), of(1, "4", 8)].concat());
        assert_eq!(tiers(&problems, 2), [of(0, "3", 1), of(1, "4", 1), of(2, "4-hard", 8)].concat());
    }

    #[test]
    fn tiers_of_files_mix_by_their_shares_and_levels() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.jsonl");
        let row = |i: usize| format!("{{\"problem\": \"{i}\", \"answer\": \"{i}\", \"level\": {}}}\n", i % 3);
        std::fs::write(&file, (0..30).map(row).collect::<String>()).unwrap();
        let read = |text: &str| {
            let data: ProblemData =
                toml::from_str(&text.replace("FILE", &file.display().to_string())).unwrap();
            Problems::open(&data)
        };
        let mixed = "tiers = [{ file = 'FILE', levels = ['0'] }, { file = 'FILE', levels = ['1', '2'], share = 4.0 }]";
        let mixed = read(mixed).unwrap();
        assert_eq!((mixed.tiers(), mixed.count()), (2, 30));
        let drawn = tiers(&mixed, 0);
        assert_eq!(drawn.iter().filter(|(tier, _)| *tier == 0).count(), 2);
        assert!(drawn.iter().all(|(tier, level)| (*tier == 0) == (level == "0")));
        let one = read("file = 'FILE'\nlevels = ['2']\nlimit = 4").unwrap();
        assert_eq!((one.tiers(), one.count()), (1, 4));
        let none = read("file = 'FILE'\nlevels = ['7']").err().unwrap().to_string();
        assert!(none.contains("levels") && none.contains("none of 7"), "{none}");
    }
}
