//! AdamW over a model's parameters: accumulated gradients, clipping by global norm, learning-rate schedules, and
//! moments that can be saved.

use std::collections::BTreeMap;

use candle_core::{DType, Result, Var};
use serde::{Deserialize, Serialize};

use crate::kernels::{AdamWStep, adamw};
pub use crate::model::Gradients;
use crate::model::{Decoder, Weights};

/// The learning rate over a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LrSchedule {
    /// The same after the warm-up.
    Constant,
    /// Half a cosine down to a tenth of the peak.
    #[default]
    Cosine,
}

/// Settings of the optimizer, as a recipe writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimConfig {
    /// Peak learning rate.
    pub lr: f64,
    /// How it changes.
    pub schedule: LrSchedule,
    /// Share of the steps over which it rises from zero.
    pub warmup: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay, on matrices only.
    pub weight_decay: f64,
    /// Largest global norm of the gradient; 0 sets no limit.
    pub max_grad_norm: f64,
}

impl Default for OptimConfig {
    /// The paper's SFT settings (PAPER.md, "The recipe", 2).
    fn default() -> Self {
        Self {
            lr: 1e-5,
            schedule: LrSchedule::Cosine,
            warmup: 0.1,
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-8,
            weight_decay: 0.01,
            max_grad_norm: 1.0,
        }
    }
}

impl OptimConfig {
    /// The learning rate of step `step` (from 0) of `steps`.
    pub fn rate(&self, step: usize, steps: usize) -> f64 {
        let warm = (self.warmup * steps as f64).ceil();
        let at = step as f64;
        if at < warm {
            return self.lr * (at + 1.0) / warm;
        }
        match self.schedule {
            LrSchedule::Constant => self.lr,
            LrSchedule::Cosine => {
                let progress = (at - warm) / (steps as f64 - warm).max(1.0);
                self.lr * (0.1 + 0.45 * (1.0 + (std::f64::consts::PI * progress).cos()))
            }
        }
    }
}

/// The optimizer: moments for each parameter that has had a gradient, and the number of steps taken.
#[derive(Default)]
pub struct AdamW {
    moments: BTreeMap<String, Var>,
    steps: usize,
}

impl AdamW {
    /// Takes one step at learning rate `lr` and returns the gradient's norm before clipping.
    pub fn step(
        &mut self,
        decoder: &mut Decoder,
        grads: &Gradients,
        config: &OptimConfig,
        lr: f64,
    ) -> Result<f64> {
        let norm = grads.norm()?;
        if !norm.is_finite() {
            candle_core::bail!(
                "the gradient's norm is {norm}: training diverged (a lower learning rate may help)"
            );
        }
        self.steps += 1;
        let clip = config.max_grad_norm;
        let grad_scale = if clip > 0.0 && norm > clip { clip / norm } else { 1.0 };
        for (name, var) in decoder.vars() {
            let Some(grad) = grads.get(name) else { continue };
            if !self.moments.contains_key(name) {
                let zeros = Var::zeros((2, var.elem_count()), DType::F32, var.device())?;
                self.moments.insert(name.clone(), zeros);
            }
            let decay = if var.rank() > 1 { config.weight_decay } else { 0.0 };
            let step = AdamWStep {
                lr,
                beta1: config.beta1,
                beta2: config.beta2,
                eps: config.eps,
                weight_decay: decay,
                step: self.steps,
                grad_scale,
            };
            adamw(var, grad, &self.moments[name], &step)?;
        }
        decoder.refresh()?;
        Ok(norm)
    }

    /// Steps taken.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The moments by parameter name, `[2, elements]` each.
    pub fn state(&self) -> Weights {
        self.moments.iter().map(|(name, var)| (name.clone(), var.as_detached_tensor())).collect()
    }

    /// An optimizer that goes on from saved moments.
    pub fn from_state(state: &Weights, steps: usize) -> Result<Self> {
        let moments = state.iter().map(|(name, t)| Ok((name.clone(), Var::from_tensor(&t.copy()?)?)));
        Ok(Self { moments: moments.collect::<Result<_>>()?, steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_warms_up_peaks_and_falls_to_a_tenth() {
        let config = OptimConfig { lr: 1.0, warmup: 0.1, ..OptimConfig::default() };
        assert_eq!(config.rate(0, 100), 0.1);
        assert_eq!(config.rate(9, 100), 1.0);
        assert_eq!(config.rate(10, 100), 1.0);
        assert!((config.rate(55, 100) - 0.55).abs() < 1e-9);
        assert!(config.rate(99, 100) < 0.11);
        let flat = OptimConfig { schedule: LrSchedule::Constant, warmup: 0.0, ..config };
        assert_eq!(flat.rate(0, 100), 1.0);
        assert_eq!(flat.rate(99, 100), 1.0);
    }
}
