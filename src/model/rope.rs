//! Rotary frequencies, and how a configuration scales them to texts longer than the model was trained on.
//!
//! Computed in f32, in the order of transformers' `modeling_rope_utils.py`: at far positions an angle is so large that
//! the rounding of its frequency shows, and the model was trained with that rounding.

use std::f32::consts::PI;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Config;

/// How rotary frequencies are scaled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "lowercase")]
pub enum RopeScaling {
    /// All positions are divided by a factor (Chen et al. 2023, arXiv 2306.15595).
    Linear {
        /// The factor.
        factor: f32,
    },
    /// Long wavelengths are divided by a factor, short ones kept, those between blended (Llama 3.1).
    Llama3 {
        /// The factor.
        factor: f32,
        /// Wavelengths above `original_max_position_embeddings / low_freq_factor` are long.
        low_freq_factor: f32,
        /// Wavelengths below `original_max_position_embeddings / high_freq_factor` are short.
        high_freq_factor: f32,
        /// Positions that the model was first trained on.
        original_max_position_embeddings: usize,
    },
    /// Interpolation by frequency, and a factor on the attention's scores.
    Yarn(Yarn),
}

/// YaRN (Peng et al. 2023, arXiv 2309.00071).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Yarn {
    /// The factor that the original range is stretched by.
    pub factor: f32,
    /// Positions that the model was first trained on; `max_position_embeddings` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_max_position_embeddings: Option<usize>,
    /// Factor on cosines and sines; derived from `factor` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_factor: Option<f32>,
    /// Dimensions with more rotations than this within the original range are not scaled; 32 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta_fast: Option<f32>,
    /// Dimensions with fewer rotations than this are scaled in full; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta_slow: Option<f32>,
    /// Weighs the logarithm of the factor in the attention factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mscale: Option<f32>,
    /// The same in the denominator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mscale_all_dim: Option<f32>,
    /// Whether the blended range of dimensions is rounded outwards; true when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncate: Option<bool>,
}

const ORIGINAL: &str = "original_max_position_embeddings";

/// Puts the rotary settings of transformers 5 (`rope_parameters`) and of older files (`rope_theta`, `rope_scaling`
/// with `type`) into one form: `rope_theta`, and `rope_scaling` with `rope_type`, absent where nothing is scaled.
pub(super) fn to_one_form(config: &mut Value) -> Result<(), String> {
    let Some(fields) = config.as_object_mut() else { return Ok(()) };
    let new = fields.remove("rope_parameters").filter(|v| !v.is_null());
    let name = if new.is_some() { "rope_parameters" } else { "rope_scaling" };
    let old = fields.remove("rope_scaling").filter(|v| !v.is_null());
    let partial = fields.get("partial_rotary_factor").cloned();
    let Some(mut rope) = new.or(old) else { return whole_heads(partial) };
    let Some(settings) = rope.as_object_mut() else {
        return Err(format!("{name}: expected an object, got {rope}"));
    };
    if let Some((key, _)) = settings.iter().find(|(_, value)| value.is_object()) {
        return Err(format!("{name}.{key}: expected one rotary base for all layers"));
    }
    whole_heads(settings.remove("partial_rotary_factor").or(partial))?;
    if let Some(theta) = settings.remove("rope_theta") {
        fields.insert("rope_theta".into(), theta);
    }
    let kind = settings.remove("type");
    let kind = settings.remove("rope_type").or(kind).unwrap_or_else(|| "default".into());
    settings.retain(|_, value| !value.is_null());
    // Some files state it beside the scaling; transformers lets that count.
    if let Some(original) = fields.get(ORIGINAL).filter(|v| !v.is_null())
        && matches!(kind.as_str(), Some("llama3" | "yarn"))
    {
        settings.insert(ORIGINAL.into(), original.clone());
    }
    match kind.as_str() {
        Some("default") => return Ok(()),
        Some("linear" | "llama3" | "yarn") => settings.insert("rope_type".into(), kind),
        _ => {
            return Err(format!(
                "rope_scaling.rope_type: expected \"default\", \"linear\", \"llama3\" or \"yarn\", got {kind}"
            ));
        }
    };
    serde_json::from_value::<RopeScaling>(rope.clone()).map_err(|e| format!("rope_scaling: {e}"))?;
    fields.insert("rope_scaling".into(), rope);
    Ok(())
}

fn whole_heads(partial: Option<Value>) -> Result<(), String> {
    match partial.filter(|part| part.as_f64() != Some(1.0) && !part.is_null()) {
        Some(part) => Err(format!("partial_rotary_factor: expected 1 (heads are rotated whole), got {part}")),
        None => Ok(()),
    }
}

impl RopeScaling {
    pub(super) fn check(&self) -> Result<(), String> {
        let positive = |field: &str, x: f32| match x.is_finite() && x > 0.0 {
            true => Ok(()),
            false => Err(format!("{field}: expected a number above 0, got {x}")),
        };
        let length = |n: usize| match n {
            1..=0x100_0000 => Ok(()),
            _ => Err(format!("original_max_position_embeddings: expected 1 to 16777216, got {n}")),
        };
        match self {
            Self::Linear { factor } => positive("factor", *factor),
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_position_embeddings } => {
                positive("factor", *factor)?;
                positive("low_freq_factor", *low_freq_factor)?;
                positive("high_freq_factor", *high_freq_factor)?;
                length(*original_max_position_embeddings)?;
                if high_freq_factor <= low_freq_factor {
                    return Err(format!(
                        "high_freq_factor: expected more than low_freq_factor = {low_freq_factor}, got \
                         {high_freq_factor}"
                    ));
                }
                Ok(())
            }
            Self::Yarn(yarn) => {
                positive("factor", yarn.factor)?;
                yarn.original_max_position_embeddings.map_or(Ok(()), length)?;
                for (field, x) in [
                    ("attention_factor", yarn.attention_factor),
                    ("beta_fast", yarn.beta_fast),
                    ("beta_slow", yarn.beta_slow),
                ] {
                    x.map_or(Ok(()), |x| positive(field, x))?;
                }
                Ok(())
            }
        }
    }

    /// Positions that the original range is stretched to. The published configurations with linear scaling and YaRN
    /// leave `max_position_embeddings` at the original range; those of Llama 3 state the stretched one.
    pub(super) fn stretched(&self, max_positions: usize) -> Option<usize> {
        match self {
            Self::Linear { factor } => Some((max_positions as f32 * factor) as usize),
            Self::Llama3 { .. } => None,
            Self::Yarn(yarn) => {
                let original = yarn.original_max_position_embeddings.unwrap_or(max_positions);
                Some((original as f32 * yarn.factor) as usize)
            }
        }
    }
}

/// The angle per position of each pair of a head's dimensions, and the factor on cosines and sines.
pub(super) fn frequencies(config: &Config) -> (Vec<f32>, f32) {
    let (dim, theta) = (config.head_dim(), config.rope_theta as f32);
    // [head_dim / 2]
    let plain: Vec<f32> = (0..dim).step_by(2).map(|i| 1.0 / theta.powf(i as f32 / dim as f32)).collect();
    match &config.rope_scaling {
        None => (plain, 1.0),
        Some(RopeScaling::Linear { factor }) => (plain.into_iter().map(|f| f / factor).collect(), 1.0),
        Some(RopeScaling::Llama3 {
            factor,
            low_freq_factor: low,
            high_freq_factor: high,
            original_max_position_embeddings: original,
        }) => {
            let original = *original as f32;
            let scaled = |f: f32| {
                let rotations = original * f / (2.0 * PI);
                if rotations > *high {
                    f
                } else if rotations < *low {
                    f / factor
                } else {
                    let smooth = (rotations - low) / (high - low);
                    (1.0 - smooth) * f / factor + smooth * f
                }
            };
            (plain.into_iter().map(scaled).collect(), 1.0)
        }
        Some(RopeScaling::Yarn(yarn)) => (yarn.frequencies(plain, config), yarn.attention_factor()),
    }
}

impl Yarn {
    fn frequencies(&self, plain: Vec<f32>, config: &Config) -> Vec<f32> {
        let dim = config.head_dim() as f64;
        let original = self.original_max_position_embeddings.unwrap_or(config.max_position_embeddings) as f64;
        // The dimension that makes so many rotations within the original range.
        let dimension = |rotations: f32| {
            let turns = original / (f64::from(rotations) * 2.0 * std::f64::consts::PI);
            dim * turns.ln() / (2.0 * config.rope_theta.ln())
        };
        let (low, high) =
            (dimension(self.beta_fast.unwrap_or(32.0)), dimension(self.beta_slow.unwrap_or(1.0)));
        let (low, high) =
            if self.truncate.unwrap_or(true) { (low.floor(), high.ceil()) } else { (low, high) };
        let (low, high) = (low.max(0.0) as f32, high.min(dim - 1.0) as f32);
        let width = if low == high { 0.001 } else { high - low };
        let blended = |(i, f): (usize, f32)| {
            let scaled = ((i as f32 - low) / width).clamp(0.0, 1.0);
            f / self.factor * scaled + f * (1.0 - scaled)
        };
        plain.into_iter().enumerate().map(blended).collect()
    }

    fn attention_factor(&self) -> f32 {
        let log = |scale: f32| if self.factor <= 1.0 { 1.0 } else { 0.1 * scale * self.factor.ln() + 1.0 };
        let derived = match (self.mscale.unwrap_or(0.0), self.mscale_all_dim.unwrap_or(0.0)) {
            (a, b) if a != 0.0 && b != 0.0 => log(a) / log(b),
            _ => log(1.0),
        };
        self.attention_factor.unwrap_or(derived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(scaling: Option<RopeScaling>) -> Config {
        Config { head_dim: Some(8), rope_theta: 10_000.0, rope_scaling: scaling, ..Config::tiny(10) }
    }

    #[test]
    fn frequencies_fall_from_one_by_the_base() {
        let (plain, factor) = frequencies(&config(None));
        assert_eq!((plain.len(), plain[0], factor), (4, 1.0, 1.0));
        assert!((plain[2] - 0.01).abs() < 1e-8);
        let (half, _) = frequencies(&config(Some(RopeScaling::Linear { factor: 2.0 })));
        assert_eq!(half[0], 0.5);
    }

    #[test]
    fn llama3_keeps_short_waves_and_stretches_long_ones() {
        let scaling = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 100,
        };
        let ((scaled, _), (plain, _)) = (frequencies(&config(Some(scaling))), frequencies(&config(None)));
        // 100 positions are 15.9, 1.59, 0.159 rotations.
        assert_eq!(scaled[0], plain[0]);
        assert!(scaled[1] < plain[1] && scaled[1] > plain[1] / 8.0);
        assert_eq!(scaled[2], plain[2] / 8.0);
    }
}
