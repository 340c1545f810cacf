//! Sample-level consolidation: N independent samples, one answer.
//!
//! Samples vote for their answer's key, which equal answers share (`reward::answer_keys` makes them). Where no sample has a readable
//! answer, the most confident one is returned and the vote says so. Works for any model; blocks inside
//! a response are another matter.

use std::cmp::Ordering;

/// The outcome of a vote.
#[derive(Clone, Debug, PartialEq)]
pub struct Vote {
    /// The index of the sample to return: the most confident one among those with the winning answer.
    pub winner: usize,
    /// The part of all samples that gave the winning answer; 0 when `by_confidence`.
    pub agreement: f64,
    /// The answers with their votes, the winning one first.
    pub counts: Vec<(String, usize)>,
    /// Whether no sample had an answer, so that confidence alone decided.
    pub by_confidence: bool,
}

/// One answer's samples.
struct Party<'a> {
    key: &'a str,
    members: Vec<usize>,
    confidence: f64,
}

/// Finds the answer with most votes; between equals, the one with the larger sum of confidences, and
/// then the one that came first. `None` without samples.
///
/// `keys` has one entry a sample, `None` where no answer could be read; a confidence that is missing or
/// NaN counts as the lowest.
pub fn vote(keys: &[Option<String>], confidences: &[f32]) -> Option<Vote> {
    let confidence = |sample: usize| {
        let value = confidences.get(sample).copied().unwrap_or(f32::NAN);
        if value.is_nan() { f32::NEG_INFINITY } else { value }
    };
    let mut parties: Vec<Party> = Vec::new();
    for (sample, key) in keys.iter().enumerate() {
        let Some(key) = key else { continue };
        let known = parties.iter().position(|party| party.key == key);
        let at = known.unwrap_or_else(|| {
            parties.push(Party { key, members: Vec::new(), confidence: 0.0 });
            parties.len() - 1
        });
        parties[at].members.push(sample);
        parties[at].confidence += f64::from(confidence(sample));
    }
    parties.sort_by(by_votes); // stable: what came first stays first

    let best = |samples: &[usize]| {
        samples.iter().copied().reduce(
            |best, sample| {
                if confidence(sample) > confidence(best) { sample } else { best }
            },
        )
    };
    let (winner, votes) = match parties.first() {
        Some(party) => (best(&party.members)?, party.members.len()),
        None => (best(&(0..keys.len()).collect::<Vec<_>>())?, 0),
    };
    Some(Vote {
        winner,
        agreement: votes as f64 / keys.len() as f64,
        counts: parties.iter().map(|party| (party.key.to_owned(), party.members.len())).collect(),
        by_confidence: parties.is_empty(),
    })
}

fn by_votes(a: &Party, b: &Party) -> Ordering {
    let votes = b.members.len().cmp(&a.members.len());
    votes.then_with(|| b.confidence.total_cmp(&a.confidence))
}

/// Whether the leading answer wins however the `remaining` samples turn out, so they can be spared.
///
/// A tie would be open (confidence decides it), so the lead must exceed what remains.
pub fn decided(counts: &[usize], remaining: usize) -> bool {
    let (first, second) = counts
        .iter()
        .fold((0, 0), |(first, second), &count| (first.max(count), second.max(count.min(first))));
    remaining == 0 || first - second > remaining
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(letters: &str) -> Vec<Option<String>> {
        letters.chars().map(|c| (c != '-').then(|| c.to_string())).collect()
    }

    fn counts(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
        expected.iter().map(|&(key, n)| (key.to_owned(), n)).collect()
    }

    #[test]
    fn the_majority_wins() {
        let vote = vote(&keys("abba-b"), &[-9.0, -3.0, -1.0, -2.0, -0.1, -4.0]).unwrap();
        assert_eq!((vote.winner, vote.by_confidence), (2, false));
        assert_eq!(vote.agreement, 0.5);
        assert_eq!(vote.counts, counts(&[("b", 3), ("a", 2)]));
    }

    #[test]
    fn ties_go_to_confidence_then_to_the_first() {
        assert_eq!(vote(&keys("abab"), &[-1.0, -0.5, -1.0, -1.0]).unwrap().winner, 1);
        assert_eq!(vote(&keys("ab"), &[-1.0, -1.0]).unwrap().winner, 0);
        assert_eq!(vote(&keys("ab"), &[f32::NAN, -1.0]).unwrap().winner, 1);
        assert_eq!(vote(&keys("ab"), &[]).unwrap().winner, 0);
    }

    #[test]
    fn without_answers_the_most_confident_sample_is_returned() {
        let vote = vote(&keys("---"), &[-2.0, -1.0, -3.0]).unwrap();
        assert_eq!((vote.winner, vote.agreement, vote.by_confidence), (1, 0.0, true));
        assert!(vote.counts.is_empty());
    }

    #[test]
    fn no_samples_no_vote() {
        assert_eq!(vote(&[], &[]), None);
    }

    #[test]
    fn decided_by_hand() {
        for (counts, remaining, expected) in [
            (&[][..], 0, true),
            (&[], 3, false),
            (&[3], 2, true),
            (&[2], 2, false),
            (&[3, 1], 2, false), // 3 : 3 would be a tie
            (&[1, 4], 2, true),
            (&[2, 2], 1, false),
            (&[2, 2], 0, true),
        ] {
            assert_eq!(decided(counts, remaining), expected, "{counts:?} {remaining}");
        }
    }

    proptest! {
        /// Whatever comes after a decided vote, its winner stays.
        #[test]
        fn decided_votes_stay(now in "[abc-]{1,8}", then in "[abcd-]{0,8}") {
            let vote_of = |letters: &str| {
                let keys = keys(letters);
                vote(&keys, &vec![0.0; keys.len()]).unwrap()
            };
            let first = vote_of(&now);
            let counts: Vec<usize> = first.counts.iter().map(|c| c.1).collect();
            if !then.is_empty() && decided(&counts, then.len()) {
                let last = vote_of(&format!("{now}{then}"));
                prop_assert_eq!(&first.counts[0].0, &last.counts[0].0);
                prop_assert_eq!(first.winner, last.winner);
            }
        }

        #[test]
        fn votes_are_counted(letters in "[abc-]{1,12}") {
            let vote = vote(&keys(&letters), &[]).unwrap();
            let most = "abc".chars().map(|c| letters.matches(c).count()).max().unwrap_or(0);
            prop_assert_eq!(vote.counts.first().map_or(0, |c| c.1), most);
            prop_assert_eq!(vote.by_confidence, most == 0);
            prop_assert!((vote.agreement - most as f64 / letters.len() as f64).abs() < 1e-12);
        }
    }
}
