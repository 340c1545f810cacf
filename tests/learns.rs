//! Training teaches: the loss of a small model falls under imitation, its reward rises under GRPO.

use super::digits::{Records, recipe, run};

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn the_loss_of_a_small_model_falls_and_its_reward_rises() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = recipe(folder.path(), &[]);
    let mut records = Records::default();
    let summary = run(&recipe, &folder.path().join("run"), &mut records).unwrap();

    let loss = records.of("imitate", "loss");
    let (first, last) = (loss[0], mean(&loss[loss.len() - 5..]));
    assert!(last < 0.4 * first, "SFT loss: {first} at first, {last} at last");

    let reward = records.of("explore", "reward");
    let (first, last) = (mean(&reward[..5]), mean(&reward[reward.len() - 5..]));
    assert!(first < -0.4 && last > 0.4, "reward: {reward:?}");
    let gaps = records.of("explore", "log_prob_gap_max");
    assert!(gaps.iter().all(|&gap| gap < 1e-4), "engine and trainer differ by up to {gaps:?}");
    let blocks = mean(&records.of("explore", "parallel_ratio")[..5]);
    assert!(blocks > 0.3, "three of four demonstrations have a block, {blocks} of the responses");

    let accuracy = &summary.tiers[0].accuracy;
    assert!(accuracy["parallel_rl"] > accuracy["sft"] + 0.4, "accuracy: {accuracy:?}");
}
