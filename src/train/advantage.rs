//! Group-relative advantages: each response against its own group.

/// Added to the standard deviation, as in the paper's scripts.
const EPSILON: f32 = 1e-6;

/// `(r - mean) / (std + 1e-6)` within a group (arXiv 2402.03300, section 4.1), with the sample standard deviation as in
/// TRL and verl; without `scale` only the mean is taken off (Dr. GRPO, arXiv 2503.20783). A response without a reward
/// (`None`: its gold answer cannot be read) gets 0 and does not count.
pub fn advantages(rewards: &[Option<f32>], scale: bool) -> Vec<f32> {
    let known: Vec<f32> = rewards.iter().copied().flatten().collect();
    let n = known.len() as f32;
    let mean = known.iter().sum::<f32>() / n.max(1.0);
    let variance = known.iter().map(|r| (r - mean).powi(2)).sum::<f32>() / (n - 1.0).max(1.0);
    let divisor = if scale { variance.sqrt() + EPSILON } else { 1.0 };
    rewards.iter().map(|r| r.map_or(0.0, |r| (r - mean) / divisor)).collect()
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
        let close = |got: Vec<f32>, want: &[f32]| {
            assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-4), "{got:?} against {want:?}");
        };
        let group = [Some(1.0), Some(-1.0), Some(-1.0), Some(1.0)];
        let std = (4.0f32 / 3.0).sqrt();
        close(advantages(&group, true), &[1.0 / std, -1.0 / std, -1.0 / std, 1.0 / std]);
        close(advantages(&group, false), &[1.0, -1.0, -1.0, 1.0]);
        close(advantages(&[Some(1.0), None, Some(0.0)], false), &[0.5, 0.0, -0.5]);
        close(advantages(&[Some(1.0), Some(1.0)], true), &[0.0, 0.0]);
        close(advantages(&[None], true), &[0.0]);
    }

    #[test]
    fn equal_groups_teach_nothing() {
        assert!(all_equal(&[Some(1.0), Some(1.0), None]));
        assert!(all_equal(&[None, None]));
        assert!(!all_equal(&[Some(1.0), Some(-1.0)]));
    }
}
