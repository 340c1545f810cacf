//! Rotary scaling in a GGUF file: as metadata (linear, YaRN), or as a tensor of factors (Llama 3.x).

use std::fs::File;
use std::io::BufReader;

use candle_core::Device;
use candle_core::quantized::gguf_file::Content;

use super::super::rope::{RopeScaling, Yarn, frequencies};
use super::Config;
use super::metadata::Metadata;

/// The tensor of factors that each frequency is divided by.
pub(super) const FACTORS: &str = "rope_freqs.weight";

/// What the file says of scaling; `config` is the rest of the configuration.
pub(super) fn scaling(
    content: &Content,
    file: &mut BufReader<File>,
    config: &Config,
) -> Result<Option<RopeScaling>, String> {
    let metadata = Metadata(&content.metadata);
    let key = |name: &str| format!("{}.rope.scaling.{name}", config.model_type.name());
    let stated = metadata.text(&key("type"))?;
    // As llama.cpp reads it: an old key, and linear where a factor stands alone.
    let old = metadata.float(&format!("{}.rope.scale_linear", config.model_type.name()))?;
    let factor = metadata.float(&key("factor"))?.or(old).unwrap_or(1.0) as f32;
    let kind = stated.or((factor != 1.0).then_some("linear")).filter(|kind| *kind != "none");
    if content.tensor_infos.contains_key(FACTORS) {
        return match kind {
            None => llama3(content, file, config).map(Some),
            Some(kind) => Err(format!("{}: expected nothing beside {FACTORS}, got {kind:?}", key("type"))),
        };
    }
    match kind {
        None => Ok(None),
        Some("linear") => Ok(Some(RopeScaling::Linear { factor })),
        Some("yarn") => {
            for name in ["attn_factor", "yarn_attn_factor", "yarn_ext_factor", "yarn_log_multiplier"] {
                if let Some(x) = metadata.float(&key(name))?.filter(|x| *x != 1.0) {
                    return Err(format!("{}: expected 1 or nothing, got {x}", key(name)));
                }
            }
            Ok(Some(RopeScaling::Yarn(Yarn {
                factor,
                original_max_position_embeddings: metadata.number(&key("original_context_length"))?,
                beta_fast: metadata.float(&key("yarn_beta_fast"))?.map(|x| x as f32),
                beta_slow: metadata.float(&key("yarn_beta_slow"))?.map(|x| x as f32),
                ..Yarn::default()
            })))
        }
        Some(kind) => Err(format!("{}: expected none, linear or yarn, got {kind:?}", key("type"))),
    }
}

/// The factors of Llama 3.1 to 3.3, which differ in the largest one alone. The file has forgotten the settings that
/// they were computed from, so they are computed again and compared.
fn llama3(content: &Content, file: &mut BufReader<File>, config: &Config) -> Result<RopeScaling, String> {
    let half = config.head_dim() / 2;
    let shape = content.tensor_infos[FACTORS].shape.dims();
    if shape != [half] {
        return Err(format!("tensor {FACTORS}: expected shape [{half}], got {shape:?}"));
    }
    let stored: Vec<f32> = content
        .tensor(file, FACTORS, &Device::Cpu)
        .and_then(|tensor| tensor.dequantize(&Device::Cpu)?.to_vec1())
        .map_err(|e| format!("tensor {FACTORS}: {e}"))?;
    let scaling = RopeScaling::Llama3 {
        factor: stored.iter().copied().fold(1.0, f32::max),
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 8192,
    };
    let with = |scaling| frequencies(&Config { rope_scaling: scaling, ..config.clone() }).0;
    let factors =
        with(None).into_iter().zip(with(Some(scaling.clone()))).map(|(plain, scaled)| plain / scaled);
    let same = |(computed, stored): (f32, &f32)| (computed - stored).abs() <= 1e-3 * computed;
    if factors.zip(&stored).all(same) {
        Ok(scaling)
    } else {
        Err(format!("tensor {FACTORS}: expected the factors of Llama 3.1, 3.2 or 3.3, got others"))
    }
}
