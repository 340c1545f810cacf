//! How sure a gain is: resampling of seeds and of problems.
//!
//! Two things are drawn at random in a study and would come out otherwise next time: the seeds of training and the
//! problems. A hierarchical bootstrap draws both anew, with replacement: seeds first, then the problems of each tier. Both
//! arms are looked at with the same draw, since they share seeds and problems.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A value by tier, seed and problem, from 0 to 1: the part of a problem's samples that counts as right.
pub type Grid = Vec<Vec<Vec<f64>>>;

/// Draws; the ends of a 95 % interval then rest on fifty draws each.
const RESAMPLES: usize = 2000;

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Which seeds and which problems of each tier are looked at.
struct Draw {
    seeds: Vec<usize>,
    problems: Vec<Vec<usize>>,
}

/// The mean over tiers of the mean over seeds and problems. Tiers count alike, whatever their number of problems.
pub fn accuracy(grid: &Grid) -> Estimate {
    estimate(grid, |draw| mean(grid, draw))
}

/// `arm / baseline - 1` of that mean: 0.084 is a gain of 8.4 %. Both grids have the same tiers, seeds and problems. `None`
/// where the baseline is (nearly) always wrong: nothing is a share of nothing.
pub fn gain(arm: &Grid, baseline: &Grid) -> Option<Estimate> {
    let gain = estimate(arm, |draw| mean(arm, draw) / mean(baseline, draw) - 1.0);
    [gain.value, gain.low, gain.high].iter().all(|number| number.is_finite()).then_some(gain)
}

fn estimate(shape: &Grid, value: impl Fn(&Draw) -> f64) -> Estimate {
    let seeds = shape.first().map_or(0, Vec::len);
    let problems = |tier: &Vec<Vec<f64>>| tier.first().map_or(0, Vec::len);
    let whole = Draw {
        seeds: (0..seeds).collect(),
        problems: shape.iter().map(|tier| (0..problems(tier)).collect()).collect(),
    };
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut again = |n: usize| -> Vec<usize> { (0..n).map(|_| rng.random_range(0..n)).collect() };
    let mut values: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            value(&Draw {
                seeds: again(seeds),
                problems: shape.iter().map(|tier| again(problems(tier))).collect(),
            })
        })
        .collect();
    values.sort_by(f64::total_cmp);
    let at = |q: f64| values[(q * (RESAMPLES - 1) as f64).round() as usize];
    Estimate { value: value(&whole), low: at(0.025), high: at(0.975) }
}

fn mean(grid: &Grid, draw: &Draw) -> f64 {
    let tier = |(tier, problems): (&Vec<Vec<f64>>, &Vec<usize>)| {
        let of_seed = |&seed: &usize| problems.iter().map(|&problem| tier[seed][problem]).sum::<f64>();
        draw.seeds.iter().map(of_seed).sum::<f64>() / (draw.seeds.len() * problems.len()).max(1) as f64
    };
    grid.iter().zip(&draw.problems).map(tier).sum::<f64>() / grid.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_by_hand() {
        // Two tiers: of two seeds with two problems, and with one.
        let arm = vec![vec![vec![1.0, 0.0], vec![1.0, 1.0]], vec![vec![0.5], vec![0.0]]];
        let baseline = vec![vec![vec![0.5, 0.5], vec![0.5, 0.5]], vec![vec![0.25], vec![0.25]]];
        assert_eq!(accuracy(&arm).value, (0.75 + 0.25) / 2.0);
        assert_eq!(gain(&arm, &baseline).unwrap().value, 0.5 / 0.375 - 1.0);
        assert_eq!(gain(&arm, &arm), Some(Estimate { value: 0.0, low: 0.0, high: 0.0 }));
        let nothing = vec![vec![vec![0.0; 2]; 2], vec![vec![0.0]; 2]];
        assert_eq!((gain(&arm, &nothing), gain(&nothing, &nothing)), (None, None));
    }

    /// Every draw of two seeds and three problems, each as likely as the others, against what is drawn at random.
    #[test]
    fn the_interval_agrees_with_all_draws() {
        let arm = vec![vec![vec![0.9, 0.2, 0.4], vec![0.7, 0.1, 0.8]]];
        let baseline = vec![vec![vec![0.5, 0.3, 0.2], vec![0.6, 0.2, 0.4]]];
        let mut all = Vec::new();
        for seeds in 0..4usize {
            for problems in 0..27usize {
                let seeds = [seeds % 2, seeds / 2];
                let problems = [problems % 3, problems / 3 % 3, problems / 9];
                let sum = |grid: &Grid| -> f64 {
                    seeds
                        .iter()
                        .flat_map(|&s| problems.iter().map(move |&p| (s, p)))
                        .map(|(s, p)| grid[0][s][p])
                        .sum()
                };
                all.push(sum(&arm) / sum(&baseline) - 1.0);
            }
        }
        let found = gain(&arm, &baseline).unwrap();
        let share =
            |below: &dyn Fn(f64) -> bool| all.iter().filter(|v| below(**v)).count() as f64 / all.len() as f64;
        // The exact distribution has steps of some size, so its shares below and above the ends are within that of 2.5 %.
        assert!(
            share(&|v| v < found.low - 1e-9) <= 0.025 + 0.01
                && share(&|v| v <= found.low + 1e-9) >= 0.025 - 0.01
        );
        assert!(
            share(&|v| v > found.high + 1e-9) <= 0.025 + 0.01
                && share(&|v| v >= found.high - 1e-9) >= 0.025 - 0.01
        );
        assert!(found.low < found.value && found.value < found.high);
    }

    #[test]
    fn more_seeds_make_a_narrower_interval() {
        let few = vec![(0..2).map(|seed| vec![f64::from(seed); 50]).collect::<Vec<_>>()];
        let many = vec![(0..20).map(|seed| vec![f64::from(seed % 2); 50]).collect::<Vec<_>>()];
        let width = |grid: &Grid| accuracy(grid).high - accuracy(grid).low;
        // All of the spread is between seeds: problems alone would give an interval of no width.
        assert!(width(&few) > 0.9 && width(&many) < 0.6, "{} {}", width(&few), width(&many));
    }
}
