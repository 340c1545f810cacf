//! The stages of an arm: what each does, on which data, and when it ends.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::Result;
use super::super::advantage::ScaleRewards;
use super::super::demonstrations::Demonstrations;
use super::super::optim::OptimConfig;
use super::super::problems::Problems;
use crate::data::arithmetic::{ArithmeticSource, IndependentOptions, RepeatedOptions};
use crate::data::countdown::{CountdownSource, ParallelOptions, SequentialOptions};
use crate::engine::SamplingParams;
use crate::layout::Structure;
use crate::reward::RewardSchedule;

/// A stage of an arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// A checkpoint every so many steps, besides the one at its end; 0 for that one alone. Each replaces the one before,
    /// so that a stage leaves one.
    #[serde(default)]
    pub save_every: usize,
    /// Whether the model is evaluated at its end.
    #[serde(default = "yes")]
    pub evaluate: bool,
    /// What ends it before its steps are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopRule>,
    /// What it does: exactly one of `sft` and `grpo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sft: Option<SftConfig>,
    /// See `sft`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpo: Option<GrpoConfig>,
}

impl Stage {
    /// Number of optimizer steps, at most; 0 where epochs have not been counted yet.
    pub fn steps(&self) -> usize {
        self.sft.as_ref().map_or(self.grpo.as_ref().and_then(|g| g.steps), |s| s.steps).unwrap_or(0)
    }

    /// The stage with its epochs as steps, which takes the number of rows.
    pub fn counted(&self) -> Result<Self> {
        let mut counted = self.clone();
        let steps =
            |epochs: f64, rows: usize, each: usize| (epochs * rows as f64 / each as f64).ceil() as usize;
        if let Some(sft) = &mut counted.sft
            && let Some(epochs) = sft.epochs.take()
        {
            sft.steps = Some(steps(epochs, Demonstrations::open(&sft.data)?.count(), sft.batch_size));
        }
        if let Some(grpo) = &mut counted.grpo
            && let Some(epochs) = grpo.epochs.take()
        {
            grpo.steps = Some(steps(epochs, Problems::open(&grpo.data)?.count(), grpo.prompts));
        }
        Ok(counted)
    }
}

/// What ends a stage early. Looked at after each step, once `window` steps are done (twice as many for a plateau).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopRule {
    /// GRPO: the share of right responses, over the last `window` steps, that is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solve_rate: Option<f64>,
    /// The gain, from one window of steps to the next, below which the stage has come to rest. What should rise is the
    /// share of right responses (GRPO) or the mean log-likelihood of an action (SFT).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plateau: Option<f64>,
    /// Tokens after which it is enough: those that the stage has sampled (GRPO) or learned from (SFT). For arms that are to
    /// be compared at equal training tokens; `steps` is then the most that may be needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Steps that are averaged.
    #[serde(default = "ten")]
    pub window: usize,
    /// Steps before which the stage does not end.
    #[serde(default)]
    pub min_steps: usize,
}

/// Supervised fine-tuning.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftConfig {
    /// Optimizer steps; either this or `epochs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Passes over the rows of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<f64>,
    /// Demonstrations a step.
    pub batch_size: usize,
    /// Rows of a micro-batch, at most.
    #[serde(default = "default_micro_batch")]
    pub micro_batch_tokens: usize,
    /// Keep only each layer's input for the gradient and compute the rest again: less memory for long sequences, a third
    /// more time.
    #[serde(default)]
    pub recompute: bool,
    /// Weight of the actions after a block (summary and answer) against all others: summaries are few and hard.
    #[serde(default = "one")]
    pub summary_weight: f32,
    /// The optimizer.
    #[serde(default)]
    pub optim: OptimConfig,
    /// The demonstrations.
    pub data: DemonstrationData,
}

/// Group-relative policy optimisation (Shao et al. 2024, arXiv 2402.03300), with the names that the field uses.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrpoConfig {
    /// Rounds of sampling and learning; either this or `epochs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Passes over the rows of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<f64>,
    /// Problems a step.
    pub prompts: usize,
    /// Responses to each.
    pub num_generations: usize,
    /// Rows of a micro-batch, at most.
    #[serde(default = "default_micro_batch")]
    pub micro_batch_tokens: usize,
    /// Keep only each layer's input for the gradient and compute the rest again: less memory for long sequences, a third
    /// more time.
    #[serde(default)]
    pub recompute: bool,
    /// Optimizer steps on the responses of a step, each on a share of the groups.
    #[serde(default = "once")]
    pub mini_batches: usize,
    /// Passes over the responses of a step. From the second one on the ratio is to the log-probabilities at sampling,
    /// as from the second mini-batch on.
    #[serde(default = "once")]
    pub num_iterations: usize,
    /// Lower clip of the probability ratio: 1 - epsilon_low.
    #[serde(default = "default_epsilon")]
    pub epsilon_low: f32,
    /// Upper clip: 1 + epsilon_high.
    #[serde(default = "default_epsilon")]
    pub epsilon_high: f32,
    /// Dual clip: what a response that is worse than its group can cost is bounded by so many times its advantage
    /// (arXiv 1912.09729; verl's `clip_ratio_c`, there 3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dual_clip: Option<f32>,
    /// Weight of a path's own advantage on its tokens, against 1 for that of the response; 0 for the paper's GRPO.
    #[serde(default)]
    pub path_credit: f32,
    /// Weight, on the tokens after the paths, of what they add to them: whether the answer is right, less the share of paths
    /// that are; 0 for the paper's GRPO.
    #[serde(default)]
    pub summary_credit: f32,
    /// Weight of the KL divergence to the model at the stage's start; 0 keeps no reference model.
    #[serde(default)]
    pub beta: f32,
    /// How the loss is averaged.
    #[serde(default)]
    pub loss_type: LossType,
    /// By which standard deviation advantages are divided.
    #[serde(default)]
    pub scale_rewards: ScaleRewards,
    /// Leave truncated responses out of the loss.
    #[serde(default)]
    pub mask_truncated: bool,
    /// Dynamic sampling: at most so many further rounds to replace groups whose rewards are all equal.
    #[serde(default)]
    pub resample_rounds: usize,
    /// For a causal arm: sample the paths of a block at the same time, not one after the other, and learn from the
    /// response as one stream. Sampler and trainer then differ, which truncated importance sampling weighs.
    #[serde(default)]
    pub fork: bool,
    /// Largest importance weight of an action that was sampled with `fork`; 2 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance_cap: Option<f32>,
    /// Temperature of this stage; the recipe's otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Paths of a block in this stage; the recipe's otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_paths: Option<usize>,
    /// Response budget of this stage; the recipe's otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_response_tokens: Option<usize>,
    /// The reward, or rewards by step.
    pub reward: RewardSchedule,
    /// The optimizer.
    #[serde(default)]
    pub optim: OptimConfig,
    /// The problems.
    pub data: ProblemData,
}

impl GrpoConfig {
    /// Whether parts of a response are told what they have done themselves.
    pub fn credits_parts(&self) -> bool {
        self.path_credit > 0.0 || self.summary_credit > 0.0
    }

    /// Sampling settings of this stage.
    pub fn sampling(&self, arm: &SamplingParams) -> SamplingParams {
        SamplingParams {
            temperature: self.temperature.unwrap_or(arm.temperature),
            num_paths: self.num_paths.unwrap_or(arm.num_paths),
            max_response_tokens: self.max_response_tokens.unwrap_or(arm.max_response_tokens),
            structure: if self.fork { Structure::PathWindow } else { arm.structure },
            ..arm.clone()
        }
    }
}

/// How a GRPO loss is averaged over actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossType {
    /// Over each response, then over responses (the GRPO paper).
    Grpo,
    /// Over all actions of the batch (DAPO, arXiv 2503.14476; the official scripts of Parallel-R1).
    #[default]
    Dapo,
    /// Sum over actions, divided by responses x `max_response_tokens` (Dr. GRPO, arXiv 2503.20783).
    DrGrpo,
}

/// Demonstrations: generated ones of either family, a file, or a mix of such.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemonstrationData {
    /// Countdown tasks of the training split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub countdown: Option<CountdownSource>,
    /// Searches in one stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential: Option<SequentialOptions>,
    /// Searches in parallel paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<ParallelOptions>,
    /// Long arithmetic of the training split instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<ArithmeticSource>,
    /// Sums worked out in one stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<RepeatedOptions>,
    /// Sums worked out in parallel paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub independent: Option<IndependentOptions>,
    /// A JSONL or Parquet file instead, here or on the Hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Several of these instead, each with its share of every step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<DemonstrationData>,
    /// Its share of a mix, against those of the others.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub share: f32,
    /// The field of the file that holds the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_field: Option<String>,
    /// Only the rows of these levels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<String>,
}

impl DemonstrationData {
    /// The parts of a mix; itself where it is none.
    pub fn parts(&self) -> &[DemonstrationData] {
        if self.mix.is_empty() { std::slice::from_ref(self) } else { &self.mix }
    }

    pub(super) fn parts_mut(&mut self) -> &mut [DemonstrationData] {
        if self.mix.is_empty() { std::slice::from_mut(self) } else { &mut self.mix }
    }
}

/// Problems: generated tasks of either family, a file, or several tiers of any of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProblemData {
    /// Countdown tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub countdown: Option<CountdownSource>,
    /// Long arithmetic instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<ArithmeticSource>,
    /// A JSONL or Parquet file instead, here or on the Hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Only the rows of these levels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<String>,
    /// Only the first rows of the file (of those levels).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Tiers from easy to hard instead, each a file, a part of one, or generated tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierData>,
    /// Begin with the first tier and move on by solve rate, instead of mixing all of them from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progression: Option<Progression>,
}

impl ProblemData {
    /// All Countdown tasks in it.
    pub fn countdown(&self) -> impl Iterator<Item = &CountdownSource> {
        self.countdown.iter().chain(self.tiers.iter().filter_map(|tier| tier.countdown.as_ref()))
    }

    /// All long arithmetic in it.
    pub fn arithmetic(&self) -> impl Iterator<Item = &ArithmeticSource> {
        self.arithmetic.iter().chain(self.tiers.iter().filter_map(|tier| tier.arithmetic.as_ref()))
    }

    /// Whether all of it is generated, and so without end.
    pub fn is_endless(&self) -> bool {
        self.countdown().next().is_some() || self.arithmetic().next().is_some()
    }

    /// The files it reads.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.file.as_deref().into_iter().chain(self.tiers.iter().filter_map(|tier| tier.file.as_deref()))
    }

    pub(super) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.file.as_mut().into_iter().chain(self.tiers.iter_mut().filter_map(|tier| tier.file.as_mut()))
    }
}

/// One tier of problems: exactly one of `file`, `countdown` and `arithmetic`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierData {
    /// A JSONL or Parquet file, here or on the Hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Countdown tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub countdown: Option<CountdownSource>,
    /// Long arithmetic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<ArithmeticSource>,
    /// Only the rows of these levels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<String>,
    /// Only the first rows (of those levels).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Its share of a step's problems, against those of the other tiers; means nothing with a progression.
    #[serde(default = "one")]
    pub share: f32,
    /// Tokens of a response to its problems, at most; without it what the stage says. Tiers that are best answered in one
    /// stream need less room than those for paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_response_tokens: Option<usize>,
}

/// When to move on to the next tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Progression {
    /// The share of right responses to problems of the present tier, over `window` steps, from which on the next tier
    /// begins.
    pub solve_rate: f64,
    /// Steps that are averaged; those of the present tier alone count.
    pub window: usize,
    /// The share of a step's problems that stays with the easier tiers.
    pub keep: f64,
}

impl Default for Progression {
    fn default() -> Self {
        Self { solve_rate: 0.7, window: 5, keep: 0.2 }
    }
}

fn default_micro_batch() -> usize {
    4096
}

fn once() -> usize {
    1
}

fn ten() -> usize {
    10
}

fn default_epsilon() -> f32 {
    0.2
}

fn one() -> f32 {
    1.0
}

fn is_one(share: &f32) -> bool {
    *share == 1.0
}

fn yes() -> bool {
    true
}
