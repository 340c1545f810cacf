//! `eval` beyond its first numbers, and `compare`.

use crate::*;

fn eval(data: &str, more: &[&str]) -> Command {
    let mut eval = command(&["eval", "--data", data, "--max-tokens", "64", "--json"]);
    eval.args(more);
    eval
}

#[test]
fn an_evaluation_keeps_each_problem() {
    let result = json(&mut eval("countdown:3", &["--samples", "4", "--limit", "5"]));
    let rows = result["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &result["problems"]), (5, &5.into()));
    let right: u64 = rows.iter().map(|row| row["right"].as_u64().unwrap()).sum();
    assert!((result["mean_at_k"].as_f64().unwrap() - right as f64 / 20.0).abs() < 1e-12);
    // pass@1 is the mean, pass@K the share of problems with a right answer.
    assert_eq!(result["pass_at"]["1"], result["mean_at_k"]);
    assert_eq!(result["pass_at"]["4"], result["pass_at_k"]);
    assert_eq!(result["maj_at"]["4"], result["maj_at_k"]);
    assert_eq!(result["pass_at"].as_object().unwrap().keys().collect::<Vec<_>>(), ["1", "2", "4"]);
    for field in ["pass_interval", "maj_interval", "forced", "blocks", "model", "data"] {
        assert!(!result[field].is_null(), "{field}");
    }
    assert_eq!(result["sampling"]["max_response_tokens"], 64);
}

#[test]
fn consolidated_answers_stop_voting_early() {
    let chains = json(&mut eval("arithmetic:chain-2,chain-4", &["--samples", "1", "--limit", "3"]));
    assert_eq!(chains["problems"], 6);
    let result = json(&mut eval("countdown:3", &["--samples", "2", "--limit", "3", "--votes", "5"]));
    assert_eq!((&result["problems"], &result["samples"]), (&3.into(), &2.into()));
    let votes = &result["consolidation"];
    let number = |name: &str| votes[name].as_f64().unwrap();
    assert_eq!(votes["votes"], 5);
    assert!((3.0..=5.0).contains(&number("finished")), "{votes}");
    assert!((0.0..=1.0).contains(&number("agreement")) && (0.0..=1.0).contains(&number("by_confidence")));
    // What was stopped was paid for as well.
    assert!(number("spent_tokens") >= result["total_tokens"].as_f64().unwrap());
    let rows = result["rows"].as_array().unwrap();
    let of = |name: &str| rows.iter().map(|row| row[name].as_f64().unwrap()).sum::<f64>();
    assert!(of("critical_path_tokens") < of("total_tokens"));
    let table = ["eval", "--data", "countdown:3", "--limit", "2", "--votes", "3", "--max-tokens", "24"];
    command(&table).assert().success().stdout(contains("samples a vote").and(contains("agreement")));
}

#[test]
fn multiple_choice_rows_are_measured() {
    let row = r#"{"question": "1 + 1?", "choices": ["3", "2"], "answer": 1}"#;
    let folder = folder_with("rows.jsonl", &format!("{row}\n"));
    let rows = folder.path().join("rows.jsonl");
    let result = json(&mut eval(rows.to_str().unwrap(), &[]));
    assert_eq!((&result["problems"], &result["skipped"]), (&1.into(), &0.into()));
}

/// The name of a benchmark stands for its place on the Hub, unless there is a file of that name.
#[test]
fn a_benchmark_is_found_by_name() {
    let (server, folder) = (Server::start(), tempdir().unwrap());
    let row = "{\"problem\": \"1 + 1?\", \"answer\": \"2\"}\n";
    server.put("datasets/math-ai/aime25", "test.jsonl", row.as_bytes());
    let named = |data: &str| {
        let mut eval = eval(data, &[]);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HF_")) {
            eval.env_remove(name);
        }
        eval.env("HF_ENDPOINT", server.endpoint()).env("HF_HOME", folder.path().join("hf"));
        eval.current_dir(folder.path());
        json(&mut eval)
    };
    assert_eq!(named("AIME-25")["problems"], 1);
    std::fs::write(folder.path().join("two.jsonl"), row.repeat(2)).unwrap();
    assert_eq!(named("two.jsonl")["problems"], 2);
}

/// Results with a row for each problem; `right` of 4 samples.
fn results(right: &[usize], tokens: f64) -> Value {
    let row = |(i, right): (usize, &usize)| {
        serde_json::json!({"id": format!("p{i}"), "fingerprint": format!("{i:016x}"), "samples": 4, "right": right,
            "majority": f64::from(*right > 2), "total_tokens": tokens, "critical_path_tokens": tokens / 2.0})
    };
    serde_json::json!({"problems": right.len(), "skipped": 0, "samples": 4, "mean_at_k": 0.0, "interval": null,
        "pass_at_k": 0.0, "maj_at_k": 0.0, "rows": right.iter().enumerate().map(row).collect::<Vec<_>>()})
}

#[test]
fn two_results_are_compared_problem_by_problem() {
    let folder = tempdir().unwrap();
    let write = |name: &str, value: &Value| {
        let path = folder.path().join(name);
        std::fs::write(&path, value.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let a = write("a.json", &results(&[0, 1, 2, 2, 1], 100.0));
    let b = write("b.json", &results(&[2, 3, 4, 4, 3], 80.0));
    let compared = json(&mut command(&["compare", &a, &b, "--json"]));
    let accuracy = &compared[0]["differences"][0];
    assert_eq!((&accuracy["figure"], &compared[0]["problems"]), (&"mean_at_k".into(), &5.into()));
    // Five equal differences: of 32 signs two are as far.
    assert_eq!((&accuracy["difference"], &accuracy["p_value"]), (&0.5.into(), &0.0625.into()));
    let table = contains("5 problems in both").and(is_match(r"mean@k, %\s+30\.0\s+80\.0\s+\+50\.0").unwrap());
    let tokens = is_match(r"total tokens\s+100\.0\s+80\.0\s+-20\.0").unwrap();
    command(&["compare", &a, &b]).assert().success().stdout(table.and(tokens));

    let tiers = |value: &Value| serde_json::json!({"3": value, "4": value});
    let c = write("c.json", &tiers(&results(&[1], 1.0)));
    let d = write("d.json", &tiers(&results(&[2], 1.0)));
    command(&["compare", &c, &d])
        .assert()
        .success()
        .stdout(contains("tier 3, 1 problems").and(contains("tier 4, ")));
    fails(&mut command(&["compare", &a, &d]), "have no tier in common");

    let none = write("none.json", &results(&[], 1.0));
    fails(&mut command(&["compare", &a, &none]), "none.json: the second has no results by problem");
    let wrong = write("wrong.json", &serde_json::json!({"mean_at_k": 0.5}));
    let named = "wrong.json: not the results of an evaluation (missing field `problems`)";
    fails(&mut command(&["compare", &wrong, &b]), named);
    command(&["compare", &a, "nowhere.json"])
        .assert()
        .code(1)
        .stderr(contains("nowhere.json: cannot be read"));
}
