//! Opens a model and writes it again in Hugging Face form, in f32; with --tags as a model that has the six tags.
//!
//! cargo run --release --package parallel-r1 --example resave -- MODEL FOLDER [--tags]

use std::path::Path;

use candle_core::{DType, Device};
use parallel_r1::model::Pretrained;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, folder, rest @ ..] = &arguments[..] else {
        return Err("expected MODEL FOLDER [--tags]".into());
    };
    let mut model = Pretrained::open(name, &Device::Cpu)?;
    if rest.contains(&"--tags".into()) {
        model = model.with_tags(0)?;
    }
    model.save(Path::new(folder), DType::F32)?;
    Ok(())
}
