//! Demonstrations as sequences. Which ones a step takes depends on the seed and the step alone, so that a resumed
//! run sees the same.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::Result;
use super::batch::Sequence;
use super::problems::apportion;
use super::recipe::DemonstrationData;
use crate::data::arithmetic::{ArithmeticSource, IndependentOptions, RepeatedOptions, independent, repeated};
use crate::data::countdown::{CountdownSource, ParallelOptions, SequentialOptions, parallel, sequential};
use crate::data::family::{Family, Source, Written};
use crate::data::{DataError, Demonstration, Split, arithmetic, countdown, load_demonstrations};
use crate::layout::{Structure, parse};
use crate::model::{ModelError, Pretrained};
use crate::prompt::Controls;

/// Where demonstrations come from.
pub enum Demonstrations {
    /// Countdown searches, written anew for each step.
    Countdown(CountdownSource, Search),
    /// Long arithmetic, written anew for each step.
    Arithmetic(ArithmeticSource, Workings),
    /// Several of these, each with its share of a step.
    Mix(Vec<(f64, Demonstrations)>),
    /// The rows of a file, shuffled once an epoch.
    Rows(Vec<Demonstration>),
}

/// How a Countdown search is written.
#[derive(Clone)]
pub enum Search {
    /// In one stream.
    Sequential(SequentialOptions),
    /// In parallel paths.
    Parallel(ParallelOptions),
}

impl Search {
    fn write(&self, task: &countdown::Task, rng: &mut ChaCha8Rng) -> Written {
        let text = match self {
            Self::Sequential(options) => sequential(task, rng, options),
            Self::Parallel(options) => parallel(task, rng, options),
        };
        Written { text, slips: vec![] }
    }
}

/// How a sum of long arithmetic is worked out.
#[derive(Clone)]
pub enum Workings {
    /// In one stream, once or several times.
    Repeated(RepeatedOptions),
    /// In parallel paths.
    Independent(IndependentOptions),
}

impl Workings {
    fn write(&self, task: &arithmetic::Task, rng: &mut ChaCha8Rng) -> Written {
        match self {
            Self::Repeated(options) => repeated(task, rng, options),
            Self::Independent(options) => independent(task, rng, options),
        }
    }
}

/// The demonstrations of one step.
#[derive(Default)]
pub struct Batch {
    /// Those that can be learned from.
    pub sequences: Vec<Sequence>,
    /// How many could not: tags against the grammar, or longer than the model's positions.
    pub refused: usize,
    /// Why the first of those could not.
    pub first_fault: Option<String>,
}

impl Demonstrations {
    /// Opens the data of a stage (checked by [`Recipe::parse`](super::recipe::Recipe::parse)).
    pub fn open(data: &DemonstrationData) -> Result<Self> {
        if let Some(file) = &data.file {
            let mut rows = load_demonstrations(file, data.response_field.as_deref())?;
            let listed = |level: &String| data.levels.contains(level);
            rows.retain(|row| data.levels.is_empty() || row.problem.level.as_ref().is_some_and(listed));
            if rows.is_empty() {
                let got = format!("none of {:?} in {}", data.levels, file.display());
                return Err(
                    DataError::Setting { field: "levels", expected: "levels that rows have", got }.into()
                );
            }
            return Ok(Self::Rows(rows));
        }
        if !data.mix.is_empty() {
            let parts = data.mix.iter().map(|part| Ok((part.share.into(), Self::open(part)?)));
            return Ok(Self::Mix(parts.collect::<Result<_>>()?));
        }
        if let Some(tiers) = &data.arithmetic {
            let workings = match &data.independent {
                Some(options) => Workings::Independent(options.clone()),
                None => Workings::Repeated(data.repeated.clone().unwrap_or_default()),
            };
            return Ok(Self::Arithmetic(tiers.clone(), workings));
        }
        let tiers = data.countdown.clone().unwrap_or(CountdownSource { tiers: vec![], weights: None });
        let search = match &data.parallel {
            Some(options) => Search::Parallel(options.clone()),
            None => Search::Sequential(data.sequential.clone().unwrap_or_default()),
        };
        Ok(Self::Countdown(tiers, search))
    }

    /// Number of rows; generated demonstrations are without number, so they count none.
    pub fn count(&self) -> usize {
        match self {
            Self::Countdown(..) | Self::Arithmetic(..) => 0,
            Self::Mix(parts) => parts.iter().map(|(_, part)| part.count()).sum(),
            Self::Rows(rows) => rows.len(),
        }
    }

    /// The `n` demonstrations of step `step`.
    pub fn rows(&self, seed: u64, step: usize, n: usize) -> Result<Vec<Demonstration>> {
        match self {
            Self::Countdown(tiers, search) => {
                generate(tiers, seed, step, n, |task, rng| search.write(task, rng))
            }
            Self::Arithmetic(tiers, workings) => {
                generate(tiers, seed, step, n, |task, rng| workings.write(task, rng))
            }
            Self::Mix(parts) => {
                let shares: Vec<f64> = parts.iter().map(|(share, _)| *share).collect();
                let mut rows = Vec::with_capacity(n);
                for (i, ((_, part), n)) in parts.iter().zip(apportion(n, &shares)).enumerate() {
                    // An odd multiplier keeps the streams of the parts apart.
                    let seed = seed.wrapping_add((i as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93));
                    rows.extend(part.rows(seed, step, n)?);
                }
                Ok(rows)
            }
            Self::Rows(rows) => {
                Ok(epoch_indices(rows.len(), seed, step * n, n).map(|i| rows[i].clone()).collect())
            }
        }
    }

    /// The same as sequences, without those that can't be learned from.
    pub fn batch(
        &self,
        seed: u64,
        step: usize,
        n: usize,
        model: &Pretrained,
        controls: &Controls,
        structure: Option<Structure>,
    ) -> Result<Batch> {
        let mut batch = Batch::default();
        for row in self.rows(seed, step, n)? {
            match sequence(&row, model, controls, structure) {
                Ok(sequence) => batch.sequences.push(sequence),
                Err(fault) => {
                    batch.refused += 1;
                    batch.first_fault.get_or_insert(format!("{}: {fault}", row.problem.id));
                }
            }
        }
        Ok(batch)
    }
}

/// The `n` demonstrations of a step, of a family.
fn generate<F: Family>(
    tiers: &Source<F>,
    seed: u64,
    step: usize,
    n: usize,
    write: impl Fn(&F::Task, &mut ChaCha8Rng) -> Written,
) -> Result<Vec<Demonstration>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(step as u64 + 1);
    let tasks = tiers.tasks(Split::Train, seed.wrapping_add(step as u64))?;
    let write = |(tier, task)| {
        let Written { text, slips } = write(&task, &mut rng);
        Demonstration { problem: F::problem(&task, tier), response: text, slips }
    };
    Ok(tasks.take(n).map(write).collect())
}

/// Indices `first..first + n` of an endless walk over `count` rows that is shuffled anew in each epoch.
pub fn epoch_indices(count: usize, seed: u64, first: usize, n: usize) -> impl Iterator<Item = usize> {
    let mut epoch = (usize::MAX, Vec::new());
    (first..first + n).map(move |i| {
        if epoch.0 != i / count {
            let mut order: Vec<usize> = (0..count).collect();
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream((i / count) as u64);
            order.shuffle(&mut rng);
            epoch = (i / count, order);
        }
        epoch.1[i % count]
    })
}

/// A demonstration as tokens with their structure; says why where that can't be.
pub fn sequence(
    row: &Demonstration,
    model: &Pretrained,
    controls: &Controls,
    structure: Option<Structure>,
) -> std::result::Result<Sequence, String> {
    let prompt = model.prompt(&row.problem.problem).map_err(|e| e.to_string())?;
    let response =
        model.tokenizer.encode_response(&row.response).map_err(|e| ModelError::from(e).to_string())?;
    let structure = structure.unwrap_or(Structure::Causal);
    let mut parsed = parse(&prompt, &response, controls, structure).map_err(|e| e.to_string())?;
    for token in slipped(row, &response, model)? {
        parsed.sampled[prompt.len() + token] = false;
    }
    let limit = model.decoder.config().position_limit();
    match parsed.layout.positions().iter().max() {
        Some(&last) if last as usize >= limit => {
            Err(format!("position {last} is beyond the model's limit {limit}"))
        }
        _ => Ok(parsed.into()),
    }
}

/// The response's tokens that hold a byte which is wrong on purpose.
fn slipped(
    row: &Demonstration,
    response: &[u32],
    model: &Pretrained,
) -> std::result::Result<Vec<usize>, String> {
    if row.slips.is_empty() {
        return Ok(vec![]);
    }
    let mut stream = model.tokenizer.decode_stream();
    let mut text = String::new();
    let mut tokens = Vec::new();
    for (token, &id) in response.iter().enumerate() {
        let start = text.len();
        text += &stream.push(id).map_err(|e| ModelError::from(e).to_string())?;
        if row.slips.iter().any(|slip| slip.start < text.len() && start < slip.end) {
            tokens.push(token);
        }
    }
    // What the tokenizer writes otherwise than it was given has its slips elsewhere.
    let same = text.trim_end() == row.response.trim_end();
    same.then_some(tokens).ok_or_else(|| "its slips cannot be found in what the tokenizer makes of it".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_epoch_visits_every_row_once_and_a_later_start_sees_the_same() {
        let all: Vec<usize> = epoch_indices(7, 3, 0, 21).collect();
        for epoch in all.chunks(7) {
            let mut sorted = epoch.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..7).collect::<Vec<_>>());
        }
        assert_ne!(all[..7], all[7..14]);
        assert_eq!(epoch_indices(7, 3, 5, 9).collect::<Vec<_>>(), all[5..14]);
    }

    fn read(data: &str) -> Demonstrations {
        Demonstrations::open(&toml::from_str(data).unwrap()).unwrap()
    }

    #[test]
    fn a_mix_keeps_its_shares_and_its_parts_differ() {
        let part = |share: f32| {
            format!("{{ share = {share}, arithmetic = {{ tiers = ['chain-2'] }}, repeated = {{}} }}")
        };
        let countdown = "{ countdown = { tiers = ['3'] }, sequential = {} }";
        let mix = read(&format!("mix = [{}, {countdown}, {}]", part(2.0), part(1.0)));
        let rows = mix.rows(1, 0, 40).unwrap();
        let sources: Vec<&str> = rows.iter().map(|row| row.problem.source.as_str()).collect();
        assert_eq!(sources, [vec!["arithmetic"; 20], vec!["countdown"; 10], vec!["arithmetic"; 10]].concat());
        assert_ne!(rows[..10], rows[30..]);
        assert_eq!(rows, mix.rows(1, 0, 40).unwrap());
        assert_ne!(rows, mix.rows(1, 1, 40).unwrap());
    }

    #[test]
    fn slips_are_shown_and_not_learned() {
        let model =
            Pretrained::open_to_train("embedded", &candle_core::Device::Cpu).unwrap().with_tags(1).unwrap();
        let controls = model.controls().unwrap();
        let rows = read("arithmetic = { tiers = ['chain-4'] }\nindependent = { paths = 4, slip = 0.5 }")
            .rows(1, 0, 8)
            .unwrap();
        assert!(rows.iter().map(|row| row.slips.len()).sum::<usize>() > 8);
        for row in &rows {
            let written =
                |row: &Demonstration| sequence(row, &model, &controls, Some(Structure::PathWindow)).unwrap();
            let (marked, plain) = (written(row), written(&Demonstration { slips: vec![], ..row.clone() }));
            let lost: Vec<u32> = (0..plain.tokens.len())
                .filter(|&i| plain.sampled[i] && !marked.sampled[i])
                .map(|i| plain.tokens[i])
                .collect();
            let slips: String = row.slips.iter().map(|slip| &row.response[slip.clone()]).collect();
            assert_eq!(model.tokenizer.decode(&lost).unwrap(), slips);
            assert_eq!(plain.tokens, marked.tokens);
        }
    }

    #[test]
    fn slips_that_cannot_be_found_refuse_the_row() {
        let model = Pretrained::open_to_train("embedded", &candle_core::Device::Cpu).unwrap();
        let controls = model.controls().unwrap();
        let mut row =
            read("arithmetic = { tiers = ['chain-2'] }\nrepeated = {}").rows(1, 0, 1).unwrap().remove(0);
        row.response.push('é'); // the character tokenizer has no such token
        row.slips.push(0..1);
        let fault = sequence(&row, &model, &controls, None).unwrap_err();
        assert!(fault.starts_with("its slips cannot be found"), "{fault}");
    }
}
