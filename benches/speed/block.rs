//! A parallel block of paths and the summary behind it, all of fixed lengths; and the same tokens in the way of the
//! method's published code: each path is a request that reads the prefix again, and at the join the prefix and all
//! paths are read once more as one flat text.

use parallel_r1::engine::{EngineStats, Request, SamplingParams, Trace};
use parallel_r1::model::Decoder;
use parallel_r1::prompt::{Controls, Tag};
use serde_json::json;

use super::case::Case;
use super::{Done, Result, Work, sample, texts};

/// The ids that stand for the tags, and the one after which a block opens.
const TAGS: [u32; 6] = [1, 2, 3, 4, 5, 6];
const CUE: u32 = 7;
/// `<Path>` and the tag that may or may not close it are forced.
const NEWLINE: u32 = 8;

fn controls() -> Controls {
    Controls { tags: Some(TAGS), end: vec![], newline: vec![NEWLINE], path_rewind: 0 }
}

/// A random model that opens a block after `CUE` and closes nothing by itself. The first dimension of the tied table
/// steers: it is large in the row of `CUE` and larger in that of `<Parallel>`, which therefore follows; it is negative
/// in all other rows, and most so in those of ordinary tokens, which therefore follow one another.
fn scripted(case: &Case) -> Result<Decoder> {
    let plain = case.model()?;
    let mut weights = plain.weights()?;
    let table = weights.get_mut("model.embed_tokens.weight").ok_or("a model without a table")?;
    let mut rows = table.to_vec2::<f32>()?;
    for (id, row) in rows.iter_mut().enumerate() {
        row[0] = match id as u32 {
            CUE => 50.0,
            id if id == TAGS[Tag::Parallel as usize] => 100.0,
            id if TAGS.contains(&id) => -0.5,
            _ => -1.0,
        };
    }
    *table = candle_core::Tensor::new(rows, plain.device())?;
    Ok(Decoder::new(plain.config().clone(), &weights)?)
}

fn prefix(case: &Case, vocab: usize) -> Vec<u32> {
    let mut prefix: Vec<u32> = texts::random(0, case.prompt, vocab - 9).iter().map(|id| id + 9).collect();
    prefix[case.prompt - 1] = CUE;
    prefix
}

/// Opens the block in one sample.
pub(super) struct Block {
    decoder: Decoder,
    request: Request,
    params: SamplingParams,
    paths: usize,
}

impl Block {
    pub(super) fn new(case: &Case) -> Result<Self> {
        let decoder = scripted(case)?;
        let prompt = prefix(case, decoder.config().vocab_size);
        let join = controls().forced_join().map_or(0, |tokens| tokens.len());
        let params = SamplingParams {
            num_paths: case.paths,
            max_blocks: 1,
            max_path_tokens: Some(case.response),
            min_path_tokens: case.response,
            reserve_tokens: case.summary,
            max_response_tokens: 1 + case.paths * case.response + join + case.summary,
            ..SamplingParams::default()
        };
        let request = Request { id: 0, prompt, samples: 1, first_sample: 0 };
        Ok(Self { decoder, request, params, paths: case.paths })
    }
}

fn check(trace: &Trace, params: &SamplingParams) -> Result<()> {
    let (blocks, tokens) = (trace.blocks(), trace.response_tokens());
    if blocks != 1 || tokens != params.max_response_tokens {
        let want = params.max_response_tokens;
        return Err(format!("expected 1 block in {want} tokens, got {blocks} in {tokens}").into());
    }
    Ok(())
}

impl Work for Block {
    fn round(&mut self) -> Result<Done> {
        let requests = std::slice::from_ref(&self.request);
        let (traces, stats) = sample::generate(&self.decoder, &controls(), requests, &self.params, &mut ())?;
        check(&traces[0][0], &self.params)?;
        let notes = json!({"paths": self.paths, "reread_tokens": stats.reread_tokens, "rows": stats.rows});
        Ok(Done { units: traces[0][0].response_tokens(), notes })
    }
}

/// The same tokens, read again.
pub(super) struct Reread {
    decoder: Decoder,
    case: Case,
}

impl Reread {
    pub(super) fn new(case: &Case) -> Result<Self> {
        Ok(Self { decoder: scripted(case)?, case: case.clone() })
    }

    fn sample(&self, prompts: Vec<Vec<u32>>, tokens: usize) -> Result<(Vec<Vec<Trace>>, EngineStats)> {
        let numbered = prompts.into_iter().enumerate();
        let request = |(i, prompt)| Request { id: i as u64, prompt, samples: 1, first_sample: 0 };
        let requests: Vec<Request> = numbered.map(request).collect();
        sample::generate(&self.decoder, &Controls::default(), &requests, &sample::sequential(tokens), &mut ())
    }
}

impl Work for Reread {
    fn round(&mut self) -> Result<Done> {
        let case = &self.case;
        let [parallel, path, end_path] =
            [Tag::Parallel, Tag::Path, Tag::EndPath].map(|tag| TAGS[tag as usize]);
        let mut text = prefix(case, self.decoder.config().vocab_size);
        let opened: Vec<u32> = text.iter().copied().chain([parallel, path]).collect();
        let (paths, forked) = self.sample(vec![opened; case.paths], case.response - 2)?;
        text.push(parallel);
        for trace in paths.iter().flatten() {
            text.push(path);
            text.extend(trace.response());
            text.push(end_path);
        }
        text.extend(controls().forced_join().ok_or("tags without a join")?);
        let response = text.len() - case.prompt + case.summary;
        let (_, joined) = self.sample(vec![text], case.summary)?;
        Ok(Done { units: response, notes: json!({"paths": case.paths, "rows": forked.rows + joined.rows}) })
    }
}
