//! What the engine asks of a model: one pass over some rows, with keys and values kept in slots.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use super::cache::{Cache, Key};
use crate::layout::{QueryBlock, Visibility};
use crate::model::Take;

/// Whatever went wrong inside a model.
pub type ModelError = Box<dyn Error + Send + Sync>;

/// A model with a cache of slots. Decoders implement it; so does the oracle of the tests.
pub trait LanguageModel {
    /// Entries of a row of logits.
    fn vocab_size(&self) -> usize;

    /// The position limit: no token may stand at or beyond it.
    fn max_positions(&self) -> usize;

    /// How many branches of `tokens` tokens are worth running side by side. More would be correct, but slower.
    fn best_batch(&self, _tokens: usize) -> usize {
        usize::MAX
    }

    /// Makes sure that there are slots `0..slots`. What they held may be lost.
    fn reserve(&mut self, slots: usize) -> Result<(), ModelError>;

    /// Writes each row's keys and values to its slot, lets each row see what `rows` says, and
    /// hands the logits of every wanted row to `take`, once, with the row's place in `wanted`; from
    /// any thread and in any order, so that a token is drawn where its logits were just made.
    fn step(&mut self, rows: &Rows, take: Take<'_>) -> Result<(), ModelError>;
}

/// The rows of one pass, one per token. All lists but `wanted` have one entry per row.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Their positions.
    pub positions: Vec<u32>,
    /// The slots that their keys and values go to. Each segment has whole pages of
    /// [`PAGE`](crate::kernels::PAGE) slots, so a run of what is seen begins with a page.
    pub slots: Vec<u32>,
    /// What each row sees, in slots. Contexts stand in the order of the text (ancestors first), not
    /// in that of the slots, so that sums over them don't depend on which pages were free.
    pub visibility: Arc<Visibility>,
    /// The rows that something is sampled from.
    pub wanted: Vec<u32>,
}

impl Rows {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Wants the logits of the row that was added last.
    pub(super) fn want_last(&mut self) {
        self.wanted.push(self.len() as u32 - 1);
    }

    pub(super) fn clear(&mut self) {
        self.tokens.clear();
        self.positions.clear();
        self.slots.clear();
        match Arc::get_mut(&mut self.visibility) {
            Some(visibility) => visibility.blocks.clear(),
            None => self.visibility = Arc::default(),
        }
        self.wanted.clear();
    }

    /// Adds tokens whose slots are a run from `slot` on.
    fn add(&mut self, tokens: &[u32], position: u32, slot: usize, context: &[Range<usize>]) {
        let first = self.len();
        self.tokens.extend_from_slice(tokens);
        self.positions.extend(position..position + tokens.len() as u32);
        self.slots.extend((slot..slot + tokens.len()).map(|slot| slot as u32));
        let queries = first..self.len();
        let block = QueryBlock { queries, context: context.to_vec(), own: slot };
        Arc::make_mut(&mut self.visibility).blocks.push(block);
    }
}

/// The growing end of a segment: what it sees in the cache, and which tokens are still to be fed.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    pub(super) key: Key,
    /// Slots of everything fed so far, ancestors' too, in the order of the text, adjacent ones merged.
    visible: Vec<Range<usize>>,
    /// How many ranges of `visible` were there when the path that this belongs to began.
    base: usize,
    tokens: Vec<u32>,
    slots: Vec<usize>,
    /// Where the first token of `tokens` stands.
    position: u32,
}

impl Cursor {
    /// A prompt.
    pub(super) fn root(cache: &mut Cache, prompt: &[u32]) -> Self {
        let key = cache.open(&[]);
        let mut root = Self { key, visible: vec![], base: 0, tokens: vec![], slots: vec![], position: 0 };
        prompt.iter().for_each(|&token| root.push(cache, token));
        root
    }

    /// A segment that continues this one, which has been fed, from `position` on.
    pub(super) fn child(&self, cache: &mut Cache, position: u32) -> Self {
        debug_assert!(self.tokens.is_empty(), "a parent is fed before its children");
        let key = cache.open(&[self.key]);
        let visible = self.visible.clone();
        Self { key, base: visible.len(), visible, tokens: vec![], slots: vec![], position }
    }

    /// A segment that continues all `paths` of a block that this one opened.
    pub(super) fn join(&self, cache: &mut Cache, paths: &[&Cursor]) -> Self {
        let key = cache.open(&paths.iter().map(|path| path.key).collect::<Vec<_>>());
        let mut visible = self.visible.clone();
        paths.iter().for_each(|path| visible.extend_from_slice(&path.visible[path.base..]));
        let position = paths.iter().map(|path| path.position).max().unwrap_or(self.position);
        Self { key, visible, tokens: vec![], slots: vec![], base: self.base, position }
    }

    /// Appends a token that the model hasn't read yet.
    pub(super) fn push(&mut self, cache: &mut Cache, token: u32) {
        self.tokens.push(token);
        self.slots.push(cache.append(self.key));
    }

    /// How many tokens are still to be fed.
    pub(super) fn pending(&self) -> usize {
        self.tokens.len()
    }

    /// Feeds up to `limit` tokens and says how many it were.
    pub(super) fn feed(&mut self, limit: usize, rows: &mut Rows) -> usize {
        let count = limit.min(self.tokens.len());
        let mut at = 0;
        while at < count {
            let slot = self.slots[at];
            let run = (at..count).take_while(|&i| self.slots[i] == slot + i - at).count();
            rows.add(&self.tokens[at..at + run], self.position, slot, &self.visible);
            self.see(slot..slot + run);
            self.position += run as u32;
            at += run;
        }
        self.tokens.drain(..count);
        self.slots.drain(..count);
        count
    }

    fn see(&mut self, slots: Range<usize>) {
        let own = self.visible.len() > self.base;
        match self.visible.last_mut() {
            Some(last) if own && last.end == slots.start => last.end = slots.end,
            _ => self.visible.push(slots),
        }
    }
}
