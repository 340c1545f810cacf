//! `data check`, `convert`, `stats`, `split`, `dedupe` and `contamination`.

use crate::*;

const GOOD: &str = "Count.\\n<Parallel>\\n<Path>Adding 5 and 7 gives 12.</Path>\\n<Path>Counting on from 7 gives 12.</Path>\\n\
    </Parallel>\\n<Summary>Both give 12.</Summary>\\nFinal Answer: 12";

/// Five rows: one sound, one with a fault of its tags, one wrong, one without a block, and a copy of the first.
fn rows() -> TempDir {
    let row = |id: &str, problem: &str, response: &str| {
        format!(
            "{{\"id\": \"{id}\", \"problem\": \"{problem}\", \"answer\": \"12\", \"response\": \"{response}\"}}\n"
        )
    };
    let rows = row("good", "What are 5 and 7?", GOOD)
        + &row("open", "What are 6 and 6?", &GOOD.replace("</Summary>", ""))
        + &row("wrong", "What are 5 and 8?", &GOOD.replace("Answer: 12", "Answer: 13"))
        + &row("plain", "What are 4 and 8?", "Final Answer: 12")
        + &row("copy", "what are  5 and 7?", GOOD);
    folder_with("rows.jsonl", &rows)
}

fn run(arguments: &[&str], folder: &TempDir) -> Command {
    let mut command = command(arguments);
    command.current_dir(folder.path());
    command
}

fn read(folder: &TempDir, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_check_names_rows_and_places() {
    let folder = rows();
    let report = json(&mut run(&["data", "check", "rows.jsonl", "--json"], &folder));
    for (field, expected) in [("rows", 5), ("with_block", 4), ("well_formed", 4), ("correct", 4)] {
        assert_eq!(report[field], expected, "{field}");
    }
    assert_eq!(
        report["faults"],
        serde_json::json!({"unclosed_summary": ["open"], "wrong_answer": ["wrong"]})
    );
    assert_eq!(report["blocks_per_response"], serde_json::json!({"0": 1, "1": 4}));
    assert_eq!(report["paths_per_block"], serde_json::json!({"2": 4}));
    let text = contains("unclosed_summary: 1 row\n    open, byte ").and(contains("warnings: none"));
    run(&["data", "check", "rows.jsonl"], &folder).assert().success().stdout(text);
    let field = ["data", "check", "rows.jsonl", "--response-field", "text"];
    fails(&mut run(&field, &folder), "line 1: expected the field `text`");
}

#[test]
fn a_check_writes_what_is_clean_with_its_repairs() {
    let folder = rows();
    let check = ["data", "check", "rows.jsonl", "--out", "clean.parquet", "--json"];
    run(&check, &folder).assert().success().stderr(contains("clean.parquet: 3 of 5 rows"));
    run(&["data", "convert", "clean.parquet", "clean.jsonl"], &folder).assert().success();
    let clean = read(&folder, "clean.jsonl");
    let ids: Vec<&Value> = clean.iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["good", "plain", "copy"]);
    assert!(clean[0]["response"].as_str().unwrap().contains("<Parallel><Path>"));
    assert_eq!(clean[0]["repairs"][0]["kind"], "spacing");
    assert!(clean[1].get("repairs").is_none());
}

#[test]
fn shapes_are_converted_there_and_back() {
    let folder = rows();
    let chats = ["data", "convert", "rows.jsonl", "chats.parquet", "--form", "messages"];
    run(&chats, &folder).assert().success().stdout("chats.parquet: 5 rows\n");
    let back = ["data", "convert", "chats.parquet", "back.jsonl", "--form", "rows"];
    run(&back, &folder).assert().success();
    let (rows, back) = (read(&folder, "rows.jsonl"), read(&folder, "back.jsonl"));
    for (row, back) in rows.iter().zip(&back) {
        for field in ["id", "problem", "answer", "response"] {
            assert_eq!(row[field], back[field]);
        }
    }
    let nowhere = ["data", "convert", "rows.jsonl", "nowhere/rows.parquet"];
    fails(&mut run(&nowhere, &folder), "nowhere/rows.parquet: cannot be written");
    fails(
        &mut run(&["data", "convert", "rows.jsonl", "rows.csv"], &folder),
        "rows.csv: expected a name that ends in",
    );
}

#[test]
fn copies_and_evaluation_problems_are_left_out() {
    let folder = rows();
    let dedupe = ["data", "dedupe", "rows.jsonl", "--out", "unique.jsonl", "--json"];
    let report = json(&mut run(&dedupe, &folder));
    assert_eq!((&report["exact"], &report["kept"]), (&1.into(), &4.into()));
    assert_eq!(report["examples"][0], serde_json::json!({"id": "copy", "of_row": 1}));
    std::fs::write(folder.path().join("test.jsonl"), "{\"problem\": \"What are $6$ and $6$?\"}\n").unwrap();
    let clean = ["data", "contamination", "unique.jsonl", "--against", "test.jsonl", "--out", "clean.jsonl"];
    let text = contains("exact matches  1").and(contains("open is test-1 (exact)"));
    run(&clean, &folder).assert().success().stdout(text);
    let ids: Vec<Value> = read(&folder, "clean.jsonl").into_iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, ["good", "wrong", "plain"]);
}

#[test]
fn parts_have_all_rows_and_statistics_are_drawn() {
    let folder = rows();
    let split = ["data", "split", "rows.jsonl", "--into", "a.jsonl=1", "--into", "b.jsonl=1", "--seed", "3"];
    run(&split, &folder).assert().success().stdout(contains("a.jsonl: ").and(contains("b.jsonl: ")));
    let (a, b) = (read(&folder, "a.jsonl"), read(&folder, "b.jsonl"));
    assert_eq!(a.len() + b.len(), 5);
    let has = |part: &[Value], id: &str| part.iter().any(|row| row["id"] == id);
    assert_eq!(has(&a, "good"), has(&a, "copy"), "a problem is in one part");
    run(&["data", "split", "rows.jsonl", "--into", "a.jsonl"], &folder)
        .assert()
        .code(2)
        .stderr(contains("FILE=SHARE"));

    let drawn = contains("blocks per response\n  0  ").and(contains("█")).and(contains("critical path"));
    run(&["data", "stats", "rows.jsonl"], &folder).assert().success().stdout(drawn);
    let stats = json(&mut run(&["data", "stats", "rows.jsonl", "--model", "embedded", "--json"], &folder));
    assert_eq!((&stats["rows"], &stats["paths_per_block"]["2"]), (&5.into(), &4.into()));
    assert!(stats["tokens"]["mean"].as_f64().unwrap() > 20.0);
}

#[test]
fn every_tool_shows_an_example() {
    for tool in ["check", "convert", "stats", "split", "dedupe", "contamination"] {
        let help = contains(format!("Examples:\n  parallel-r1 data {tool} "));
        command(&["data", tool, "--help"]).assert().success().stdout(help);
    }
}
