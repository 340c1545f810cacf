//! Demonstrations as sequences. Which ones a step takes depends on the seed and the step alone, so that a resumed
//! run sees the same.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::Result;
use super::batch::Sequence;
use super::recipe::DemonstrationData;
use crate::data::countdown::{
    CountdownSource, ParallelOptions, SequentialOptions, Split, Task, parallel, sequential,
};
use crate::data::{DataError, Demonstration, load_demonstrations};
use crate::layout::{Structure, parse};
use crate::model::{ModelError, Pretrained};
use crate::prompt::Controls;

/// Where demonstrations come from.
pub enum Demonstrations {
    /// Countdown searches, written anew for each step.
    Countdown(CountdownSource, Style),
    /// The rows of a file, shuffled once an epoch.
    Rows(Vec<Demonstration>),
}

/// How a Countdown search is written.
#[derive(Clone)]
pub enum Style {
    /// In one stream.
    Sequential(SequentialOptions),
    /// In parallel paths.
    Parallel(ParallelOptions),
}

impl Style {
    fn write(&self, task: &Task, rng: &mut ChaCha8Rng) -> String {
        match self {
            Self::Sequential(options) => sequential(task, rng, options),
            Self::Parallel(options) => parallel(task, rng, options),
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
        let tiers = data.countdown.clone().unwrap_or(CountdownSource { tiers: vec![], weights: None });
        let style = match &data.parallel {
            Some(options) => Style::Parallel(options.clone()),
            None => Style::Sequential(data.sequential.clone().unwrap_or_default()),
        };
        Ok(Self::Countdown(tiers, style))
    }

    /// Number of rows; generated demonstrations are without number, so they count none.
    pub fn count(&self) -> usize {
        match self {
            Self::Countdown(..) => 0,
            Self::Rows(rows) => rows.len(),
        }
    }

    /// The `n` demonstrations of step `step`.
    pub fn rows(&self, seed: u64, step: usize, n: usize) -> Result<Vec<Demonstration>> {
        match self {
            Self::Countdown(tiers, style) => {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                rng.set_stream(step as u64 + 1);
                let tasks = tiers.tasks(Split::Train, seed.wrapping_add(step as u64))?;
                let write = |(tier, task): (_, Task)| {
                    let response = style.write(&task, &mut rng);
                    Demonstration { problem: task.problem(tier), response }
                };
                Ok(tasks.take(n).map(write).collect())
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
    let parsed = parse(&prompt, &response, controls, structure).map_err(|e| e.to_string())?;
    let limit = model.decoder.config().position_limit();
    match parsed.layout.positions().iter().max() {
        Some(&last) if last as usize >= limit => {
            Err(format!("position {last} is beyond the model's limit {limit}"))
        }
        _ => Ok(parsed.into()),
    }
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
}
