//! Searches written down as demonstrations: one after the other, or in parallel paths.
//!
//! A search ends in a line that restates what it found: `Answer:` at the end of a response, `Result:`
//! at the end of a path or a round. A line is restated first where it stands nearest, so that the
//! summary has to look back only for a word (`Result:` without `none` behind it), not for the start of
//! a line that a mark at its end makes the winner; a small model hardly learns the latter.

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
    /// The share of responses that search in rounds: short searches one after the other, each closed
    /// by a line with its result, then an answer that restates a result from further back.
    pub rounded: f32,
    /// How many rounds such a response has; drawn anew for each.
    pub rounds: RangeInclusive<usize>,
    /// After how many attempts a round gives up.
    pub attempts_per_round: usize,
}

impl Default for SequentialOptions {
    fn default() -> Self {
        Self { attempts: 1..=8, rounded: 0.0, rounds: 2..=4, attempts_per_round: 2 }
    }
}

impl SequentialOptions {
    /// Whether the settings make sense.
    pub fn check(&self) -> Result<()> {
        let sound =
            |range: &RangeInclusive<usize>| *range.start() > 0 && !range.is_empty() && *range.end() <= MOST;
        ensure(sound(&self.attempts), "attempts", RANGE, &self.attempts)?;
        ensure(sound(&self.rounds), "rounds", RANGE, &self.rounds)?;
        ensure(few(self.attempts_per_round), "attempts_per_round", FEW, self.attempts_per_round)?;
        ensure((0.0..=1.0).contains(&self.rounded), "rounded", SHARE, self.rounded)
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
        ensure(few(self.paths), "paths", FEW, self.paths)?;
        ensure(few(self.attempts_per_path), "attempts_per_path", FEW, self.attempts_per_path)?;
        ensure(few(self.blocks), "blocks", FEW, self.blocks)?;
        let share = self.solved_share.unwrap_or_default();
        ensure((0.0..=1.0).contains(&share), "solved_share", SHARE, share)
    }
}

/// Larger counts are slips.
const MOST: usize = 1000;
const FEW: &str = "1 to 1000";
const RANGE: &str = "a range within 1 to 1000 that isn't empty";
const SHARE: &str = "a share from 0 to 1";

fn few(count: usize) -> bool {
    (1..=MOST).contains(&count)
}

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

/// A line that restates a right attempt, or says that there was none.
fn restated(word: &str, winner: Option<&Attempt>) -> String {
    format!("{word}: {}", winner.map_or("none".into(), Attempt::restated))
}

fn winner(attempts: &[Attempt]) -> Option<&Attempt> {
    attempts.iter().find(|attempt| attempt.right)
}

/// Attempts until one is right, at most `limit`.
fn stream(task: &Task, seen: &mut Seen, rng: &mut impl Rng, limit: usize) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    while attempts.len() < limit && winner(&attempts).is_none() {
        let Some(found) = fresh(task, seen, rng) else { break };
        attempts.push(found);
    }
    attempts
}

/// A short search and its result, as a path or a round writes it.
fn with_result(attempts: &[Attempt]) -> String {
    lines(attempts) + &restated("Result", winner(attempts)) + "\n"
}

/// A search in one stream: attempts until one is right, then the answer, which restates it; or rounds
/// of such searches, each with its result, then the answer. Panics on an empty range, as the options'
/// `check` would have said.
pub fn sequential(task: &Task, rng: &mut impl Rng, options: &SequentialOptions) -> String {
    let mut seen = Seen::new();
    if rng.random::<f32>() < options.rounded {
        let count = rng.random_range(options.rounds.clone());
        let rounds: Vec<Vec<Attempt>> =
            (0..count).map(|_| stream(task, &mut seen, rng, options.attempts_per_round)).collect();
        let text: String = rounds.iter().map(|round| with_result(round)).collect();
        return text + &restated("Answer", rounds.iter().find_map(|round| winner(round)));
    }
    let limit = rng.random_range(options.attempts.clone());
    let attempts = stream(task, &mut seen, rng, limit);
    lines(&attempts) + &restated("Answer", winner(&attempts))
}

/// A search in parallel paths that don't see each other, each closed by its result, and a summary with
/// the answer, which restates the first right result (by path).
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
        let block: Vec<Vec<Attempt>> = (0..options.paths).map(|_| path(task, &seen, rng, options)).collect();
        seen.extend(block.iter().flatten().map(Attempt::canonical));
        blocks.0.push(block);
    }
    blocks
}

fn path(task: &Task, seen: &Seen, rng: &mut impl Rng, options: &ParallelOptions) -> Vec<Attempt> {
    stream(task, &mut seen.clone(), rng, options.attempts_per_path)
}

impl Search {
    fn winner(&self) -> Option<&Attempt> {
        self.0.iter().flatten().find_map(|path| winner(path))
    }

    fn solved(&self) -> bool {
        self.winner().is_some()
    }

    fn text(&self) -> String {
        let blocks: Vec<String> = self.0.iter().map(|block| block_text(block)).collect();
        join(&blocks, "\n")
    }
}

/// Paths and summaries begin a line, as all workings do that a base model has seen: what follows a tag at once is worse.
fn block_text(paths: &[Vec<Attempt>]) -> String {
    let written: String = paths.iter().map(|path| format!("<Path>\n{}</Path>", with_result(path))).collect();
    let answer = restated("Answer", paths.iter().find_map(|path| winner(path)));
    format!("<Parallel>{written}</Parallel>\n<Summary>\n{answer}</Summary>")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::oracle::{evaluate, judge};
    use super::super::{Tier, draw, problems};
    use super::*;
    use crate::data::Split;

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

    /// Checks a line that restates the winner of some lines.
    fn check_restated(line: &str, word: &str, winner: Option<&str>, task: &Task) {
        match winner {
            None => assert_eq!(line, format!("{word}: none")),
            Some(winner) => {
                let steps = winner.strip_suffix(" ok").unwrap();
                assert_eq!(line, format!("{word}: {}", steps.replace(',', ";")));
                assert_eq!(evaluate(steps, task), i64::from(task.target()));
            }
        }
    }

    /// Reads a short search with its result; returns the right line, which is the last one.
    fn check_result<'a>(
        text: &'a str,
        task: &Task,
        tried: &mut HashSet<Vec<&'a str>>,
        most: usize,
    ) -> Option<&'a str> {
        let (attempts, result) = text.split_at(text.rfind("Result: ").unwrap());
        let winners = stream(attempts, task, tried);
        assert!((0..=most).contains(&attempts.lines().count()));
        assert!(winners.is_empty() || winners == [attempts.lines().last().unwrap()]);
        check_restated(result.strip_suffix('\n').unwrap(), "Result", winners.first().copied(), task);
        winners.first().copied()
    }

    /// Reads a sequential response by the grammar; returns how many rounds it has, 0 for a plain search.
    fn check_sequential(text: &str, task: &Task, options: &SequentialOptions) -> usize {
        let (search, answer) = text.split_at(text.rfind("Answer: ").unwrap());
        let (mut rest, mut winner, mut rounds, mut tried) = (search, None, 0, HashSet::new());
        while let Some(at) = rest.find("Result: ") {
            let end = at + rest[at..].find('\n').unwrap() + 1;
            let right = check_result(&rest[..end], task, &mut tried, options.attempts_per_round);
            winner = winner.or(right);
            (rest, rounds) = (&rest[end..], rounds + 1);
        }
        if rounds == 0 {
            let winners = stream(search, task, &mut tried);
            assert!((1..=*options.attempts.end()).contains(&search.lines().count()));
            winner = winners.first().copied();
        } else {
            assert!(rest.is_empty() && options.rounds.contains(&rounds));
        }
        check_restated(answer, "Answer", winner, task);
        rounds
    }

    /// Reads a parallel response by the grammar; returns for each block whether a path was right.
    fn check_parallel(text: &str, task: &Task, options: &ParallelOptions) -> Vec<bool> {
        let (mut solved, mut tried) = (vec![], HashSet::new());
        for block in text.split("</Summary>\n") {
            let block = block.strip_prefix("<Parallel>").unwrap();
            let (paths, summary) = block.split_once("</Parallel>\n<Summary>\n").unwrap();
            let paths = paths.strip_prefix("<Path>\n").unwrap().strip_suffix("</Path>").unwrap();
            let mut of_block = HashSet::new();
            let mut right = vec![];
            for path in paths.split("</Path><Path>\n") {
                let mut of_path = tried.clone();
                right.extend(check_result(path, task, &mut of_path, options.attempts_per_path));
                of_block.extend(of_path);
            }
            assert_eq!(paths.split("</Path><Path>\n").count(), options.paths);
            let answer = summary.strip_suffix("</Summary>").unwrap_or(summary);
            check_restated(answer, "Answer", right.first().copied(), task);
            solved.push(!right.is_empty());
            tried.extend(of_block);
        }
        assert!(text.ends_with("</Summary>"));
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
            let sequence = SequentialOptions { attempts: 1..=attempts, rounded: 0.5, ..Default::default() };
            check_sequential(&sequential(&task, &mut rng, &sequence), &task, &sequence);
            let options = ParallelOptions { paths, attempts_per_path: attempts, blocks, solved_share: None };
            check_parallel(&parallel(&task, &mut rng, &options), &task, &options);
        }
    }

    #[test]
    fn as_many_responses_search_in_rounds_as_asked() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for share in [0.0, 0.3, 1.0] {
            let options = SequentialOptions { rounded: share, ..Default::default() };
            let rounds: Vec<usize> = tasks(Tier::Four, 300)
                .iter()
                .map(|task| check_sequential(&sequential(task, &mut rng, &options), task, &options))
                .collect();
            let rounded = rounds.iter().filter(|n| **n > 0).count() as f32 / 300.0;
            assert!((rounded - share).abs() < 0.1, "{rounded} against {share}");
        }
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
                if let Some(at) = text
                    .split("</Path>")
                    .position(|path| path.contains("Result: ") && !path.ends_with("none\n"))
                {
                    places[at] += 1;
                }
            }
            let solved = texts.iter().filter(|text| !text.ends_with("none</Summary>")).count() as f32 / 300.0;
            assert!((solved - share).abs() < 0.1, "{solved} against {share}");
        }
        assert!(places.iter().all(|n| *n > 20), "{places:?}");
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let text = |error: Result<()>| error.unwrap_err().to_string();
        let attempts =
            SequentialOptions { attempts: RangeInclusive::new(3, 2), ..SequentialOptions::default() };
        assert!(text(attempts.check()).contains("field `attempts`: expected a range"));
        let share = ParallelOptions { solved_share: Some(2.0), ..Default::default() };
        assert_eq!(text(share.check()), "field `solved_share`: expected a share from 0 to 1, got 2.0");
        assert!(SequentialOptions::default().check().is_ok());
        assert!(ParallelOptions::default().check().is_ok());
    }
}
