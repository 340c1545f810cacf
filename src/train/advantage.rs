//! Group-relative advantages: each response against its own group.

use serde::{Deserialize, Serialize};

/// Added to the standard deviation, as in the paper's scripts.
const EPSILON: f32 = 1e-6;

/// What advantages are divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleRewards {
    /// The standard deviation of the group's rewards (arXiv 2402.03300, section 4.1).
    #[default]
    Group,
    /// The standard deviation of all rewards of the step's groups (arXiv 2508.08221; TRL's `batch`).
    Batch,
    /// Nothing: the mean alone is taken off (Dr. GRPO, arXiv 2503.20783).
    None,
}

/// `(r - mean of the group) / (std + 1e-6)` for the groups of a whole step, with the sample standard deviation as in TRL
/// and verl. A response without a reward (`None`: its gold answer cannot be read) gets 0 and does not count.
pub fn advantages(groups: &[Vec<Option<f32>>], scale: ScaleRewards) -> Vec<Vec<f32>> {
    let all = deviation(groups.iter().flatten());
    let of_group = |rewards: &Vec<Option<f32>>| {
        let mean = mean(rewards.iter());
        let divisor = match scale {
            ScaleRewards::Group => deviation(rewards.iter()) + EPSILON,
            ScaleRewards::Batch => all + EPSILON,
            ScaleRewards::None => 1.0,
        };
        rewards.iter().map(|r| r.map_or(0.0, |r| (r - mean) / divisor)).collect()
    };
    groups.iter().map(of_group).collect()
}

fn mean<'a>(rewards: impl Iterator<Item = &'a Option<f32>>) -> f32 {
    let (sum, n) = rewards.flatten().fold((0.0, 0.0f32), |(sum, n), r| (sum + r, n + 1.0));
    sum / n.max(1.0)
}

/// The sample standard deviation.
fn deviation<'a>(rewards: impl Iterator<Item = &'a Option<f32>> + Clone) -> f32 {
    let mean = mean(rewards.clone());
    let (squares, n) =
        rewards.flatten().fold((0.0, 0.0f32), |(sum, n), r| (sum + (r - mean).powi(2), n + 1.0));
    (squares / (n - 1.0).max(1.0)).sqrt()
}

/// Whether a group teaches nothing: fewer than two different rewards.
pub fn all_equal(rewards: &[Option<f32>]) -> bool {
    let mut known = rewards.iter().flatten();
    let first = known.next();
    known.all(|r| Some(r) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let close = |groups: &[Vec<Option<f32>>], scale, want: &[f32]| {
            let got = advantages(groups, scale).concat();
            assert_eq!(got.len(), want.len());
            assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-4), "{got:?} against {want:?}");
        };
        let (group, batch, none) = (ScaleRewards::Group, ScaleRewards::Batch, ScaleRewards::None);
        let first = vec![Some(1.0), Some(-1.0), Some(-1.0), Some(1.0)];
        let std = (4.0f32 / 3.0).sqrt();
        close(std::slice::from_ref(&first), group, &[1.0 / std, -1.0 / std, -1.0 / std, 1.0 / std]);
        close(std::slice::from_ref(&first), none, &[1.0, -1.0, -1.0, 1.0]);
        close(&[vec![Some(1.0), None, Some(0.0)]], none, &[0.5, 0.0, -0.5]);
        close(&[vec![Some(1.0), Some(1.0)]], group, &[0.0, 0.0]);
        close(&[vec![None]], group, &[0.0]);
        // Of 1, -1, -1, 1, 4, 2 the mean is 1 and the squares sum to 0 + 4 + 4 + 0 + 9 + 1 = 18, so the deviation is
        // sqrt(18 / 5); the second group's mean is 3.
        let std = (18.0f32 / 5.0).sqrt();
        let both = [first, vec![Some(4.0), None, Some(2.0)]];
        close(&both, batch, &[1.0, -1.0, -1.0, 1.0, 1.0, 0.0, -1.0].map(|a| a / std));
        close(&[], batch, &[]);
    }

    #[test]
    fn equal_groups_teach_nothing() {
        assert!(all_equal(&[Some(1.0), Some(1.0), None]));
        assert!(all_equal(&[None, None]));
        assert!(!all_equal(&[Some(1.0), Some(-1.0)]));
    }
}
