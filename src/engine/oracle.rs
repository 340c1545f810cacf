//! The scheduler against an oracle: a model whose logits are a hash of exactly what a row sees, in
//! order. Whatever paging, forking, joining or batching got wrong would change its numbers, and
//! what they should be follows from a finished trace's layout alone.

use proptest::prelude::*;

use super::*;
use crate::layout::{QueryBlock, Structure, parse};
use crate::model::Take;
use crate::prompt::tags::{Control, Grammar, Tag};

const VOCAB: usize = 20;
const END: u32 = 6;
const NEWLINE: u32 = 7;

fn controls() -> Controls {
    Controls { tags: Some([0, 1, 2, 3, 4, 5]), end: vec![END], newline: vec![NEWLINE], path_rewind: 0 }
}

/// Token and position of each slot; `likes` is added to the logits of single tokens.
#[derive(Clone, Debug)]
struct HashModel {
    slots: Vec<Option<(u32, u32)>>,
    positions: usize,
    path_rewind: u32,
    likes: [f32; VOCAB],
    diverged: bool,
}

impl HashModel {
    fn new(likes: &[(u32, f32)]) -> Self {
        let mut all = [0.0; VOCAB];
        likes.iter().for_each(|&(token, like)| all[token as usize] = like);
        Self { slots: Vec::new(), positions: 4096, path_rewind: 0, likes: all, diverged: false }
    }

    fn logits(&self, seen: impl Iterator<Item = (u32, u32)>) -> Vec<f32> {
        let mix = |state: u64, value: u64| {
            let z = (state ^ value).wrapping_add(0x9E37_79B9_7F4A_7C15);
            let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z ^ (z >> 29)
        };
        let see = |state, (token, position)| mix(mix(state, u64::from(token)), u64::from(position));
        let state = seen.fold(1, see);
        let unit = |token: usize| (mix(state, token as u64) >> 40) as f32 / (1 << 24) as f32;
        (0..VOCAB).map(|token| 3.0 * unit(token) + self.likes[token]).collect()
    }
}

fn keys(block: &QueryBlock, row: usize) -> impl Iterator<Item = usize> + '_ {
    let own = block.own..block.own + row - block.queries.start + 1;
    block.context.iter().cloned().flatten().chain(own)
}

impl LanguageModel for HashModel {
    fn vocab_size(&self) -> usize {
        VOCAB
    }

    fn max_positions(&self) -> usize {
        self.positions
    }

    fn reserve(&mut self, slots: usize) -> Result<(), ModelError> {
        self.slots = vec![None; slots];
        Ok(())
    }

    fn step(&mut self, rows: &Rows, take: Take) -> Result<(), ModelError> {
        let mut written = rows.slots.clone();
        written.sort_unstable();
        written.dedup();
        assert_eq!(written.len(), rows.len(), "two rows of a pass write one slot");
        for i in 0..rows.len() {
            assert!((rows.positions[i] as usize) < self.positions, "position limit");
            self.slots[rows.slots[i] as usize] = Some((rows.tokens[i], rows.positions[i]));
        }
        let mut covered = 0;
        for block in &rows.visibility.blocks {
            assert_eq!(block.queries.start, covered, "blocks cover the rows in order");
            covered = block.queries.end;
            for row in block.queries.clone() {
                let last = keys(block, row).last();
                assert_eq!(last, Some(rows.slots[row] as usize), "a row sees itself last");
                if let Some(wanted) = rows.wanted.iter().position(|&wanted| wanted as usize == row) {
                    let seen = keys(block, row).map(|slot| self.slots[slot].expect("written"));
                    let mut logits = self.logits(seen);
                    if self.diverged {
                        logits.fill(f32::NAN);
                    }
                    take(wanted, &mut logits);
                }
            }
        }
        assert_eq!(covered, rows.len());
        Ok(())
    }
}

fn request(id: u64, len: usize, samples: usize) -> Request {
    let prompt = (0..len).map(|i| (i * 7 + id as usize) as u32 % VOCAB as u32).collect();
    Request { id, prompt, samples, first_sample: 0 }
}

fn engine(model: &HashModel, max_batch: usize, cache_tokens: usize) -> Engine<HashModel> {
    let controls = Controls { path_rewind: model.path_rewind, ..controls() };
    Engine::over(model.clone(), &controls, EngineOptions { max_batch, cache_tokens })
}

/// Everything that must hold for a trace, whatever was sampled.
fn check_trace(trace: &Trace, model: &HashModel, params: &SamplingParams) {
    let (tokens, layout) = (&trace.tokens, &trace.layout);
    let lengths = [
        layout.len(),
        trace.logprobs.len(),
        trace.sampled.len(),
        trace.allowed.len(),
        trace.temperatures.len(),
    ];
    assert_eq!(lengths, [tokens.len(); 5]);
    assert_eq!(trace.finish.len(), layout.segments().len());
    assert!(trace.response_tokens() <= params.max_response_tokens);
    assert!(layout.positions().iter().all(|&position| (position as usize) < model.positions));
    assert!(trace.blocks() <= params.max_blocks);
    check_text(trace, model, params);
    check_path_lengths(trace, params);
    check_logprobs(trace, model, params);
}

/// The response is grammatical, closed unless truncated, and laid out as `parse` does.
fn check_text(trace: &Trace, model: &HashModel, params: &SamplingParams) {
    let mut grammar = Grammar::new(&controls());
    for (i, &token) in trace.response().iter().enumerate() {
        let (at, legal) = (trace.prompt_len + i, grammar.allowed());
        if trace.sampled[at] {
            let set = trace.allowed[at];
            assert!(set.permits(token, &controls()));
            assert_eq!(set.bits() & legal.bits(), set.bits(), "limits only forbid");
        }
        grammar.push(token).expect("grammatical");
        assert!(grammar.depth() <= params.max_nesting);
    }
    assert_eq!(grammar.blocks(), trace.blocks());
    assert_eq!(grammar.depth(), 0);
    assert_eq!(grammar.finished(), !trace.truncated());
    if trace.truncated() {
        assert!(grammar.in_summary() || grammar.well_formed_end().is_ok(), "block left open");
        return;
    }
    let controls = Controls { path_rewind: model.path_rewind, ..controls() };
    let parsed =
        parse(&tokens_of_prompt(trace), trace.response(), &controls, trace.structure).expect("well formed");
    assert_eq!(parsed.layout, trace.layout);
    assert_eq!(parsed.layout.positions(), trace.layout.positions());
    let forced = parsed.sampled.iter().zip(&trace.sampled).filter(|(a, b)| a != b).count();
    match trace.structure {
        Structure::PathWindow => assert!(forced <= 2 * trace.cut_paths(), "only closing tags differ"),
        Structure::Causal => assert_eq!(forced, trace.forced_tokens()),
    }
}

/// No path is longer than it may be. (A causal path may be, by a block inside it.)
fn check_path_lengths(trace: &Trace, params: &SamplingParams) {
    let longest = params.max_path_tokens.unwrap_or(usize::MAX);
    let mut began = Vec::new();
    for (at, &token) in trace.response().iter().enumerate() {
        match controls().which(token) {
            Some(Control::Tag(Tag::Path)) => began.push(at),
            Some(Control::Tag(Tag::EndPath)) => {
                let len = at + 1 - began.pop().expect("grammatical");
                let bounded = trace.structure == Structure::PathWindow || params.max_nesting == 1;
                assert!(!bounded || len <= longest, "a path of {len} tokens, at most {longest}");
            }
            _ => {}
        }
    }
}

fn tokens_of_prompt(trace: &Trace) -> Vec<u32> {
    trace.tokens[..trace.prompt_len].to_vec()
}

/// The law, without tensors: what was recorded is what the finished layout gives.
fn check_logprobs(trace: &Trace, model: &HashModel, params: &SamplingParams) {
    let (visibility, positions) = (trace.layout.visibility(), trace.layout.positions());
    let predictors = trace.layout.predictors();
    let mut depth = 0usize;
    for at in trace.prompt_len..trace.tokens.len() {
        if trace.sampled[at] {
            let row = predictors[at].expect("an action has a predictor");
            let mut blocks = visibility.blocks.iter();
            let block = blocks.find(|block| block.queries.contains(&row)).unwrap();
            let seen = keys(block, row).map(|key| (trace.tokens[key], positions[key]));
            let mut logits = model.logits(seen);
            trace.allowed[at].mask(&mut logits, &controls());
            let temperature = trace.temperatures[at];
            assert_eq!(temperature, params.draws(depth > 0).recorded_temperature());
            let scaled: Vec<f32> = logits.iter().map(|x| x / temperature).collect();
            let total: f32 = scaled.iter().map(|x| x.exp()).sum();
            let expected = scaled[trace.tokens[at] as usize] - total.ln();
            assert!((trace.logprobs[at] - expected).abs() < 1e-4, "token {at}");
        }
        match controls().which(trace.tokens[at]) {
            Some(Control::Tag(Tag::Path)) => depth += 1,
            Some(Control::Tag(Tag::EndPath)) => depth -= 1,
            _ => {}
        }
    }
}

fn params() -> impl Strategy<Value = SamplingParams> {
    let shape = (1..6usize, 0..5usize, 1..4usize, 1..300usize);
    let paths = (prop::option::of(3..40usize), 3..12usize, 1..30usize);
    let draws = (prop_oneof![Just(0f32), 0.3f32..1.5], 0..6usize, 0.5f32..=1.0, any::<u64>());
    (shape, paths, draws, any::<bool>()).prop_map(|(shape, paths, draws, causal)| SamplingParams {
        num_paths: shape.0,
        max_blocks: shape.1,
        max_nesting: shape.2,
        max_response_tokens: shape.3,
        max_path_tokens: paths.0.map(|longest| longest.max(paths.1)),
        min_path_tokens: paths.1,
        reserve_tokens: paths.2,
        temperature: draws.0,
        path_temperature: None,
        top_k: draws.1,
        top_p: draws.2,
        seed: draws.3,
        structure: if causal { Structure::Causal } else { Structure::PathWindow },
    })
}

fn models() -> impl Strategy<Value = HashModel> {
    let like = || -2f32..4.0;
    let like = (like(), like(), like(), like(), like(), -3f32..1.0);
    (like, 60..2000usize, 0..5u32).prop_map(|(l, positions, path_rewind)| {
        let likes = [(0, l.0), (1, l.1), (2, l.2), (3, l.3), (5, l.4), (END, l.5)];
        HashModel { positions, path_rewind, ..HashModel::new(&likes) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn traces_obey_the_law_in_any_batch(
        params in params(), model in models(), max_batch in 1..40usize, lens in prop::collection::vec((1..60usize, 0..5usize), 1..5),
    ) {
        let requests: Vec<Request> =
            lens.iter().enumerate().map(|(id, &(len, samples))| request(id as u64, len, samples)).collect();
        let mut many = engine(&model, max_batch, 16_384);
        let traces = many.generate(&requests, &params, &mut ()).unwrap();
        for (request, traces) in requests.iter().zip(&traces) {
            prop_assert_eq!(traces.len(), request.samples);
            traces.iter().for_each(|trace| check_trace(trace, &model, &params));
        }
        prop_assert_eq!(many.stats().reread_tokens, 0);
        // One by one, through a cache that just fits.
        for (request, traces) in requests.iter().zip(&traces) {
            for trace in traces {
                let mut alone = engine(&model, 1, 16_384);
                let one = Request { samples: 1, first_sample: trace.sample, ..request.clone() };
                let again = alone.generate(&[one], &params, &mut ()).unwrap();
                prop_assert_eq!(&again[0][0], trace);
            }
        }
    }
}

/// Opens blocks, doesn't end paths, ends summaries and texts.
fn keen() -> HashModel {
    HashModel::new(&[(0, 6.0), (3, -20.0), (5, 4.0)])
}

#[test]
fn paths_that_do_not_end_are_cut_at_their_share_and_the_answer_follows() {
    let params = SamplingParams { max_blocks: 1, max_response_tokens: 200, ..Default::default() };
    let model = HashModel::new(&[(0, 9.0), (3, -90.0), (5, 3.0), (END, 1.0)]);
    let traces = engine(&model, 8, 4096).generate(&[request(0, 5, 4)], &params, &mut ()).unwrap();
    for trace in &traces[0] {
        check_trace(trace, &model, &params);
        assert_eq!((trace.blocks(), trace.cut_paths()), (1, 3));
        let paths = trace.layout.segments().iter().filter(|s| s.role == crate::layout::Role::Path);
        let lens: Vec<usize> = paths.map(|path| path.len).collect();
        assert!(lens.iter().all(|&len| len == lens[0] && len > 30), "{lens:?}");
        assert!(!trace.truncated());
    }
}

#[test]
fn causal_blocks_are_closed_before_the_reserve_is_spent() {
    let params = SamplingParams {
        structure: Structure::Causal,
        max_blocks: 1,
        max_response_tokens: 120,
        ..Default::default()
    };
    let model = keen();
    let traces = engine(&model, 8, 4096).generate(&[request(0, 5, 6)], &params, &mut ()).unwrap();
    for trace in &traces[0] {
        check_trace(trace, &model, &params);
        assert_eq!(trace.blocks(), 1);
        assert!(trace.forced_tokens() >= 4, "path and block were closed for it");
    }
}

#[test]
fn a_group_reads_its_prompt_once_and_a_block_costs_no_pass() {
    let params = SamplingParams { max_response_tokens: 300, ..Default::default() };
    let model = HashModel::new(&[(0, 3.0), (3, 1.0), (5, 3.0)]);
    let mut engine = engine(&model, 64, 65_536);
    let traces = engine.generate(&[request(3, 1200, 8)], &params, &mut ()).unwrap();
    let stats = engine.stats();
    assert_eq!((stats.prompt_tokens, stats.reread_tokens), (1200, 0));
    let longest = traces[0].iter().map(Trace::critical_path).max().unwrap() as u64;
    assert!(traces[0].iter().any(|trace| trace.blocks() > 1));
    let prompt_passes = 1200u64.div_ceil(512);
    assert!(stats.steps <= prompt_passes + longest, "{} passes for {longest}", stats.steps);
    let response: usize = traces[0].iter().map(|trace| trace.response_tokens() - 1).sum();
    assert_eq!(stats.rows, 1200 + response as u64);
}

#[test]
fn a_small_cache_makes_samples_wait_not_fail() {
    let params = SamplingParams { max_response_tokens: 100, max_blocks: 1, ..Default::default() };
    let requests = [request(0, 40, 3), request(1, 3, 2), request(2, 90, 1)];
    let model = keen();
    let wide = engine(&model, 64, 65_536).generate(&requests, &params, &mut ()).unwrap();
    let narrow = engine(&model, 64, 256).generate(&requests, &params, &mut ()).unwrap();
    assert_eq!(wide, narrow);
}

#[test]
fn without_tags_or_blocks_a_response_is_one_chain() {
    let params = SamplingParams { max_response_tokens: 50, ..Default::default() };
    let bare = Controls { tags: None, ..controls() };
    let mut untagged = Engine::over(keen(), &bare, EngineOptions::default());
    let mut tagged = engine(&keen(), 8, 4096);
    let sequential = SamplingParams { max_blocks: 0, ..params.clone() };
    for traces in [
        untagged.generate(&[request(0, 4, 2)], &params, &mut ()).unwrap(),
        tagged.generate(&[request(0, 4, 2)], &sequential, &mut ()).unwrap(),
    ] {
        for trace in &traces[0] {
            assert_eq!(trace.layout.segments().len(), 2);
            assert_eq!((trace.blocks(), trace.forced_tokens()), (0, 0));
            assert_eq!(trace.critical_path(), trace.response_tokens());
        }
    }
    let traces = tagged.generate(&[request(0, 4, 2)], &sequential, &mut ()).unwrap();
    assert!(traces[0].iter().all(|t| t.response().iter().all(|&id| id > 5)), "tags are masked");
}

#[test]
fn a_response_stops_at_the_position_limit() {
    let params = SamplingParams { max_response_tokens: 500, ..Default::default() };
    let model = HashModel { positions: 64, ..HashModel::new(&[(END, -90.0)]) };
    let traces = engine(&model, 8, 4096).generate(&[request(0, 50, 1)], &params, &mut ()).unwrap();
    assert_eq!((traces[0][0].response_tokens(), traces[0][0].truncated()), (14, true));
}

#[test]
fn what_cannot_be_sampled_is_refused_with_its_reason() {
    let params = SamplingParams::default();
    let message = |request: Request, model: HashModel| {
        let result = engine(&model, 4, 1024).generate(&[request], &params, &mut ());
        result.expect_err("refused").to_string()
    };
    let has = |text: String, part: &str| assert!(text.contains(part), "{text}");
    has(message(request(9, 0, 1), keen()), "request 9: expected a prompt of at least one token");
    has(message(request(9, 5000, 1), keen()), "5000 tokens, but the model has 4096 positions");
    has(message(request(9, 900, 1), keen()), "cache_tokens is 1024");
    let foreign = Request { prompt: vec![3, 99], ..request(9, 2, 1) };
    has(message(foreign, keen()), "token 99 is outside the model's vocabulary of 20");
    let diverged = HashModel { diverged: true, ..keen() };
    has(message(request(9, 3, 1), diverged), "request 9, sample 0: no finite logits");
}

/// Rebuilds the responses from the events, and stops as it is told to.
#[derive(Default)]
struct Watcher {
    tokens: std::collections::HashMap<(u64, usize), Vec<Vec<u32>>>,
    forks: usize,
    joins: usize,
    done: Vec<(u64, usize)>,
    enough: Option<usize>,
    passes_left: Option<usize>,
}

impl Observer for Watcher {
    fn token(&mut self, event: &TokenEvent) {
        let segments = self.tokens.entry((event.request, event.sample)).or_default();
        segments.resize(segments.len().max(event.segment + 1), Vec::new());
        segments[event.segment].push(event.token);
    }

    fn fork(&mut self, event: &ForkEvent<'_>) {
        assert_eq!(event.paths.len(), 3);
        self.forks += 1;
    }

    fn join(&mut self, event: &JoinEvent<'_>) {
        assert!(event.paths.iter().all(|&path| path < event.into));
        self.joins += 1;
    }

    fn sample_done(&mut self, trace: &Trace) {
        self.done.push((trace.request, trace.sample));
    }

    fn wants(&mut self, request: u64) -> bool {
        let done = self.done.iter().filter(|done| done.0 == request).count();
        self.enough.is_none_or(|enough| request != 1 || done < enough)
    }

    fn cancelled(&mut self) -> bool {
        match &mut self.passes_left {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }
}

#[test]
fn events_tell_the_whole_story() {
    let params = SamplingParams { max_nesting: 2, ..Default::default() };
    let (mut watcher, model) = (Watcher::default(), HashModel::new(&[(0, 4.0), (3, 1.0), (5, 3.0)]));
    let requests = [request(0, 4, 3), request(1, 20, 2)];
    let traces = engine(&model, 8, 65_536).generate(&requests, &params, &mut watcher).unwrap();
    let traces: Vec<&Trace> = traces.iter().flatten().collect();
    assert_eq!(watcher.done.len(), 5);
    assert_eq!(watcher.forks, watcher.joins);
    assert_eq!(watcher.forks, traces.iter().map(|trace| trace.blocks()).sum::<usize>());
    for trace in traces {
        let mut told = watcher.tokens[&(trace.request, trace.sample)].concat();
        let mut tokens = trace.response().to_vec();
        told.sort_unstable();
        tokens.sort_unstable();
        assert_eq!(told, tokens);
    }
}

#[test]
fn a_request_can_be_left_early_and_the_others_do_not_notice() {
    let params = SamplingParams { max_response_tokens: 150, ..Default::default() };
    let requests = [request(0, 4, 3), request(1, 20, 8), request(2, 33, 3)];
    let model = HashModel::new(&[(0, 3.0), (3, 1.0), (5, 3.0)]);
    let all = engine(&model, 6, 65_536).generate(&requests, &params, &mut ()).unwrap();
    let mut watcher = Watcher { enough: Some(2), ..Watcher::default() };
    let mut engine = engine(&model, 6, 65_536);
    let some = engine.generate(&requests, &params, &mut watcher).unwrap();
    assert_eq!((&some[0], &some[2]), (&all[0], &all[2]));
    assert!((2..8).contains(&some[1].len()));
    assert!(some[1].iter().all(|trace| all[1].contains(trace)));
    assert_eq!(engine.stats().reread_tokens, 0);
    // The engine is as good as new.
    assert_eq!(engine.generate(&requests, &params, &mut ()).unwrap(), all);
}

#[test]
fn cancelling_keeps_what_is_complete() {
    let params = SamplingParams { max_response_tokens: 150, ..Default::default() };
    let model = HashModel::new(&[(0, 3.0), (3, 1.0), (5, 3.0)]);
    for passes in [0, 1, 2, 7, 30, 60] {
        let mut watcher = Watcher { passes_left: Some(passes), ..Watcher::default() };
        let mut engine = engine(&model, 3, 65_536);
        let requests = [request(0, 700, 4), request(1, 20, 8)];
        let some = engine.generate(&requests, &params, &mut watcher).unwrap();
        let count: usize = some.iter().map(Vec::len).sum();
        assert!(count < 12);
        assert_eq!(count, watcher.done.len());
        assert_eq!(engine.stats().reread_tokens, 0);
        some.iter().flatten().for_each(|trace| check_trace(trace, &model, &params));
    }
}
