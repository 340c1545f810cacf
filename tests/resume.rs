//! A run that is stopped and resumed ends as if it had never been stopped, bit for bit.

use std::collections::BTreeMap;
use std::path::Path;

use parallel_r1::model::{LoraConfig, Precision};
use parallel_r1::train::metrics::StepMetrics;
use parallel_r1::train::recipe::Recipe;

use super::digits::{Records, recipe, run};

const SHORT: [&str; 2] = ["arms.0.stages.0.sft.steps=30", "arms.0.stages.1.grpo.steps=5"];

/// Checks that nothing differs but the clock.
fn assert_same_records(steps: &[StepMetrics], expected: &[StepMetrics]) {
    assert_eq!(steps.len(), expected.len());
    for (got, expected) in steps.iter().zip(expected) {
        assert_eq!((&got.stage, got.step), (&expected.stage, expected.step));
        assert_eq!(got.values().len(), expected.values().len());
        for ((name, value), (_, want)) in got.values().iter().zip(expected.values()) {
            let same = value.to_bits() == want.to_bits() || name.contains("second");
            assert!(same, "{}, step {}: {name} is {value}, without a stop {want}", got.stage, got.step);
        }
    }
}

/// The files of the last checkpoint, by name.
fn checkpoint(run: &Path, step: usize) -> BTreeMap<String, Vec<u8>> {
    let folder = run.join(format!("checkpoints/parallel/step-{step}"));
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
    };
    std::fs::read_dir(folder).unwrap().map(entry).collect()
}

#[test]
fn a_run_stopped_in_both_stages_and_resumed_ends_bit_for_bit_the_same() {
    let folder = tempfile::tempdir().unwrap();
    stop_and_resume(&recipe(folder.path(), &SHORT), folder.path());
}

#[test]
fn so_does_a_run_that_trains_an_adapter_in_bfloat16() {
    let folder = tempfile::tempdir().unwrap();
    let plain = recipe(folder.path(), &["arms.0.stages.0.sft.steps=30", "arms.0.stages.1.grpo.steps=0"]);
    run(&plain, &folder.path().join("base"), &mut Records::default()).unwrap();
    let base = folder.path().join("base/checkpoints/parallel/step-30");
    let mut recipe = recipe(folder.path(), &SHORT);
    recipe.model.init = None;
    recipe.model.path = base.to_string_lossy().into_owned();
    recipe.model.lora = Some(LoraConfig { r: 4, ..LoraConfig::default() });
    recipe.model.precision = Precision::Bf16;
    stop_and_resume(&recipe, folder.path());
    let last = checkpoint(&folder.path().join("whole"), 35);
    assert!(last.contains_key("adapter_model.safetensors") && !last.contains_key("model.safetensors"));
}

fn stop_and_resume(recipe: &Recipe, folder: &Path) {
    let mut whole = Records::default();
    let whole_run = folder.join("whole");
    let whole_summary = run(recipe, &whole_run, &mut whole).unwrap();
    let norms = whole.of("explore", "grad_norm");
    assert!(norms[..2].iter().any(|&norm| norm > 0.0), "GRPO learned nothing before the stop: {norms:?}");
    assert!(norms[2..].iter().any(|&norm| norm > 0.0), "GRPO learned nothing after the stop: {norms:?}");

    let parts_run = folder.join("parts");
    let mut steps = Vec::new();
    for (stop_after, begins) in [
        (Some(13), vec![("imitate", 0)]),
        (Some(19), vec![("imitate", 13), ("explore", 0)]),
        (None, vec![("explore", 2)]),
    ] {
        let mut part = Records { stop_after, ..Records::default() };
        let summary = run(recipe, &parts_run, &mut part);
        assert_eq!(summary.is_some(), stop_after.is_none());
        let begun: Vec<(&str, usize)> = part.begun.iter().map(|(stage, first)| (&**stage, *first)).collect();
        assert_eq!(begun, begins);
        steps.extend(part.steps);
        let Some(summary) = summary else { continue };
        for (tier, whole) in summary.tiers.iter().zip(&whole_summary.tiers) {
            assert_eq!(tier.accuracy, whole.accuracy);
        }
    }
    assert_same_records(&steps, &whole.steps);
    let (parts, whole) = (checkpoint(&parts_run, 35), checkpoint(&whole_run, 35));
    assert_eq!(parts.keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
    for (name, bytes) in &whole {
        assert!(parts[name] == *bytes, "{name} differs");
    }
}

#[test]
fn a_finished_run_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let overrides = ["arms.0.stages.0.sft.steps=2", "arms.0.stages.1.grpo.steps=1"];
    let recipe = recipe(folder.path(), &overrides);
    let place = folder.path().join("run");
    let first = run(&recipe, &place, &mut Records::default()).unwrap();
    let mut again = Records::default();
    let second = run(&recipe, &place, &mut again).unwrap();
    assert!(again.steps.is_empty() && again.begun.is_empty());
    assert_eq!(second.seconds, first.seconds);
}
