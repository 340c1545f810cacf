//! Gives a model the six tags as tokens with rows of their own, and writes it as a Hugging Face folder.
//!
//! cargo run --release --package parallel-r1 --example add_tags -- MODEL FOLDER

use std::path::Path;

use candle_core::{DType, Device};
use parallel_r1::model::Pretrained;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, folder] = arguments.as_slice() else { return Err("expected MODEL and FOLDER".into()) };
    let mut model = Pretrained::open(model, &Device::Cpu)?;
    model.add_tags(0)?;
    Ok(model.save(Path::new(folder), DType::F32)?)
}
