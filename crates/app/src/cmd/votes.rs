//! `generate --votes`: many samples, one answer.

use std::io::{IsTerminal, Write, stdout};

use parallel_r1::data::Problem;
use parallel_r1::data::countdown::{SOURCE as COUNTDOWN, Task};
use parallel_r1::engine::vote::{Vote, decided, vote};
use parallel_r1::engine::{Observer, Request, SamplingParams, Trace};
use parallel_r1::eval::confidence;
use parallel_r1::model::{ModelError, Pretrained};
use parallel_r1::prompt::Controls;
use parallel_r1::reward::answer_keys;
use serde::Serialize;

use super::generate::{print_json, sample};
use crate::branches::Printer;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::response::Response;
use crate::table::percent;

/// Samples, votes, and prints the winner.
pub(super) fn run(
    model: &Pretrained,
    prompt: &str,
    request: &Request,
    params: &SamplingParams,
    json: bool,
    all: bool,
) -> anyhow::Result<()> {
    let problem = problem(prompt);
    let requested = request.samples;
    let mut ballot = Ballot {
        model,
        problem: &problem,
        requested,
        texts: vec![],
        keys: vec![],
        progress: Progress::new(),
    };
    let traces = sample(model, request, params, &mut ballot)?;
    drop(ballot);
    let texts = traces.iter().map(|trace| text(model, trace)).collect::<Result<Vec<_>, _>>()?;
    let keys = keys(&problem, &texts);
    let confidences: Vec<f32> = traces.iter().map(confidence).collect();
    let Some(vote) = vote(&keys, &confidences) else {
        return Err(Failure::error("no sample was completed", "try again with another `--seed`"));
    };
    if json {
        return as_json(model, requested, &traces, keys, &confidences, &vote, all);
    }
    let controls = model.controls()?;
    if all {
        for (trace, key) in traces.iter().zip(&keys) {
            let answer = key.as_deref().unwrap_or("nothing");
            writeln!(stdout(), "--- sample {}, votes for {answer}", trace.sample)?;
            print(model, &controls, trace)?;
        }
        writeln!(stdout(), "--- the vote: sample {}", traces[vote.winner].sample)?;
    }
    print(model, &controls, &traces[vote.winner])?;
    Ok(writeln!(stdout(), "\n{}", outcome(&vote, traces.len(), requested))?)
}

/// The prompt as a problem, so that votes are grouped as the judge of such problems would.
fn problem(prompt: &str) -> Problem {
    let source = if prompt.parse::<Task>().is_ok() { COUNTDOWN } else { "prompt" };
    let (id, answer) = ("prompt".into(), String::new());
    Problem { id, problem: prompt.into(), answer, source: source.into(), level: None }
}

fn text(model: &Pretrained, trace: &Trace) -> Result<String, ModelError> {
    Ok(model.tokenizer.decode(trace.response())?)
}

fn keys(problem: &Problem, texts: &[String]) -> Vec<Option<String>> {
    answer_keys(problem, &texts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Counts while samples end, and stops them once the vote is decided.
struct Ballot<'a> {
    model: &'a Pretrained,
    problem: &'a Problem,
    requested: usize,
    texts: Vec<String>,
    keys: Vec<Option<String>>,
    progress: Progress,
}

impl Observer for Ballot<'_> {
    fn sample_done(&mut self, trace: &Trace) {
        // A text that can't be decoded votes for nothing here; the count at the end says why.
        self.texts.push(text(self.model, trace).unwrap_or_default());
        self.keys = keys(self.problem, &self.texts);
        let leader = vote(&self.keys, &[]).and_then(|vote| vote.counts.into_iter().next());
        let message = leader.map(|(answer, votes)| format!("{votes} for {answer}")).unwrap_or_default();
        self.progress.count("votes", self.keys.len(), self.requested, &message);
    }

    fn wants(&mut self, _: u64) -> bool {
        let counts = vote(&self.keys, &[]).map(|vote| vote.counts).unwrap_or_default();
        let votes: Vec<usize> = counts.into_iter().map(|(_, votes)| votes).collect();
        !decided(&votes, self.requested - self.keys.len())
    }
}

fn print(model: &Pretrained, controls: &Controls, trace: &Trace) -> anyhow::Result<()> {
    let (out, drawn) = (anstream::stdout().lock(), stdout().is_terminal());
    let mut printer = Printer::new(out, drawn, &model.tokenizer, controls);
    trace.response().iter().try_for_each(|&token| printer.token(token))?;
    printer.finish()
}

fn outcome(vote: &Vote, finished: usize, requested: usize) -> String {
    let early = match requested - finished {
        0 => String::new(),
        spared => format!("; the other {spared} of {requested} could not change it"),
    };
    match vote.counts.first() {
        Some((answer, votes)) => {
            let share = percent(vote.agreement);
            format!("votes: {votes} of {finished} samples agree ({share}) on {answer}{early}")
        }
        None => format!("votes: none of {finished} samples states an answer; this is the most confident one"),
    }
}

#[derive(Serialize)]
struct Winner {
    #[serde(flatten)]
    response: Response,
    votes: Votes,
}

#[derive(Serialize)]
struct Votes {
    requested: usize,
    finished: usize,
    /// The number of the sample that is returned.
    winner: usize,
    agreement: f64,
    by_confidence: bool,
    counts: Vec<Count>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    samples: Vec<Sample>,
}

#[derive(Serialize)]
struct Count {
    answer: String,
    votes: usize,
}

#[derive(Serialize)]
struct Sample {
    sample: usize,
    votes_for: Option<String>,
    confidence: f32,
    #[serde(flatten)]
    response: Response,
}

fn as_json(
    model: &Pretrained,
    requested: usize,
    traces: &[Trace],
    keys: Vec<Option<String>>,
    confidences: &[f32],
    vote: &Vote,
    all: bool,
) -> anyhow::Result<()> {
    let sample = |((trace, votes_for), &confidence): ((&Trace, Option<String>), &f32)| {
        Ok(Sample { sample: trace.sample, votes_for, confidence, response: Response::new(trace, model)? })
    };
    let shown = if all { traces } else { &[] };
    let samples = shown.iter().zip(keys).zip(confidences).map(sample).collect::<Result<_, ModelError>>()?;
    let counts = vote.counts.iter().map(|(answer, votes)| Count { answer: answer.clone(), votes: *votes });
    print_json(&Winner {
        response: Response::new(&traces[vote.winner], model)?,
        votes: Votes {
            requested,
            finished: traces.len(),
            winner: traces[vote.winner].sample,
            agreement: vote.agreement,
            by_confidence: vote.by_confidence,
            counts: counts.collect(),
            samples,
        },
    })
}
