//! Sampled responses of a run, read from `traces.jsonl` and thinned: a page can't hold them all.

use parallel_r1::reward::some_path_right;
use parallel_r1_verify::countdown::Task;
use parallel_r1_verify::{Verdict, verify};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::threads::{Piece, threads};

/// Steps whose responses are kept.
const MOST: usize = 120;
/// The longest response that is shown, in bytes.
const LONGEST: usize = 20_000;

/// A line of the file, with what older and newer versions may leave out.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    arm: String,
    stage: String,
    step: usize,
    problem: String,
    #[serde(default)]
    answer: String,
    response: String,
    #[serde(default)]
    score: Score,
    tokens: Option<usize>,
    critical_path_tokens: Option<usize>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Score {
    reward: Option<f64>,
    parts: Map<String, Value>,
    correct: Option<bool>,
}

/// The kept responses, step by step.
#[derive(Clone, Debug, Default)]
pub(super) struct Traces {
    /// Every so many-th step is kept, as a power of two.
    doubled: u32,
    steps: usize,
    kept: Vec<Vec<Line>>,
    /// The newest step, kept or not.
    newest: Vec<Line>,
}

impl Traces {
    /// Adds a line of the file; `false` if it is none.
    pub(super) fn push(&mut self, line: &str) -> bool {
        let Ok(line) = serde_json::from_str::<Line>(line) else { return false };
        let same =
            |other: &Line| (&other.arm, &other.stage, other.step) == (&line.arm, &line.stage, line.step);
        if !self.newest.first().is_some_and(same) {
            self.close();
        }
        self.newest.push(line);
        true
    }

    /// The newest step is complete.
    fn close(&mut self) {
        let step = std::mem::take(&mut self.newest);
        if step.is_empty() {
            return;
        }
        if self.steps.is_multiple_of(1 << self.doubled) {
            self.kept.push(step);
        }
        self.steps += 1;
        if self.kept.len() > MOST {
            let mut place = 0..;
            self.kept.retain(|_| place.next().is_some_and(|place| place % 2 == 0));
            self.doubled += 1;
        }
    }

    /// What is shown, in the order of the run. `before` says how many steps an arm had done before a stage.
    pub(super) fn shown(&self, before: &dyn Fn(&str, &str) -> usize) -> Vec<Trace> {
        let lines = self.kept.iter().chain([&self.newest]).flatten();
        lines.map(|line| Trace::new(line, before(&line.arm, &line.stage))).collect()
    }
}

/// A response as the page draws it.
#[derive(Debug, Serialize)]
pub(super) struct Trace {
    arm: String,
    stage: String,
    /// Of the arm.
    step: usize,
    problem: String,
    gold: String,
    correct: Option<bool>,
    reward: Option<f64>,
    parts: Map<String, Value>,
    tokens: Option<usize>,
    critical_path_tokens: Option<usize>,
    pieces: Vec<Piece>,
    faults: Vec<String>,
    /// Whether the end is left out.
    cut: bool,
}

impl Trace {
    fn new(line: &Line, before: usize) -> Self {
        let text = shortened(&line.response);
        let task = Task::parse(&line.problem);
        let right = |path: &str| match &task {
            Some(task) => Some(some_path_right(task, [path])),
            // A path that states something else may only be a step on the way.
            None => (verify(&line.answer, path) == Verdict::Correct).then_some(true),
        };
        let (pieces, faults) = threads(text, &right);
        Self {
            arm: line.arm.clone(),
            stage: line.stage.clone(),
            step: before + line.step,
            problem: shortened(&line.problem).to_owned(),
            gold: line.answer.clone(),
            correct: line.score.correct,
            reward: line.score.reward,
            parts: line.score.parts.clone(),
            tokens: line.tokens,
            critical_path_tokens: line.critical_path_tokens,
            pieces,
            faults,
            cut: text.len() < line.response.len(),
        }
    }
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(step: usize, response: &str) -> String {
        serde_json::json!({"arm": "a", "stage": "s", "step": step, "problem": "3 5 12 = 45", "answer": "45",
            "response": response, "score": {"reward": 1.0, "parts": {"accuracy": 1.0}, "correct": true}})
        .to_string()
    }

    #[test]
    fn paths_get_their_verdicts() {
        let mut traces = Traces::default();
        let response = "<Parallel><Path>12+5=17,17*3=51 no</Path><Path>12-3=9,9*5=45 ok</Path></Parallel>";
        assert!(traces.push(&line(7, response)));
        assert!(!traces.push("{}") && !traces.push("no JSON"));
        let shown = serde_json::to_value(traces.shown(&|_, _| 100)).unwrap();
        let paths = &shown[0]["pieces"][0]["paths"];
        assert_eq!((&paths[0]["right"], &paths[1]["right"]), (&false.into(), &true.into()));
        assert_eq!((&shown[0]["step"], &shown[0]["correct"]), (&107.into(), &true.into()));
    }

    #[test]
    fn steps_are_thinned_evenly_and_the_newest_stays() {
        let mut traces = Traces::default();
        for step in 1..=1001 {
            traces.push(&line(step, "a"));
            traces.push(&line(step, "b"));
        }
        let shown = traces.shown(&|_, _| 0);
        let steps: Vec<usize> = shown.iter().map(|trace| trace.step).collect();
        assert!((MOST..=2 * MOST + 2).contains(&steps.len()), "{}", steps.len());
        assert_eq!((steps[0], steps[1], steps[2], *steps.last().unwrap()), (1, 1, 17, 1001));
    }

    #[test]
    fn long_responses_are_cut_between_characters() {
        let mut traces = Traces::default();
        traces.push(&line(1, &"é".repeat(LONGEST)));
        let shown = traces.shown(&|_, _| 0);
        assert!(shown[0].cut);
        assert!(matches!(&shown[0].pieces[0], Piece::Text { text } if text.len() == LONGEST));
    }
}
