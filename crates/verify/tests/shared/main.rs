//! The judge against data that doesn't belong to the repository: a folder `shared/` beside the checkout.
//! Without it these tests say so and pass.

#![allow(clippy::unwrap_used)] // a test may panic

mod golds;
mod solutions;
mod cases;

use std::path::PathBuf;

use serde_json::Value;

/// The lines of a shared file; says so and returns none if it isn't there.
fn lines(name: &str) -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => text.lines().map(str::to_owned).collect(),
        Err(error) => {
            eprintln!("SKIPPED: {}: {error}", path.display());
            Vec::new()
        }
    }
}

/// The `answer` of each row of a shared data file.
fn answers(name: &str) -> Vec<String> {
    let answer = |line: &String| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["answer"].as_str().unwrap().to_owned()
    };
    lines(&format!("data/{name}.jsonl")).iter().map(answer).collect()
}
