//! BLEU between two texts: how much of the one is in the other, in runs of up to four words.
//!
//! Papineni et al. 2002, with the counts of longer runs smoothed by one (Lin and Och 2004), since paths are short.

use std::collections::HashMap;

use super::text::words;

const LONGEST: usize = 4;
/// What lies beyond says nothing new about two paths, and keeps the work bounded.
const MOST_WORDS: usize = 4_096;

/// How alike two texts are, from 0 to 1, the better of both directions. Case doesn't count.
pub fn bleu(a: &str, b: &str) -> f64 {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let mut ids = HashMap::new();
    let mut numbered = |text: &'_ str| -> Vec<u32> {
        let words = words(text).take(MOST_WORDS);
        words
            .map(|word| {
                let next = ids.len() as u32;
                *ids.entry(word.to_owned()).or_insert(next)
            })
            .collect()
    };
    let (a, b) = (numbered(&a), numbered(&b));
    score(&a, &b).max(score(&b, &a))
}

fn score(candidate: &[u32], reference: &[u32]) -> f64 {
    if candidate.is_empty() || reference.is_empty() {
        return 0.0;
    }
    let log_precision = |n: usize| {
        let (of, in_both) = (candidate.len().saturating_sub(n - 1), common(candidate, reference, n));
        let smooth = f64::from(u8::from(n > 1));
        ((in_both as f64 + smooth) / (of as f64 + smooth)).ln()
    };
    let mean = (1..=LONGEST).map(log_precision).sum::<f64>() / LONGEST as f64;
    let brevity = (1.0 - reference.len() as f64 / candidate.len() as f64).min(0.0);
    (mean + brevity).exp()
}

/// How many runs of `n` words are in both, each as often as in the one that has fewer.
fn common(a: &[u32], b: &[u32], n: usize) -> usize {
    let sorted = |words: &'_ [u32]| {
        let mut runs: Vec<[u32; LONGEST]> = words.windows(n).map(padded).collect();
        runs.sort_unstable();
        runs
    };
    let (a, b) = (sorted(a), sorted(b));
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, count) = (i + 1, j + 1, count + 1),
        }
    }
    count
}

fn padded(run: &[u32]) -> [u32; LONGEST] {
    let mut padded = [u32::MAX; LONGEST];
    padded[..run.len()].copy_from_slice(run);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of 4, 3, 2 and 1 runs 3, 2, 1 and 0 are in both.
    #[test]
    fn by_hand() {
        let expected = (3.0 / 4.0 * 3.0 / 4.0 * 2.0 / 3.0 * 1.0 / 2.0f64).powf(0.25);
        assert!((bleu("a b c d", "a b c e") - expected).abs() < 1e-12);
        assert_eq!(bleu("One two three.", "one TWO three."), 1.0);
        assert_eq!((bleu("", "a"), bleu("", "")), (0.0, 0.0));
        assert!(bleu("a b c d e f", "u v w x y z") < 1e-9);
    }
}
