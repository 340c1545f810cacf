//! Generation against a server that imitates teachers, at their best and at their worst; and with models as teachers.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use candle_core::Device;
use parallel_r1::cold_start::budget::{Budget, Limits, Price, Spent};
use parallel_r1::cold_start::check::CheckOptions;
use parallel_r1::cold_start::generate::{
    GenerateError, Generation, Journal, Problems, Report, Settings, Shape, Tally, Watch,
};
use parallel_r1::cold_start::prompts::Template;
use parallel_r1::cold_start::teacher::{Endpoint, EndpointOptions, Local, Teacher};
use parallel_r1::data::Split;
use parallel_r1::data::countdown::{Tier, problems};
use parallel_r1::data::{Problem, load_demonstrations};
use parallel_r1::engine::{EngineOptions, SamplingParams};
use parallel_r1::layout::Structure;
use parallel_r1::model::Pretrained;
use parallel_r1::prompt::tags::check_text;
use parallel_r1::train::demonstrations::sequence;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::teacher_server::{Act, Asked, TeacherServer};

fn problem(n: usize) -> Problem {
    Problem {
        id: format!("p-{n}"),
        problem: format!("What do you get when you add {n} to itself? (Problem {n})"),
        answer: (2 * n).to_string(),
        source: "doubles".into(),
        level: None,
    }
}

fn problem_set(count: usize) -> Problems {
    Problems::new((10..10 + count).map(problem)).unwrap()
}

/// A demonstration without fault.
fn good(n: usize) -> String {
    good_sample(n, 0)
}

/// One of four that differ.
fn good_sample(n: usize, sample: usize) -> String {
    let twice = 2 * n;
    let first = [
        format!("Column by column the digits of both numbers are added, which gives {twice}."),
        format!("On a number line, {n} steps to the right and as many again lead to {twice}."),
        format!("Tens and ones are added apart and then put together, so there are {twice}."),
        format!("Somebody who counts on from {n} for as long as it took to get there says {twice}."),
    ];
    format!(
        "We are asked for the sum of {n} and the same number once more.\n\n\
         <Parallel>\n<Path>\n{}\n</Path>\n\
         <Path>\nA number added to itself is its double, and two times {n} makes {twice}.\n</Path>\n</Parallel>\n\
         <Summary>\nAddition and doubling agree on {twice}.\n</Summary>\n\nFinal Answer: {twice}",
        first[sample % 4]
    )
}

/// The number in a prompt.
fn number(asked: &Asked) -> usize {
    asked.prompt.rsplit("(Problem ").next().unwrap().trim_end_matches(')').parse().unwrap()
}

/// Answers everything well.
fn good_teacher() -> TeacherServer {
    TeacherServer::start(|asked| Act::Say(good_sample(number(asked), asked.sample as usize)))
}

fn settings(prompt: &str, shape: Shape, samples: usize) -> Settings {
    Settings {
        prompt: Template::find(prompt).unwrap(),
        samples,
        shape,
        keep: usize::MAX,
        paths: 3,
        assembly: Template::find("assembly").unwrap(),
        summary: None,
        check: CheckOptions::default(),
        duplicate_similarity: 0.8,
    }
}

fn endpoint(server: &TeacherServer) -> EndpointOptions {
    EndpointOptions {
        url: server.url(),
        model: "imitation".into(),
        concurrency: 4,
        attempts: 4,
        pause: Duration::from_millis(1),
        timeout: Duration::from_millis(1000),
        max_tokens: 300,
        ..EndpointOptions::default()
    }
}

/// A run with its folder.
struct Run<'a> {
    folder: TempDir,
    problems: &'a Problems,
    settings: &'a Settings,
}

impl<'a> Run<'a> {
    fn new(problems: &'a Problems, settings: &'a Settings) -> Self {
        Self { folder: tempdir().unwrap(), problems, settings }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Asks and collects; stops after so many answers.
    fn go(&self, teacher: &dyn Teacher, limits: Limits, most: usize) -> Result<Report, GenerateError> {
        let price = Price { input: 1.0, output: 2.0 };
        let generation = Generation { problems: self.problems, teacher, settings: self.settings };
        let mut journal = Journal::open(&self.file("journal.jsonl"))?;
        let budget = Budget::new(limits, price, journal.spent());
        let seen = AtomicUsize::new(0);
        let mut progress = |tally: &Tally| seen.store(tally.answered + tally.failed, Ordering::Relaxed);
        let stop = || seen.load(Ordering::Relaxed) >= most;
        let asked =
            generation.ask(&mut journal, &budget, &mut Watch { stop: &stop, progress: &mut progress });
        let report = generation.collect(&mut journal, self.folder.path())?;
        asked.map(|()| report)
    }

    fn whole(&self, teacher: &dyn Teacher) -> Report {
        self.go(teacher, Limits::default(), usize::MAX).unwrap()
    }

    fn bytes(&self) -> [Vec<u8>; 2] {
        ["data.jsonl", "rejected.jsonl"].map(|name| std::fs::read(self.file(name)).unwrap())
    }

    fn rows(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Every wanted answer is accounted for.
fn assert_adds_up(report: &Report) {
    assert_eq!(report.wanted, report.accepted + report.rejected + report.failed.count + report.unanswered);
    let made = if report.assembled + report.too_few_solutions.count > 0 {
        report.assembled
    } else {
        report.accepted
    };
    assert_eq!(made, report.rows + report.not_kept + report.duplicates.count);
}

#[test]
fn trouble_on_the_way_costs_tries_but_no_row() {
    let problems = problem_set(12);
    let settings = settings("parallel", Shape::Parallel, 1);
    for stream in [true, false] {
        let server = good_teacher();
        let say = |n| Act::Say(good(n));
        let marker = |n: usize| format!("(Problem {n})");
        server.plan(&marker(10), [Act::Status(500, "oops", None), Act::Status(503, "", None)]);
        server.plan(&marker(11), [Act::Status(429, r#"{"error": {"message": "slow down"}}"#, Some("0.05"))]);
        server.plan(&marker(12), [Act::Break(good(12)), say(12)]);
        server.plan(&marker(13), [Act::BadJson, Act::BadJson]);
        server.plan(&marker(14), [Act::HangUp]);
        server.plan(&marker(15), [Act::Slow(Duration::from_millis(50), good(15))]);
        server.plan(&marker(16), [Act::Slow(Duration::from_secs(2), good(16))]);
        server.plan(&marker(17), vec![Act::Status(500, "down", None); 4]);
        server.plan(&marker(18), [Act::Status(400, r#"{"error": {"message": "too long"}}"#, None)]);
        server.plan(
            &marker(19),
            [Act::Say(format!("<think>\n<Parallel> is it {}?</think>\n{}", 38, good(19)))],
        );
        let run = Run::new(&problems, &settings);
        let teacher = Endpoint::new(EndpointOptions { stream, ..endpoint(&server) }).unwrap();
        let report = run.whole(&teacher);
        assert_adds_up(&report);
        assert_eq!((report.rows, report.failed.count, report.unanswered), (10, 2, 0), "{report:?}");
        let tries = |n| server.with(|state| state.asked.iter().filter(|asked| number(asked) == n).count());
        assert_eq!([10, 11, 12, 13, 14, 15, 16, 17, 18].map(tries), [3, 2, 2, 3, 2, 1, 2, 4, 1]);
        let rows = run.rows("data.jsonl");
        assert!(rows.iter().all(|row| row["response"].as_str().unwrap().starts_with("We are asked")));
        let refused = run.rows("rejected.jsonl");
        let failed: Vec<&str> = refused.iter().map(|row| row["failed"].as_str().unwrap()).collect();
        assert_eq!(failed, ["answered 500: down", "answered 400: too long"]);
        // What failed is asked again the next time.
        let report = run.whole(&teacher);
        assert_eq!((report.rows, report.failed.count), (12, 0));
    }
}

#[test]
fn each_planted_fault_gets_its_name() {
    let other = |text: &'static str| move |_: usize| text.to_owned();
    let edit = |from: &'static str, to: &'static str| move |n: usize| good(n).replacen(from, to, 1);
    let first_path = |n: usize| {
        let text = good(n);
        let paths: Vec<&str> = text.split("</Path>\n").collect();
        (paths[0].to_owned() + "</Path>\n", paths[1].to_owned() + "</Path>\n", paths[2].to_owned())
    };
    type Fault = (&'static str, Box<dyn Fn(usize) -> String + Send>);
    let faults: Vec<Fault> = vec![
        ("unclosed_summary", Box::new(edit("\n</Summary>", ""))),
        ("stray_tag", Box::new(edit("</Summary>", "</Summary> </Path>"))),
        ("path_outside_block", Box::new(edit("We are", "<Path>\nWe see.\n</Path>\nWe are"))),
        ("too_few_paths", Box::new(move |n| first_path(n).0 + &first_path(n).2)),
        (
            "missing_summary",
            Box::new(|n| {
                let text = good(n);
                let (before, after) = text.split_once("<Summary>").unwrap();
                before.to_owned() + after.split_once("</Summary>").unwrap().1
            }),
        ),
        ("text_in_block", Box::new(edit("</Path>\n<Path>", "</Path>\nBy other means:\n<Path>"))),
        ("text_before_summary", Box::new(edit("<Summary>", "All in all:\n<Summary>"))),
        (
            "nested_too_deep",
            Box::new(move |n| {
                let inner = "<Parallel><Path>First of all, add ones.</Path><Path>Or count up from there.</Path></Parallel>\
                         <Summary>Either way works well.</Summary>";
                good(n).replacen("Column by", &format!("{inner} Column by"), 1)
            }),
        ),
        (
            "empty_summary",
            Box::new(|n| {
                let text = good(n);
                let (before, after) = text.split_once("<Summary>").unwrap();
                before.to_owned() + "<Summary>\n</Summary>" + after.split_once("</Summary>").unwrap().1
            }),
        ),
        ("path_reference", Box::new(edit("A number", "As in path 1, a number"))),
        (
            "near_duplicate_paths",
            Box::new(move |n| {
                first_path(n).0 + first_path(n).0.split("<Parallel>\n").nth(1).unwrap() + &first_path(n).2
            }),
        ),
        (
            "contradicting_summary",
            Box::new(|n| good(n).replacen(&format!("agree on {}", 2 * n), "agree on 7", 1)),
        ),
        (
            "wrong_answer",
            Box::new(|n| good(n).replacen(&format!("Final Answer: {}", 2 * n), "Final Answer: 7", 1)),
        ),
        ("no_block", Box::new(|n| format!("Twice {n} is {}.\n\nFinal Answer: {}", 2 * n, 2 * n))),
        (
            "empty_path",
            Box::new(edit(
                "<Path>\nColumn by column the digits of both numbers are added, which gives",
                "<Path>\n</Path>\n<Path>\nSo the column sum gives",
            )),
        ),
        ("too_short", Box::new(other("<think>hm</think>"))),
    ];
    let names: Vec<&str> = faults.iter().map(|(name, _)| *name).chain(["truncated"]).collect();
    let problems = problem_set(names.len() + 1);
    let server = TeacherServer::start(move |asked| {
        let n = number(asked);
        match faults.get(n - 10) {
            Some((_, write)) => Act::Say(write(n)),
            None if n - 10 == faults.len() => Act::CutShort(good(n).split_once("</Path>").unwrap().0.into()),
            None => Act::Say(good(n)),
        }
    });
    let settings = settings("parallel", Shape::Parallel, 1);
    let run = Run::new(&problems, &settings);
    let report = run.whole(&Endpoint::new(endpoint(&server)).unwrap());
    assert_adds_up(&report);
    assert_eq!((report.rows, report.rejected), (1, names.len()), "{:?}", report.reasons);
    let refused = run.rows("rejected.jsonl");
    for (name, row) in names.iter().zip(&refused) {
        let reasons: Vec<&str> =
            row["reasons"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(reasons.contains(name), "expected {name}: {row}");
        let id = row["id"].as_str().unwrap();
        assert!(report.reasons[*name].count > 0, "{id}");
        let located = row["faults"].as_array().unwrap().iter().any(|fault| fault["kind"] == *name);
        assert!(located || *name == "no_block", "{row}");
    }
}

#[test]
fn an_interrupted_run_ends_in_the_same_bytes_and_pays_for_nothing_twice() {
    let (problems, settings) = (problem_set(8), settings("strict", Shape::Parallel, 3));
    let run = |most: usize| {
        let server = good_teacher();
        server.plan("(Problem 12)", [Act::Status(500, "", None), Act::BadJson]);
        server.plan("(Problem 15)", [Act::Break(good(15))]);
        let run = Run::new(&problems, &settings);
        let teacher = Endpoint::new(endpoint(&server)).unwrap();
        while !run.go(&teacher, Limits::default(), most).unwrap().complete {
            // As if the process had died while it wrote.
            let mut journal = File::options().append(true).open(run.file("journal.jsonl")).unwrap();
            journal.write_all(b"{\"problem\":\"p-1").unwrap();
        }
        let bytes = run.bytes();
        assert!(run.whole(&teacher).complete && run.bytes() == bytes, "asking again changes nothing");
        let mut answered = server.with(|state| std::mem::take(&mut state.answered));
        answered.sort();
        answered.dedup_by(|a, b| a == b && panic!("asked for twice: {a:?}"));
        assert_eq!(answered.len(), 24);
        bytes
    };
    let whole = run(usize::MAX);
    assert!([1, 5].map(run).iter().all(|bytes| *bytes == whole));
    assert_eq!(whole[0].iter().filter(|&&byte| byte == b'\n').count(), 24);
}

#[test]
fn no_budget_is_overrun_and_more_of_it_goes_on() {
    let (problems, settings) = (problem_set(10), settings("bare", Shape::Parallel, 1));
    let none = Limits::default();
    type Case = (Limits, fn(&Spent) -> f64, f64);
    let cases: [Case; 3] = [
        (Limits { requests: Some(4), ..none }, |spent| spent.requests as f64, 4.0),
        (
            Limits { tokens: Some(1200), ..none },
            |spent| (spent.prompt_tokens + spent.completion_tokens) as f64,
            1200.0,
        ),
        (Limits { cost: Some(2e-3), ..none }, |spent| spent.cost, 2e-3),
    ];
    for (limits, measure, most) in cases {
        let server = good_teacher();
        let (run, teacher) = (Run::new(&problems, &settings), Endpoint::new(endpoint(&server)).unwrap());
        for _ in 0..2 {
            let report = run.go(&teacher, limits, usize::MAX).unwrap();
            assert_adds_up(&report);
            assert!(report.rows > 1 && report.rows < 10 && !report.complete, "{limits:?}: {report:?}");
            assert!(measure(&report.spent) <= most, "earlier parts of the run count: {report:?}");
            assert_eq!(server.with(|state| state.asked.len()) as u64, report.spent.requests);
        }
        assert_eq!(run.whole(&teacher).rows, 10);
    }
}

#[test]
fn a_server_that_wants_to_be_left_alone_is() {
    let (problems, settings) = (problem_set(6), settings("bare", Shape::Parallel, 1));
    let server = good_teacher();
    server.plan("(Problem 12)", [Act::Status(429, "", Some("0.3"))]);
    server.plan("(Problem 14)", [Act::Status(503, "", Some("0.2")), Act::Status(503, "", Some("0.2"))]);
    let teacher = Endpoint::new(EndpointOptions { concurrency: 1, ..endpoint(&server) }).unwrap();
    let report = Run::new(&problems, &settings).whole(&teacher);
    assert_eq!((report.rows, server.with(|state| state.early)), (6, 0));
}

#[test]
fn what_can_never_work_ends_the_run_and_keeps_what_came() {
    let (problems, settings) = (problem_set(40), settings("bare", Shape::Parallel, 1));
    let run = Run::new(&problems, &settings);
    let error = |options| {
        let result =
            Endpoint::new(options).and_then(|teacher| run.go(&teacher, Limits::default(), usize::MAX));
        result.unwrap_err().to_string()
    };
    let server = good_teacher();
    server.with(|state| state.key = Some("right".into()));
    let denied = error(endpoint(&server));
    assert!(denied.contains("answered 401: it wants a key, and none was sent"), "{denied}");
    let denied = error(EndpointOptions { key: Some("wrong".into()), ..endpoint(&server) });
    assert!(denied.contains("the key that was sent has no access"), "{denied}");
    assert!(server.with(|state| state.asked.len()) <= 8, "the others aren't asked any more");
    assert!(
        error(EndpointOptions { url: "localhost".into(), ..endpoint(&server) }).contains("expected http://")
    );

    server.with(|state| state.key = None);
    server.plan("(Problem", vec![Act::Say("<Parallel>".into()); 3]);
    server.plan("(Problem", [Act::Status(404, r#"{"error": {"message": "no such model"}}"#, None)]);
    let unknown = error(EndpointOptions { concurrency: 1, ..endpoint(&server) });
    assert!(unknown.ends_with("/v1/chat/completions: answered 404: no such model"), "{unknown}");
    assert_eq!(run.rows("rejected.jsonl").len(), 3, "three answers had come");

    let down = TeacherServer::start(|_| Act::Status(500, "down", None));
    let given_up = error(EndpointOptions { attempts: 1, ..endpoint(&down) });
    assert_eq!(given_up, "the teacher failed 16 times in a row, the last time so: answered 500: down");
    let right = EndpointOptions { key: Some("right".into()), ..endpoint(&server) };
    assert_eq!(run.whole(&Endpoint::new(right).unwrap()).rows, 37);
}

#[test]
fn an_answer_to_another_question_is_none() {
    let problems = problem_set(3);
    let (server, parallel) = (good_teacher(), settings("parallel", Shape::Parallel, 1));
    let mut run = Run::new(&problems, &parallel);
    let teacher = Endpoint::new(endpoint(&server)).unwrap();
    run.whole(&teacher);
    let strict = settings("strict", Shape::Parallel, 1);
    run.settings = &strict;
    let error = run.go(&teacher, Limits::default(), usize::MAX).unwrap_err();
    assert!(error.to_string().contains("problem \"p-10\", sample 0, was asked otherwise"), "{error}");
    // More of the same is another matter.
    let (more, larger) = (settings("parallel", Shape::Parallel, 2), problem_set(4));
    run.settings = &more;
    run.problems = &larger;
    assert_eq!(run.whole(&teacher).rows, 8);
    assert_eq!(server.with(|state| state.answered.len()), 8);
}

/// Separate solutions: the first says what the third says.
fn separate_teacher(summary: impl Fn(usize) -> String + Send + 'static) -> TeacherServer {
    TeacherServer::start(move |asked| {
        if asked.prompt.contains("Write a summary") {
            let n =
                asked.prompt.split("(Problem ").nth(1).unwrap().split(')').next().unwrap().parse().unwrap();
            return Act::Say(summary(n));
        }
        let (n, twice) = (number(asked), 2 * number(asked));
        let ways = [
            format!("Column by column the digits of {n} and {n} are added, which makes {twice}."),
            format!("A number added to itself is its own double, and two times {n} comes to {twice}."),
            format!("Column by column the digits of {n} and {n} are added, which makes {twice}."),
            format!("I guess that it is {}.", twice + 1),
        ];
        let answer = if asked.sample == 3 { twice + 1 } else { twice };
        Act::Say(format!("{}\n\nFinal Answer: {answer}", ways[asked.sample as usize]))
    })
}

#[test]
fn separate_solutions_become_one_block() {
    let problems = problem_set(5);
    let mut settings = settings("plain", Shape::Assembled, 4);
    let server = separate_teacher(|_| unreachable!("nobody asked for a summary"));
    let run = Run::new(&problems, &settings);
    let report = run.whole(&Endpoint::new(endpoint(&server)).unwrap());
    assert_adds_up(&report);
    assert_eq!(
        (report.accepted, report.rejected, report.assembled, report.rows),
        (15, 5, 5, 5),
        "{report:?}"
    );
    for row in run.rows("data.jsonl") {
        let response = row["response"].as_str().unwrap();
        assert_eq!(check_text(response).unwrap().paths, [2], "{response}");
        assert_eq!((&row["summary"], row["samples"].as_array().unwrap().len()), (&"template".into(), 2));
    }

    settings.summary = Some(Template::find("summary").unwrap());
    let server = separate_teacher(|n| match n {
        11 => "<Summary>Adding columns and doubling both lead to 22.</Summary>".into(),
        12 => "Both solutions lead to 77, so that is the result.".into(),
        13 => "They <Path>agree.".into(),
        _ => format!("<think>hm</think>Adding columns and doubling both lead to {}.", 2 * n),
    });
    let run = Run::new(&problems, &settings);
    let teacher = Endpoint::new(endpoint(&server)).unwrap();
    while !run.go(&teacher, Limits::default(), 7).unwrap().complete {}
    let report = run.whole(&teacher);
    assert_eq!((report.rows, report.summaries_by_teacher), (5, 3), "{report:?}");
    let by: Vec<String> = run.rows("data.jsonl").iter().map(|row| row["summary"].to_string()).collect();
    assert_eq!(by, ["teacher", "teacher", "template", "template", "teacher"].map(|by| format!("\"{by}\"")));
    assert_eq!(server.with(|state| state.answered.len()), 25, "each solution and each summary once");
}

#[test]
fn a_few_that_differ_are_kept() {
    let problems = problem_set(3);
    let mut settings = settings("bare", Shape::Parallel, 4);
    settings.keep = 2;
    let server = good_teacher();
    let run = Run::new(&problems, &settings);
    let report = run.whole(&Endpoint::new(endpoint(&server)).unwrap());
    assert_adds_up(&report);
    assert_eq!((report.accepted, report.rows, report.not_kept), (12, 6, 6));
}

#[test]
fn what_says_the_same_is_a_row_once() {
    let twin = |n: usize| Problem { id: format!("twin-{n}"), ..problem(n) };
    let mut problems = Problems::new([problem(10), twin(10), problem(11), problem(12)]).unwrap();
    problems.leave_out(|problem| problem.id == "p-12");
    let settings = settings("bare", Shape::Parallel, 2);
    let server = good_teacher();
    let run = Run::new(&problems, &settings);
    let report = run.whole(&Endpoint::new(endpoint(&server)).unwrap());
    assert_adds_up(&report);
    assert_eq!(
        (report.rows, report.duplicates.examples),
        (4, vec!["twin-10#0".to_owned(), "twin-10#1".to_owned()])
    );
    assert_eq!((report.contaminated.examples, report.wanted), (vec!["p-12".to_owned()], 6));
    assert!(
        server.with(|state| state.asked.iter().all(|asked| number(asked) != 12)),
        "nothing was paid for it"
    );
}

#[test]
fn problems_are_told_apart_by_their_ids() {
    let unreadable = Problem { answer: " ".into(), id: "none".into(), ..problem(3) };
    let problems = Problems::new([problem(1), problem(1), problem(2), unreadable.clone()]).unwrap();
    assert_eq!(
        (problems.asked.len(), problems.repeated, problems.unreadable),
        (2, 1, vec!["none".to_owned()])
    );
    let same = Problem { id: "p-1".into(), ..problem(2) };
    let error = Problems::new([problem(1), same]).unwrap_err().to_string();
    assert_eq!(error, "two different problems have the id \"p-1\": expected an id of its own for each");
    assert!(Problems::new([unreadable]).unwrap_err().to_string().starts_with("none of the 1 problems"));
}

fn sequential(max_response_tokens: usize) -> SamplingParams {
    let structure = Structure::Causal;
    SamplingParams {
        structure,
        max_blocks: 0,
        max_response_tokens,
        temperature: 0.7,
        ..SamplingParams::default()
    }
}

#[test]
fn the_embedded_model_teaches_itself_countdown() {
    let model = Pretrained::embedded(&Device::Cpu).unwrap();
    let tasks = problems(Tier::Three, Split::Train, 3, 6).unwrap();
    let (problems, settings) = (Problems::new(tasks).unwrap(), settings("bare", Shape::Assembled, 8));
    let teacher = Local::new(&model, "embedded", sequential(400), EngineOptions::default());
    let (run, stopped) = (Run::new(&problems, &settings), Run::new(&problems, &settings));
    let report = run.whole(&teacher);
    assert_adds_up(&report);
    assert!(report.rows >= 3 && report.rejected > 0, "{report:?}");
    let one_by_one = EngineOptions { max_batch: 3, ..EngineOptions::default() };
    let teacher = Local::new(&model, "embedded", sequential(400), one_by_one);
    while !stopped.go(&teacher, Limits::default(), 9).unwrap().complete {}
    assert_eq!(run.bytes(), stopped.bytes());

    let pupil = Pretrained::embedded(&Device::Cpu).unwrap().with_tags(1).unwrap();
    let controls = pupil.controls().unwrap();
    for row in load_demonstrations(&run.file("data.jsonl"), None).unwrap() {
        sequence(&row, &pupil, &controls, Some(Structure::PathWindow)).unwrap();
    }
}

#[test]
fn smollm2_is_asked_like_any_teacher() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/SmolLM2-135M-Instruct.Q4_1.gguf");
    if !file.exists() {
        eprintln!("SKIPPED smollm2_is_asked_like_any_teacher: {} is not there", file.display());
        return;
    }
    let model = Pretrained::open(file.to_str().unwrap(), &Device::Cpu).unwrap();
    let (problems, settings) = (problem_set(1), settings("plain", Shape::Any, 2));
    let run = Run::new(&problems, &settings);
    let report = run.whole(&Local::new(&model, "SmolLM2", sequential(24), EngineOptions::default()));
    assert_adds_up(&report);
    assert_eq!((report.wanted, report.unanswered, report.failed.count), (2, 0, 0));
    assert!(report.spent.prompt_tokens > 40 && report.spent.completion_tokens > 2, "{report:?}");
}
