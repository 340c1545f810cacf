//! Problems and a teacher to demonstrations.
//!
//! ```text
//! problems ──prompt──> teacher ──answers──> journal ──check──> choose, assemble ──clean──> data.jsonl
//!                        ▲                     │                      └─ why not ──────> rejected.jsonl
//!                        └──── what is missing ┘
//! ```
//! Asking and making are apart: [`Generation::ask`] fills the journal and may be stopped and started again at will;
//! [`Generation::collect`] derives the data set from the journal, so an interrupted run ends in the same bytes.

mod collect;
mod error;
mod journal;
mod report;

pub use error::{GenerateError, Result};
pub(crate) use journal::digest;
pub use journal::{Entry, Journal, Part};
pub use report::{Refused, Report, Row};

use std::collections::HashMap;

use super::budget::{Budget, Spent};
use super::check::{Answer, CheckOptions, FaultKind, Mended, mend};
use super::prompts::{Template, Values};
use super::teacher::{Ask, Outcome, Teacher, without_thinking};
use crate::data::Problem;
use crate::prompt::Message;
use crate::reward::judge;

/// What demonstrations shall look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The teacher's answers, with or without blocks.
    Any,
    /// The teacher's answers, with at least one block.
    Parallel,
    /// One block of the teacher's separate solutions.
    Assembled,
}

/// How demonstrations are made.
pub struct Settings {
    /// What the teacher is asked.
    pub prompt: Template,
    /// Answers to each problem.
    pub samples: usize,
    /// What they shall become.
    pub shape: Shape,
    /// Rows of a problem at most; those that differ most are kept.
    pub keep: usize,
    /// Paths of an assembled demonstration at most.
    pub paths: usize,
    /// The form of an assembled demonstration.
    pub assembly: Template,
    /// What the teacher is asked for its summary; without it the assembly's own words stand.
    pub summary: Option<Template>,
    /// What answers are held against.
    pub check: CheckOptions,
    /// The least share of common shingles that makes two demonstrations near duplicates; above 1 only exact ones are
    /// left out.
    pub duplicate_similarity: f64,
}

/// Problems that can be asked, and those that can't.
#[derive(Debug, Default)]
pub struct Problems {
    /// Those that can, each once.
    pub asked: Vec<Problem>,
    /// The ids of those whose gold answer can't be read: no answer to them could be checked.
    pub unreadable: Vec<String>,
    /// How many rows said the same as an earlier one.
    pub repeated: usize,
    /// The ids of those that were left out by [`Problems::leave_out`].
    pub contaminated: Vec<String>,
}

impl Problems {
    /// Sorts out what can be asked. Two different problems with one id are an error: answers are found by it.
    pub fn new(rows: impl IntoIterator<Item = Problem>) -> Result<Self> {
        let (mut problems, mut known) = (Self::default(), HashMap::new());
        for problem in rows {
            let content = digest(&format!("{}\0{}", problem.problem, problem.answer));
            match known.insert(digest(&problem.id), content) {
                Some(other) if other == content => problems.repeated += 1,
                Some(_) => return Err(GenerateError::SameId { id: problem.id }),
                None if judge(&problem, "").correct.is_none() => problems.unreadable.push(problem.id),
                None => problems.asked.push(problem),
            }
        }
        let without = problems.unreadable.len();
        if problems.asked.is_empty() { Err(GenerateError::NoProblems(without)) } else { Ok(problems) }
    }
}

impl Problems {
    /// Leaves out those that are in an evaluation set, before anything is paid for them.
    pub fn leave_out(&mut self, mut is_known: impl FnMut(&Problem) -> bool) {
        let known = self.asked.extract_if(.., |problem| is_known(problem));
        self.contaminated.extend(known.map(|problem| problem.id));
    }
}

/// How far a generation is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// What is being asked for.
    pub summaries: bool,
    /// Answers that are wanted.
    pub total: usize,
    /// Those that are there, failed ones too.
    pub done: usize,
    /// Answers that came since the start.
    pub answered: usize,
    /// Of these, how many passed the checks.
    pub accepted: usize,
    /// How many questions failed since the start.
    pub failed: usize,
    /// What was spent, also by earlier parts of the run.
    pub spent: Spent,
}

/// Who watches: whether to stop, and what is told of progress.
pub struct Watch<'a> {
    /// Asked now and then, from any thread.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Told after each answer.
    pub progress: &'a mut dyn FnMut(&Tally),
}

/// What shall be generated.
pub struct Generation<'a> {
    /// From what.
    pub problems: &'a Problems,
    /// By whom.
    pub teacher: &'a dyn Teacher,
    /// How.
    pub settings: &'a Settings,
}

/// A question that has no answer yet.
struct Pending<'a> {
    problem: &'a Problem,
    sample: usize,
    asked: u64,
}

/// An answer with its judgement.
struct Judged {
    mended: Mended,
    /// Why it can't teach, as the names of faults.
    refusals: Vec<String>,
}

impl<'a> Generation<'a> {
    /// Asks for what the journal lacks, until all is there, the budget is spent or the watcher says stop.
    pub fn ask(&self, journal: &mut Journal, budget: &Budget, watch: &mut Watch<'_>) -> Result<()> {
        let pending = self.missing_solutions(journal)?;
        let prompt = &self.settings.prompt;
        let messages = |one: &Pending<'a>| prompt.messages(&Values::new(one.problem));
        self.ask_for(Part::Solution, &pending, &messages, journal, budget, watch)?;
        let Some(template) =
            self.settings.summary.as_ref().filter(|_| self.settings.shape == Shape::Assembled)
        else {
            return Ok(());
        };
        if (watch.stop)() || budget.exhausted() {
            return Ok(());
        }
        let mut wanted: HashMap<&str, Vec<Message>> = HashMap::new();
        let mut pending = Vec::new();
        for problem in &self.problems.asked {
            let Some(messages) = self.summary_messages(problem, template, journal)? else { continue };
            let asked = self.digest(&messages);
            if journal.has(&problem.id, Part::Summary, 0, asked) != Some(true) {
                pending.push(Pending { problem, sample: 0, asked });
                wanted.insert(&problem.id, messages);
            }
        }
        let messages = |one: &Pending<'a>| Ok(wanted[one.problem.id.as_str()].clone());
        self.ask_for(Part::Summary, &pending, &messages, journal, budget, watch)
    }

    fn missing_solutions(&self, journal: &Journal) -> Result<Vec<Pending<'a>>> {
        let mut pending = Vec::new();
        for problem in &self.problems.asked {
            let asked = self.digest(&self.messages(problem)?);
            for sample in 0..self.settings.samples {
                match journal.has(&problem.id, Part::Solution, sample, asked) {
                    Some(true) => {}
                    Some(false) => pending.push(Pending { problem, sample, asked }),
                    None => {
                        let (path, problem) = (journal.path().into(), problem.id.clone());
                        return Err(GenerateError::AskedOtherwise { path, problem, sample });
                    }
                }
            }
        }
        Ok(pending)
    }

    fn ask_for(
        &self,
        part: Part,
        pending: &[Pending<'a>],
        messages: &(dyn Fn(&Pending<'a>) -> Result<Vec<Message>> + Sync),
        journal: &mut Journal,
        budget: &Budget,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        let mut asks = pending.iter().enumerate().map(|(number, one)| {
            let (problem, sample) = (one.problem.id.clone(), one.sample);
            Ok(Ask { number, problem, sample, messages: messages(one)? })
        });
        let summaries = part == Part::Summary;
        let wanted = self.problems.asked.len() * self.settings.samples;
        let total = if summaries { pending.len() } else { wanted };
        let mut tally = Tally { summaries, total, done: total - pending.len(), ..Tally::default() };
        tally.spent = budget.spent();
        (watch.progress)(&tally);
        let mut done = |outcome: Outcome| {
            let one = &pending[outcome.number];
            let entry = self.entry(part, one, outcome, budget);
            journal.append(&entry)?;
            tally.done += 1;
            tally.spent = budget.spent();
            match &entry.text {
                None => tally.failed += 1,
                Some(text) => {
                    tally.answered += 1;
                    let passes = || {
                        Ok::<_, GenerateError>(
                            self.judge(one.problem, text, entry.truncated)?.refusals.is_empty(),
                        )
                    };
                    tally.accepted += usize::from(summaries || passes()?);
                }
            }
            (watch.progress)(&tally);
            Ok(())
        };
        let result = self.teacher.answer(&mut asks, budget, watch.stop, &mut done);
        result.and(journal.sync())
    }

    fn entry(&self, part: Part, one: &Pending<'_>, outcome: Outcome, budget: &Budget) -> Entry {
        let (text, failed, truncated, usage) = match outcome.reply {
            Ok(reply) => (Some(reply.text), None, reply.truncated, reply.usage),
            Err(reason) => (None, Some(reason), false, Default::default()),
        };
        Entry {
            problem: one.problem.id.clone(),
            part,
            sample: one.sample,
            asked: format!("{:016x}", one.asked),
            teacher: self.teacher.name().into(),
            text,
            failed,
            truncated,
            usage,
            cost: budget.spend(usage).cost,
            spent: outcome.spent,
        }
    }

    fn messages(&self, problem: &Problem) -> Result<Vec<Message>> {
        self.settings.prompt.messages(&Values::new(problem))
    }

    /// All that an answer depends on besides its sample.
    fn digest(&self, messages: &[Message]) -> u64 {
        let texts = messages.iter().map(|message| format!("\0{}\0{}", message.role, message.content));
        digest(&(self.teacher.fingerprint() + &texts.collect::<String>()))
    }

    /// Checks a solution, after the repairs that have only one reading.
    fn judge(&self, problem: &Problem, text: &str, truncated: bool) -> Result<Judged> {
        let prompt: Vec<String> =
            self.messages(problem)?.into_iter().map(|message| message.content).collect();
        let (prompt, response) = (prompt.join("\n"), without_thinking(text));
        let answer = Answer { problem, prompt: Some(&prompt), response: &response, cut: truncated };
        let mended = mend(&answer, &self.settings.check);
        let mut refusals = names(&mended);
        let has_block = mended.inspection.blocks() > 0;
        match self.settings.shape {
            Shape::Parallel if !has_block => refusals.push("no_block".into()),
            Shape::Assembled if has_block => refusals.push("block_in_solution".into()),
            _ => {}
        }
        Ok(Judged { mended, refusals })
    }
}

/// The kinds of a response's faults, each once.
fn names(mended: &Mended) -> Vec<String> {
    let mut kinds: Vec<FaultKind> = mended.inspection.faults.iter().map(|fault| fault.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.into_iter().map(name).collect()
}

/// How rows and reports call something.
fn name(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("kinds are written as their names, not as {other:?}"),
    }
}
