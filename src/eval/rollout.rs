//! Responses to problems, judged: what evaluation measures and what reinforcement learning learns from.

use crate::data::Problem;
use crate::data::countdown::SOURCE as COUNTDOWN;
use crate::engine::{
    Engine, EngineError, EngineOptions, EngineStats, Observer, Request, SamplingParams, Trace,
};
use crate::model::{ModelError, Pretrained};
use crate::prompt::Tag;
use crate::reward::{Judged, judge, some_path_right};
use parallel_r1_verify::countdown::Task;

use super::shape::Shape;

/// A response with its judgement.
pub struct Rollout {
    /// What the engine recorded.
    pub trace: Trace,
    /// Its text: tags shown, end-of-text not.
    pub text: String,
    /// Whether it is right, and its shape.
    pub judged: Judged,
    /// Whether each path found the answer, in text order; empty where that is not known.
    pub paths_right: Vec<bool>,
    /// Its blocks.
    pub shape: Shape,
}

impl Rollout {
    /// Whether some path found the answer; known of responses with a path, where the gold answer can be read.
    pub fn path_right(&self) -> Option<bool> {
        (!self.paths_right.is_empty()).then(|| self.paths_right.contains(&true))
    }
}

/// Why there are no rollouts.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A prompt or a response could not be written as tokens or text.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// `samples` responses to each problem. `first_id` keys the random streams: problem i has the id `first_id + i`.
pub fn rollouts(
    model: &Pretrained,
    problems: &[Problem],
    samples: usize,
    first_id: u64,
    params: &SamplingParams,
    options: EngineOptions,
    observer: &mut dyn Observer,
) -> Result<(Vec<Vec<Rollout>>, EngineStats), RolloutError> {
    let request = |(i, problem): (usize, &Problem)| {
        let prompt = model.prompt(&problem.problem)?;
        Ok(Request { id: first_id + i as u64, prompt, samples, first_sample: 0 })
    };
    let requests = problems.iter().enumerate().map(request).collect::<Result<Vec<_>, ModelError>>()?;
    let controls = model.controls()?;
    let mut engine = Engine::new(&model.decoder, &controls, options);
    let traces = engine.generate(&requests, params, observer)?;
    let judged = |(problem, traces): (&Problem, Vec<Trace>)| {
        traces.into_iter().map(|trace| rollout(model, problem, trace)).collect::<Result<Vec<_>, _>>()
    };
    let groups = problems.iter().zip(traces).map(judged).collect::<Result<_, _>>()?;
    Ok((groups, engine.stats()))
}

fn rollout(model: &Pretrained, problem: &Problem, trace: Trace) -> Result<Rollout, RolloutError> {
    let text = model.tokenizer.decode(trace.response()).map_err(ModelError::from)?;
    let judged = judge(problem, &text);
    let paths_right = paths_right(problem, &text, &judged);
    let parallel = model.tokenizer.id(Tag::Parallel.text());
    let shape = Shape::of(&text, trace.response(), parallel);
    Ok(Rollout { trace, text, judged, paths_right, shape })
}

/// Whether each path found the answer: on Countdown a path says what it found, elsewhere it states the gold answer last.
fn paths_right(problem: &Problem, text: &str, judged: &Judged) -> Vec<bool> {
    if judged.blocks == 0 || judged.correct.is_none() {
        return vec![];
    }
    match Task::parse(&problem.problem) {
        Some(task) if problem.source == COUNTDOWN => {
            path_texts(text).map(|path| some_path_right(&task, [path])).collect()
        }
        _ => path_texts(text).map(|path| judge(problem, path).correct == Some(true)).collect(),
    }
}

/// The text of each path, in either structure.
fn path_texts(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split(Tag::Path.text()).skip(1);
    behind.map(|rest| rest.split_once(Tag::EndPath.text()).map_or(rest, |(path, _)| path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_right_by_the_rules_of_its_task() {
        let problem = |source: &str, problem: &str, answer: &str| Problem {
            id: String::new(),
            problem: problem.into(),
            answer: answer.into(),
            source: source.into(),
            level: None,
        };
        let (sum, task) = (problem("gsm8k", "2 + 2?", "4"), problem(COUNTDOWN, "3 5 12 = 45", "45"));
        let block = |a: &str, b: &str| {
            format!("<Parallel><Path>{a}</Path><Path>{b}</Path></Parallel>\n<Summary>?</Summary>Answer: 9")
        };
        let right = |problem: &Problem, text: &str| paths_right(problem, text, &judge(problem, text));
        for (a, b, expected) in [
            ("That makes 5.", "Adding them gives 4.", [false, true]),
            ("4 + 1 = 5", "It is 3.", [false, false]),
        ] {
            assert_eq!(right(&sum, &block(a, b)), expected, "{a} {b}");
        }
        for (path, expected) in [("12-3=9,9*5=45 ok", true), ("12-3=9,9*5=45 no", false), ("45", false)] {
            assert_eq!(right(&task, &block("12+5=17 no", path)), [false, expected], "{path}");
        }
        assert!(right(&sum, "Answer: 4").is_empty());
        assert!(right(&problem("gsm8k", "?", ""), &block("It is 4.", "It is 4.")).is_empty());
    }

    #[test]
    fn paths_are_cut_out_of_the_text() {
        let text =
            "a<Parallel><Path>b</Path><Path>c\n</Path></Parallel>\n<Summary>d</Summary>e<Parallel><Path>f";
        assert_eq!(path_texts(text).collect::<Vec<_>>(), ["b", "c\n", "f"]);
        assert_eq!(path_texts("no path").count(), 0);
    }
}
