//! The command as a user meets it: what it prints where, and how it fails.

#![allow(clippy::unwrap_used)] // a test may panic

// The server that the library's tests use as well.
#[path = "../../../tests/hub_server.rs"]
mod hub_server;
#[allow(dead_code)] // the library's tests use all of it
#[path = "../../../tests/teacher_server.rs"]
mod teacher_server;

#[path = "cli/cold_start.rs"]
mod cold_start;
#[path = "cli/data_tools.rs"]
mod data_tools;
#[path = "cli/evaluation.rs"]
mod evaluation;
#[path = "cli/report.rs"]
mod report;
#[path = "cli/study.rs"]
mod study;

use std::path::Path;

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin_cmd;
use predicates::prelude::*;
use predicates::str::{contains, is_match};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use hub_server::Server;

fn command(arguments: &[&str]) -> Command {
    let mut command = cargo_bin_cmd!("parallel-r1");
    command.args(arguments);
    command
}

/// A folder with a file in it.
fn folder_with(name: &str, text: &str) -> TempDir {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    folder
}

fn json(command: &mut Command) -> Value {
    let output = command.assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

/// Fails with code 1, nothing on stdout, and a way out.
fn fails(command: &mut Command, message: impl Into<String>) {
    let hint = contains("hint: ");
    command.assert().code(1).stdout("").stderr(contains("error: ").and(contains(message)).and(hint));
}

#[test]
fn help_teaches_by_example() {
    command(&["--help"]).assert().success().stdout(contains("Start with:"));
    for verb in ["train", "generate", "eval", "compare", "report", "study", "verify"] {
        let help = command(&[verb, "--help"]).assert().success().get_output().stdout.clone();
        let help = String::from_utf8(help).unwrap();
        assert!(help.contains("Examples:\n  parallel-r1 "), "{help}");
    }
    command(&["completions", "bash"]).assert().success().stdout(contains("parallel-r1"));
    command(&[]).assert().code(2).stderr(contains("Usage:"));
    command(&["eval"]).assert().code(2).stderr(contains("--data <FILE>"));
}

#[test]
fn a_recipe_with_an_unknown_key_is_bad_use() {
    let folder = folder_with("recipe.toml", "sed = 1\n[[arms]]\nname = \"a\"\nstages = []\n");
    let recipe = folder.path().join("recipe.toml");
    let unknown = contains("recipe.toml").and(contains("unknown field `sed`")).and(contains("hint: "));
    command(&["train"]).arg(recipe).assert().code(2).stdout("").stderr(unknown);
    for (argument, message) in [("sed=1", "unknown field `sed`"), ("seed", "expected key=value")] {
        let message = contains(message).and(contains("hint: "));
        command(&["train", "--show", "--set", argument]).assert().code(2).stdout("").stderr(message);
    }
    fails(&mut command(&["train", "no-such-recipe"]), "\"no-such-recipe\": no such file");
}

#[test]
fn a_recipe_is_shown_as_it_would_run() {
    let shown = command(&["train", "countdown/smoke", "--show", "--set", "arms.0.stages.0.sft.steps=7"])
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let shown: toml::Table = String::from_utf8(shown).unwrap().parse().unwrap();
    assert_eq!(shown["arms"][0]["stages"][0]["sft"]["steps"].as_integer(), Some(7));
}

#[test]
fn a_dry_run_says_what_a_recipe_takes_and_does_nothing() {
    let folder = tempdir().unwrap();
    let dry = |arguments: &[&str]| {
        let mut dry = command(&["train", "--dry-run"]);
        dry.args(arguments).current_dir(folder.path()).env("HF_HOME", folder.path().join("none"));
        dry
    };
    let table = is_match(r"parallel +cold-start +sft +3 +- +[0-9]+ +[0-9]+ s").unwrap();
    let facts = contains("memory       0.").and(contains("time         ")).and(contains("warning: ").not());
    dry(&["countdown/smoke"]).assert().success().stdout(table.and(facts));
    let object = json(dry(&["countdown/smoke", "--json", "--set", "sampling.temperature=0.2"]).env("X", "1"));
    assert_eq!(object["stages"].as_array().unwrap().len(), 7);
    assert_eq!(object["stages"][1]["sampled_tokens"], 2 * 2 * 2 * 4 * 160);
    assert!(object["warnings"][0].as_str().unwrap().starts_with("sampling.temperature: "), "{object}");
    // A model that is not here is not fetched: its name says how large it is. 16 bytes for each of 4 billion weights.
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes/paper/unseen-s2.toml");
    let paper = dry(&[paper.to_str().unwrap()]).assert().success();
    let missing = contains("Not on this machine yet").and(contains("Qwen/Qwen3-4B-Base"));
    let said = contains("memory       59.6 GiB").and(contains("time         ?"));
    paper.stdout(said.and(missing).and(contains("warning: ").not()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The example of docs/training.md, for a few steps; its judge needs Python, without which this says so and ends.
#[test]
fn a_task_of_ones_own_is_trained_with_its_judge() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3 for the judge of recipes/own-task");
        return;
    }
    let folder = tempdir().unwrap();
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes/own-task/recipe.toml");
    let run = folder.path().join("run");
    let mut train = command(&["train", "--json", "--set", "arms.0.stages.0.sft.steps=20"]);
    train.args(["--set", "arms.0.stages.1.grpo.steps=2", "--set", "evaluation.samples=2"]);
    let summary = json(train.arg(&recipe).arg("--out").arg(&run));
    assert!((0.0..=1.0).contains(&summary["tiers"][0]["parallel_rl"].as_f64().unwrap()), "{summary}");
    let traces = std::fs::read_to_string(run.join("traces.jsonl")).unwrap();
    for trace in traces.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let score = trace["score"]["reward"].as_f64().unwrap();
        assert!([1.0, -0.5, -1.0].contains(&score), "{trace}");
        assert_eq!(trace["score"]["correct"].as_bool().unwrap(), score == 1.0);
    }
}

#[test]
fn a_model_that_is_not_there_is_named() {
    let folder = tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    fails(&mut command(&["generate", "--model", path, "hello"]), "config.json");
    command(&["model", "export", "embedded", path]).assert().success().stdout(contains(path));
    std::fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    fails(&mut command(&["generate", "--model", path, "hello"]), "no model.safetensors");
    fails(&mut command(&["generate", "--model", "nowhere", "hello"]), "no such folder or file");
}

#[test]
fn an_adapter_is_trained_described_run_and_merged() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut train = command(&["train", "countdown/smoke", "--out", &path("run")]);
    for setting in ["model.lora.r=4", "arms.0.stages.0.sft.optim.lr=0.02", "evaluation.problems=1"] {
        train.args(["--set", setting]);
    }
    train.assert().success();
    let adapter = path("run/checkpoints/parallel/step-7");
    let info = json(&mut command(&["model", "info", &adapter, "--json"]));
    assert_eq!(
        (&info["kind"], &info["base"], &info["tags"]),
        (&"adapter".into(), &"embedded".into(), &true.into())
    );
    command(&["model", "info", &adapter]).assert().success().stdout(contains("LoRA adapter of embedded"));
    command(&["model", "export", &adapter, &path("merged"), "--dtype", "f32"]).assert().success();
    let answer = |model: &str| {
        let flags = ["--temperature", "0", "--sequential", "--max-tokens", "24", "3 7 12 = 45"];
        let output =
            command(&["generate", "--model", model]).args(flags).assert().success().get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(answer(&adapter), answer(&path("merged")));
    assert_ne!(answer(&adapter), answer("embedded"));
    let (again, base) = (path("again"), format!("model.path={adapter}"));
    let twice = ["train", "countdown/smoke", "--out", &again, "--set", &base, "--set", "model.lora.r=4"];
    command(&twice).assert().code(2).stderr(contains("model.path is an adapter already; merge it first"));
    command(&["train", "--set", "model.lora.r=0"])
        .assert()
        .code(2)
        .stderr(contains("model.lora.r: expected 1 to"));
    command(&["train", "--set", "model.precision=f8"])
        .assert()
        .code(2)
        .stderr(contains("expected `f32` or `bf16`"));
}

#[test]
fn a_gguf_file_is_imported_as_a_folder() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("model").to_str().unwrap().to_owned();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/tokenizers/qwen2/model.gguf");
    command(&["model", "import", file, "--out", &out]).assert().success().stdout(contains(&out));
    let [ours, theirs] = [&out, file].map(|model| json(&mut command(&["model", "info", model, "--json"])));
    assert_eq!((&ours["kind"], &theirs["kind"]), (&"folder".into(), &"gguf".into()));
    for field in ["parameters", "tokens", "config", "tags"] {
        assert_eq!(ours[field], theirs[field], "{field}");
    }
    command(&["generate", "--model", &out, "--max-tokens", "2", "1 + 1"]).assert().success();
    command(&["model", "import", file, "--out", &out])
        .assert()
        .code(2)
        .stderr(contains("the folder is not empty"));
    command(&["model", "import", &out, "--out", &out])
        .assert()
        .code(2)
        .stderr(contains("expected a GGUF file, got a folder"));
    fails(
        &mut command(&["model", "import", "nowhere.gguf", "--out", &format!("{out}-2")]),
        "no such folder or file",
    );
}

/// A name on the Hub stands for a model or a data set everywhere; the second time without the Hub.
#[test]
fn names_on_the_hub_are_fetched_and_kept() {
    let (server, folder) = (Server::start(), tempdir().unwrap());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    command(&["model", "export", "embedded", &path("model")]).assert().success();
    for file in std::fs::read_dir(path("model")).unwrap().map(Result::unwrap) {
        let bytes = std::fs::read(file.path()).unwrap();
        server.put("models/org/model", file.file_name().to_str().unwrap(), &bytes);
    }
    server.put("datasets/org/rows", "test.jsonl", b"{\"problem\": \"3 7 12 = 45\", \"answer\": \"45\"}\n");
    let on_hub = |arguments: &[&str], token: &str| {
        let mut command = command(arguments);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HF_")) {
            command.env_remove(name);
        }
        command.env("HF_ENDPOINT", server.endpoint()).env("HF_HOME", path("hf")).env("HF_TOKEN", token);
        command.current_dir(folder.path());
        command
    };
    server.with(|state| state.token = Some("right".into()));
    let eval = ["eval", "--model", "org/model", "--data", "org/rows", "--max-tokens", "8", "--json"];
    fails(&mut on_hub(&eval, "wrong"), "data set \"org/rows\": http://127.0.0.1");
    let loading = contains("download org/model").and(contains("of ")).and(contains("\u{1b}").not());
    on_hub(&eval, "right").assert().success().stderr(loading);

    server.asked();
    let again = json(on_hub(&eval, "right").env("HF_HUB_OFFLINE", "1"));
    assert_eq!(again["problems"], 1);
    assert!(server.asked().is_empty());
    fails(&mut on_hub(&["generate", "--model", "org/none", "1"], "right"), "no such folder or file here");

    // A run trains on what the names stand for, and its recipe keeps the names.
    let recipe = "[model]\npath = \"org/model\"\n[[arms]]\nname = \"a\"\n[[arms.stages]]\nname = \"s\"\n\
        [arms.stages.sft]\nsteps = 1\nbatch_size = 1\ndata = { file = \"org/rows\", response_field = \"answer\" }\n";
    std::fs::write(path("recipe.toml"), recipe).unwrap();
    on_hub(&["train", "recipe.toml", "--out", "run"], "right").assert().success();
    let kept: toml::Table = std::fs::read_to_string(path("run/recipe.toml")).unwrap().parse().unwrap();
    assert_eq!(kept["model"]["path"].as_str(), Some("org/model"));
    assert_eq!(kept["arms"][0]["stages"][0]["sft"]["data"]["file"].as_str(), Some("org/rows"));
}

#[test]
fn broken_data_is_named_with_file_and_line() {
    let folder = folder_with("rows.jsonl", "{\"problem\": \"1+1?\", \"answer\": \"2\"}\n{\"problem\": \n");
    let rows = folder.path().join("rows.jsonl");
    let eval = || command(&["eval", "--data", rows.to_str().unwrap()]);
    fails(&mut eval(), "rows.jsonl, line 2: expected one JSON object");
    std::fs::write(&rows, "").unwrap();
    fails(&mut eval(), "rows.jsonl: the file holds no rows");
    std::fs::write(&rows, "{\"problem\": \"1+1?\"}\n").unwrap();
    fails(&mut eval(), "rows.jsonl, line 1: expected the field `answer`");
    std::fs::remove_file(&rows).unwrap();
    fails(&mut eval(), "rows.jsonl: cannot be opened");
    command(&["eval", "--data", "countdown:7"]).assert().code(2).stderr(contains("3, 4, 4-hard, 5"));
    let chains = "chain-2, chain-3, chain-4, chain-5, chain-6, chain-7";
    command(&["eval", "--data", "arithmetic:7"]).assert().code(2).stderr(contains(chains));
}

#[test]
fn parallel_paths_need_a_model_with_tags() {
    fails(&mut command(&["generate", "--num-paths", "2", "3 7 12 = 45"]), "has no <Parallel> tag");
    fails(&mut command(&["eval", "--data", "countdown:3", "--structure", "causal"]), "has no <Parallel> tag");
    let both = ["generate", "--num-paths", "2", "--sequential", "3 7 12 = 45"];
    command(&both).assert().code(2).stderr(contains("cannot be used with"));
}

#[test]
fn a_prompt_longer_than_the_context_is_refused_with_both_sizes() {
    let prompt = "1".repeat(3000);
    let mut long = command(&["generate", "-"]);
    long.write_stdin(prompt).assert().code(1).stderr(is_match("30[0-9]{2} tokens.*1024 positions").unwrap());
    command(&["generate", " "]).assert().code(2).stderr(contains("prompt is empty"));
    command(&["generate", "--temperature=-1", "1"])
        .assert()
        .code(2)
        .stderr(contains("--temperature: expected"));
}

#[test]
fn generate_streams_the_text_that_json_holds() {
    let base = ["generate", "--max-tokens", "24", "--seed", "3", "3 7 12 = 45"];
    let object = json(command(&base).arg("--json"));
    assert!((1..=24).contains(&object["tokens"].as_u64().unwrap()));
    assert_eq!((&object["critical_path_tokens"], &object["blocks"]), (&object["tokens"], &Value::from(0)));
    assert!(["sampled", "length"].contains(&object["finish"].as_str().unwrap()));
    assert!(object["answer"].is_null() || object["answer"].is_string());
    let segments = object["segments"].as_array().unwrap();
    assert_eq!(segments[0]["role"], "prompt");
    assert_eq!((&segments[1]["role"], &segments[1]["parents"][0]), (&"trunk".into(), &0.into()));
    assert_eq!(segments[1]["text"], object["text"]);
    let text = object["text"].as_str().unwrap();
    let streamed = command(&base).assert().success().get_output().stdout.clone();
    assert_eq!(String::from_utf8(streamed).unwrap().trim_end_matches('\n'), text.trim_end_matches('\n'));
}

#[test]
fn votes_are_counted_and_said() {
    let base = ["generate", "--max-tokens", "24", "--votes", "3", "--return-paths", "3 7 12 = 45"];
    let votes = &json(command(&base).arg("--json"))["votes"];
    let finished = votes["finished"].as_u64().unwrap() as usize;
    assert_eq!(
        (votes["requested"].as_u64(), votes["samples"].as_array().unwrap().len()),
        (Some(3), finished)
    );
    assert!((0.0..=1.0).contains(&votes["agreement"].as_f64().unwrap()));
    assert!(votes["by_confidence"].is_boolean() && votes["counts"].is_array());
    assert!(votes["samples"][0]["confidence"].as_f64().unwrap() <= 0.0);
    let said = contains("--- sample 0").and(contains("\nvotes: "));
    command(&base).assert().success().stdout(said);
    command(&["generate", "--return-paths", "1"]).assert().code(2).stderr(contains("--votes <N>"));
}

#[test]
fn eval_prints_one_object_or_a_table() {
    let base = ["eval", "--data", "countdown:3,4", "--samples", "2", "--limit", "2", "--max-tokens", "24"];
    let object = json(command(&base).arg("--json"));
    assert_eq!((&object["problems"], &object["samples"]), (&4.into(), &2.into()));
    for rate in ["mean_at_k", "pass_at_k", "maj_at_k", "parallel_ratio"] {
        assert!((0.0..=1.0).contains(&object[rate].as_f64().unwrap()), "{rate}");
    }
    for count in ["total_tokens", "critical_path_tokens"] {
        assert!((1.0..=24.0).contains(&object[count].as_f64().unwrap()), "{count}");
    }
    command(&base).assert().success().stdout(contains("mean@2").and(contains("critical path")));
}

/// One run, looked at from all sides, since each costs some seconds.
#[test]
fn train_runs_the_smoke_recipe_and_resumes_nothing() {
    let folder = tempdir().unwrap();
    let train = |arguments: &[&str]| {
        let mut train = command(&["train"]);
        train.args(arguments).current_dir(folder.path());
        train
    };
    let table = contains("tier").and(contains("base")).and(contains("parallel_rl")).and(contains("3 *"));
    let facts = contains("run folder   runs/countdown-smoke-1").and(contains("peak memory"));
    // Enough fine-tuning that the model opens a block now and then.
    let more = ["--set", "arms.0.stages.0.sft.steps=12", "--set", "arms.0.stages.0.sft.optim.lr=5e-3"];
    let run =
        train(&["countdown/smoke", "--dashboard=0"]).args(more).assert().success().stdout(table.and(facts));
    let plain = contains("parallel / cold-start").and(contains("\u{1b}").not());
    run.stderr(plain.and(contains("dashboard  http://127.0.0.1:")));

    let run = folder.path().join("runs/countdown-smoke-1");
    for file in [
        "recipe.toml",
        "metrics.jsonl",
        "traces.jsonl",
        "summary.json",
        "report.html",
        "tensorboard/parallel",
    ] {
        assert!(run.join(file).exists(), "{file}");
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap();
    let tier = &kept["tiers"][0];
    for column in ["base", "sft", "parallel_rl", "sequential_rl"] {
        assert!((0.0..=1.0).contains(&tier[column].as_f64().unwrap()), "{column}");
    }
    assert_eq!(tier["trained"], true);

    let out = ["--out", "runs/countdown-smoke-1"];
    fails(&mut train(&out), "holds a run already");
    let again = train(&["countdown/smoke", "--resume", "--json"]).assert().success();
    let again = again.stderr(contains("this run is finished")).get_output().stdout.clone();
    assert_eq!(serde_json::from_slice::<Value>(&again).unwrap(), kept);

    parallel_model_answers(&run);
}

/// The trained model has the tags: its blocks are segments, and their text is what a pipe gets.
fn parallel_model_answers(run: &Path) {
    let model = run.join("checkpoints/parallel/step-12");
    let generate = |seed: u32| {
        let mut generate = command(&["generate", "--num-paths", "2", "--temperature", "1", "3 7 12 = 45"]);
        generate.arg("--model").arg(&model).args(["--seed", &seed.to_string()]);
        generate
    };
    // So few steps teach it to open a block now and then.
    let (seed, object) = (0..80)
        .map(|seed| (seed, json(generate(seed).arg("--json"))))
        .find(|(_, object)| object["blocks"].as_u64().unwrap() > 0)
        .expect("one of the answers has a block");
    let segments = object["segments"].as_array().unwrap();
    let response: String = segments[1..].iter().map(|segment| segment["text"].as_str().unwrap()).collect();
    assert_eq!(object["text"], response);
    let paths = segments.iter().filter(|segment| segment["role"] == "path").count();
    assert_eq!(paths as u64, 2 * object["blocks"].as_u64().unwrap());
    assert!(object["critical_path_tokens"].as_u64() < object["tokens"].as_u64());
    let streamed = generate(seed).assert().success().get_output().stdout.clone();
    assert_eq!(String::from_utf8(streamed).unwrap().trim_end_matches('\n'), response.trim_end_matches('\n'));
}

#[test]
fn chat_options_reach_the_template() {
    let folder = tempdir().unwrap();
    let model = folder.path().join("model");
    command(&["model", "export", "embedded"]).arg(&model).assert().success();
    let template = "{% if wordy is false %}{{ raise_exception('wordy was ' ~ wordy) }}{% endif %}{{ messages[0].content }}\n";
    std::fs::write(model.join("chat_template.jinja"), template).unwrap();
    let with = |option: &str| {
        let mut generate =
            command(&["generate", "--max-tokens", "8", "--chat-option", option, "3 7 12 = 45"]);
        generate.arg("--model").arg(&model);
        generate
    };
    with("wordy=true").assert().success();
    with("wordy=false").assert().code(1).stderr(contains("wordy was False"));
    for (option, message) in
        [("word=1", "reads no option \"word\": expected wordy"), ("wordy", "expected KEY=VALUE")]
    {
        with(option).assert().code(2).stdout("").stderr(contains(message));
    }
}

#[test]
fn the_readmes_commands_have_the_flags_and_recipes_that_it_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let lines: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("    parallel-r1 ")).collect();
    assert!(lines.len() > 5, "{lines:?}");
    for line in lines {
        let words: Vec<&str> = line.split('#').next().unwrap().split_whitespace().collect();
        let verb = if words[0] == "model" { &words[..2] } else { &words[..1] };
        let help = command(verb).arg("--help").assert().success().get_output().stdout.clone();
        let help = String::from_utf8(help).unwrap();
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(flag), "{line}: no {flag}");
        }
        for recipe in words.iter().filter(|word| word.ends_with(".toml")) {
            assert!(root.join(recipe).is_file(), "{line}: no {recipe}");
        }
    }
}

#[test]
fn a_verdict_is_printed_and_is_the_exit_code() {
    let verify = |gold: &str, answer: &str| command(&["verify", gold, answer]);
    verify(r"\frac{1}{2}", "The answer is $0.5$").assert().code(0).stdout("correct\n");
    verify("-5", "-5").assert().code(0).stdout("correct\n");
    verify("-5", "5")
        .assert()
        .code(1)
        .stdout(is_match("^incorrect: .").unwrap())
        .stderr(contains("gold read as "));
    verify("5", &"{".repeat(1 << 16)).assert().code(1).stdout(contains("undecided: too large"));
    verify("5", "9^{9^{9^9}}").assert().code(1);
    verify("", "5").assert().code(1).stdout(contains("unreadable gold"));
    let judged = json(&mut command(&["verify", "1/2", "so it is $0.5$", "--json"]));
    assert_eq!((&judged["verdict"], &judged["extracted"]), (&"correct".into(), &"0.5".into()));
}

#[test]
fn verify_is_called_wrongly() {
    command(&["verify", "5"]).assert().code(2).stderr(contains("Usage:"));
    command(&["verify"]).assert().code(2);
    command(&["verify", "5", "5", "--cases", "x"]).assert().code(2);
    command(&["verify", "--cases", "no/such/file"]).assert().code(2).stderr(contains("no/such/file"));
    let folder = folder_with("cases.jsonl", "{\"gold\": \"1\", \"pred\": \"1\"}\n{\"gold\": 1}\n");
    let file = folder.path().join("cases.jsonl");
    let mut bad = command(&["verify", "--cases", file.to_str().unwrap()]);
    bad.assert().code(2).stderr(contains("cases.jsonl:2: ").and(contains("hint: ")));
}

#[test]
fn cases_are_counted() {
    let row = |gold: &str, pred: &str, expect: bool| {
        serde_json::json!({"gold": gold, "pred": pred, "expect": expect, "opts": {"timeout": 1}}).to_string()
            + "\n"
    };
    let good = row("1/2", "0.5", true) + &row("2", "3", false) + &row("5", &"{".repeat(1 << 16), false);
    let cases = |text: &str| {
        let folder = folder_with("cases.jsonl", text);
        let file = folder.path().join("cases.jsonl");
        let out = command(&["verify", "--json", "--cases", file.to_str().unwrap()]).output().unwrap();
        let lines = String::from_utf8(out.stdout).unwrap();
        let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (out.status.code(), rows, String::from_utf8(out.stderr).unwrap())
    };
    let (code, rows, notes) = cases(&good);
    assert_eq!((code, rows.len()), (Some(0), 1));
    assert_eq!(
        rows[0].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["cases", "agree", "undecided", "max_ms"]
    );
    assert_eq!([&rows[0]["cases"], &rows[0]["agree"], &rows[0]["undecided"]], [3, 3, 1]);
    assert!(notes.contains("3 rows assume timeout = 1"), "{notes}");
    let (code, rows, _) = cases(&(good + "\n" + &row("2", "2", false)));
    assert_eq!((code, rows.len()), (Some(1), 2));
    assert_eq!((&rows[0]["line"], &rows[0]["verdict"]), (&5.into(), &"correct".into()));
}
