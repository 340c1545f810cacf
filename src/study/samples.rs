//! What is kept of a cell's answers: per sample whether it is right, what it cost, and what it would vote for.

use std::collections::BTreeMap;
use std::hash::Hasher;

use candle_core::DType;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use super::config::{Study, StudyArm};
use crate::data::Problem;
use crate::engine::SamplingParams;
use crate::eval::{Rollout, rollouts};
use crate::model::Pretrained;
use crate::reward::answer_keys;
use crate::train::curriculum::sampling;
use crate::train::recipe::{Recipe, Tier};
use crate::train::{Result, TrainError};

/// The answers of one model with one number of paths.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Samples {
    /// [`Study::fingerprint`] of when they were made.
    pub fingerprint: String,
    /// One entry a problem, tier by tier.
    pub problems: Vec<ProblemSamples>,
}

/// The answers to one problem. All lists have one entry a sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProblemSamples {
    /// Its tier.
    pub tier: String,
    /// The problem.
    pub id: String,
    /// Whether it is right.
    pub correct: Vec<bool>,
    /// All tokens of the response.
    pub total_tokens: Vec<usize>,
    /// Those that had to follow one another.
    pub critical_path_tokens: Vec<usize>,
    /// The answer's number among the different answers to this problem.
    pub answers: Vec<Option<usize>>,
    /// Whether it has a well-formed block.
    pub parallel: Vec<bool>,
    /// Where its blocks start, from 0 to 1.
    pub block_position: Vec<Option<f64>>,
    /// Whether it was cut by the budget.
    pub truncated: Vec<bool>,
    /// Whether some path found the answer, where that is known.
    pub path_right: Vec<Option<bool>>,
}

/// Problems that are answered in one go, between two reports of progress.
const TOGETHER: usize = 16;

/// Has a cell's model answer the problems, each within the study's budget. `progress` hears of answered problems and says
/// whether to go on.
pub fn measure(
    study: &Study,
    arm: &StudyArm,
    seed: u64,
    paths: usize,
    model: &Pretrained,
    tiers: &[Tier],
    progress: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Samples> {
    let recipe = arm.recipe(seed);
    let of_arm = sampling(&recipe, recipe.arms[0].structure);
    let params = SamplingParams {
        num_paths: paths,
        max_response_tokens: study.max_tokens,
        temperature: 1.0,
        ..of_arm
    };
    let all: Vec<(&str, &Problem)> = tiers
        .iter()
        .flat_map(|tier| tier.problems.iter().map(|problem| (tier.name.as_str(), problem)))
        .collect();
    let mut problems = Vec::with_capacity(all.len());
    for (i, part) in all.chunks(TOGETHER).enumerate() {
        let asked: Vec<Problem> = part.iter().map(|(_, problem)| (*problem).clone()).collect();
        let first = (i * TOGETHER) as u64;
        let samples = study.evaluation.samples;
        let (groups, _) = rollouts(model, &asked, samples, first, &params, recipe.engine, &mut ())?;
        problems.extend(part.iter().zip(&groups).map(|((tier, problem), group)| kept(tier, problem, group)));
        if !progress(problems.len(), all.len()) {
            return Err(TrainError::Cancelled);
        }
    }
    Ok(Samples { fingerprint: study.fingerprint(paths), problems })
}

/// What a cell is made of: its recipe, and its base model's weights as a number. Cells of another kind are not mixed in.
pub fn made_of(recipe: &Recipe, base: &Pretrained) -> Result<String> {
    let mut hash = XxHash64::with_seed(0);
    for (name, weight) in base.decoder.weights()?.iter().collect::<BTreeMap<_, _>>() {
        hash.write(name.as_bytes());
        let values = weight.flatten_all()?.to_dtype(DType::F32)?.to_vec1::<f32>()?;
        values.iter().for_each(|value| hash.write(&value.to_le_bytes()));
    }
    let recipe = serde_json::to_value(recipe)
        .map_err(|e| TrainError::Recipe { recipe: "a cell's recipe".into(), reason: e.to_string() })?;
    Ok(serde_json::json!({ "base": format!("{:016x}", hash.finish()), "recipe": recipe }).to_string())
}

fn kept(tier: &str, problem: &Problem, group: &[Rollout]) -> ProblemSamples {
    let texts: Vec<&str> = group.iter().map(|rollout| rollout.text.as_str()).collect();
    let of = |f: fn(&Rollout) -> usize| group.iter().map(f).collect();
    ProblemSamples {
        tier: tier.into(),
        id: problem.id.clone(),
        correct: group.iter().map(|r| r.judged.correct == Some(true)).collect(),
        total_tokens: of(|r| r.trace.response_tokens()),
        critical_path_tokens: of(|r| r.trace.critical_path()),
        answers: numbered(&answer_keys(problem, &texts)),
        parallel: group.iter().map(|r| r.judged.blocks > 0 && r.judged.well_formed).collect(),
        block_position: group.iter().map(|r| r.shape.position).collect(),
        truncated: group.iter().map(|r| r.trace.truncated()).collect(),
        path_right: group.iter().map(|r| r.path_right()).collect(),
    }
}

/// Equal keys as equal numbers.
fn numbered(keys: &[Option<String>]) -> Vec<Option<usize>> {
    let first = |key: &String| keys.iter().position(|other| other.as_ref() == Some(key));
    keys.iter().map(|key| key.as_ref().and_then(first)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_answers_have_equal_numbers() {
        let keys = ["a", "b", "", "a", "c"].map(|key| (!key.is_empty()).then(|| key.to_owned()));
        assert_eq!(numbered(&keys), [Some(0), Some(1), None, Some(0), Some(4)]);
    }
}
