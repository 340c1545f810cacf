//! Runs a recipe: arm after arm, stage after stage, a checkpoint and an evaluation at the end of each.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use candle_core::Device;
use serde::{Deserialize, Serialize};

use super::checkpoint::{RunFolder, TrainerState, load_optimizer};
use super::metrics::{Sink, StageId, StepMetrics};
use super::optim::AdamW;
use super::recipe::{Arm, Recipe, Stage, StopRule, Tier};
use super::stop::Climb;
use super::{Result, TrainError, grpo, recipe, sft};
use crate::data::Problem;
use crate::engine::{EngineOptions, SamplingParams};
use crate::eval::benchmark::summarise;
use crate::eval::{Evaluation, Rollout, evaluate, rollouts};
use crate::layout::Structure;
use crate::model::{Decoder, ModelError, Pretrained};
use crate::prompt::{ChatTemplate, Tokenizer};
use crate::reward::External;

/// One arm in training: its model and where its records go.
pub struct Session<'a> {
    /// The model as it is now.
    pub model: Pretrained,
    /// How its paths see each other; `None` answers sequentially.
    pub structure: Option<Structure>,
    /// How its responses are sampled.
    pub sampling: SamplingParams,
    /// How much the engine takes on at a time.
    pub engine: EngineOptions,
    /// The run's folder.
    pub run: &'a RunFolder,
    /// The model as it was at the stage's start, for a stage with a KL term.
    pub reference: Option<Decoder>,
    sinks: &'a mut dyn Sink,
    /// The command that judges responses, if the recipe has one.
    external: &'a mut Option<External>,
    clock: Clock,
    save_every: usize,
    saved: Option<PathBuf>,
    /// What ends the present stage early, and the number of each of its steps that this looks at.
    stop: Option<StopRule>,
    history: Vec<f64>,
    /// Tokens that the present stage has sampled, or learned from.
    tokens: u64,
    /// Where the tiers of the present stage stand.
    pub(super) climb: Climb,
    /// Steps of the arm that are done.
    steps: usize,
}

/// Wall time of a run, over all resumes.
#[derive(Clone, Copy)]
struct Clock {
    started: Instant,
    before: f64,
}

impl Clock {
    const FILE: &'static str = "seconds.json";

    fn start(run: &RunFolder) -> Result<Self> {
        Ok(Self { started: Instant::now(), before: run.read_json(Self::FILE)?.unwrap_or(0.0) })
    }

    fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }
}

impl Session<'_> {
    /// Records a finished step; writes a checkpoint where one is due; stops where that was asked for. Returns whether the
    /// stage is over, because its steps are done or because of its stop rule.
    pub fn after_step(&mut self, stage: &StageId, metrics: &StepMetrics, optim: &AdamW) -> Result<bool> {
        self.sinks.step(metrics)?;
        self.run.write_json(Clock::FILE, &self.clock.seconds())?;
        self.steps = stage.steps_before + metrics.step;
        // The number that should rise: the share of right responses, or the mean log-likelihood of an action.
        self.history.extend(metrics.get("accuracy").or(metrics.get("nll").map(|nll| -nll)));
        self.tokens += metrics.get("sampled_tokens").or(metrics.get("tokens")).unwrap_or(0.0) as u64;
        let reason = self.stop.as_ref().and_then(|stop| stop.verdict(&self.history, self.tokens));
        let finished = metrics.step == stage.steps || reason.is_some();
        let cancelled = self.sinks.cancelled();
        let due = self.save_every > 0 && metrics.step.is_multiple_of(self.save_every);
        if finished || due || cancelled {
            let state = TrainerState {
                arm: stage.arm.clone(),
                stage: stage.index,
                step: metrics.step,
                total_steps: self.steps,
                optimizer_steps: optim.steps(),
                finished,
                history: self.history.clone(),
                tokens: self.tokens,
                climb: self.climb.clone(),
            };
            let place = self.run.save(&self.model, optim, &state)?;
            // Within a stage only the newest checkpoint is of use.
            if let Some(older) = self.saved.replace(place.clone()).filter(|older| *older != place) {
                std::fs::remove_dir_all(&older).map_err(|source| TrainError::File { path: older, source })?;
            }
        }
        if let Some(reason) = reason.filter(|_| metrics.step < stage.steps) {
            self.message(&format!("stage {} ends after step {}: {reason}", stage.name, metrics.step));
        }
        if cancelled { Err(TrainError::Cancelled) } else { Ok(finished) }
    }

    /// Has the external command judge groups of responses, if there is one. Returns what it says each is worth, and
    /// puts whether it is right into the rollouts.
    pub fn judge(
        &mut self,
        problems: &[Problem],
        groups: &mut [Vec<Rollout>],
    ) -> Result<Vec<Vec<Option<f32>>>> {
        judge(self.external, problems, groups)
    }

    /// Says something to whoever watches.
    pub fn message(&mut self, text: &str) {
        self.sinks.message(text);
    }
}

fn judge(
    external: &mut Option<External>,
    problems: &[Problem],
    groups: &mut [Vec<Rollout>],
) -> Result<Vec<Vec<Option<f32>>>> {
    let Some(external) = external else {
        return Ok(groups.iter().map(|group| vec![None; group.len()]).collect());
    };
    let asked: Vec<(&Problem, &str)> = problems
        .iter()
        .zip(groups.iter())
        .flat_map(|(problem, group)| group.iter().map(move |rollout| (problem, rollout.text.as_str())))
        .collect();
    let mut scores = external.judge(&asked)?.into_iter();
    let mut take = |rollout: &mut Rollout| {
        let said = scores.next()?;
        rollout.judged.correct = Some(said.correct);
        Some(said.score)
    };
    Ok(groups.iter_mut().map(|group| group.iter_mut().map(&mut take).collect()).collect())
}

/// Accuracies of one tier: a column for the base and for each evaluated stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TierResult {
    /// The tier.
    pub name: String,
    /// Its problems.
    pub problems: usize,
    /// Responses to each.
    pub samples: usize,
    /// Whether reinforcement learning used it.
    pub trained: bool,
    /// Mean accuracy over samples, 0 to 1, by column.
    #[serde(flatten)]
    pub accuracy: BTreeMap<String, f64>,
}

/// What a run has come to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Wall time, over all resumes.
    pub seconds: f64,
    /// The process's largest resident memory, where the system tells.
    pub peak_memory_bytes: Option<u64>,
    /// The columns of the tiers, in the order of the run.
    pub columns: Vec<String>,
    /// Results by tier.
    pub tiers: Vec<TierResult>,
}

/// Runs (or goes on with) a recipe in a run folder.
pub fn train(recipe: &Recipe, run: &RunFolder, sinks: &mut dyn Sink, device: &Device) -> Result<Summary> {
    if let Some(summary) = run.read_json("summary.json")? {
        return Ok(summary);
    }
    let recipe = &recipe.counted()?;
    let clock = Clock::start(run)?;
    let tiers = recipe.tiers()?;
    recipe.warnings().iter().for_each(|warning| sinks.message(&format!("warning: {warning}")));
    let mut external = recipe.external.as_ref().map(External::new);
    let mut columns = Columns { run, tiers: &tiers, recipe, results: vec![] };
    // Random weights answer nothing, at length.
    if !tiers.is_empty() && recipe.model.init.is_none() {
        let base = open_base(recipe, device)?;
        columns.evaluate("base", &base, &sampling(recipe, None), &mut external, sinks)?;
    }
    for (index, arm) in recipe.arms.iter().enumerate() {
        let newest = run.newest(arm)?;
        let model = match &newest {
            Some((folder, _)) => open_checkpoint(recipe, folder, device)?,
            None => open_arm_base(recipe, arm, device)?,
        };
        let mut session = Session {
            model,
            structure: arm.structure,
            sampling: sampling(recipe, arm.structure),
            engine: recipe.engine,
            run,
            reference: None,
            sinks,
            external: &mut external,
            clock,
            save_every: 0,
            saved: None,
            stop: None,
            history: vec![],
            tokens: 0,
            climb: Climb::default(),
            steps: newest.as_ref().map_or(0, |(_, at)| at.total_steps),
        };
        for (stage_index, stage) in arm.stages.iter().enumerate() {
            let newest = newest.as_ref();
            let here = newest.map(|(_, at)| at).filter(|at| at.stage == stage_index);
            let id = StageId {
                arm: arm.name.clone(),
                name: stage.name.clone(),
                index: stage_index,
                seed: stage_seed(recipe.seed, index, stage_index),
                steps: stage.steps(),
                steps_before: here.map_or(session.steps, TrainerState::steps_before),
            };
            run_stage(&mut session, recipe, arm, stage, &id, newest, device)?;
            if stage.evaluate {
                let column = column_name(index, arm, stage_index);
                let Session { model, sampling, external, sinks, .. } = &mut session;
                columns.evaluate(&column, model, sampling, external, *sinks)?;
            }
        }
    }
    let summary = Summary {
        seconds: clock.seconds(),
        peak_memory_bytes: peak_memory(),
        columns: columns.results.iter().map(|(name, _)| name.clone()).collect(),
        tiers: columns.tiers(),
    };
    run.write_json("summary.json", &summary)?;
    Ok(summary)
}

/// Runs what is left of a stage; `newest` is the checkpoint that the arm goes on from.
fn run_stage(
    session: &mut Session,
    recipe: &Recipe,
    arm: &Arm,
    stage: &Stage,
    id: &StageId,
    newest: Option<&(PathBuf, TrainerState)>,
    device: &Device,
) -> Result<()> {
    let done = newest.map_or(0, |(_, at)| match at.stage.cmp(&id.index) {
        Ordering::Less => 0,
        Ordering::Equal if at.finished => id.steps,
        Ordering::Equal => at.step,
        Ordering::Greater => id.steps,
    });
    if done >= id.steps {
        return Ok(());
    }
    let mut optim = AdamW::default();
    (session.saved, session.history, session.climb) = (None, vec![], Climb::default());
    session.tokens = 0;
    if let Some((folder, state)) = newest.filter(|(_, state)| state.stage == id.index) {
        session.saved = Some(folder.clone());
        optim = load_optimizer(folder, state, device)?;
        (session.history, session.climb) = (state.history.clone(), state.climb.clone());
        session.tokens = state.tokens;
    }
    session.save_every = stage.save_every;
    session.stop = stage.stop.clone();
    session.reference = match &stage.grpo {
        Some(config) if config.beta != 0.0 => Some(stage_start(session, recipe, arm, id, done, device)?),
        _ => None,
    };
    session.run.forget_after(id, done)?;
    session.sinks.begin(id, done)?;
    match (&stage.sft, &stage.grpo) {
        (Some(config), _) => sft::sft(session, id, config, &mut optim, done),
        (_, Some(config)) => grpo::grpo(session, id, config, &mut optim, done),
        (None, None) => Ok(()),
    }
}

/// Sampling settings of a run for paths of some structure.
pub fn sampling(recipe: &Recipe, structure: Option<Structure>) -> SamplingParams {
    SamplingParams { seed: recipe.seed, ..recipe::sampling(structure, &recipe.sampling) }
}

/// The base model of a recipe.
pub fn open_base(recipe: &Recipe, device: &Device) -> Result<Pretrained> {
    let Some(init) = &recipe.model.init else {
        return finish(recipe, Pretrained::open_to_train(&recipe.model.path, device)?);
    };
    let tokenizer = Tokenizer::characters();
    let decoder = Decoder::random(&init.config(tokenizer.vocab_size()), recipe.seed)?;
    let template = ChatTemplate::plain(&tokenizer);
    finish(recipe, Pretrained { decoder, tokenizer, template })
}

/// The model that an arm of a run has come to; `None` if it is not there yet.
pub fn open_final(
    recipe: &Recipe,
    run: &RunFolder,
    arm: &Arm,
    device: &Device,
) -> Result<Option<Pretrained>> {
    let newest = run.newest(arm)?;
    let done = newest.filter(|(_, at)| at.stage + 1 == arm.stages.len() && at.finished);
    done.map(|(folder, _)| open_checkpoint(recipe, &folder, device)).transpose()
}

/// A checkpoint of a run: a whole model, or an adapter of the base model.
fn open_checkpoint(recipe: &Recipe, folder: &Path, device: &Device) -> Result<Pretrained> {
    let model = Pretrained::from_folder(folder, device)?;
    finish(recipe, Pretrained { decoder: model.decoder.trainable()?, ..model })
}

/// A model as the recipe uses it.
fn finish(recipe: &Recipe, mut model: Pretrained) -> Result<Pretrained> {
    model.template.set_options(recipe.model.chat_options.clone()).map_err(ModelError::from)?;
    Ok(model.with_precision(recipe.model.precision)?)
}

/// The base model as an arm starts from it: with the tags if it has a structure, with an adapter if one is trained.
fn open_arm_base(recipe: &Recipe, arm: &Arm, device: &Device) -> Result<Pretrained> {
    let mut base = open_base(recipe, device)?;
    if arm.structure.is_some() {
        base = base.with_tags(recipe.seed)?;
        if let Some(by) = arm.path_rewind {
            base = base.with_path_rewind(by);
        }
    }
    if let Some(lora) = &recipe.model.lora {
        base = base.with_lora(lora, recipe.model.name(), recipe.seed)?;
    }
    Ok(base.with_precision(recipe.model.precision)?)
}

/// The weights at the start of a stage of which `done` steps are done.
fn stage_start(
    session: &Session,
    recipe: &Recipe,
    arm: &Arm,
    id: &StageId,
    done: usize,
    device: &Device,
) -> Result<Decoder> {
    if done == 0 {
        return Ok(session.model.decoder.copy()?);
    }
    let start = match id.steps_before {
        0 => open_arm_base(recipe, arm, device)?,
        steps => open_checkpoint(recipe, &session.run.at_step(&arm.name, steps), device)?,
    };
    Ok(start.decoder)
}

fn stage_seed(seed: u64, arm: usize, stage: usize) -> u64 {
    // Odd multipliers keep the streams of neighbouring seeds, arms and stages apart.
    seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add((arm as u64 + 1).wrapping_mul(0xBF58_476D_1CE4_E5B9))
        .wrapping_add((stage as u64 + 1).wrapping_mul(0x94D0_49BB_1331_11EB))
}

/// What an evaluation is called: `sft` after the first arm's fine-tuning, `ARM_rl` at the end of an arm that ends in
/// reinforcement learning, `ARM_STAGE` elsewhere.
pub fn column_name(arm_index: usize, arm: &Arm, stage: usize) -> String {
    let last = stage + 1 == arm.stages.len();
    let next_is_rl = arm.stages.get(stage + 1).is_some_and(|s: &Stage| s.grpo.is_some());
    match (&arm.stages[stage].sft, arm_index) {
        (Some(_), 0) if last || next_is_rl => "sft".into(),
        (None, _) if last => format!("{}_rl", arm.name),
        _ => format!("{}_{}", arm.name, arm.stages[stage].name),
    }
}

/// The evaluations of a run, kept on disk so that a resumed run does not repeat them.
struct Columns<'a> {
    run: &'a RunFolder,
    tiers: &'a [Tier],
    recipe: &'a Recipe,
    results: Vec<(String, BTreeMap<String, Evaluation>)>,
}

impl Columns<'_> {
    fn evaluate(
        &mut self,
        column: &str,
        model: &Pretrained,
        sampling: &SamplingParams,
        external: &mut Option<External>,
        sinks: &mut dyn Sink,
    ) -> Result<()> {
        let Some(config) = &self.recipe.evaluation else { return Ok(()) };
        let sampling =
            SamplingParams { num_paths: config.num_paths.unwrap_or(sampling.num_paths), ..sampling.clone() };
        let file = format!("evaluations/{column}.json");
        let kept: Option<BTreeMap<String, Evaluation>> = self.run.read_json(&file)?;
        let results = match kept.filter(|kept| self.fits(kept, config.samples)) {
            Some(kept) => kept,
            None => {
                let mut results = BTreeMap::new();
                for tier in self.tiers {
                    let what = format!("{column}, tier {}", tier.name);
                    if sinks.cancelled() {
                        return Err(TrainError::Cancelled);
                    }
                    let (problems, engine, samples) = (&tier.problems, self.recipe.engine, config.samples);
                    let result = if external.is_some() {
                        let (mut groups, _) =
                            rollouts(model, problems, samples, 0, &sampling, engine, &mut ())?;
                        judge(external, problems, &mut groups)?;
                        summarise(problems, &groups, samples)
                    } else {
                        let mut progress = |done, total| sinks.evaluating(&what, done, total);
                        evaluate(model, problems, samples, &sampling, engine, &mut progress)?
                    };
                    results.insert(tier.name.clone(), result);
                }
                self.run.write_json(&file, &results)?;
                results
            }
        };
        self.results.push((column.into(), results));
        Ok(())
    }

    /// Whether kept results are those of this recipe, which may have changed since.
    fn fits(&self, kept: &BTreeMap<String, Evaluation>, samples: usize) -> bool {
        let same = |tier: &Tier| {
            let problems = |e: &Evaluation| e.problems + e.skipped == tier.problems.len();
            kept.get(&tier.name).is_some_and(|e| e.samples == samples && problems(e))
        };
        self.tiers.len() == kept.len() && self.tiers.iter().all(same)
    }

    fn tiers(&self) -> Vec<TierResult> {
        let Some(config) = &self.recipe.evaluation else { return vec![] };
        let result = |tier: &Tier| {
            let accuracy = self.results.iter().map(|(c, results)| (c.clone(), results[&tier.name].mean_at_k));
            TierResult {
                name: tier.name.clone(),
                problems: tier.problems.len(),
                samples: config.samples,
                trained: tier.trained,
                accuracy: accuracy.collect(),
            }
        };
        self.tiers.iter().map(result).collect()
    }
}

/// The process's largest resident memory.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}
