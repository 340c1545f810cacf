//! `study`: two tiny arms, from nothing to tables, and again.

use std::path::Path;

use crate::*;

/// An arm of a recipe: two steps of fine-tuning.
fn recipe(name: &str, structure: &str, data: &str) -> String {
    format!(
        "[sampling]\nnum_paths = 2\nmax_response_tokens = 60\nmax_path_tokens = 20\nmin_path_tokens = 4\nreserve_tokens = 8\n\
         [[arms]]\nname = \"{name}\"\n{structure}\n[[arms.stages]]\nname = \"cold-start\"\nstop = {{ tokens = 100 }}\n\
         [arms.stages.sft]\nsteps = 9\nbatch_size = 2\n\
         [arms.stages.sft.data]\narithmetic = {{ tiers = [\"chain-2\"] }}\n{data}\n"
    )
}

fn folder() -> TempDir {
    let study = r#"
seeds = [1, 2]
baseline = "one"
hardest = ["3", "chain-3"]
max_tokens = 60
critical_tokens = 40
more_paths = [3]
evaluation = { problems = 2, samples = 2, countdown = { tiers = ["3"] }, arithmetic = { tiers = ["chain-3"] } }
[[arms]]
name = "one"
recipe = "one.toml"
[[arms]]
name = "several"
recipe = "several.toml"
"#;
    let folder = folder_with("study.toml", study);
    let several = recipe("several", "structure = \"path_window\"", "independent = { paths = 2 }");
    std::fs::write(folder.path().join("one.toml"), recipe("one", "", "repeated = {}")).unwrap();
    std::fs::write(folder.path().join("several.toml"), several).unwrap();
    folder
}

fn study(folder: &Path, more: &[&str]) -> Command {
    let file = folder.join("study.toml").display().to_string();
    let out = folder.join("out").display().to_string();
    let mut study = command(&["study", &file, "--out", &out]);
    study.args(more);
    study
}

#[test]
fn a_study_in_pieces() {
    let folder = folder();
    let (folder, docs) = (folder.path(), folder.path().join("docs"));
    fails(&mut study(folder, &["--only-results"]), "there are no results yet");

    let first = json(&mut study(folder, &["--seeds", "1", "--json"]));
    assert_eq!(first["seeds"], serde_json::json!([1]));
    // The stop rule ended the stage before its nine steps.
    let stage = &first["arms"][1]["training"][0][0];
    assert!(stage["steps"].as_u64().unwrap() < 9 && stage["tokens"].as_u64().unwrap() >= 100, "{stage}");
    let settings = first["arms"][1]["settings"].as_array().unwrap();
    assert_eq!(settings.iter().map(|s| s["paths"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 3]);
    let tiers = settings[0]["tiers"].as_array().unwrap();
    assert_eq!(tiers.iter().map(|tier| tier["name"].as_str().unwrap()).collect::<Vec<_>>(), ["3", "chain-3"]);
    assert!(tiers.iter().all(|tier| tier["tokens"].as_f64().unwrap() <= 60.0));

    // Of the second seed one arm alone.
    let part = json(&mut study(folder, &["--seeds", "2", "--arms", "one", "--json"]));
    assert_eq!((&part["seeds"], part["arms"].as_array().unwrap().len()), (&serde_json::json!([2]), 1));

    // The rest is missing; the first one's cells are taken as they are.
    let cell = folder.join("out/cells/several/seed-1/answers-2.json");
    let made = std::fs::metadata(&cell).unwrap().modified().unwrap();
    let docs_arg = docs.display().to_string();
    let table = study(folder, &["--docs", &docs_arg]).assert().success().get_output().stdout.clone();
    let table = String::from_utf8(table).unwrap();
    assert!(table.contains("several, 3 paths") && table.contains("Accuracy in %"), "{table}");
    assert_eq!(std::fs::metadata(&cell).unwrap().modified().unwrap(), made);
    for file in
        ["study.json", "tables.md", "budget.svg", "latency.svg", "hardest.svg", "tiers.svg", "training.svg"]
    {
        assert!(std::fs::metadata(docs.join(file)).unwrap().len() > 500, "{file}");
    }

    // Nothing is missing now, so nothing is made.
    let again = json(&mut study(folder, &["--only-results", "--json"]));
    assert_eq!(again["seeds"], serde_json::json!([1, 2]));

    std::fs::write(folder.join("one.toml"), recipe("one", "", "repeated = { slip = 0.5 }")).unwrap();
    fails(&mut study(folder, &[]), "the cell was made by another recipe");
}

#[test]
fn a_study_that_cannot_be_says_why() {
    command(&["study", "nowhere.toml"]).assert().code(2).stderr(contains("nowhere.toml: no such file"));
    let folder = folder();
    study(folder.path(), &["--arms", "7"]).assert().code(2).stderr(contains("its arms are one, several"));
    study(folder.path(), &["--seeds", "7"]).assert().code(2).stderr(contains("its seeds are [1, 2]"));
    std::fs::remove_file(folder.path().join("several.toml")).unwrap();
    study(folder.path(), &[]).assert().failure().stderr(contains("arms.1.recipe: "));
}
