//! Judging by a command: for code that tests decide, and for any task of one's own.
//!
//! The command is started once (`workers` times, to judge as many responses at the same time). For each response it
//! reads one line of JSON from its standard input and writes one to its standard output:
//!
//! ```text
//! {"id": "7", "problem": "...", "response": "...", "gold": "...", "source": "...", "level": "3"}
//! {"score": 0.5, "correct": false}
//! ```
//!
//! `correct` may be left out: a score above 0 is then right. The next request comes when the reply is there, so that a
//! reply that is lost can't be taken for that of another response. The standard error is shown as it is. When its
//! standard input ends the command should end, too.

mod process;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use process::Process;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::data::Problem;

/// A larger score is a slip of the command.
const LARGEST_SCORE: f64 = 1e6;
/// More processes or longer waits are slips.
const MOST_WORKERS: usize = 1024;
const LONGEST_WAIT: f64 = 1e5;
/// So many responses in a row without a reply, and it is the command that is broken, not the responses.
const PATIENCE: usize = 3;
/// How often a response is tried, each time but the first in a fresh process.
const TRIES: usize = 2;

/// The command, as a recipe writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalConfig {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// Seconds to wait for the reply to one response. A response that takes longer is tried once more in a fresh
    /// process, and is wrong if that fails too.
    #[serde(default = "ten")]
    pub timeout: f64,
    /// Seconds more for the first reply of a fresh process.
    #[serde(default = "thirty")]
    pub start_timeout: f64,
    /// How many processes judge at the same time.
    #[serde(default = "one")]
    pub workers: usize,
    /// Where it runs; by default where the recipe lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}

fn one() -> usize {
    1
}

fn ten() -> f64 {
    10.0
}

fn thirty() -> f64 {
    30.0
}

impl ExternalConfig {
    /// Says what makes no sense, with the field.
    pub fn check(&self) -> Result<(), String> {
        if self.command.first().is_none_or(String::is_empty) {
            return Err("command: expected a program and its arguments, got none".into());
        }
        for (field, seconds) in [("timeout", self.timeout), ("start_timeout", self.start_timeout)] {
            if !(seconds > 0.0 && seconds <= LONGEST_WAIT) {
                return Err(format!(
                    "{field}: expected seconds above 0, at most {LONGEST_WAIT}, got {seconds}"
                ));
            }
        }
        if !(1..=MOST_WORKERS).contains(&self.workers) {
            return Err(format!("workers: expected 1 to {MOST_WORKERS}, got {}", self.workers));
        }
        Ok(())
    }
}

/// What the command says of a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExternalScore {
    /// What it is worth.
    pub score: f32,
    /// Whether it is right.
    pub correct: bool,
}

impl ExternalScore {
    /// A response that the command has no answer for. It earns what a wrong answer does: hanging its judge must be no
    /// way out.
    const UNANSWERED: Self = Self { score: -1.0, correct: false };
}

/// A command that does not judge.
#[derive(Debug, Error)]
pub enum ExternalError {
    /// It could not be started.
    #[error("external.command {command:?}: cannot be started: {source}")]
    Start {
        /// The program.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// It answers nothing.
    #[error(
        "external.command {command:?}: no sound reply to {PATIENCE} responses in a row; the last: {fault}"
    )]
    Broken {
        /// The program.
        command: String,
        /// What was wrong last.
        fault: String,
    },
}

/// What the command reads.
#[derive(Serialize)]
struct Request<'a> {
    id: &'a str,
    problem: &'a str,
    response: &'a str,
    gold: &'a str,
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<&'a str>,
}

/// What it writes.
#[derive(Deserialize)]
struct Reply {
    score: f64,
    correct: Option<bool>,
}

/// The command, whose processes are started when they are first needed and again after they failed.
pub struct External {
    workers: Vec<Worker>,
}

impl External {
    /// A command that has not been started yet.
    pub fn new(config: &ExternalConfig) -> Self {
        let worker = || Worker { config: config.clone(), process: None, unanswered: 0 };
        Self { workers: std::iter::repeat_with(worker).take(config.workers.max(1)).collect() }
    }

    /// Judges responses to problems; the scores are in their order.
    pub fn judge(&mut self, responses: &[(&Problem, &str)]) -> Result<Vec<ExternalScore>, ExternalError> {
        let next = AtomicUsize::new(0);
        // Each worker takes the next response that nobody has.
        let work = |worker: &mut Worker| -> Result<Vec<(usize, ExternalScore)>, ExternalError> {
            let mut judged = Vec::new();
            while let Some((at, (problem, response))) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                responses.get(at).map(|response| (at, response))
            } {
                judged.push((at, worker.judge(&line(problem, response))?));
            }
            Ok(judged)
        };
        let mut judged = thread::scope(|scope| {
            let running: Vec<_> =
                self.workers.iter_mut().map(|worker| scope.spawn(move || work(worker))).collect();
            let ended = running.into_iter().map(|thread| thread.join().expect("a worker does not panic"));
            ended.collect::<Result<Vec<_>, _>>()
        })?
        .concat();
        judged.sort_by_key(|(at, _)| *at);
        Ok(judged.into_iter().map(|(_, score)| score).collect())
    }
}

/// One process of the command.
struct Worker {
    config: ExternalConfig,
    process: Option<Process>,
    /// Responses without a reply since the last sound one.
    unanswered: usize,
}

impl Worker {
    fn judge(&mut self, line: &str) -> Result<ExternalScore, ExternalError> {
        let mut fault = String::new();
        for _ in 0..TRIES {
            match self.ask(line)? {
                Ok(score) => {
                    self.unanswered = 0;
                    return Ok(score);
                }
                Err(reason) => (fault, self.process) = (reason, None),
            }
        }
        self.unanswered += 1;
        if self.unanswered >= PATIENCE {
            return Err(ExternalError::Broken { command: self.config.command[0].clone(), fault });
        }
        Ok(ExternalScore::UNANSWERED)
    }

    /// The reply to one request; the inner error says what is wrong with it.
    fn ask(&mut self, line: &str) -> Result<Result<ExternalScore, String>, ExternalError> {
        let mut seconds = self.config.timeout;
        let process = match &mut self.process {
            Some(process) => process,
            none => {
                seconds += self.config.start_timeout;
                none.insert(Process::start(&self.config)?)
            }
        };
        // A process that is gone shows when its reply is waited for.
        let _ = process.requests.send(line.to_owned());
        Ok(match process.replies.recv_timeout(Duration::from_secs_f64(seconds)) {
            Ok(reply) => reply.and_then(|reply| score(&reply)),
            Err(_) => Err(format!("nothing within {seconds} s, or it ended")),
        })
    }
}

fn line(problem: &Problem, response: &str) -> String {
    let request = Request {
        id: &problem.id,
        problem: &problem.problem,
        response,
        gold: &problem.answer,
        source: &problem.source,
        level: problem.level.as_deref(),
    };
    serde_json::to_string(&request).expect("a record of texts can be written") + "\n"
}

fn score(line: &str) -> Result<ExternalScore, String> {
    let shown: String = line.trim_end().chars().take(80).collect();
    let reply: Reply = serde_json::from_str(line)
        .map_err(|e| format!("expected {{\"score\": NUMBER}}, got {shown:?} ({e})"))?;
    if reply.score.abs() > LARGEST_SCORE {
        return Err(format!("expected a score of at most {LARGEST_SCORE}, got {shown:?}"));
    }
    Ok(ExternalScore { score: reply.score as f32, correct: reply.correct.unwrap_or(reply.score > 0.0) })
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::tests::problem;
    use super::*;

    fn external(script: &str, timeout: f64) -> External {
        let command = ["sh", "-c", script].map(String::from).to_vec();
        External::new(&ExternalConfig { command, timeout, start_timeout: 2.0, workers: 1, folder: None })
    }

    fn judge(external: &mut External, responses: &[&str]) -> Result<Vec<(f32, bool)>, String> {
        let problem = problem("5 + 7?", "12");
        let responses: Vec<(&Problem, &str)> =
            responses.iter().map(|response| (&problem, *response)).collect();
        let scores = external.judge(&responses).map_err(|e| e.to_string())?;
        Ok(scores.into_iter().map(|score| (score.score, score.correct)).collect())
    }

    #[test]
    fn replies_are_read_in_order_from_one_process() {
        // The count shows that the process stays; `correct` is what it says, or whether the score is above 0.
        let mut counting = external(
            r#"n=0; while read -r line; do n=$((n + 1)); case "$line" in
                *'"response":"odd"'*) echo "{\"score\": $n, \"correct\": false}";;
                *) echo "{\"score\": $n}";; esac; done"#,
            5.0,
        );
        assert_eq!(judge(&mut counting, &["a", "odd"]), Ok(vec![(1.0, true), (2.0, false)]));
        assert_eq!(judge(&mut counting, &["b"]), Ok(vec![(3.0, true)]));
        assert_eq!(judge(&mut counting, &[]), Ok(vec![]));
    }

    #[test]
    fn the_command_sees_problem_response_and_gold() {
        let request =
            r#"{"id":"test-0","problem":"5 + 7?","response":"a \"b\"\n","gold":"12","source":"test"}"#;
        let script = format!(
            "while read -r line; do if [ \"$line\" = '{request}' ]; then echo '{{\"score\": 1}}'; \
             else echo '{{\"score\": 0}}'; fi; done"
        );
        assert_eq!(
            judge(&mut external(&script, 5.0), &["a \"b\"\n", "x"]),
            Ok(vec![(1.0, true), (0.0, false)])
        );
    }

    #[test]
    fn a_response_that_hangs_or_kills_the_command_is_wrong_and_the_others_are_judged() {
        let script = r#"while read -r line; do case "$line" in
            *hang*) sleep 5;; *die*) exit 1;; *) echo '{"score": 1}';; esac; done"#;
        let (right, wrong) = ((1.0, true), (-1.0, false));
        let scores = judge(&mut external(script, 0.3), &["a", "hang", "b", "die", "c"]);
        assert_eq!(scores, Ok(vec![right, wrong, right, wrong, right]));
    }

    #[test]
    fn several_workers_judge_in_order() {
        let command = [
            "sh",
            "-c",
            r#"while read -r line; do case "$line" in
            *a*) sleep 0.2; echo '{"score": 1}';; *) echo '{"score": 2}';; esac; done"#,
        ];
        let mut external = external("", 5.0);
        external.workers[0].config.command = command.map(String::from).to_vec();
        let other = Worker { config: external.workers[0].config.clone(), process: None, unanswered: 0 };
        external.workers.push(other);
        let problem = Problem { id: "0".into(), source: "x".into(), ..problem("5 + 7?", "12") };
        let responses = ["a", "b", "b", "a", "b"].map(|response| (&problem, response));
        let scores: Vec<f32> = external.judge(&responses).unwrap().iter().map(|score| score.score).collect();
        assert_eq!(scores, [1.0, 2.0, 2.0, 1.0, 2.0]);
        assert!(external.workers.iter().all(|worker| worker.process.is_some()));
    }

    #[test]
    fn a_broken_command_is_an_error_that_says_how() {
        for (script, said) in [
            ("exit 1", "or it ended"),
            ("while read -r line; do echo yes; done", "expected {\"score\": NUMBER}, got \"yes\""),
            ("while read -r line; do echo '{\"score\": 1e300}'; done", "of at most"),
            ("head -c 100000 /dev/zero; sleep 5", "longer than 65536 bytes"),
        ] {
            let error = judge(&mut external(script, 2.0), &["a", "b", "c", "d"]).unwrap_err();
            assert!(error.contains(said) && error.contains("\"sh\""), "{script}: {error}");
        }
        let mut missing = external("", 1.0);
        missing.workers[0].config.command = vec!["no-such-program-anywhere".into()];
        let error = judge(&mut missing, &["a"]).unwrap_err();
        assert!(error.contains("\"no-such-program-anywhere\": cannot be started"), "{error}");
    }

    #[test]
    fn settings_are_checked() {
        let check = |text: &str| toml::from_str::<ExternalConfig>(text).unwrap().check();
        assert_eq!(check("command = ['score']"), Ok(()));
        assert!(check("command = []").unwrap_err().starts_with("command:"));
        assert!(check("command = ['x']\ntimeout = 0.0").unwrap_err().starts_with("timeout:"));
        assert!(check("command = ['x']\nworkers = 0").unwrap_err().starts_with("workers:"));
        assert!(check("command = ['x']\nstart_timeout = nan").unwrap_err().starts_with("start_timeout:"));
    }
}
