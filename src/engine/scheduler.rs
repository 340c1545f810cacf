//! The loop that decodes all live branches of all samples together.
//!
//! One turn of it:
//!
//! 1. **admit** waiting samples while the batch and the cache have room for them;
//! 2. **feed** what every live branch has appended since the last pass, and a piece of the prompts
//!    that are still to be read, as the rows of one pass;
//! 3. **pass** them through the model, which draws a token for every branch that was fed, each as
//!    soon as its logits are there; samples whose prompt has been read **start** with a draw too;
//! 4. **advance**: append the token, then go on, fork, close a path, join, or end the sample.
//!
//! A fork is a few new branches below one segment: `<Parallel>` and the forced `<Path>`s are rows of
//! the same pass, since a pass writes all keys before it reads any. A join is one branch below
//! several segments, started by the last path to end; `</Path>`, `</Parallel>`, newline, `<Summary>`
//! again are rows of one pass. So a block costs no pass of its own, and no token is read twice: a
//! prompt is read once for all of its samples, and a path's keys serve the join as they are.
//!
//! Nothing fails in the middle: a sample reserves the pages of its worst case before it starts
//! (`cache`), a block opens only where it can be closed and answered (`budget`), and only legal
//! tokens are sampled, so a trace can be truncated but not ill-formed.
//!
//! Nothing depends on batch-mates: shares are fixed at the fork and random streams keyed by place,
//! so a sample's turn comes sooner or later but brings the same tokens.
//!
//! # How it differs from the official implementation
//!
//! There, a block is a new round of requests: after each fork and each join the whole prefix is
//! read again, what follows a block is read as flat text with sequential positions (while training
//! uses mask and overlapping positions), there are two paths, one path may eat the whole budget,
//! end-of-text inside a path is overwritten by a tag, and after the fourth block the sample stops
//! without an answer. Here the layout alone says positions and visibility, for any number of paths;
//! a path gets a share; end-of-text isn't legal inside a path; and after the last block the model
//! continues in sequence.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::branch::{Branch, Place};
use super::budget::{Budget, Rules};
use super::cache::{Cache, PAGE, pages_for};
use super::observer::{ForkEvent, JoinEvent, Observer, TokenEvent};
use super::params::SamplingParams;
use super::sample::{Fork, Sample, Written};
use super::sampler::{Draw, Stream};
use super::step::{Cursor, LanguageModel, Rows};
use super::trace::Trace;
use super::{Engine, EngineError, EngineOptions, EngineStats, Request};
use crate::layout::{Layout, Role, SegmentId, Structure};
use crate::prompt::tags::{AllowedSet, Control, Controls, Grammar, Tag};

/// Prompt rows of one pass: enough to keep the products efficient, few enough that live branches
/// don't wait long; more where no branch waits.
const PROMPT_ROWS: usize = 512;
const FIRST_PROMPT_ROWS: usize = 2048;

/// Logits that are worth a thread of their own to draw from.
const LOGITS_A_THREAD: usize = 1 << 15;

/// Samples all requests; see [`Engine::generate`].
pub(super) fn generate<M: LanguageModel>(
    engine: &mut Engine<M>,
    requests: &[Request],
    params: &SamplingParams,
    observer: &mut dyn Observer,
) -> Result<Vec<Vec<Trace>>, EngineError> {
    let mut run = Run::new(engine, requests, params, observer)?;
    while run.has_work() {
        run.heed_cancellation();
        run.admit();
        run.feed();
        run.pass()?;
        run.discard_unwanted();
        run.start();
        run.advance()?;
    }
    Ok(run.traces())
}

/// One call of `generate`.
struct Run<'e, M> {
    model: &'e mut M,
    controls: &'e Controls,
    options: EngineOptions,
    stats: &'e mut EngineStats,
    params: &'e SamplingParams,
    observer: &'e mut dyn Observer,
    rules: Rules,
    grammar: Grammar,
    cache: Cache,
    /// Pages of a sample at worst.
    sample_pages: usize,
    /// One for each request.
    groups: Vec<Group<'e>>,
    /// The first group that isn't fully admitted.
    head: usize,
    /// Groups whose prompt is being read.
    reading: VecDeque<usize>,
    /// Admitted samples that wait for their prompt.
    admitted: Vec<Admitted>,
    samples: Vec<Option<Sample>>,
    /// The first `max_batch` of them are fed.
    live: Vec<Branch>,
    /// The next pass. What ended branches leave behind is in it from the start.
    rows: Rows,
    /// The groups whose prompt ends in it, in the order of their rows.
    ending: Vec<usize>,
    /// Whether samples of groups that are no longer wanted are still at work.
    discarding: bool,
    /// Rows passed to the model, and tokens of the texts that they were for.
    passed_rows: usize,
    read_tokens: usize,
}

/// A request and the samples of it.
struct Group<'e> {
    request: &'e Request,
    /// The prompt, from the first admitted sample to the end of the last one.
    prompt: Option<Cursor>,
    /// Logits after the prompt, once it has been read.
    logits: Option<Vec<f32>>,
    admitted: usize,
    unfinished: usize,
    wanted: bool,
    traces: Vec<Trace>,
}

#[derive(Clone, Copy)]
struct Admitted {
    group: usize,
    number: usize,
}

impl<'e, M: LanguageModel> Run<'e, M> {
    fn new(
        engine: &'e mut Engine<M>,
        requests: &'e [Request],
        params: &'e SamplingParams,
        observer: &'e mut dyn Observer,
    ) -> Result<Self, EngineError> {
        let Engine { model, controls, options, stats } = engine;
        params.validate()?;
        let join = controls.forced_join().map_or(0, |tokens| tokens.len());
        let rules = Rules::new(params, join);
        let segments = match params.structure {
            Structure::PathWindow => rules.most_segments(params.max_response_tokens, params.max_blocks),
            Structure::Causal => 1,
        };
        // Each segment wastes less than a page.
        let sample_pages = (params.max_response_tokens + segments * (PAGE - 1)) / PAGE;
        check(model, controls, options, params, requests, sample_pages)?;
        let pages = enough_pages(requests, sample_pages, options);
        model.reserve(pages * PAGE).map_err(EngineError::Model)?;
        Ok(Self {
            model,
            controls,
            options: *options,
            stats,
            params,
            observer,
            rules,
            grammar: Grammar::new(controls),
            cache: Cache::new(pages),
            sample_pages,
            groups: requests.iter().map(Group::new).collect(),
            head: 0,
            reading: VecDeque::new(),
            admitted: Vec::new(),
            samples: Vec::new(),
            live: Vec::new(),
            rows: Rows::default(),
            ending: Vec::new(),
            discarding: false,
            passed_rows: 0,
            read_tokens: 0,
        })
    }

    fn has_work(&self) -> bool {
        let waiting = self.groups[self.head..].iter().any(|group| group.waits());
        waiting || !self.admitted.is_empty() || !self.live.is_empty() || !self.reading.is_empty()
    }

    /// Takes on samples in the order of the requests while there is room.
    fn admit(&mut self) {
        while self.head < self.groups.len() {
            if !self.groups[self.head].waits() {
                self.head += 1;
                continue;
            }
            let room = self.options.max_batch.min(self.best_batch());
            if self.live.len() + self.admitted.len() >= room {
                return;
            }
            let group = &mut self.groups[self.head];
            let prompt = match group.prompt {
                None => pages_for(group.request.prompt.len()),
                Some(_) => 0,
            };
            if !self.cache.reserve(prompt + self.sample_pages) {
                return;
            }
            if group.prompt.is_none() {
                group.prompt = Some(Cursor::root(&mut self.cache, &group.request.prompt));
                self.stats.prompt_tokens += group.request.prompt.len() as u64;
                self.reading.push_back(self.head);
            }
            let number = group.request.first_sample + group.admitted;
            self.admitted.push(Admitted { group: self.head, number });
            group.admitted += 1;
            group.unfinished += 1;
        }
    }

    /// How many branches like those of the next group are best run side by side: on average a branch is
    /// half as long as it may get, and shares its prompt with the group.
    fn best_batch(&self) -> usize {
        let Request { prompt, samples, .. } = self.groups[self.head].request;
        let prompt = prompt.len() / (*samples).clamp(1, self.options.max_batch);
        self.model.best_batch(prompt + self.params.max_response_tokens / 2)
    }

    /// Makes the rows of the next pass: first the live branches, each with a row to sample from,
    /// then prompts.
    fn feed(&mut self) {
        for branch in self.live.iter_mut().take(self.options.max_batch) {
            branch.cursor.feed(usize::MAX, &mut self.rows);
            self.rows.want_last();
            self.stats.branch_steps += 1;
        }
        let mut room = if self.live.is_empty() { FIRST_PROMPT_ROWS } else { PROMPT_ROWS };
        while let Some(&group) = self.reading.front()
            && room > 0
        {
            let prompt = self.groups[group].prompt.as_mut().expect("a prompt being read is open");
            room -= prompt.feed(room, &mut self.rows);
            if prompt.pending() == 0 {
                self.rows.want_last();
                self.ending.push(group);
                self.reading.pop_front();
            }
        }
    }

    /// One pass, with a draw for every branch in it.
    fn pass(&mut self) -> Result<(), EngineError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let (rules, params, controls) = (&self.rules, self.params, self.controls);
        let fed = self.live.iter_mut().take(self.options.max_batch);
        let branches: Vec<Mutex<&mut Branch>> = fed.map(Mutex::new).collect();
        let prompts: Vec<Mutex<Vec<f32>>> = self.ending.iter().map(|_| Mutex::default()).collect();
        // Each is locked once, by the thread that has made its logits.
        self.model
            .step(&self.rows, &|wanted, logits| match branches.get(wanted) {
                Some(branch) => {
                    let mut branch = branch.lock().unwrap_or_else(PoisonError::into_inner);
                    branch.draw(logits, rules, params, controls);
                }
                None => {
                    let prompt = &prompts[wanted - branches.len()];
                    prompt.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(logits);
                }
            })
            .map_err(EngineError::Model)?;
        for (group, logits) in self.ending.drain(..).zip(prompts) {
            self.groups[group].logits = Some(logits.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
        self.stats.steps += 1;
        self.stats.rows += self.rows.len() as u64;
        self.passed_rows += self.rows.len();
        self.rows.clear();
        Ok(())
    }

    /// Starts the admitted samples whose prompt has been read. All samples of a group draw their
    /// first token from the same logits.
    fn start(&mut self) {
        for Admitted { group, number } in std::mem::take(&mut self.admitted) {
            match self.groups[group].logits {
                Some(_) => self.start_sample(group, number),
                None => self.admitted.push(Admitted { group, number }),
            }
        }
        let Self { groups, controls, params, rules, .. } = self;
        let starting = self.live.par_iter_mut().with_min_len(1 + LOGITS_A_THREAD / self.model.vocab_size());
        starting.for_each_init(Vec::new, |row: &mut Vec<f32>, branch| {
            if let Some(logits) = branch.starts.take().and_then(|group| groups[group].logits.as_ref()) {
                row.clone_from(logits);
                branch.draw(row, rules, params, controls);
            }
        });
    }

    fn start_sample(&mut self, group: usize, number: usize) {
        let request = self.groups[group].request;
        let prompt = self.groups[group].prompt.as_ref().expect("a prompt stays for its samples");
        let mut layout = Layout::default();
        let root = layout.push(Role::Prompt, &[], request.prompt.len());
        let segment = layout.push(Role::Trunk, &[root], 0);
        let segments = vec![Written::prompt(&request.prompt), Written::default()];
        let stream = Stream::of_sample(self.params.seed, request.id, number);
        let (position, ceiling) = (request.prompt.len(), self.model.max_positions());
        // In one chain, tokens are positions.
        let tokens = match self.params.structure {
            Structure::PathWindow => self.params.max_response_tokens,
            Structure::Causal => self.params.max_response_tokens.min(ceiling - position),
        };
        self.live.push(Branch {
            sample: self.samples.len(),
            segment,
            cursor: prompt.child(&mut self.cache, position as u32),
            position,
            grammar: self.grammar.clone(),
            budget: Budget { tokens, blocks: self.params.max_blocks, ceiling },
            place: None,
            stream,
            rng: stream.rng(),
            paths_began: Vec::new(),
            starts: Some(group),
            drawn: None,
        });
        self.samples.push(Some(Sample { group, number, layout, segments, forks: Vec::new() }));
    }

    fn advance(&mut self) -> Result<(), EngineError> {
        for mut branch in std::mem::take(&mut self.live) {
            match branch.drawn.take() {
                None => self.live.push(branch),
                Some((legal, Some(draw))) => self.take(branch, legal, draw),
                Some((_, None)) => {
                    let sample = sample_of(&mut self.samples, &branch);
                    let request = self.groups[sample.group].request.id;
                    return Err(EngineError::NotFinite { request, sample: sample.number });
                }
            }
        }
        Ok(())
    }

    /// Appends a drawn token and does what follows from it.
    fn take(&mut self, mut branch: Branch, legal: AllowedSet, draw: Draw) {
        self.stats.sampled_tokens += 1;
        self.stats.entropy += f64::from(draw.entropy);
        self.record(&mut branch, draw.token, Some((legal, draw.logprob)));
        let control = self.controls.which(draw.token);
        if control == Some(Control::End) {
            return self.end(branch, false);
        }
        if branch.place.is_none() && branch.left() == 0 {
            return self.end(branch, true);
        }
        branch.cursor.push(&mut self.cache, draw.token);
        match (self.params.structure, control) {
            (Structure::PathWindow, Some(Control::Tag(Tag::Parallel))) => self.fork(branch),
            (Structure::PathWindow, Some(Control::Tag(Tag::EndPath))) => self.close(branch, false),
            _ => self.go_on(branch),
        }
    }

    /// Keeps a branch alive, after closing what its budget says must be closed now.
    fn go_on(&mut self, mut branch: Branch) {
        let mut cut = false;
        loop {
            let due = branch.forced(&self.rules, self.params.structure, self.controls);
            if due.is_empty() {
                break;
            }
            cut = true;
            self.force(&mut branch, &due);
        }
        if cut && self.params.structure == Structure::PathWindow {
            self.close(branch, true);
        } else {
            self.live.push(branch);
        }
    }

    /// `<Parallel>` was appended: the branch becomes `num_paths` branches.
    fn fork(&mut self, mut branch: Branch) {
        let closing = usize::from(branch.place.is_some());
        let share = self.rules.fork(branch.budget, branch.position, closing);
        let sample = sample_of(&mut self.samples, &branch);
        let (fork, rewind) = (sample.forks.len(), self.controls.path_rewind);
        let paths: Vec<SegmentId> =
            (0..self.rules.paths).map(|_| sample.begin(Role::Path, &[branch.segment], rewind)).collect();
        let start = sample.layout.segments()[paths[0]].start;
        self.observer.fork(&ForkEvent {
            request: self.groups[sample.group].request.id,
            sample: sample.number,
            from: branch.segment,
            paths: &paths,
        });
        self.feed_last(&mut branch);
        let tag: Vec<u32> = self.controls.tag(Tag::Path).into_iter().collect();
        for (path, &segment) in paths.iter().enumerate() {
            let stream = branch.stream.path(path);
            let mut child = Branch {
                segment,
                cursor: branch.cursor.child(&mut self.cache, start),
                position: start as usize,
                budget: share,
                place: Some(Place { fork, path }),
                stream,
                rng: stream.rng(),
                ..branch.clone()
            };
            self.force(&mut child, &tag);
            self.live.push(child);
        }
        self.cache.release(branch.cursor.key);
        let ended = paths.iter().map(|_| None).collect();
        let sample = sample_of(&mut self.samples, &branch);
        sample.forks.push(Fork { trunk: Some(branch), share, ended });
    }

    /// A path has its `</Path>`; the last one of a block to end starts what follows the block.
    fn close(&mut self, mut branch: Branch, cut: bool) {
        self.feed_last(&mut branch);
        let Place { fork, path } = branch.place.expect("only paths are closed");
        let index = branch.sample;
        let sample = sample_of(&mut self.samples, &branch);
        sample.segments[branch.segment].cut = cut;
        sample.forks[fork].ended[path] = Some(branch);
        if sample.forks[fork].ended.iter().all(Option::is_some) {
            self.join(index, fork);
        }
    }

    /// Continues the trunk of a block below all of its paths.
    fn join(&mut self, index: usize, fork: usize) {
        let sample = self.samples[index].as_mut().expect("a sample lives while a branch does");
        let block = &mut sample.forks[fork];
        let trunk = block.trunk.take().expect("a block is joined once");
        let share = block.share;
        let ended: Vec<Branch> = block.ended.drain(..).flatten().collect();
        let paths: Vec<SegmentId> = ended.iter().map(|path| path.segment).collect();
        let segment = sample.begin(Role::Join, &paths, 0);
        self.observer.join(&JoinEvent {
            request: self.groups[sample.group].request.id,
            sample: sample.number,
            paths: &paths,
            into: segment,
        });
        let cursors: Vec<&Cursor> = ended.iter().map(|path| &path.cursor).collect();
        let mut branch = Branch {
            segment,
            cursor: trunk.cursor.join(&mut self.cache, &cursors),
            position: ended.iter().map(|path| path.position).max().unwrap_or(trunk.position),
            grammar: ended[0].grammar.clone(),
            budget: self.rules.join(trunk.budget, share, ended.iter().map(|path| path.budget)),
            rng: trunk.stream.join().rng(),
            stream: trunk.stream.join(),
            ..trunk
        };
        ended.iter().for_each(|path| self.cache.release(path.cursor.key));
        let tags = self.controls.forced_join().expect("blocks need the tags");
        self.force(&mut branch, &tags);
        self.go_on(branch);
    }

    /// The last token of a response was recorded; it isn't fed any more.
    fn end(&mut self, branch: Branch, cut: bool) {
        self.cache.release(branch.cursor.key);
        self.cache.unreserve(self.sample_pages);
        let mut sample = self.samples[branch.sample].take().expect("a sample ends once");
        sample.segments[branch.segment].cut = cut;
        let index = sample.group;
        let group = &mut self.groups[index];
        let trace = sample.into_trace(group.request, self.params);
        self.read_tokens += trace.response_tokens() - 1;
        self.observer.sample_done(&trace);
        if !self.observer.wants(group.request.id) {
            group.wanted = false;
            self.discarding = true;
        }
        group.traces.push(trace);
        self.leave(index);
    }

    /// A sample of a group is over.
    fn leave(&mut self, group: usize) {
        self.groups[group].unfinished -= 1;
        self.release_prompt(group);
    }

    /// Lets a prompt go after the last sample of its group.
    fn release_prompt(&mut self, index: usize) {
        let group = &mut self.groups[index];
        if group.unfinished == 0
            && !group.waits()
            && let Some(prompt) = group.prompt.take()
        {
            group.logits = None;
            self.read_tokens += group.request.prompt.len() - prompt.pending();
            self.cache.release(prompt.key);
            self.cache.unreserve(pages_for(group.request.prompt.len()));
        }
    }

    /// Appends tokens that the model has no choice about.
    fn force(&mut self, branch: &mut Branch, tokens: &[u32]) {
        for &token in tokens {
            self.stats.forced_tokens += 1;
            self.record(branch, token, None);
            branch.cursor.push(&mut self.cache, token);
        }
    }

    /// Writes a token down; `drawn` is the set it was drawn from and its log-probability.
    fn record(&mut self, branch: &mut Branch, token: u32, drawn: Option<(AllowedSet, f32)>) {
        let sample = sample_of(&mut self.samples, branch);
        let draws = self.params.draws(branch.grammar.depth() > 0);
        let (allowed, logprob) = drawn.unwrap_or((branch.grammar.allowed(), 0.0));
        let temperature = drawn.map_or(1.0, |_| draws.recorded_temperature());
        sample.layout.grow(branch.segment, 1);
        sample.segments[branch.segment].push(token, logprob, drawn.is_some(), allowed, temperature);
        self.observer.token(&TokenEvent {
            request: self.groups[sample.group].request.id,
            sample: sample.number,
            segment: branch.segment,
            role: sample.layout.segments()[branch.segment].role,
            path: branch.place.map(|place| place.path),
            token,
            forced: drawn.is_none(),
            logprob,
        });
        branch.advance(token, self.controls.which(token));
    }

    /// Feeds what a branch has appended before others take over from it.
    fn feed_last(&mut self, branch: &mut Branch) {
        branch.cursor.feed(usize::MAX, &mut self.rows);
    }

    fn heed_cancellation(&mut self) {
        if self.observer.cancelled() {
            self.groups.iter_mut().for_each(|group| group.wanted = false);
            self.discarding = true;
        }
    }

    /// Gives up the samples of groups that are no longer wanted. This happens between a pass and
    /// the next rows, so no row is left for a slot that has become free.
    fn discard_unwanted(&mut self) {
        if !std::mem::take(&mut self.discarding) {
            return;
        }
        let groups = &self.groups;
        let unwanted: Vec<usize> = (0..self.samples.len())
            .filter(|&index| self.samples[index].as_ref().is_some_and(|s| !groups[s.group].wanted))
            .collect();
        self.reading.retain(|&group| groups[group].wanted);
        let given_up: Vec<Admitted> =
            self.admitted.extract_if(.., |waiting| !groups[waiting.group].wanted).collect();
        for Admitted { group, .. } in given_up {
            self.cache.unreserve(self.sample_pages);
            self.leave(group);
        }
        let mut unread = 0;
        for branch in self.live.extract_if(.., |branch| unwanted.contains(&branch.sample)) {
            unread += branch.cursor.pending();
            self.cache.release(branch.cursor.key);
        }
        for index in unwanted {
            self.discard(index);
        }
        self.read_tokens -= unread;
        (0..self.groups.len()).for_each(|group| self.release_prompt(group));
    }

    /// Gives up a sample that has no live branch any more.
    fn discard(&mut self, index: usize) {
        let Some(sample) = self.samples[index].take() else { return };
        let ended = sample.forks.iter().flat_map(|fork| fork.ended.iter().flatten());
        ended.for_each(|path| self.cache.release(path.cursor.key));
        self.read_tokens += sample.layout.len() - sample.segments[0].tokens.len();
        self.cache.unreserve(self.sample_pages);
        self.leave(sample.group);
    }

    /// The traces of all requests, each in the order of their numbers.
    fn traces(self) -> Vec<Vec<Trace>> {
        debug_assert!(self.cache.is_empty(), "what was opened is released");
        self.stats.reread_tokens += (self.passed_rows - self.read_tokens) as u64;
        let sorted = |group: Group<'_>| {
            let mut traces = group.traces;
            traces.sort_by_key(|trace| trace.sample);
            traces
        };
        self.groups.into_iter().map(sorted).collect()
    }
}

impl<'e> Group<'e> {
    fn new(request: &'e Request) -> Self {
        Self {
            request,
            prompt: None,
            logits: None,
            admitted: 0,
            unfinished: 0,
            wanted: true,
            traces: Vec::new(),
        }
    }

    /// Whether it has samples that aren't admitted yet.
    fn waits(&self) -> bool {
        self.wanted && self.admitted < self.request.samples
    }
}

/// The sample of a branch. (Not a method, so that the other fields of the run stay in reach.)
fn sample_of<'a>(samples: &'a mut [Option<Sample>], branch: &Branch) -> &'a mut Sample {
    samples[branch.sample].as_mut().expect("a sample lives while a branch of it does")
}

/// Pages for as many samples as can be at work at once, within the limit.
fn enough_pages(requests: &[Request], sample_pages: usize, options: &EngineOptions) -> usize {
    let samples: usize = requests.iter().map(|request| request.samples).sum();
    let mut prompts: Vec<usize> = requests.iter().map(|r| pages_for(r.prompt.len())).collect();
    prompts.sort_unstable_by(|a, b| b.cmp(a));
    // One group more than samples fit may hold its prompt.
    let prompts: usize = prompts.iter().take(options.max_batch + 1).sum();
    (prompts + sample_pages * samples.min(options.max_batch)).min(options.cache_tokens / PAGE)
}

/// Refuses what can't be sampled before anything is.
fn check<M: LanguageModel>(
    model: &M,
    controls: &Controls,
    options: &EngineOptions,
    params: &SamplingParams,
    requests: &[Request],
    sample_pages: usize,
) -> Result<(), EngineError> {
    if options.max_batch == 0 {
        return Err(EngineError::NoBatch);
    }
    let (vocab, limit) = (model.vocab_size(), model.max_positions());
    let known = |tokens: &[u32], what: &dyn Fn() -> String| match tokens
        .iter()
        .find(|&&token| token as usize >= vocab)
    {
        Some(&token) => Err(EngineError::UnknownToken { what: what(), token, vocab }),
        None => Ok(()),
    };
    if params.max_blocks > 0 {
        known(controls.tags.as_ref().map_or(&[], |tags| &tags[..]), &|| "the six tags".into())?;
    }
    for Request { id: request, prompt, .. } in requests.iter().filter(|r| r.samples > 0) {
        let (request, tokens) = (*request, prompt.len());
        let needs = (pages_for(tokens) + sample_pages) * PAGE;
        let has = options.cache_tokens / PAGE * PAGE;
        if tokens == 0 {
            return Err(EngineError::EmptyPrompt { request });
        }
        if tokens >= limit {
            return Err(EngineError::PromptTooLong { request, tokens, limit });
        }
        if needs > has {
            return Err(EngineError::CacheTooSmall { request, needs, has });
        }
        known(prompt, &|| format!("request {request}: the prompt"))?;
    }
    Ok(())
}
