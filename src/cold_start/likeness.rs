//! When two texts count as one: exact keys, and MinHash signatures for near matches.

use twox_hash::XxHash64;

use crate::reward::words;

/// Values of a signature. The estimate of a similarity s errs by about sqrt(s (1 - s) / 64), at most 0.06.
pub(super) const VALUES: usize = 64;
/// The least hashes of a text's shingles.
pub(super) type Signature = [u16; VALUES];
/// Words of a shingle.
const SHINGLE: usize = 3;

/// One hash that is the same on every machine and in every release.
pub(super) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    XxHash64::oneshot(seed, bytes)
}

/// A text in lower case with single spaces: what two copies of a row have in common.
pub(super) fn collapsed(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !collapsed.is_empty() {
            collapsed.push(' ');
        }
        collapsed.extend(word.chars().flat_map(char::to_lowercase));
    }
    collapsed
}

/// The letters and digits of a text in lower case, numbers kept apart: copies of a problem differ in white space,
/// punctuation and LaTeX's spacing.
pub(super) fn squashed(text: &str) -> String {
    let (mut squashed, mut gap) = (String::with_capacity(text.len()), false);
    for c in text.chars() {
        if !c.is_alphanumeric() {
            gap = true;
            continue;
        }
        if gap && c.is_numeric() && squashed.ends_with(char::is_numeric) {
            squashed.push(' ');
        }
        squashed.extend(c.to_lowercase());
        gap = false;
    }
    squashed
}

/// The numbers of a text, whatever their order, as one hash: problems that differ in a number are different problems.
pub(super) fn numbers(text: &str) -> u32 {
    let mut numbers: Vec<&str> = words(text).filter(|word| word.starts_with(char::is_numeric)).collect();
    numbers.sort_unstable();
    hash(1, numbers.join(" ").as_bytes()) as u32
}

/// The words of a text in lower case, without signs.
pub(super) fn plain_words(lower: &str) -> Vec<&str> {
    words(lower).filter(|word| word.starts_with(char::is_alphanumeric)).collect()
}

/// The hashes of the runs of `n` words; of the whole text where it is shorter.
pub(super) fn runs(words: &[&str], n: usize) -> impl Iterator<Item = u64> {
    let hashes: Vec<u64> = words.iter().map(|word| hash(2, word.as_bytes())).collect();
    let n = n.min(hashes.len()).max(1);
    let run =
        |run: &[u64]| run.iter().fold(0, |all: u64, &one| (all.rotate_left(23) ^ one).wrapping_mul(PRIME));
    hashes.windows(n).map(run).collect::<Vec<_>>().into_iter()
}

/// An odd constant with its bits well spread (of SplitMix64).
const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;

/// The least values of hashes of a text's shingles, cut to 16 bits: the share of equal values of two texts estimates
/// how much of their shingles is common (Broder 1997; Li and König 2010 for the cut).
pub(super) fn signature(text: &str) -> Signature {
    let lower = text.to_lowercase();
    let mut least = [u32::MAX; VALUES];
    for shingle in runs(&plain_words(&lower), SHINGLE) {
        let (low, high) = (shingle as u32, (shingle >> 32) as u32 | 1);
        for (i, least) in least.iter_mut().enumerate() {
            *least = mixed(low.wrapping_add(high.wrapping_mul(i as u32))).min(*least);
        }
    }
    least.map(|value| value as u16)
}

/// A permutation of 32 bits (the finaliser of MurmurHash3).
fn mixed(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

/// The same for 64 bits (of SplitMix64).
pub(super) fn mixed64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The share of equal values.
pub(super) fn similarity(a: &Signature, b: &Signature) -> f64 {
    a.iter().zip(b).filter(|(a, b)| a == b).count() as f64 / VALUES as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_keep_what_counts() {
        assert_eq!(collapsed(" Is  $A$\n+ 1? "), "is $a$ + 1?");
        assert_eq!(squashed("Is $\\frac{1}{2}$, or 12?"), "isfrac1 2or12");
        assert_ne!(squashed("3 7 12 = 45"), squashed("37 12 = 45"));
        assert_eq!(numbers("2 of 10"), numbers("10, then 2"));
        assert_ne!(numbers("2 of 10"), numbers("2 of 11"));
    }

    proptest! {
        /// The estimate against the exact share of common shingles.
        #[test]
        fn signatures_estimate_the_similarity(
            words in proptest::collection::vec("[a-z]{3,8}", 60..120), changed in proptest::collection::btree_set(0..60usize, 0..12),
        ) {
            let mut other = words.clone();
            changed.iter().for_each(|&at| other[at] = format!("x{at}"));
            let shingles = |words: &[String]| words.windows(SHINGLE).map(|run| run.join(" ")).collect::<BTreeSet<_>>();
            let (a, b) = (shingles(&words), shingles(&other));
            let exact = a.intersection(&b).count() as f64 / a.union(&b).count() as f64;
            let estimate = similarity(&signature(&words.join(" ")), &signature(&other.join("  ")));
            prop_assert!((exact - estimate).abs() < 0.3, "{exact} {estimate}");
        }
    }

    #[test]
    fn short_texts_have_signatures_too() {
        assert_eq!(similarity(&signature("One two."), &signature("one TWO")), 1.0);
        assert!(similarity(&signature("one"), &signature("two")) < 0.2);
        assert_eq!(signature(""), [u16::MAX; VALUES]);
    }
}
