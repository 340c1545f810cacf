//! The numbers that a benchmark reports, and how sure they are.
//!
//! Per problem there are n samples, c of them right. The functions work on one problem; the benchmark's
//! figure is their [`mean`] over problems, with a [`bootstrap_interval`] over problems (samples of one
//! problem are not independent, problems are).

use serde::{Deserialize, Serialize};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// mean@k of one problem: the part of its samples that is right. `None` without samples.
pub fn mean_at_k(correct: &[bool]) -> Option<f64> {
    let right = correct.iter().filter(|&&c| c).count();
    (!correct.is_empty()).then(|| right as f64 / correct.len() as f64)
}

/// pass@k of one problem: the chance that at least one of k samples is right, estimated without bias
/// from `n` samples of which `c` are right. `None` unless 1 <= k <= n and c <= n.
///
/// 1 - C(n-c, k) / C(n, k), as in Chen et al. 2021 (<https://arxiv.org/abs/2107.03374>), as the product
/// of (1 - k/i) for i in n-c+1..=n, which neither overflows nor cancels.
pub fn pass_at_k(n: usize, c: usize, k: usize) -> Option<f64> {
    if k == 0 || k > n || c > n {
        return None;
    }
    if n - c < k {
        return Some(1.0);
    }
    let none_right: f64 = (n - c + 1..=n).map(|i| 1.0 - k as f64 / i as f64).product();
    Some(1.0 - none_right)
}

/// A range of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The range that holds the middle `level` (such as 0.95) of the means of `resamples` resampled sets.
///
/// `values` has one value per problem. The same seed gives the same interval. `None` without values or
/// resamples, or with a level outside 0 to 1.
pub fn bootstrap_interval(values: &[f64], level: f64, resamples: usize, seed: u64) -> Option<Interval> {
    if values.is_empty() || resamples == 0 || !(0.0..=1.0).contains(&level) {
        return None;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let n = values.len();
    let mut draw = || (0..n).map(|_| values[rng.random_range(0..n)]).sum::<f64>() / n as f64;
    let mut means: Vec<f64> = (0..resamples).map(|_| draw()).collect();
    means.sort_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    Some(Interval { low: quantile(&means, tail), high: quantile(&means, 1.0 - tail) })
}

/// The quantile of sorted values, between neighbours in proportion.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// pass@k by looking at every set of k of the n samples.
    fn pass_by_enumeration(n: usize, c: usize, k: usize) -> f64 {
        let (mut sets, mut passed) = (0u32, 0u32);
        for set in 0u32..1 << n {
            if set.count_ones() as usize == k {
                sets += 1;
                passed += u32::from(set & ((1 << c) - 1) != 0); // the first c are right
            }
        }
        f64::from(passed) / f64::from(sets)
    }

    #[test]
    fn pass_at_k_is_the_count_over_all_sets() {
        for n in 1..=10 {
            for c in 0..=n {
                for k in 1..=n {
                    let got = pass_at_k(n, c, k).unwrap();
                    assert!((got - pass_by_enumeration(n, c, k)).abs() < 1e-12, "{n} {c} {k}: {got}");
                }
            }
        }
    }

    #[test]
    fn pass_at_k_of_many_samples_and_at_its_edges() {
        assert_eq!(pass_at_k(10_000, 0, 5_000), Some(0.0));
        assert_eq!(pass_at_k(10_000, 5_001, 5_000), Some(1.0));
        let rare = pass_at_k(1_000_000, 1, 10).unwrap();
        assert!((rare - 1e-5).abs() < 1e-15);
        assert_eq!(pass_at_k(4, 2, 0), None);
        assert_eq!(pass_at_k(4, 2, 5), None);
        assert_eq!(pass_at_k(4, 5, 2), None);
    }

    #[test]
    fn means() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(mean_at_k(&[]), None);
        assert_eq!(mean_at_k(&[true, false, false, true]), Some(0.5));
    }

    #[test]
    fn intervals_are_seeded_and_hold_the_mean() {
        let values: Vec<f64> = (0..200).map(|i| f64::from(i % 4 == 0)).collect();
        let interval = bootstrap_interval(&values, 0.95, 2000, 7).unwrap();
        assert_eq!(bootstrap_interval(&values, 0.95, 2000, 7), Some(interval));
        assert_ne!(bootstrap_interval(&values, 0.95, 2000, 8), Some(interval));
        // The normal approximation: 0.25 +- 1.96 sqrt(0.25 * 0.75 / 200) = 0.19 to 0.31.
        assert!((interval.low - 0.19).abs() < 0.015 && (interval.high - 0.31).abs() < 0.015, "{interval:?}");
    }

    #[test]
    fn the_interval_of_few_values_is_that_of_all_resamples() {
        let values = [0.0, 0.25, 0.5, 0.5, 1.0];
        let resample = |code: usize| (0..5).map(|i| values[code / 5usize.pow(i) % 5]).sum::<f64>() / 5.0;
        let mut means: Vec<f64> = (0..5usize.pow(5)).map(resample).collect();
        means.sort_by(f64::total_cmp);
        let drawn = bootstrap_interval(&values, 0.9, 20_000, 1).unwrap();
        for (got, q) in [(drawn.low, 0.05), (drawn.high, 0.95)] {
            let all = means[(q * means.len() as f64) as usize];
            assert!((got - all).abs() < 0.03, "{got} against {all}");
        }
    }

    #[test]
    fn intervals_at_their_edges() {
        let same = Some(Interval { low: 0.5, high: 0.5 });
        assert_eq!(bootstrap_interval(&[0.5; 9], 0.95, 100, 0), same);
        assert_eq!(bootstrap_interval(&[0.5], 0.95, 1, 0), same);
        assert_eq!(bootstrap_interval(&[], 0.95, 100, 0), None);
        assert_eq!(bootstrap_interval(&[0.5], 0.95, 0, 0), None);
        assert_eq!(bootstrap_interval(&[0.5], 1.5, 100, 0), None);
    }

    proptest! {
        #[test]
        fn pass_at_k_rises_with_k_from_the_mean(n in 1usize..200, c in 0usize..200) {
            let c = c.min(n);
            prop_assert!((pass_at_k(n, c, 1).unwrap() - c as f64 / n as f64).abs() < 1e-12);
            let curve: Vec<f64> = (1..=n).map(|k| pass_at_k(n, c, k).unwrap()).collect();
            prop_assert!(curve.windows(2).all(|w| w[0] <= w[1] + 1e-12));
        }

        #[test]
        fn intervals_are_ordered_and_within_the_values(values in prop::collection::vec(0.0f64..1.0, 1..30), seed: u64) {
            let Interval { low, high } = bootstrap_interval(&values, 0.9, 50, seed).unwrap();
            let (min, max) = values.iter().fold((1.0f64, 0.0f64), |(a, b), &v| (a.min(v), b.max(v)));
            prop_assert!(min - 1e-12 <= low && low <= high && high <= max + 1e-12);
        }
    }
}
