//! The GRPO objective, as pure functions over actions.

use candle_core::{Result, Tensor};

use super::recipe::LossType;

/// Weight of each action in the loss of a whole step. `actions[i]` counts the actions of response i (0 for one that is
/// left out); the result has one weight a response, which all its actions share. Computed before the first
/// micro-batch, so that gradients do not depend on how the step is cut.
pub fn response_weights(loss_type: LossType, actions: &[usize], max_response_tokens: usize) -> Vec<f32> {
    let responses = actions.iter().filter(|&&n| n > 0).count().max(1) as f32;
    let total = actions.iter().sum::<usize>().max(1) as f32;
    let weight = |&n: &usize| match loss_type {
        LossType::Grpo => 1.0 / (responses * n.max(1) as f32),
        LossType::Dapo => 1.0 / total,
        LossType::DrGrpo => 1.0 / (responses * max_response_tokens.max(1) as f32),
    };
    actions.iter().map(weight).collect()
}

/// What the loss needs to know of each action, besides its log-probability now. One entry an action.
pub struct ActionData {
    /// Advantage of its response.
    pub advantages: Vec<f32>,
    /// Log-probability when it was sampled.
    pub old: Vec<f32>,
    /// Log-probability under the reference model, where there is one.
    pub reference: Option<Vec<f32>>,
    /// Its weight in the loss of the step.
    pub weights: Vec<f32>,
}

/// Settings of the clipped objective.
#[derive(Clone, Copy, Debug)]
pub struct Clip {
    /// The ratio is held above 1 - epsilon_low.
    pub epsilon_low: f32,
    /// The ratio is held below 1 + epsilon_high.
    pub epsilon_high: f32,
    /// Where the advantage is negative, the loss of an action is at most so many times its size.
    pub dual: Option<f32>,
    /// Weight of the KL divergence.
    pub beta: f32,
}

/// `sum_a w_a [ -min(r_a A_a, clip(r_a) A_a) + beta KL_a ]` with `r = exp(log_prob - old)` (PPO's clipped objective,
/// arXiv 1707.06347; GRPO, arXiv 2402.03300, eq. 3) and `KL = exp(ref - log_prob) - (ref - log_prob) - 1` (the
/// unbiased, non-negative estimator of the GRPO paper, eq. 4). With a dual clip c, where A < 0 the clipped objective is
/// at least c A (arXiv 1912.09729, eq. 5). `log_probs [actions]`; the result is a scalar.
pub fn policy_loss(log_probs: &Tensor, data: &ActionData, clip: Clip) -> Result<Tensor> {
    let vector = |v: &[f32]| Tensor::from_slice(v, v.len(), log_probs.device());
    let (advantages, weights) = (vector(&data.advantages)?, vector(&data.weights)?);
    let ratio = (log_probs - vector(&data.old)?)?.exp()?;
    let clipped = ratio.clamp(1.0 - clip.epsilon_low, 1.0 + clip.epsilon_high)?;
    let mut objective = (&ratio * &advantages)?.minimum(&(clipped * &advantages)?)?;
    if let Some(dual) = clip.dual {
        // 0 where the advantage is positive, and there the objective is positive.
        let floor = (advantages.minimum(&advantages.zeros_like()?)? * f64::from(dual))?;
        objective = objective.maximum(&floor)?;
    }
    let mut losses = objective.neg()?;
    if let Some(reference) = data.reference.as_deref().filter(|_| clip.beta != 0.0) {
        let gap = (vector(reference)? - log_probs)?;
        let kl = ((gap.exp()? - &gap)? - 1.0)?;
        losses = (losses + (kl * f64::from(clip.beta))?)?;
    }
    (losses * weights)?.sum_all()
}

/// Share of actions whose ratio the clip cut off in the direction of their advantage.
pub fn clip_fraction(log_probs: &[f32], data: &ActionData, clip: Clip) -> f64 {
    let cut = log_probs.iter().zip(&data.old).zip(&data.advantages).filter(|((now, old), advantage)| {
        let ratio = (*now - *old).exp();
        (**advantage > 0.0 && ratio > 1.0 + clip.epsilon_high)
            || (**advantage < 0.0 && ratio < 1.0 - clip.epsilon_low)
            || (**advantage < 0.0 && clip.dual.is_some_and(|dual| ratio > dual))
    });
    cut.count() as f64 / log_probs.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{Device, Var};

    const CLIP: Clip = Clip { epsilon_low: 0.2, epsilon_high: 0.3, dual: None, beta: 0.1 };

    #[test]
    fn weights_average_as_each_loss_type_says() {
        let close = |got: Vec<f32>, want: [f32; 3]| {
            got.iter().zip(want).for_each(|(g, w)| assert!((g - w).abs() < 1e-7, "{got:?} against {want:?}"));
        };
        close(response_weights(LossType::Grpo, &[2, 0, 8], 10), [0.25, 0.5, 0.0625]);
        close(response_weights(LossType::Dapo, &[2, 0, 8], 10), [0.1, 0.1, 0.1]);
        close(response_weights(LossType::DrGrpo, &[2, 0, 8], 10), [0.05, 0.05, 0.05]);
    }

    #[test]
    fn loss_and_gradient_by_hand() -> Result<()> {
        // Ratios 1, 1.5 (cut at 1.3), 1.5 with a negative advantage (not cut), 0.5 with a negative one (cut).
        let old = [-1.0f32; 4];
        let now: Vec<f32> = [1.0f32, 1.5, 1.5, 0.5].iter().map(|r| r.ln() - 1.0).collect();
        let data = ActionData {
            advantages: vec![1.0, 1.0, -1.0, -1.0],
            old: old.to_vec(),
            reference: None,
            weights: vec![0.25; 4],
        };
        let var = Var::new(now.as_slice(), &Device::Cpu)?;
        let loss = policy_loss(&var, &data, CLIP)?;
        let want = 0.25 * (-1.0 - 1.3 + 1.5 + 0.8);
        assert!((loss.to_scalar::<f32>()? - want).abs() < 1e-6);
        let grads = loss.backward()?;
        let grad = grads.get(&var).expect("differentiable").to_vec1::<f32>()?;
        for (got, want) in grad.iter().zip([-0.25, 0.0, 0.375, 0.0]) {
            assert!((got - want).abs() < 1e-6, "{grad:?}");
        }
        assert_eq!(clip_fraction(&now, &data, CLIP), 0.5);
        Ok(())
    }

    #[test]
    fn a_dual_clip_bounds_what_a_bad_action_costs() -> Result<()> {
        // Ratios 4 and 2 with a negative advantage: the first costs 3 instead of 4 and gets no gradient. Ratio 0.5
        // with a positive one is as without.
        let now: Vec<f32> = [4.0f32, 2.0, 0.5].iter().map(|r| r.ln() - 1.0).collect();
        let data = ActionData {
            advantages: vec![-1.0, -1.0, 1.0],
            old: vec![-1.0; 3],
            reference: None,
            weights: vec![1.0; 3],
        };
        let dual = Clip { dual: Some(3.0), ..CLIP };
        let var = Var::new(now.as_slice(), &Device::Cpu)?;
        let loss = policy_loss(&var, &data, dual)?;
        assert!((loss.to_scalar::<f32>()? - (3.0 + 2.0 - 0.5)).abs() < 1e-5);
        let grads = loss.backward()?;
        let grad = grads.get(&var).expect("differentiable").to_vec1::<f32>()?;
        for (got, want) in grad.iter().zip([0.0, 2.0, -0.5]) {
            assert!((got - want).abs() < 1e-5, "{grad:?}");
        }
        assert_eq!(clip_fraction(&now, &data, dual), 1.0 / 3.0);
        assert_eq!(clip_fraction(&now, &data, CLIP), 0.0);
        Ok(())
    }

    #[test]
    fn the_kl_term_is_zero_at_the_reference_and_positive_elsewhere() -> Result<()> {
        let data = |reference: f32| ActionData {
            advantages: vec![0.0],
            old: vec![-1.0],
            reference: Some(vec![reference]),
            weights: vec![1.0],
        };
        let now = Tensor::new(&[-1.0f32], &Device::Cpu)?;
        assert_eq!(policy_loss(&now, &data(-1.0), CLIP)?.to_scalar::<f32>()?, 0.0);
        let away = policy_loss(&now, &data(-0.5), CLIP)?.to_scalar::<f32>()?;
        assert!((away - 0.1 * (0.5f32.exp() - 0.5 - 1.0)).abs() < 1e-6);
        Ok(())
    }
}
