//! Workings as demonstrations: once or several times in one stream, or in parallel paths; then the answer, which is the
//! result that came out most often.
//!
//! Some workings go wrong on purpose, or a comparison would have nothing to compare. Slips are shown and marked, so that
//! training can leave them out: what is to be learned is to see through them, not to make them.

use std::ops::RangeInclusive;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::{Slip, Task, Working, work};
use crate::data::family::Written;
use crate::data::{DataError, Result};

/// How a sum is worked out in one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepeatedOptions {
    /// How often the sum is worked out; drawn anew for each response. Once is without slips and without comparison.
    pub times: RangeInclusive<usize>,
    /// The share of workings with a slip, where there are several.
    pub slip: f64,
}

impl Default for RepeatedOptions {
    fn default() -> Self {
        Self { times: 1..=1, slip: 0.25 }
    }
}

impl RepeatedOptions {
    /// Whether the settings make sense.
    pub fn check(&self) -> Result<()> {
        let sound = *self.times.start() > 0 && !self.times.is_empty() && *self.times.end() <= MOST;
        ensure(sound, "times", "a range within 1 to 100 that isn't empty", format!("{:?}", self.times))?;
        check_share("slip", self.slip)
    }
}

/// How a sum is worked out in parallel paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IndependentOptions {
    /// The paths of the block.
    pub paths: usize,
    /// The share of paths with a slip.
    pub slip: f64,
    /// The share of slips that take a wrong term; the others write a wrong result.
    pub misread: f64,
}

impl Default for IndependentOptions {
    fn default() -> Self {
        Self { paths: 4, slip: 0.25, misread: 0.0 }
    }
}

impl IndependentOptions {
    /// Whether the settings make sense.
    pub fn check(&self) -> Result<()> {
        ensure((1..=MOST).contains(&self.paths), "paths", "1 to 100", self.paths.to_string())?;
        check_share("slip", self.slip)?;
        check_share("misread", self.misread)
    }
}

/// Larger counts are slips of the pen.
const MOST: usize = 100;

fn check_share(field: &'static str, share: f64) -> Result<()> {
    ensure((0.0..=1.0).contains(&share), field, "a share from 0 to 1", share.to_string())
}

fn ensure(sound: bool, field: &'static str, expected: &'static str, got: String) -> Result<()> {
    if sound { Ok(()) } else { Err(DataError::Setting { field, expected, got }) }
}

impl Written {
    fn push(&mut self, working: &Working) {
        let start = self.text.len();
        self.slips.extend(working.slip.iter().map(|slip| start + slip.start..start + slip.end));
        self.text += &working.text;
    }

    /// A working that is to be compared with others states what came out of it.
    fn push_with_result(&mut self, working: &Working) {
        self.push(working);
        self.text += &format!("Result: {}\n", working.result);
    }
}

/// The sum worked out in one stream. Panics on an empty range, as the options' `check` would have said.
pub fn repeated(task: &Task, rng: &mut impl Rng, options: &RepeatedOptions) -> Written {
    let mut written = Written::default();
    let times = rng.random_range(options.times.clone());
    if times == 1 {
        let working = work(task, None, rng);
        written.push(&working);
        written.text += &answer(working.result);
        return written;
    }
    let workings = careless(task, times, (options.slip, 0.0), rng);
    workings.iter().for_each(|working| written.push_with_result(working));
    written.text += &answer(most_frequent(&workings));
    written
}

/// The sum worked out in parallel paths, and a summary with the answer; each begins a line, as in Countdown.
pub fn independent(task: &Task, rng: &mut impl Rng, options: &IndependentOptions) -> Written {
    let workings = careless(task, options.paths, (options.slip, options.misread), rng);
    let mut written = Written { text: "<Parallel>".into(), slips: vec![] };
    for working in &workings {
        written.text += "<Path>\n";
        written.push_with_result(working);
        written.text += "</Path>";
    }
    let answer = answer(most_frequent(&workings));
    written.text += &format!("</Parallel>\n<Summary>\n{answer}</Summary>");
    written
}

fn answer(result: u32) -> String {
    format!("Answer: {result}")
}

/// Several workings, of which a share has a slip, of which a share takes a wrong term.
fn careless(task: &Task, count: usize, (slip, misread): (f64, f64), rng: &mut impl Rng) -> Vec<Working> {
    let one = |_| {
        let slip = rng.random_bool(slip).then(|| match misread > 0.0 && rng.random_bool(misread) {
            true => Slip::Term(rng.random_range(0..task.terms().len())),
            false => Slip::Result(rng.random_range(0..task.operations())),
        });
        work(task, slip, rng)
    };
    (0..count).map(one).collect()
}

/// The result that came out most often, the first of several.
fn most_frequent(workings: &[Working]) -> u32 {
    let votes = |result: u32| workings.iter().filter(|working| working.result == result).count();
    // `max_by_key` takes the last of equals.
    workings
        .iter()
        .rev()
        .map(|working| working.result)
        .max_by_key(|&result| votes(result))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::{Arithmetic, Tier};
    use super::*;
    use crate::data::Split;
    use crate::data::family::Family;

    fn working(result: u32) -> Working {
        Working { text: String::new(), result, slip: None }
    }

    #[test]
    fn the_most_frequent_result_wins_and_of_several_the_first() {
        for (results, winner) in
            [(vec![3], 3), (vec![1, 2, 2], 2), (vec![1, 2, 3], 1), (vec![5, 2, 2, 5, 7], 5), (vec![], 0)]
        {
            let workings: Vec<Working> = results.iter().map(|&result| working(result)).collect();
            assert_eq!(most_frequent(&workings), winner, "{results:?}");
        }
    }

    #[test]
    fn texts_by_hand() {
        let (task, mut rng) = ("47+385".parse().unwrap(), ChaCha8Rng::seed_from_u64(1));
        // A sum may be begun at either term.
        let turned = |written: Written| written.text.replace("385+47=", "47+385=");
        let once = repeated(&task, &mut rng, &RepeatedOptions::default());
        assert!(once.slips.is_empty());
        assert_eq!(turned(once), "47+385=432\nAnswer: 432");
        let options = IndependentOptions { paths: 2, slip: 0.0, misread: 0.0 };
        let path = "<Path>\n47+385=432\nResult: 432\n</Path>";
        let text = format!("<Parallel>{path}{path}</Parallel>\n<Summary>\nAnswer: 432</Summary>");
        assert_eq!(turned(independent(&task, &mut rng, &options)), text);
        let twice = RepeatedOptions { times: 2..=2, slip: 0.0 };
        let try_ = "47+385=432\nResult: 432\n";
        assert_eq!(turned(repeated(&task, &mut rng, &twice)), format!("{try_}{try_}Answer: 432"));
    }

    proptest! {
        #[test]
        fn slips_are_marked_and_the_answer_is_the_most_frequent_result(seed: u64, paths in 2..7usize, slip in 0.0..=1.0, misread in 0.0..=1.0) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let task = Arithmetic::draw(Tier::Four, Split::Train, &mut rng);
            let parallel = independent(&task, &mut rng, &IndependentOptions { paths, slip, misread });
            let stream = repeated(&task, &mut rng, &RepeatedOptions { times: paths..=paths, slip });
            for written in [parallel, stream] {
                let results: Vec<&str> = written.text.lines().filter_map(|line| line.strip_prefix("Result: ")).collect();
                prop_assert_eq!(results.len(), paths);
                let wrong = results.iter().filter(|result| **result != task.value().to_string()).count();
                prop_assert!(wrong <= written.slips.len());
                for slip in &written.slips {
                    prop_assert!(written.text[slip.clone()].starts_with(|c: char| c.is_ascii_digit()));
                }
                let votes = |result: &str| results.iter().filter(|other| **other == result).count();
                let answer = written.text.split_once("Answer: ").unwrap().1.trim_end_matches("</Summary>");
                prop_assert!(results.iter().all(|result| votes(result) <= votes(answer)));
            }
        }
    }

    #[test]
    fn as_many_workings_slip_as_asked() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for share in [0.0, 0.3, 1.0] {
            let options = IndependentOptions { paths: 4, slip: share, misread: share };
            let mut slips = 0;
            for _ in 0..200 {
                let task = Arithmetic::draw(Tier::Three, Split::Train, &mut rng);
                slips += independent(&task, &mut rng, &options).slips.len();
            }
            assert!((slips as f64 / 800.0 - share).abs() < 0.06, "{slips} of 800 against {share}");
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let text = |error: Result<()>| error.unwrap_err().to_string();
        let times = RepeatedOptions { times: 0..=2, ..Default::default() };
        assert_eq!(
            text(times.check()),
            "field `times`: expected a range within 1 to 100 that isn't empty, got 0..=2"
        );
        let paths = IndependentOptions { paths: 0, ..Default::default() };
        assert_eq!(text(paths.check()), "field `paths`: expected 1 to 100, got 0");
        let slip = IndependentOptions { slip: 1.5, ..Default::default() };
        assert_eq!(text(slip.check()), "field `slip`: expected a share from 0 to 1, got 1.5");
        assert!(RepeatedOptions::default().check().is_ok() && IndependentOptions::default().check().is_ok());
    }
}
