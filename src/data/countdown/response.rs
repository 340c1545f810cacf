//! Searches written down as demonstrations: one after the other, or in parallel paths.
//!
//! Every response ends in an answer line that restates a marked line from the search. That copying
//! is what a summary needs, and what a model that never looks back doesn't learn.

use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::attempt::{Attempt, Step, attempt};
use super::{Task, join};
use crate::data::{DataError, Result};

/// Tries to find an attempt that a stream doesn't have yet, before the stream ends: some tasks have
/// only a handful of different attempts.
const FRESH_TRIES: usize = 256;

/// Tries to meet the wish of [`ParallelOptions::solved_share`].
const WISH_TRIES: usize = 200;

/// How a sequential search is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SequentialOptions {
    /// After how many attempts a search gives up; drawn anew for each response.
    pub attempts: RangeInclusive<usize>,
    /// How often a search goes on for one to three attempts after its first success, as far as
    /// the end of `attempts` allows, so that the winner isn't always the last line.
    pub look_back: f32,
}

impl Default for SequentialOptions {
    fn default() -> Self {
        Self { attempts: 1..=8, look_back: 0.3 }
    }
}

impl SequentialOptions {
    /// Whether the settings make sense.
    pub fn check(&self) -> Result<()> {
        let (attempts, look_back) = (&self.attempts, self.look_back);
        ensure(*attempts.start() > 0 && !attempts.is_empty(), "attempts", RANGE, attempts)?;
        ensure((0.0..=1.0).contains(&look_back), "look_back", SHARE, look_back)
    }
}

/// How a parallel search is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ParallelOptions {
    /// The paths of a block.
    pub paths: usize,
    /// After how many attempts a path gives up.
    pub attempts_per_path: usize,
    /// The most blocks; a further one is opened where the last found nothing.
    pub blocks: usize,
    /// The share of responses in which at least one path is right; `None` leaves it to chance.
    /// Whole responses are drawn again until they fit, so each path stays an honest search.
    pub solved_share: Option<f32>,
}

impl Default for ParallelOptions {
    fn default() -> Self {
        Self { paths: 4, attempts_per_path: 2, blocks: 1, solved_share: None }
    }
}

impl ParallelOptions {
    /// Whether the settings make sense.
    pub fn check(&self) -> Result<()> {
        ensure(self.paths > 0, "paths", POSITIVE, self.paths)?;
        ensure(self.attempts_per_path > 0, "attempts_per_path", POSITIVE, self.attempts_per_path)?;
        ensure(self.blocks > 0, "blocks", POSITIVE, self.blocks)?;
        let share = self.solved_share.unwrap_or_default();
        ensure((0.0..=1.0).contains(&share), "solved_share", SHARE, share)
    }
}

const POSITIVE: &str = "at least 1";
const RANGE: &str = "a range that begins at 1 or later and isn't empty";
const SHARE: &str = "a share from 0 to 1";

fn ensure(sound: bool, field: &'static str, expected: &'static str, got: impl fmt::Debug) -> Result<()> {
    if sound { Ok(()) } else { Err(DataError::Setting { field, expected, got: format!("{got:?}") }) }
}

/// What a stream has tried already, in [canonical](Attempt::canonical) form.
type Seen = HashSet<Vec<Step>>;

/// An attempt that the stream doesn't have yet.
fn fresh(task: &Task, seen: &mut Seen, rng: &mut impl Rng) -> Option<Attempt> {
    (0..FRESH_TRIES).map(|_| attempt(task, rng)).find(|found| seen.insert(found.canonical()))
}

fn lines(attempts: &[Attempt]) -> String {
    attempts.iter().map(|attempt| format!("{attempt}\n")).collect()
}

fn answer(winner: Option<&Attempt>) -> String {
    format!("Answer: {}", winner.map_or("none".into(), Attempt::steps_text))
}

fn winner(attempts: &[Attempt]) -> Option<&Attempt> {
    attempts.iter().find(|attempt| attempt.right)
}

/// A search in one stream: attempts until one is right, then the answer, which restates the first
/// right one. Panics on an empty range of attempts, as the options' `check` would have said.
pub fn sequential(task: &Task, rng: &mut impl Rng, options: &SequentialOptions) -> String {
    let mut seen = Seen::new();
    let mut attempts = Vec::new();
    let mut budget = rng.random_range(options.attempts.clone());
    while attempts.len() < budget {
        let Some(found) = fresh(task, &mut seen, rng) else { break };
        let first_success = found.right && winner(&attempts).is_none();
        attempts.push(found);
        if first_success {
            let further = if rng.random::<f32>() < options.look_back { rng.random_range(1..=3) } else { 0 };
            budget = (attempts.len() + further).min(*options.attempts.end());
        }
    }
    lines(&attempts) + &answer(winner(&attempts))
}

/// A search in parallel paths that don't see each other, a summary that restates the first right
/// one (by path), and the answer.
pub fn parallel(task: &Task, rng: &mut impl Rng, options: &ParallelOptions) -> String {
    let wish = options.solved_share.map(|share| rng.random::<f32>() < share);
    let mut drawn = search(task, rng, options);
    for _ in 1..WISH_TRIES {
        if wish.is_none_or(|wish| wish == drawn.solved()) {
            break;
        }
        drawn = search(task, rng, options);
    }
    drawn.text()
}

/// The blocks of a response; each is its paths, each path its attempts.
struct Search(Vec<Vec<Vec<Attempt>>>);

fn search(task: &Task, rng: &mut impl Rng, options: &ParallelOptions) -> Search {
    // Paths don't see each other, but they do see the blocks before theirs.
    let mut seen = Seen::new();
    let mut blocks = Search(Vec::new());
    while blocks.0.len() < options.blocks && !blocks.solved() {
        let block: Vec<Vec<Attempt>> =
            (0..options.paths).map(|_| path(task, seen.clone(), rng, options)).collect();
        seen.extend(block.iter().flatten().map(Attempt::canonical));
        blocks.0.push(block);
    }
    blocks
}

fn path(task: &Task, mut seen: Seen, rng: &mut impl Rng, options: &ParallelOptions) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    while attempts.len() < options.attempts_per_path && winner(&attempts).is_none() {
        let Some(found) = fresh(task, &mut seen, rng) else { break };
        attempts.push(found);
    }
    attempts
}

impl Search {
    fn winner(&self) -> Option<&Attempt> {
        self.0.iter().flatten().find_map(|path| winner(path))
    }

    fn solved(&self) -> bool {
        self.winner().is_some()
    }

    fn text(&self) -> String {
        let blocks: String = self.0.iter().map(|block| block_text(block)).collect();
        blocks + &answer(self.winner())
    }
}

fn block_text(paths: &[Vec<Attempt>]) -> String {
    let written: Vec<String> = paths.iter().map(|path| format!("<Path>{}</Path>", lines(path))).collect();
    let first = paths.iter().find_map(|path| winner(path));
    let summary = first.map_or("none".into(), Attempt::to_string);
    format!("<Parallel>{}</Parallel>\n<Summary>{summary}</Summary>\n", join(&written, ""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::oracle::{evaluate, judge};
    use super::super::{Split, Tier, draw, problems};
    use super::*;

    /// Checks marked lines of one stream, each new to it, and returns the right ones.
    fn stream<'a>(text: &'a str, task: &Task, tried: &mut HashSet<Vec<&'a str>>) -> Vec<&'a str> {
        assert!(text.is_empty() || text.ends_with('\n'), "each line has its end: {text}");
        let new = |line: &'a str| {
            let mut steps: Vec<&str> = line.split(' ').next().unwrap().split(',').collect();
            steps.sort_unstable();
            tried.insert(steps)
        };
        assert!(text.lines().all(new), "an attempt comes twice in one stream:\n{text}");
        text.lines().filter(|line| judge(line, task)).collect()
    }

    fn check_answer(answer: &str, winner: Option<&str>, task: &Task) {
        match winner {
            None => assert_eq!(answer, "Answer: none"),
            Some(line) => {
                let steps = line.strip_suffix(" ok").unwrap();
                assert_eq!(answer, format!("Answer: {steps}"));
                assert_eq!(evaluate(steps, task), i64::from(task.target()));
            }
        }
    }

    /// Reads a sequential response by the grammar; returns its lines and the right ones among them.
    fn check_sequential(text: &str, task: &Task) -> (usize, usize) {
        let at = text.rfind("Answer: ").unwrap();
        let winners = stream(&text[..at], task, &mut HashSet::new());
        check_answer(&text[at..], winners.first().copied(), task);
        (text[..at].lines().count(), winners.len())
    }

    /// Reads a parallel response by the grammar; returns for each block whether a path was right.
    fn check_parallel(text: &str, task: &Task, options: &ParallelOptions) -> Vec<bool> {
        let (mut rest, mut solved, mut tried, mut winner) = (text, vec![], HashSet::new(), None);
        while let Some(block) = rest.strip_prefix("<Parallel>") {
            let (paths, after) = block.split_once("</Parallel>\n<Summary>").unwrap();
            let (summary, after) = after.split_once("</Summary>\n").unwrap();
            let paths = paths.strip_prefix("<Path>").unwrap().strip_suffix("</Path>").unwrap();
            let mut of_block = HashSet::new();
            let mut right = vec![];
            for path in paths.split("</Path><Path>") {
                let mut of_path = tried.clone();
                let winners = stream(path, task, &mut of_path);
                assert!((1..=options.attempts_per_path).contains(&path.lines().count()));
                assert!(winners.is_empty() || winners == [path.lines().last().unwrap()]);
                right.extend(winners);
                of_block.extend(of_path);
            }
            assert_eq!(paths.split("</Path><Path>").count(), options.paths);
            assert_eq!(summary, right.first().copied().unwrap_or("none"));
            solved.push(!right.is_empty());
            winner = right.first().copied();
            tried.extend(of_block);
            rest = after;
        }
        check_answer(rest, winner, task);
        assert!((1..=options.blocks).contains(&solved.len()));
        assert!(solved.iter().rev().skip(1).all(|solved| !solved), "a solved task is done");
        solved
    }

    fn tasks(tier: Tier, n: usize) -> Vec<Task> {
        let rows = problems(tier, Split::Train, 6, n).unwrap();
        rows.iter().map(|row| row.problem.parse().unwrap()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn texts_follow_the_grammar(
            seed: u64, tier in 0..4usize, paths in 1..6usize, attempts in 1..5usize, blocks in 1..4usize,
        ) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let task = draw(Tier::ALL[tier], Split::Train, &mut rng);
            let sequence = SequentialOptions { attempts: 1..=attempts, look_back: 0.5 };
            let text = sequential(&task, &mut rng, &sequence);
            prop_assert!((1..=attempts).contains(&check_sequential(&text, &task).0));
            let options = ParallelOptions { paths, attempts_per_path: attempts, blocks, solved_share: None };
            check_parallel(&parallel(&task, &mut rng, &options), &task, &options);
        }
    }

    #[test]
    fn a_search_looks_back_as_often_as_asked() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let went_on = |look_back, rng: &mut ChaCha8Rng| {
            let options = SequentialOptions { attempts: 30..=30, look_back };
            let texts = tasks(Tier::Four, 300).into_iter().map(|task| {
                let text = sequential(&task, rng, &options);
                let lines = text.lines().collect::<Vec<_>>();
                let first = lines.iter().position(|line| line.ends_with(" ok"));
                first.map(|at| lines.len() - 2 - at)
            });
            let further: Vec<usize> = texts.flatten().collect();
            assert!(further.iter().all(|n| *n <= 3));
            further.iter().filter(|n| **n > 0).count() as f64 / further.len() as f64
        };
        assert_eq!(went_on(0.0, &mut rng), 0.0);
        assert_eq!(went_on(1.0, &mut rng), 1.0);
        assert!((went_on(0.3, &mut rng) - 0.3).abs() < 0.1);
    }

    #[test]
    fn the_solved_share_is_met_and_winners_stand_anywhere() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut places = [0; 4];
        for share in [0.0, 0.5, 1.0] {
            let options = ParallelOptions { solved_share: Some(share), ..Default::default() };
            let texts: Vec<String> =
                tasks(Tier::Four, 300).iter().map(|task| parallel(task, &mut rng, &options)).collect();
            for text in &texts {
                if let Some(at) = text.split("</Path>").position(|path| path.ends_with(" ok\n")) {
                    places[at] += 1;
                }
            }
            let solved = texts.iter().filter(|text| !text.ends_with("none")).count() as f32 / 300.0;
            assert!((solved - share).abs() < 0.1, "{solved} against {share}");
        }
        assert!(places.iter().all(|n| *n > 20), "{places:?}");
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let text = |error: Result<()>| error.unwrap_err().to_string();
        let attempts = SequentialOptions { attempts: RangeInclusive::new(3, 2), look_back: 0.0 };
        assert!(text(attempts.check()).contains("field `attempts`: expected a range"));
        let share = ParallelOptions { solved_share: Some(2.0), ..Default::default() };
        assert_eq!(text(share.check()), "field `solved_share`: expected a share from 0 to 1, got 2.0");
        assert!(SequentialOptions::default().check().is_ok());
        assert!(ParallelOptions::default().check().is_ok());
    }
}
