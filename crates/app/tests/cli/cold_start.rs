//! `data cold-start`: what happens to a run whose process is killed, and a model that teaches itself.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use crate::teacher_server::{Act, Asked, TeacherServer};
use crate::*;

/// A teacher that takes its time.
fn teacher() -> TeacherServer {
    TeacherServer::start(|asked| {
        let n: u32 = asked.prompt.split(' ').find_map(|word| word.parse().ok()).unwrap();
        let text = format!(
            "<Parallel><Path>Column by column the digits of both numbers make {0}.</Path>\
             <Path>A number added to itself is its double, which is {0}.</Path></Parallel>\
             <Summary>Both the sum and the double are {0}.</Summary>\nFinal Answer: {0}",
            2 * n
        );
        Act::Slow(Duration::from_millis(30), text)
    })
}

fn problems(folder: &TempDir) -> PathBuf {
    let rows = (10..40).fold(String::new(), |mut rows, n| {
        let (problem, answer) = (format!("Which number do we get if {n} is doubled once by us?"), 2 * n);
        writeln!(rows, r#"{{"id": "p-{n}", "problem": "{problem}", "answer": "{answer}"}}"#).unwrap();
        rows
    });
    let file = folder.path().join("problems.jsonl");
    std::fs::write(&file, rows).unwrap();
    file
}

fn arguments(server: &TeacherServer, folder: &TempDir, out: &str) -> Vec<String> {
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (rows, url) = (problems(folder).to_str().unwrap().to_owned(), server.url());
    let words = ["data", "cold-start", &rows, "--endpoint", &url, "--teacher", "slow", "--prompt", "bare"];
    let words = words.into_iter().chain(["--shape", "parallel", "--concurrency", "2", "--json", "--out"]);
    words.map(str::to_owned).chain([file(out)]).collect()
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let (server, folder) = (teacher(), tempdir().unwrap());
    let words = arguments(&server, &folder, "killed");
    let journal = folder.path().join("killed/journal.jsonl");
    let lines = || std::fs::read(&journal).unwrap_or_default().iter().filter(|&&byte| byte == b'\n').count();
    let program = assert_cmd::cargo::cargo_bin!("parallel-r1");
    let mut process =
        Process::new(program).args(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while lines() < 5 && process.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let before = lines();
    assert!((5..30).contains(&before), "{before} answers had come");
    assert!(!folder.path().join("killed/data.jsonl").exists());

    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let report = json(&mut command(&words));
    assert_eq!((&report["rows"], &report["complete"]), (&30.into(), &true.into()), "{report}");
    let asked = server.with(|state| state.asked.len());
    assert!(asked <= 32, "{asked} requests: only those under way when it was killed were sent again");
    let other = arguments(&server, &folder, "whole");
    json(&mut command(&other.iter().map(String::as_str).collect::<Vec<_>>()));
    let rows = |out: &str| std::fs::read(folder.path().join(out).join("data.jsonl")).unwrap();
    assert_eq!(rows("killed"), rows("whole"));

    let mut less: Vec<&str> = other.iter().map(String::as_str).collect();
    let out = folder.path().join("less");
    *less.last_mut().unwrap() = out.to_str().unwrap();
    less.extend(["--max-requests", "3"]);
    let missing =
        contains("the budget is spent").and(contains("27 answers are missing")).and(contains("hint: "));
    command(&less).assert().code(1).stdout(contains("\"rows\": 3")).stderr(missing);
}

/// Its separate solutions become parallel demonstrations, from which it learns; a round without any other teacher.
#[test]
fn the_embedded_model_learns_from_itself() {
    let folder = tempdir().unwrap();
    let cold = folder.path().join("cold");
    let words =
        ["data", "cold-start", "countdown:3", "--limit", "8", "--model", "embedded", "--samples", "8"];
    let report = json(command(&words).args(["--shape", "assembled", "--json", "--out"]).arg(&cold));
    assert!(report["rows"].as_u64().unwrap() >= 4, "{report}");
    let recipe = "seed = 1\n[model]\npath = \"embedded\"\n[[arms]]\nname = \"parallel\"\nstructure = \"path_window\"\n\
                  [[arms.stages]]\nname = \"cold\"\n[arms.stages.sft]\nsteps = 2\nbatch_size = 4\n\
                  optim = { lr = 1e-3 }\ndata = { file = \"cold/data.jsonl\" }\n\
                  [evaluation]\nproblems = 2\nsamples = 1\ncountdown = { tiers = [\"3\"] }\n";
    let file = folder.path().join("recipe.toml");
    std::fs::write(&file, recipe).unwrap();
    let run = folder.path().join("run");
    command(&["train"]).arg(&file).arg("--out").arg(&run).assert().success();
    let pupil = run.join("checkpoints/parallel/step-2");
    let again = folder.path().join("again");
    let words = ["data", "cold-start", "countdown:3", "--limit", "2", "--max-tokens", "200", "--json"];
    let report = json(command(&words).arg("--model").arg(&pupil).arg("--out").arg(&again));
    assert_eq!((&report["wanted"], &report["unanswered"]), (&2.into(), &0.into()), "{report}");
}

#[test]
fn what_cold_start_lacks_is_said() {
    let folder = tempdir().unwrap();
    let rows = problems(&folder);
    let out = folder.path().join("out");
    let run = |words: &[&str]| {
        let mut run = command(&["data", "cold-start"]);
        run.arg(&rows).arg("--out").arg(&out).args(words);
        run
    };
    run(&[]).assert().code(2).stderr(contains("--endpoint"));
    run(&["--endpoint", "http://127.0.0.1:1"]).assert().code(2).stderr(contains("--teacher <NAME>"));
    run(&["--model", "embedded", "--max-cost", "1"]).assert().code(2).stderr(contains("--prices <FILE>"));
    let bad = run(&["--endpoint", "here", "--teacher", "t"]).assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8(bad).unwrap().contains("expected http://… or https://…, got \"here\""));
    fails(&mut run(&["--model", "embedded", "--prompt", "no.md"]), "prompt no.md: neither a file");
    let server = teacher();
    server.with(|state| state.key = Some("right".into()));
    let url = server.url();
    let ask = ["--endpoint", &url, "--teacher", "t", "--prompt", "bare", "--shape", "any"];
    fails(run(&ask).env_remove("OPENAI_API_KEY"), "it wants a key, and none was sent");
    let known = folder.path().join("known.jsonl");
    let row = r#"{"problem": "Which number do we get, if 12 is doubled once by us", "answer": "24"}"#;
    std::fs::write(&known, row).unwrap();
    let mut run_it = run(&ask);
    run_it
        .arg("--against")
        .arg(&known)
        .env("OPENAI_API_KEY", "right")
        .assert()
        .success()
        .stdout(is_match(r"contaminated +1\n(.*\n)*rows +29 ").unwrap());
    let paid = |asked: &Asked| asked.key.is_some() && asked.prompt.contains(" 12 ");
    assert!(!server.with(|state| state.asked.iter().any(paid)), "a known problem was asked");
    let shown = command(&["data", "cold-start", "--show-prompt", "--prompt", "strict"]).assert().success();
    shown.stdout(contains("{{ problem }}").and(contains("<!-- system -->")));
}
