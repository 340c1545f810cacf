//! Weights on disk: `model.safetensors`, or shards with an index, as Hugging Face writes them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use candle_core::safetensors::MmapedSafetensors;
use candle_core::{DType, Device, Tensor};
use safetensors::{Dtype, View};

use super::parameters::{HEAD, parameter_shapes};
use super::{Config, Decoder, ModelError, plain};

/// Tensors by name.
pub type Weights = BTreeMap<String, Tensor>;

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Reads a model folder (`config.json` and weights in any float type) as f32.
pub fn load(folder: &Path, device: &Device) -> Result<Decoder, ModelError> {
    let config = Config::read(&folder.join("config.json"))?;
    let wrong = |reason: String| ModelError::Weights { path: folder.into(), reason };
    let stored = map(&files(folder)?).map_err(|e| wrong(plain(e)))?;
    let mut names = BTreeSet::new();
    for (name, tensor) in stored.tensors() {
        if !matches!(tensor.dtype(), Dtype::F32 | Dtype::F16 | Dtype::BF16) {
            let got = tensor.dtype();
            return Err(wrong(format!("tensor {name}: expected the type F32, F16 or BF16, got {got:?}")));
        }
        names.insert(name);
    }
    let known: BTreeSet<String> = parameter_shapes(&config).into_iter().map(|(name, _)| name).collect();
    // Old files hold the rotary frequencies, and some a copy of a tied head.
    let harmless = |name: &str| name.ends_with("rotary_emb.inv_freq") || name == HEAD;
    if let Some(name) = names.difference(&known).find(|name| !harmless(name)) {
        let family = config.model_type.name();
        return Err(wrong(format!("tensor {name}: not a part of the {family} decoder of config.json")));
    }
    Decoder::from_source(config, |name| match names.contains(name) {
        true => stored.load(name, device).map(Some),
        false => Ok(None),
    })
}

/// Files of tensors as memory maps, so that one tensor at a time is read.
#[allow(unsafe_code)]
fn map(files: &[PathBuf]) -> candle_core::Result<MmapedSafetensors> {
    // SAFETY: the maps are read-only and are gone when the model is loaded. Who writes into a model's files while it is
    // being loaded gets a damaged model, as with reading.
    unsafe { MmapedSafetensors::multi(files) }
}

/// The tensors of one file.
pub(super) fn read(path: &Path) -> Result<Weights, ModelError> {
    let tensors = candle_core::safetensors::load(path, &Device::Cpu)
        .map_err(|e| ModelError::Weights { path: path.into(), reason: plain(e) })?;
    Ok(tensors.into_iter().collect())
}

/// The files of a folder's weights.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let single = folder.join(SINGLE);
    if single.is_file() {
        return Ok(vec![single]);
    }
    let path = folder.join(INDEX);
    if !path.is_file() {
        return Err(ModelError::NoWeights { path: folder.into() });
    }
    let text =
        std::fs::read_to_string(&path).map_err(|source| ModelError::Read { path: path.clone(), source })?;
    shards(&text)
        .map(|names| names.into_iter().map(|name| folder.join(name)).collect::<Vec<_>>())
        .and_then(|files| match files.iter().find(|file| !file.is_file()) {
            Some(file) => Err(format!("weight_map: {} is missing", file.display())),
            None => Ok(files),
        })
        .map_err(|reason| ModelError::Weights { path, reason })
}

/// File names in an index; a name that leaves the folder is refused.
fn shards(index: &str) -> Result<BTreeSet<String>, String> {
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: HashMap<String, String>,
    }
    let index: Index = serde_json::from_str(index).map_err(|e| e.to_string())?;
    match index.weight_map.values().find(|name| Path::new(name).components().count() != 1 || *name == "..") {
        Some(name) => Err(format!("weight_map: expected a file name, got {name:?}")),
        None => Ok(index.weight_map.into_values().collect()),
    }
}

/// Writes `config.json` and `model.safetensors`, the tensors as `dtype`.
pub fn save(decoder: &Decoder, folder: &Path, dtype: DType) -> Result<(), ModelError> {
    std::fs::create_dir_all(folder).map_err(|source| ModelError::Read { path: folder.into(), source })?;
    let path = folder.join("config.json");
    let mut config = serde_json::to_value(decoder.config())
        .map_err(|e| ModelError::Config { path: path.clone(), reason: e.to_string() })?;
    config["torch_dtype"] = match dtype {
        DType::BF16 => "bfloat16",
        DType::F16 => "float16",
        _ => "float32",
    }
    .into();
    std::fs::write(&path, format!("{config:#}\n")).map_err(|source| ModelError::Read { path, source })?;
    let parts = parameter_shapes(decoder.config());
    let parts = parts.into_iter().map(|(name, shape)| (name.clone(), Part { decoder, name, shape, dtype }));
    write_views(&folder.join(SINGLE), parts)
}

/// A parameter that is made when it is written, so that a merged or dequantised model is never held as a whole.
struct Part<'a> {
    decoder: &'a Decoder,
    name: String,
    shape: Vec<usize>,
    dtype: DType,
}

impl View for Part<'_> {
    fn dtype(&self) -> Dtype {
        match self.dtype {
            DType::BF16 => Dtype::BF16,
            DType::F16 => Dtype::F16,
            _ => Dtype::F32,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let made = self.decoder.weight(&self.name).and_then(|tensor| tensor.to_dtype(self.dtype));
        let tensor = made.expect("a decoder has its own parameters, in a type that converts");
        Cow::Owned(View::data(&tensor).into_owned())
    }

    fn data_len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size_in_bytes()
    }
}

/// Writes a file of tensors as `dtype`.
pub(super) fn write(path: &Path, tensors: Weights, dtype: DType) -> Result<(), ModelError> {
    let tensors: Vec<(String, Tensor)> = tensors
        .into_iter()
        .map(|(name, tensor)| Ok((name, tensor.to_dtype(dtype)?)))
        .collect::<Result<_, ModelError>>()?;
    write_views(path, tensors)
}

fn write_views<V: View>(
    path: &Path,
    tensors: impl IntoIterator<Item = (String, V)>,
) -> Result<(), ModelError> {
    // transformers refuses a file without this entry.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize_to_file(tensors, Some(metadata), path)
        .map_err(|e| ModelError::Weights { path: path.into(), reason: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_model_loads_again_unchanged() -> Result<(), ModelError> {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let decoder = Decoder::random(&Config::tiny(11), 3)?;
        for (dtype, name) in [(DType::F16, "float16"), (DType::BF16, "bfloat16"), (DType::F32, "float32")] {
            save(&decoder, folder, dtype)?;
            let config = std::fs::read_to_string(folder.join("config.json")).expect("it was written");
            assert!(config.contains(&format!("\"torch_dtype\": \"{name}\"")), "{config}");
        }
        let again = load(folder, &Device::Cpu)?;
        assert_eq!(again.config(), decoder.config());
        for (name, var) in decoder.vars() {
            let other = again.vars()[name].flatten_all()?.to_vec1::<f32>()?;
            assert_eq!(var.flatten_all()?.to_vec1::<f32>()?, other, "{name}");
        }
        std::fs::remove_file(folder.join(SINGLE)).expect("the file was written");
        let message = load(folder, &Device::Cpu).map(|_| ()).expect_err("no weights").to_string();
        assert!(message.contains("no model.safetensors"), "{message}");
        let counts = Tensor::zeros(3, DType::I64, &Device::Cpu)?;
        candle_core::safetensors::save(&HashMap::from([("x".to_owned(), counts)]), folder.join(SINGLE))?;
        let message = load(folder, &Device::Cpu).map(|_| ()).expect_err("whole numbers").to_string();
        assert!(message.contains("tensor x: expected the type F32, F16 or BF16, got I64"), "{message}");
        Ok(())
    }

    #[test]
    fn an_index_cannot_name_files_outside_its_folder() {
        assert!(shards(r#"{"weight_map": {"a": "model-1.safetensors"}}"#).is_ok());
        for name in ["../x", "/etc/passwd", "a/b", ".."] {
            let message = shards(&format!(r#"{{"weight_map": {{"a": {name:?}}}}}"#)).unwrap_err();
            assert_eq!(message, format!("weight_map: expected a file name, got {name:?}"));
        }
    }
}
