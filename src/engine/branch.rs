//! A live branch: the end of a response that is being written, one of several where paths run
//! side by side.

use rand_chacha::ChaCha8Rng;

use super::budget::{Budget, Rules};
use super::params::SamplingParams;
use super::sampler::{Draw, Stream, draw};
use super::step::Cursor;
use crate::layout::{SegmentId, Structure};
use crate::prompt::tags::{AllowedSet, Control, Controls, Grammar, Tag};

/// The path that a branch writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Index of its fork in the sample.
    pub(super) fork: usize,
    /// Which path of the fork.
    pub(super) path: usize,
}

/// One growing end of a response.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    /// Index of the sample that it belongs to.
    pub(super) sample: usize,
    pub(super) segment: SegmentId,
    pub(super) cursor: Cursor,
    /// Position of the next token.
    pub(super) position: usize,
    pub(super) grammar: Grammar,
    pub(super) budget: Budget,
    pub(super) place: Option<Place>,
    pub(super) stream: Stream,
    pub(super) rng: ChaCha8Rng,
    /// Tokens of the budget that were left when each path that is open began.
    pub(super) paths_began: Vec<usize>,
    /// The group of whose prompt's logits its first token is drawn.
    pub(super) starts: Option<usize>,
    /// What was drawn last, from which set; no token where the logits were not finite.
    pub(super) drawn: Option<(AllowedSet, Option<Draw>)>,
}

const PARALLEL: Control = Control::Tag(Tag::Parallel);
const PATH: Control = Control::Tag(Tag::Path);
const END_PARALLEL: Control = Control::Tag(Tag::EndParallel);
const SUMMARY: Control = Control::Tag(Tag::Summary);

/// What is innermost open in a response, as far as closing it is concerned.
enum Open {
    /// Nothing that must be closed (a summary of the trunk may stay open).
    Trunk,
    /// A block without a path.
    Block,
    /// A block after a path.
    Paths,
    /// A block after `</Parallel>`.
    Closed,
    Path {
        in_summary: bool,
    },
}

impl Branch {
    /// Takes account of one more token.
    pub(super) fn advance(&mut self, token: u32, control: Option<Control>) {
        match control {
            Some(PARALLEL) => self.budget.blocks -= 1,
            Some(PATH) => self.paths_began.push(self.budget.tokens),
            Some(Control::Tag(Tag::EndPath)) => drop(self.paths_began.pop()),
            _ => {}
        }
        self.grammar.push(token).expect("only legal tokens are sampled or forced");
        self.budget.tokens -= 1;
        self.position += 1;
    }

    /// Draws the next token from a row of logits, which is left masked.
    pub(super) fn draw(
        &mut self,
        logits: &mut [f32],
        rules: &Rules,
        params: &SamplingParams,
        controls: &Controls,
    ) {
        let legal = self.legal(rules, params.structure);
        legal.mask(logits, controls);
        let how = params.draws(self.grammar.depth() > 0);
        self.drawn = Some((legal, draw(logits, how, &mut self.rng)));
    }

    /// Tokens that may follow.
    pub(super) fn left(&self) -> usize {
        self.budget.left(self.position)
    }

    /// Which tokens may be sampled next: those of the grammar, within the limits.
    pub(super) fn legal(&self, rules: &Rules, structure: Structure) -> AllowedSet {
        let mut legal = self.grammar.allowed();
        if legal.contains(PARALLEL) {
            let closing = match structure {
                Structure::PathWindow => usize::from(self.place.is_some()),
                Structure::Causal => self.cost_to_close(rules),
            };
            if !rules.may_open(self.budget, self.position, closing, self.grammar.depth()) {
                legal = legal.without(PARALLEL);
            }
        }
        let next_path = legal.contains(PATH) && legal.contains(END_PARALLEL);
        let path_fits = || self.left() >= rules.min_path + self.cost_to_close(rules) + rules.reserve;
        if next_path && !path_fits() { legal.without(PATH) } else { legal }
    }

    /// What must be forced now so that everything is closed within the budget, innermost first.
    pub(super) fn forced(&self, rules: &Rules, structure: Structure, controls: &Controls) -> Vec<u32> {
        let due = match (structure, self.open()) {
            (_, Open::Trunk) => false,
            (Structure::PathWindow, Open::Path { in_summary }) => self.left() <= 1 + usize::from(in_summary),
            (Structure::PathWindow, _) => false,
            (Structure::Causal, Open::Path { in_summary }) => {
                let began = self.paths_began.last().copied().unwrap_or(self.budget.tokens);
                let length = began - self.budget.tokens + 1 + usize::from(in_summary);
                length >= rules.max_path || self.must_close(rules)
            }
            (Structure::Causal, _) => self.must_close(rules),
        };
        if !due {
            return Vec::new();
        }
        let tag = |tag| controls.tag(tag).into_iter().collect();
        match self.open() {
            Open::Trunk => Vec::new(),
            Open::Block => tag(Tag::Path),
            Open::Paths => controls.forced_join().unwrap_or_default(),
            Open::Closed => tag(Tag::Summary),
            Open::Path { in_summary: true } => tag(Tag::EndSummary),
            Open::Path { in_summary: false } => tag(Tag::EndPath),
        }
    }

    fn must_close(&self, rules: &Rules) -> bool {
        self.left() <= self.cost_to_close(rules) + rules.reserve
    }

    /// Tokens that close everything up to the trunk's summary when all follow in one chain.
    fn cost_to_close(&self, rules: &Rules) -> usize {
        let depth = self.grammar.depth();
        // `</Summary>`, `</Path>` and the joining tags of each path around.
        let around = |paths: usize| paths * (2 + rules.join);
        match self.open() {
            Open::Trunk => 0,
            Open::Block => 2 + rules.join + around(depth),
            Open::Paths => rules.join + around(depth),
            Open::Closed => 1 + around(depth),
            Open::Path { in_summary } => usize::from(in_summary) + 1 + rules.join + around(depth - 1),
        }
    }

    fn open(&self) -> Open {
        let next = self.grammar.allowed();
        if next.contains(END_PARALLEL) {
            Open::Paths
        } else if next.contains(PATH) {
            Open::Block
        } else if next.contains(SUMMARY) {
            Open::Closed
        } else if self.grammar.depth() > 0 {
            Open::Path { in_summary: self.grammar.in_summary() }
        } else {
            Open::Trunk
        }
    }
}
