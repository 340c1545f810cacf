//! Who answers: a model behind an endpoint, or one on this machine.

mod endpoint;
mod local;
mod pause;
mod thinking;
mod wire;

pub use endpoint::{Endpoint, EndpointOptions};
pub use local::Local;
pub use thinking::without_thinking;

use super::budget::{Budget, Spent, Usage};
use super::generate::Result;
use crate::prompt::Message;

/// A question.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The caller's number for it.
    pub number: usize,
    /// Keys the random streams: the same problem and sample get the same draws.
    pub problem: String,
    /// Which of the answers to the problem.
    pub sample: usize,
    /// What is asked.
    pub messages: Vec<Message>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its text, as it came.
    pub text: String,
    /// Whether it ends where the teacher's limit was, not where the teacher would.
    pub truncated: bool,
    /// Its tokens.
    pub usage: Usage,
}

/// What became of a question.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The question's number.
    pub number: usize,
    /// The answer, or why there is none.
    pub reply: Result<Reply, String>,
    /// What all tries together took.
    pub spent: Spent,
}

/// Questions, made as they are taken.
pub type Asks<'a> = &'a mut (dyn Iterator<Item = Result<Ask>> + Send);

/// A model that answers.
pub trait Teacher {
    /// What it is called in rows.
    fn name(&self) -> &str;

    /// All that its answers depend on besides the question, as text.
    fn fingerprint(&self) -> String;

    /// Takes questions until there are none, the budget is spent or `stop` says so, and hands each outcome to `done`,
    /// in any order. What is paid for still comes after it is stopped. An error means that it can't go on.
    fn answer(
        &self,
        asks: Asks<'_>,
        budget: &Budget,
        stop: &(dyn Fn() -> bool + Sync),
        done: &mut dyn FnMut(Outcome) -> Result<()>,
    ) -> Result<()>;
}
