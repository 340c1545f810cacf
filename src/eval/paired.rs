//! Is a difference real? Tests of paired values: two models' results on the same problems.
//!
//! What counts is the difference on each problem. That takes out how hard the problems are, which is most of the noise
//! of a mean, and assumes nothing about the shape of the values.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Up to so many differences other than zero, all signs are tried (65,536 at most).
const MOST_EXACT: usize = 16;
/// Of more, so many signs are drawn: a p of 0.05 is then known to within 0.003.
const DRAWN: usize = 20_000;

/// The two-sided p-value of the sign-flip permutation test: the chance that the mean of the differences would be at least
/// as far from zero if each had its sign by a coin. `None` without differences.
///
/// Exact for few differences, else from signs that `seed` draws, counting the signs at hand as one draw (so never 0).
pub fn sign_flip_test(differences: &[f64], seed: u64) -> Option<f64> {
    if differences.is_empty() {
        return None;
    }
    let moved: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let observed = moved.iter().sum::<f64>().abs();
    // Sums of the same numbers in another order differ by rounding.
    let slack = 1e-9 * moved.iter().map(|d| d.abs()).sum::<f64>();
    let as_far = |sum: f64| sum.abs() >= observed - slack;
    if moved.len() <= MOST_EXACT {
        let all = 1u32 << moved.len();
        let far = (0..all).filter(|signs| as_far(flipped(&moved, u64::from(*signs)))).count();
        return Some(far as f64 / f64::from(all));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = || moved.chunks(64).map(|chunk| flipped(chunk, rng.random())).sum::<f64>();
    let far = (0..DRAWN).filter(|_| as_far(draw())).count();
    Some((far + 1) as f64 / (DRAWN + 1) as f64)
}

/// The sum with the signs that are set turned.
fn flipped(values: &[f64], signs: u64) -> f64 {
    values.iter().enumerate().map(|(i, value)| if signs >> i & 1 == 1 { -value } else { *value }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All signs of all differences, zeros too, by recursion.
    fn by_enumeration(differences: &[f64]) -> f64 {
        fn sums(rest: &[f64], sum: f64, all: &mut Vec<f64>) {
            match rest.split_first() {
                None => all.push(sum),
                Some((first, rest)) => {
                    [1.0, -1.0].iter().for_each(|sign| sums(rest, sum + sign * first, all))
                }
            }
        }
        let mut all = Vec::new();
        sums(differences, 0.0, &mut all);
        let observed = differences.iter().sum::<f64>().abs();
        all.iter().filter(|sum| sum.abs() >= observed - 1e-9).count() as f64 / all.len() as f64
    }

    proptest! {
        #[test]
        fn few_differences_are_tested_exactly(quarters in prop::collection::vec(-4i32..5, 1..10), seed: u64) {
            let differences: Vec<f64> = quarters.iter().map(|q| f64::from(*q) / 4.0).collect();
            let p = sign_flip_test(&differences, seed).unwrap();
            prop_assert!((p - by_enumeration(&differences)).abs() < 1e-12, "{p}");
        }
    }

    #[test]
    fn by_hand() {
        // Of 2^5 signs only all plus and all minus are as far.
        assert_eq!(sign_flip_test(&[0.5; 5], 0), Some(2.0 / 32.0));
        assert_eq!(sign_flip_test(&[1.0, -1.0], 0), Some(1.0));
        assert_eq!(sign_flip_test(&[0.0, 0.0], 0), Some(1.0));
        assert_eq!(sign_flip_test(&[], 0), None);
    }

    /// 17 differences are one too many to try all signs here, but not for the test.
    #[test]
    fn drawn_signs_agree_with_all_signs() {
        let differences: Vec<f64> = (0..17).map(|i| f64::from(i % 5) - 1.3).collect();
        let p = sign_flip_test(&differences, 3).unwrap();
        let exact = by_enumeration(&differences);
        assert!(
            (p - exact).abs() < 4.0 * (exact * (1.0 - exact) / DRAWN as f64).sqrt(),
            "{p} against {exact}"
        );
        assert_eq!(sign_flip_test(&differences, 3), Some(p));
        assert!(sign_flip_test(&[1.0; 100], 0).unwrap() < 1e-4);
    }
}
