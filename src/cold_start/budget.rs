//! What a run may spend, and what it has spent.
//!
//! A limit that is looked at after the answer has come is overrun by as many answers as are under way. So each request
//! first reserves the most that it can cost, and gives back what it did not use.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use super::generate::{GenerateError, Result};

/// The most that a run may spend, earlier parts of it included. `None` sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Requests sent, failed ones too.
    pub requests: Option<u64>,
    /// Tokens of prompts and answers.
    pub tokens: Option<u64>,
    /// Money, in the price table's currency.
    pub cost: Option<f64>,
}

/// What a model's tokens cost, in any currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// A million tokens of prompts.
    pub input: f64,
    /// A million tokens of answers.
    pub output: f64,
}

/// The tokens of one answer and its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer, its thinking part too.
    pub completion_tokens: u64,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Requests sent.
    pub requests: u64,
    /// Tokens of their prompts.
    pub prompt_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// What the tokens cost.
    pub cost: f64,
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
        self.cost += other.cost;
    }
}

impl Price {
    /// What so many tokens cost.
    pub fn of(self, usage: Usage) -> f64 {
        (self.input * usage.prompt_tokens as f64 + self.output * usage.completion_tokens as f64) / 1e6
    }

    /// Reads a model's price from a table: a TOML file with a section for each model, as in
    /// `["my-model"]`, `input = 0.5`, `output = 2.0`.
    pub fn read(table: &Path, model: &str) -> Result<Self> {
        let text = std::fs::read_to_string(table).map_err(GenerateError::at(table))?;
        let wrong = |reason: String| GenerateError::Prices { path: table.into(), reason };
        let prices: BTreeMap<String, Price> = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        let known = || prices.keys().cloned().collect::<Vec<_>>().join(", ");
        let price = prices.get(model).copied();
        let price = price.ok_or_else(|| wrong(format!("no price for {model:?}, only for: {}", known())))?;
        let sound = |x: f64| x.is_finite() && x >= 0.0;
        match sound(price.input) && sound(price.output) {
            true => Ok(price),
            false => Err(wrong(format!("{model}: expected prices of at least 0, got {price:?}"))),
        }
    }
}

/// What is left to spend, shared by all that spend.
pub struct Budget {
    limits: Limits,
    price: Price,
    state: Mutex<State>,
    settled: Condvar,
}

#[derive(Default)]
struct State {
    spent: Spent,
    reserved: Spent,
    pending: usize,
    exhausted: bool,
}

impl Budget {
    /// A budget of which `spent` is spent already.
    pub fn new(limits: Limits, price: Price, spent: Spent) -> Self {
        let state = State { spent, ..State::default() };
        Self { limits, price, state: Mutex::new(state), settled: Condvar::new() }
    }

    /// Reserves a request that uses at most `most`. Waits for requests under way where those may leave enough; `None`
    /// once the rest of the budget is too small.
    pub fn reserve(&self, most: Usage) -> Option<Hold<'_>> {
        let mut state = self.lock();
        loop {
            if let Some(hold) = self.take(&mut state, most) {
                return Some(hold);
            }
            if state.pending == 0 {
                state.exhausted = true;
            }
            if state.exhausted {
                return None;
            }
            state = self.settled.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// As [`Budget::reserve`], without waiting: for whoever has the other requests under way itself.
    pub fn try_reserve(&self, most: Usage) -> Option<Hold<'_>> {
        let mut state = self.lock();
        let hold = self.take(&mut state, most);
        state.exhausted |= hold.is_none() && state.pending == 0;
        hold
    }

    fn take(&self, state: &mut State, most: Usage) -> Option<Hold<'_>> {
        let wish = self.spend(most);
        let mut total = state.spent;
        total += state.reserved;
        total += wish;
        let tokens = total.prompt_tokens + total.completion_tokens;
        let fits = !state.exhausted
            && self.limits.requests.is_none_or(|limit| total.requests <= limit)
            && self.limits.tokens.is_none_or(|limit| tokens <= limit)
            && self.limits.cost.is_none_or(|limit| total.cost <= limit);
        fits.then(|| {
            state.reserved += wish;
            state.pending += 1;
            Hold { budget: self, wish, usage: Usage::default() }
        })
    }

    /// One request with these tokens.
    pub fn spend(&self, usage: Usage) -> Spent {
        let Usage { prompt_tokens, completion_tokens } = usage;
        Spent { requests: 1, prompt_tokens, completion_tokens, cost: self.price.of(usage) }
    }

    /// What was spent so far.
    pub fn spent(&self) -> Spent {
        self.lock().spent
    }

    /// Whether a request was refused because the rest is too small.
    pub fn exhausted(&self) -> bool {
        self.lock().exhausted
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The numbers are whole after every statement.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A reservation. Dropped, it counts as a request that used no tokens.
pub struct Hold<'a> {
    budget: &'a Budget,
    wish: Spent,
    usage: Usage,
}

impl Hold<'_> {
    /// Replaces the reservation by what was used; says what that comes to.
    pub fn settle(mut self, usage: Usage) -> Spent {
        self.usage = usage;
        self.budget.spend(usage)
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut state = self.budget.lock();
        state.spent += self.budget.spend(self.usage);
        state.reserved.requests -= self.wish.requests;
        state.reserved.prompt_tokens -= self.wish.prompt_tokens;
        state.reserved.completion_tokens -= self.wish.completion_tokens;
        state.pending -= 1;
        // A sum of differences would keep a rounding error.
        state.reserved.cost = if state.pending == 0 { 0.0 } else { state.reserved.cost - self.wish.cost };
        self.budget.settled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price { input: 1.0, output: 3.0 };

    fn usage(prompt_tokens: u64, completion_tokens: u64) -> Usage {
        Usage { prompt_tokens, completion_tokens }
    }

    fn left(limits: Limits, spent: Spent) -> usize {
        let budget = Budget::new(limits, PRICE, spent);
        (0..100)
            .take_while(|_| budget.reserve(usage(10, 30)).map(|hold| hold.settle(usage(10, 10))).is_some())
            .count()
    }

    #[test]
    fn no_limit_is_overrun_whatever_it_counts() {
        let none = Limits::default();
        assert_eq!(left(none, Spent::default()), 100);
        assert_eq!(left(Limits { requests: Some(7), ..none }, Spent::default()), 7);
        assert_eq!(left(Limits { requests: Some(7), ..none }, Spent { requests: 5, ..Spent::default() }), 2);
        // 40 are reserved and 20 used: the fourth would reach 100 at most.
        assert_eq!(left(Limits { tokens: Some(100), ..none }, Spent::default()), 4);
        // 1e-4 reserved, 4e-5 used.
        assert_eq!(left(Limits { cost: Some(2.5e-4), ..none }, Spent::default()), 4);
    }

    #[test]
    fn a_request_waits_for_what_others_may_leave() {
        let budget = Budget::new(Limits { tokens: Some(50), ..Limits::default() }, PRICE, Spent::default());
        std::thread::scope(|scope| {
            let first = budget.reserve(usage(10, 30)).unwrap();
            assert!(budget.try_reserve(usage(10, 30)).is_none());
            let second = scope.spawn(|| budget.reserve(usage(10, 30)).map(|hold| hold.settle(usage(10, 30))));
            first.settle(usage(5, 5));
            assert!(second.join().unwrap().is_some());
        });
        assert!(budget.reserve(usage(1, 0)).is_none() && budget.exhausted());
        assert_eq!(
            budget.spent(),
            Spent { requests: 2, prompt_tokens: 15, completion_tokens: 35, cost: 12e-5 }
        );
    }

    #[test]
    fn prices_come_from_a_table() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("prices.toml");
        std::fs::write(&table, "[\"org/m\"]\ninput = 1\noutput = 3.0\n[free]\ninput = -1\noutput = 0\n")
            .unwrap();
        assert_eq!(Price::read(&table, "org/m").unwrap(), PRICE);
        let error = |model| Price::read(&table, model).unwrap_err().to_string();
        assert!(error("x").ends_with("no price for \"x\", only for: free, org/m"), "{}", error("x"));
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes/cold-start/prices.toml");
        assert_eq!(Price::read(&example, "my-teacher").unwrap(), Price { input: 0.5, output: 2.0 });
        assert!(error("free").contains("free: expected prices of at least 0"), "{}", error("free"));
    }
}
