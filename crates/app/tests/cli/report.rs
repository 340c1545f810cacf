//! `report`, and its page as a person meets it in a browser.

use std::path::PathBuf;

use crate::*;

/// A response that would be markup if the page let it.
const HOSTILE: &str =
    "</script><img src=x onerror=\"document.documentElement.dataset.hacked='yes'\">{{script}}<!--";

/// A run folder with long records, evaluations and traces, as `train` would have left it.
fn run(name: &str) -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let run = folder.path().join(name);
    std::fs::create_dir_all(run.join("evaluations")).unwrap();
    let recipe =
        command(&["train", "countdown/smoke", "--show"]).assert().success().get_output().stdout.clone();
    std::fs::write(run.join("recipe.toml"), recipe).unwrap();
    std::fs::write(run.join("metrics.jsonl"), metrics()).unwrap();
    std::fs::write(run.join("traces.jsonl"), traces()).unwrap();
    for (column, right) in [("base", 1), ("sft", 2), ("parallel_rl", 3), ("sequential_rl", 1)] {
        let tiers = serde_json::json!({"3": evaluation(right)});
        std::fs::write(run.join(format!("evaluations/{column}.json")), tiers.to_string()).unwrap();
    }
    (folder, run)
}

fn metrics() -> String {
    let mut lines = String::new();
    let mut line = |value: Value| lines += &format!("{value}\n");
    for step in 1..=20_000 {
        let loss = 2.0 / f64::from(step);
        line(
            serde_json::json!({"arm": "parallel", "stage": "cold-start", "step": step, "loss": loss, "lr": 1e-3}),
        );
    }
    for step in 1..=50 {
        line(
            serde_json::json!({"arm": "parallel", "stage": "easy", "step": step, "loss": 0.1, "reward": 0.5,
            "parallel_ratio": 0.9, "block_position": f64::from(step) / 100.0, "entropy": 0.3, "log_prob_gap_max": 2e-6,
            "brand_new_number": f64::from(step), "truncated": 0.0}),
        );
    }
    line(serde_json::json!({"arm": "sequential", "stage": "easy", "step": 1, "loss": null, "reward": -1.0,
        "truncated": 0.5, "log_prob_gap_max": 0.5}));
    for entropy in [1.0, 0.01] {
        line(
            serde_json::json!({"arm": "calm", "stage": "easy", "step": 1, "reward": 1.0, "entropy": entropy}),
        );
    }
    lines
}

fn traces() -> String {
    let trace = |step: usize, response: &str, correct: bool| {
        let score = serde_json::json!({"reward": 1.0, "parts": {"accuracy": 1.0}, "correct": correct});
        serde_json::json!({"arm": "parallel", "stage": "easy", "step": step, "problem": "3 5 12 = 45", "answer": "45",
            "response": response, "score": score, "tokens": 30, "critical_path_tokens": 20})
        .to_string()
            + "\n"
    };
    let block = "So <Parallel><Path>12+5=17,17*3=51 no</Path><Path>12-3=9,9*5=45 ok</Path></Parallel>\n<Summary>Answer: 12-3=9,9*5=45</Summary>";
    trace(1, block, true) + &trace(2, HOSTILE, false) + &trace(3, "<Parallel><Path>cut", false)
}

fn evaluation(right: usize) -> Value {
    let row = |i: usize| {
        serde_json::json!({"id": format!("p{i}"), "fingerprint": "f", "samples": 4, "right": right, "majority": 0.0,
            "total_tokens": 9.0, "critical_path_tokens": 9.0})
    };
    let mean = right as f64 / 4.0;
    serde_json::json!({"problems": 20, "skipped": 0, "samples": 4, "mean_at_k": mean, "pass_at_k": 1.0, "maj_at_k": 0.0,
        "interval": {"low": mean - 0.1, "high": mean + 0.1}, "some_path_right": 0.8, "answer_right_given_path": 0.5,
        "rows": (0..20).map(row).collect::<Vec<_>>()})
}

#[test]
fn a_report_is_one_file_without_markup_of_the_model() {
    let (_folder, run) = run("run");
    let out = run.join("report.html");
    command(&["report"]).arg(&run).assert().success().stdout(contains("report.html"));
    let page = std::fs::read_to_string(&out).unwrap();
    assert!(page.len() < 500_000, "20,000 steps make {} bytes", page.len());
    assert!(!page.contains("<img") && page.contains(r"\u003c/script>\u003cimg"));
    for verdict in [
        "parallel_rl against base: better on 1 of 1 tiers",
        "parallel_rl against sequential_rl: better on 1 of 1 tiers",
        "sequential_rl against base: no clear difference",
        "sequential: sampler and trainer disagree",
        "calm: entropy has collapsed",
    ] {
        assert!(page.contains(verdict), "{verdict}");
    }
    // Its entropy fell from that of the demonstrations, which says nothing.
    assert!(!page.contains("parallel: entropy has collapsed"));
    for outside in ["http://", "https://", "src=\"", "@import", "url("] {
        let own = "http://www.w3.org/2000/svg"; // a name, nothing that is loaded
        assert!(!page.replace(own, "").contains(outside), "{outside}");
    }
}

#[test]
fn what_is_no_run_is_named() {
    let (_folder, run) = run("run");
    fails(&mut command(&["report", "nowhere"]), "nowhere: expected the folder of a run");
    let folder = run.parent().unwrap();
    command(&["report"])
        .arg(&run)
        .arg("--out")
        .arg(folder)
        .assert()
        .code(2)
        .stderr(contains("expected a file"));
    // A recipe of another version and a cut line cost what they say, not the report.
    std::fs::write(run.join("recipe.toml"), "new = 1\n").unwrap();
    std::fs::write(run.join("evaluations/base.json"), "{").unwrap();
    let mut lines = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    lines.insert_str(0, "cut off\n");
    std::fs::write(run.join("metrics.jsonl"), lines).unwrap();
    command(&["report"]).arg(&run).assert().success();
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    for note in ["the recipe can't be read", "evaluations/base.json can't be read", "are no records: 1"] {
        assert!(page.contains(note), "{note}");
    }
}

#[test]
fn runs_of_the_same_name_are_told_apart_by_their_folders() {
    let ((_one, first), (_two, second)) = (run("run"), run("run"));
    let out = first.join("both.html");
    command(&["report"]).arg(&first).arg(&second).arg("--out").arg(&out).assert().success();
    let page = std::fs::read_to_string(&out).unwrap();
    assert!(page.contains(&format!(
        "{} / parallel_rl against {} / base",
        second.display(),
        second.display()
    )));
}

/// What a reader does, and what is then on the page: written into attributes, which the browser prints.
const READER: &str = r#"<script>{
const said = document.documentElement.dataset;
const press = (target, key) => target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
const trace = () => document.getElementById('trace').textContent;
const chart = document.getElementById('metric-loss');
chart.focus();
press(chart, 'Home');
said.first = chart.querySelector('.readout').textContent;
press(chart, 'ArrowRight');
said.second = chart.querySelector('.readout').textContent;
said.points = Math.max(...[...chart.querySelectorAll('path')].map((path) => path.getAttribute('d').split('L').length));
said.lanes = document.querySelectorAll('#trace .lane').length;
said.trace = trace();
press(document.body, 'j');
said.next = trace();
press(document.body, 'k');
said.back = String(trace() === said.trace);
const theme = getComputedStyle(document.body).backgroundColor;
press(document.body, 't');
said.turned = String(getComputedStyle(document.body).backgroundColor !== theme);
press(document.body, '?');
said.help = String(document.getElementById('help').open);
said.images = document.images.length;
said.fits = String(document.documentElement.scrollWidth <= innerWidth);
said.unnamed = [...document.querySelectorAll('select, input')].filter((one) => !one.labels.length).length;
document.getElementById('help').close();
const pick = (id, value) => {
  document.getElementById(id).value = value;
  document.getElementById(id).dispatchEvent(new Event('change'));
};
pick('figure', 'total_tokens');
said.figure = document.querySelector('#results .quiet').textContent;
pick('filter-verdict', 'wrong');
said.wrong = document.querySelectorAll('#trace-list button').length;
said.focus = document.activeElement.id;
const lines = () => document.querySelectorAll('#metric-loss path').length;
const all = lines();
document.getElementById('training-arm-0').click();
said.hidden = String(lines() < all && lines() > 0);
}</script></body>"#;

/// Catches what a script throws before any script runs.
const CATCHER: &str = "<head><script>addEventListener('error', (event) => { document.documentElement.dataset.error = event.message; });</script>";

/// A Chromium, if one is installed.
fn browser() -> Option<String> {
    let named = std::env::var("CHROME").ok();
    let usual = ["chromium", "chromium-browser", "google-chrome", "chrome-headless-shell"].map(str::to_owned);
    let works = |name: &String| {
        std::process::Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success())
    };
    named.into_iter().chain(usual).find(works)
}

/// The document as a browser has it after its scripts have run.
fn opened(browser: &str, page: &Path, width: u32) -> String {
    let profile = tempdir().unwrap();
    let mut chromium = Command::new(browser);
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=5000",
        "--dump-dom",
    ]);
    chromium.arg(format!("--window-size={width},900"));
    chromium.arg(format!("--user-data-dir={}", profile.path().display()));
    let url = format!("file://{}", page.display());
    let out = chromium.arg(url).timeout(std::time::Duration::from_secs(120)).assert().success();
    String::from_utf8(out.get_output().stdout.clone()).unwrap()
}

#[test]
fn a_person_can_read_the_page() {
    let Some(browser) = browser() else {
        eprintln!("SKIPPED a_person_can_read_the_page: no Chromium is installed (CHROME names one)");
        return;
    };
    let ((_one, first), (_two, second)) = (run("first"), run("second"));
    let out = first.join("both.html");
    command(&["report"]).arg(&first).arg(&second).arg("--out").arg(&out).assert().success();
    let page = std::fs::read_to_string(&out).unwrap();
    assert!(page.contains("<head>") && page.contains("</body>"));
    std::fs::write(&out, page.replace("<head>", CATCHER).replace("</body>", READER)).unwrap();
    let document = opened(&browser, &out, 1200);

    let root = document.split('>').find(|tag| tag.contains("data-state")).unwrap_or_default();
    let said = |name: &str| {
        let value =
            root.split_once(&format!("data-{name}=\"")).map(|(_, rest)| rest.split('"').next().unwrap());
        value.unwrap_or_else(|| panic!("no data-{name} in {root}")).to_owned()
    };
    assert!(!root.contains("data-error") && !root.contains("data-hacked"), "{root}");
    assert_eq!(said("state"), "drawn");

    // Verdicts come first, and say what the numbers say.
    for text in [
        "first / parallel_rl against first / base: better on 1 of 1 tiers",
        "first / sequential_rl against first / base: no clear difference",
        "second / parallel_rl against first / parallel_rl: no clear difference",
        "first / parallel: sampler and trainer agree",
        "first / sequential: sampler and trainer disagree",
        "first / sequential: values that are no finite numbers: 1",
        "50.0 % of the last responses are cut by the budget",
        "blocks have moved later",
        "most losses are in the summary (consolidation)",
        "first: the run is not finished",
        "brand new number",
    ] {
        assert!(document.contains(text), "{text}");
    }
    assert!(document.find("id=\"verdicts\"") < document.find("id=\"results\""));

    // Charts answer to the keyboard, and long runs are thinned.
    assert!(said("first").starts_with("step ") && said("first") != said("second"), "{}", said("first"));
    let points: usize = said("points").parse().unwrap();
    assert!((100..=1000).contains(&points), "{points} points of 20,050 steps");

    // Traces are threads with verdicts; the next one is the hostile one, which is text.
    assert_eq!(said("lanes"), "2");
    assert!(said("trace").contains("Path 1 ✗ not right") && said("trace").contains("Path 2 ✓ right"));
    assert!(said("next").contains("onerror=") && said("back") == "true");
    assert_eq!(said("images"), "0");
    assert!(said("figure").starts_with("tokens. "), "{}", said("figure"));
    for (what, expected) in [("wrong", "4"), ("focus", "filter-verdict"), ("hidden", "true")] {
        assert_eq!(said(what), expected, "{what}");
    }
    for (what, expected) in [("turned", "true"), ("help", "true"), ("fits", "true"), ("unnamed", "0")] {
        assert_eq!(said(what), expected, "{what}");
    }

    // On a telephone nothing is wider than the screen.
    let narrow = opened(&browser, &out, 500);
    assert!(narrow.contains("data-fits=\"true\""));
}
