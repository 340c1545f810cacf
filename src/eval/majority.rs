//! maj@k of one problem: is the answer that most of k samples give right?
//!
//! Equal answers vote together. On Countdown these are equal *expressions*, since all right answers have the same value
//! ([`crate::reward::answer_keys`] makes the keys).

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::stats::mean;

/// So many sets of k samples are all looked at; of more, [`DRAWN`] are drawn.
const MOST_SETS: u64 = 5_000;
/// The standard error of a mean over so many sets is at most 0.016.
const DRAWN: usize = 1_000;

/// A sample's vote, by the number of its answer, and whether it is right.
#[derive(Clone, Copy)]
struct Ballot {
    answer: Option<usize>,
    right: bool,
}

/// Is the answer that most samples give right? `None` without samples.
///
/// `keys` are equal for equal answers and `None` for samples without one, which don't vote. Between
/// leaders with equally many votes it is the mean, the chance that a draw would be right; without any
/// vote it is 0. Where a key has right and wrong samples, they count by their part.
pub fn maj_at_k<K: AsRef<str>>(keys: &[Option<K>], correct: &[bool]) -> Option<f64> {
    let (ballots, answers) = ballots(keys, correct);
    (!ballots.is_empty()).then(|| count(ballots.iter().copied(), answers))
}

/// The mean of [`maj_at_k`] over the sets of `k` of the samples: over all of them while they are few, else over some that
/// `seed` draws. `None` unless 1 <= k <= the number of samples.
pub fn expected_maj_at<K: AsRef<str>>(
    keys: &[Option<K>],
    correct: &[bool],
    k: usize,
    seed: u64,
) -> Option<f64> {
    let (ballots, answers) = ballots(keys, correct);
    let n = ballots.len();
    if k == 0 || k > n {
        return None;
    }
    let majority = |set: &[usize]| count(set.iter().map(|&i| ballots[i]), answers);
    if sets(n, k).is_some_and(|sets| sets <= MOST_SETS) {
        return mean(&combinations(n, k).map(|set| majority(&set)).collect::<Vec<_>>());
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut all: Vec<usize> = (0..n).collect();
    mean(&(0..DRAWN).map(|_| majority(all.partial_shuffle(&mut rng, k).0)).collect::<Vec<_>>())
}

/// The votes with their answers numbered, and how many answers there are.
fn ballots<K: AsRef<str>>(keys: &[Option<K>], correct: &[bool]) -> (Vec<Ballot>, usize) {
    let mut answers: Vec<&str> = Vec::new();
    let mut ballots = Vec::with_capacity(keys.len());
    for (key, &right) in keys.iter().zip(correct) {
        let answer = key.as_ref().map(|key| {
            answers.iter().position(|known| *known == key.as_ref()).unwrap_or_else(|| {
                answers.push(key.as_ref());
                answers.len() - 1
            })
        });
        ballots.push(Ballot { answer, right });
    }
    (ballots, answers.len())
}

/// The chance that the leading answer is right.
fn count(ballots: impl Iterator<Item = Ballot>, answers: usize) -> f64 {
    let mut votes = vec![(0usize, 0usize); answers]; // votes, right ones
    for Ballot { answer, right } in ballots {
        if let Some(answer) = answer {
            votes[answer].0 += 1;
            votes[answer].1 += usize::from(right);
        }
    }
    let most = votes.iter().map(|(all, _)| *all).max().unwrap_or(0);
    let leaders: Vec<f64> = votes
        .iter()
        .filter(|(all, _)| *all == most && most > 0)
        .map(|&(all, right)| right as f64 / all as f64)
        .collect();
    mean(&leaders).unwrap_or(0.0)
}

/// How many sets of k of n there are; `None` of too many to count.
fn sets(n: usize, k: usize) -> Option<u64> {
    (0..k.min(n - k) as u64).try_fold(1u64, |sets, i| Some(sets.checked_mul(n as u64 - i)? / (i + 1)))
}

/// All sets of k of the numbers below n, in lexical order.
fn combinations(n: usize, k: usize) -> impl Iterator<Item = Vec<usize>> {
    std::iter::successors(Some((0..k).collect::<Vec<usize>>()), move |last| {
        let at = (0..k).rev().find(|&at| last[at] < n - k + at)?;
        let mut next = last.clone();
        next[at] += 1;
        for later in at + 1..k {
            next[later] = next[later - 1] + 1;
        }
        Some(next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn majorities() {
        let (a, b) = (Some("a"), Some("b"));
        for (keys, correct, expected) in [
            (vec![a, a, b], vec![true, true, false], Some(1.0)),
            (vec![b, a, b], vec![false, true, false], Some(0.0)),
            (vec![a, b], vec![true, false], Some(0.5)),
            (vec![a, b, Some("c")], vec![true, false, false], Some(1.0 / 3.0)),
            (vec![None, None, a], vec![false, false, true], Some(1.0)),
            (vec![None, None], vec![false, false], Some(0.0)),
            (vec![], vec![], None),
        ] {
            assert_eq!(maj_at_k(&keys, &correct), expected, "{keys:?}");
        }
    }

    /// The mean over all subsets of size k, found by looking at every subset.
    fn by_enumeration(keys: &[Option<&str>], correct: &[bool], k: usize) -> f64 {
        let n = keys.len();
        let sets = (0u32..1 << n).filter(|set| set.count_ones() as usize == k);
        let majority = |set: u32| {
            let chosen: Vec<usize> = (0..n).filter(|i| set & 1 << i != 0).collect();
            let votes = |key: Option<&str>| chosen.iter().filter(|&&i| keys[i] == key).count();
            let most = chosen.iter().filter(|&&i| keys[i].is_some()).map(|&i| votes(keys[i])).max();
            // A draw among the leaders' samples; leaders have equally many, so this is a draw among leaders.
            let leading: Vec<usize> = chosen
                .iter()
                .copied()
                .filter(|&i| keys[i].is_some() && Some(votes(keys[i])) == most)
                .collect();
            leading.iter().filter(|&&i| correct[i]).count() as f64 / leading.len().max(1) as f64
        };
        let all: Vec<f64> = sets.map(majority).collect();
        all.iter().sum::<f64>() / all.len() as f64
    }

    proptest! {
        #[test]
        fn every_set_counts(votes in prop::collection::vec((0usize..4, any::<bool>()), 1..9)) {
            let names = [None, Some("a"), Some("b"), Some("c")];
            let keys: Vec<Option<&str>> = votes.iter().map(|(key, _)| names[*key]).collect();
            let correct: Vec<bool> = votes.iter().map(|(_, right)| *right).collect();
            for k in 1..=keys.len() {
                let got = expected_maj_at(&keys, &correct, k, 0).unwrap();
                prop_assert!((got - by_enumeration(&keys, &correct, k)).abs() < 1e-12, "k = {k}: {got}");
            }
        }
    }

    #[test]
    fn of_many_sets_some_are_drawn() {
        // Two thirds of 60 samples are right and agree; sets of 30 almost always have them ahead.
        let keys: Vec<Option<&str>> = (0..60).map(|i| Some(if i % 3 < 2 { "a" } else { "b" })).collect();
        let correct: Vec<bool> = (0..60).map(|i| i % 3 < 2).collect();
        let got = expected_maj_at(&keys, &correct, 30, 1).unwrap();
        assert!(got > 0.98, "{got}");
        assert_eq!(expected_maj_at(&keys, &correct, 30, 1), Some(got));
        assert_eq!(expected_maj_at(&keys, &correct, 60, 1), Some(1.0));
        assert_eq!(expected_maj_at(&keys, &correct, 61, 1), None);
        assert_eq!(expected_maj_at(&keys, &correct, 0, 1), None);
    }

    #[test]
    fn sets_are_counted_and_listed() {
        assert_eq!((sets(5, 2), sets(16, 8), sets(100, 50)), (Some(10), Some(12_870), None));
        let listed: Vec<Vec<usize>> = combinations(4, 2).collect();
        assert_eq!(listed, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
    }
}
