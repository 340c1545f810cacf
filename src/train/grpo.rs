//! Group-relative policy optimisation: sample a group of responses to each problem, compare each with its group, and
//! make the better ones likelier.
//!
//! How it differs from the paper (arXiv 2509.07980, section 3.3; official code on verl and vLLM):
//! 1. The engine samples from the function that the trainer differentiates, so the recorded log-probabilities are the
//!    old ones. Nothing is recomputed; the gap between the two is logged at each step.
//! 2. Only sampled tokens carry loss. Forced tags do not.
//! 3. The sets of legal control tokens at sampling are replayed in training.
//! 4. The responses of a group are one packed sequence below their shared prompt.
//! 5. Denominators count the actions of the whole batch, whatever the micro-batches.
//! 6. Groups whose rewards are all equal can be replaced by further problems (DAPO's dynamic sampling), in a bounded
//!    number of rounds; what is still equal after them is left out of the update.
//! 7. Responses to problems whose gold answer can't be read are left out, not counted wrong.

use std::time::Instant;

use candle_core::Tensor;

use super::Result;
use super::advantage::{advantages, all_equal};
use super::batch::{MicroBatch, Sequence, columns, split};
use super::curriculum::Session;
use super::loss::{ActionData, Clip, clip_fraction, policy_loss, response_weights};
use super::metrics::{StageId, StepMetrics};
use super::optim::{AdamW, Gradients};
use super::problems::Problems;
use super::recipe::GrpoConfig;
use crate::data::Problem;
use crate::engine::{EngineStats, Observer, SamplingParams};
use crate::eval::{Rollout, rollouts};
use crate::reward::Score;

/// Runs the stage from step `first` on (later than 0 after a resume).
pub fn grpo(
    session: &mut Session,
    stage: &StageId,
    config: &GrpoConfig,
    optim: &mut AdamW,
    first: usize,
) -> Result<()> {
    let problems = Problems::open(&config.data)?;
    let controls = session.model.controls()?;
    let sampling = SamplingParams { seed: stage.seed, ..config.sampling(&session.sampling) };
    let clip = Clip { epsilon_low: config.epsilon_low, epsilon_high: config.epsilon_high, beta: config.beta };
    let reference = session.reference.take();
    if sampling.top_p < 1.0 || sampling.top_k > 0 {
        session.message(
            "top_p or top_k cuts the sampled distribution, the trainer's is whole: gradients are biased",
        );
    }
    for step in first..config.steps {
        // Sample and judge.
        let started = Instant::now();
        let collected = collect(session, stage, &problems, config, &sampling, step)?;
        let sampled_after = started.elapsed().as_secs_f64();

        // Compare each response with its group.
        let mut sequences = Vec::new();
        let (mut advantage, mut old) = (Vec::new(), Vec::new());
        for group in collected.groups.iter().filter(|g| !all_equal(&g.rewards())) {
            for (response, value) in
                group.responses.iter().zip(advantages(&group.rewards(), config.scale_rewards))
            {
                let trace = &response.rollout.trace;
                if config.mask_truncated && trace.truncated() {
                    continue;
                }
                sequences.push(Sequence::from(trace));
                advantage.push(value);
                old.push(trace.logprobs.clone());
            }
        }

        // One update, micro-batch by micro-batch.
        let actions: Vec<usize> = sequences.iter().map(Sequence::actions).collect();
        let weights = response_weights(config.loss_type, &actions, sampling.max_response_tokens);
        let mut gradients = Gradients::default();
        let mut seen = Seen::default();
        for run in split(&sequences, config.micro_batch_tokens) {
            let micro = MicroBatch::new(&sequences, run)?;
            let each = |values: &[f32]| micro.actions().iter().map(|a| values[a.sequence]).collect();
            let reference = reference.as_ref().map(|r| micro.log_probs_frozen(r, &controls)).transpose()?;
            let data = ActionData {
                advantages: each(&advantage),
                old: micro.actions().iter().map(|a| old[a.sequence][a.token]).collect(),
                reference: reference.map(|(log_probs, _)| log_probs),
                weights: each(&weights),
            };
            let scored = micro.log_probs(&session.model.decoder, &controls)?; // [actions, 2]
            let log_probs = scored.narrow(1, 0, 1)?.squeeze(1)?;
            let loss = policy_loss(&log_probs, &data, clip)?;
            gradients.add(&session.model.decoder, &loss.backward()?)?;
            seen.add(&loss, &scored, &data, clip)?;
        }
        let lr = config.optim.rate(step, config.steps);
        let grad_norm = match sequences.is_empty() {
            true => 0.0,
            false => optim.step(&session.model.decoder, &gradients, &config.optim, lr)?,
        };

        // Report.
        let mut metrics = StepMetrics::new(stage, step);
        collected.report(&mut metrics);
        seen.report(&mut metrics);
        metrics.set("grad_norm", grad_norm);
        metrics.set("lr", lr);
        metrics.set("seconds_rollout", sampled_after);
        metrics.set("seconds", started.elapsed().as_secs_f64());
        session.run.append_traces(stage, step, &collected)?;
        session.after_step(stage, &metrics, optim)?;
    }
    Ok(())
}

/// A judged and scored response.
pub struct Response {
    /// The response.
    pub rollout: Rollout,
    /// Its reward.
    pub score: Score,
}

/// The responses to one problem.
pub struct Group {
    /// The problem.
    pub problem: Problem,
    /// Its responses.
    pub responses: Vec<Response>,
}

impl Group {
    /// Their rewards; `None` where the gold answer can't be read.
    pub fn rewards(&self) -> Vec<Option<f32>> {
        self.responses.iter().map(|r| r.score.correct.map(|_| r.score.reward)).collect()
    }
}

/// What a step has sampled.
pub struct Collected {
    /// The groups to learn from.
    pub groups: Vec<Group>,
    rounds: usize,
    equal: usize,
    stats: EngineStats,
}

struct Quiet;

impl Observer for Quiet {}

/// Samples groups until there are `prompts` that teach something, in at most `resample_rounds` further rounds.
fn collect(
    session: &Session,
    stage: &StageId,
    problems: &Problems,
    config: &GrpoConfig,
    sampling: &SamplingParams,
    step: usize,
) -> Result<Collected> {
    let mut collected = Collected { groups: vec![], rounds: 0, equal: 0, stats: EngineStats::default() };
    let mut spare = Vec::new();
    for round in 0..=config.resample_rounds {
        let number = step * (config.resample_rounds + 1) + round;
        let drawn = problems.draw(stage.seed, number, config.prompts)?;
        let first_id = (number * config.prompts) as u64;
        let (groups, stats) = rollouts(
            &session.model,
            &drawn,
            config.num_generations,
            first_id,
            sampling,
            session.engine,
            &mut Quiet,
        )?;
        collected.stats.merge(&stats);
        collected.rounds = round;
        for (problem, group) in drawn.into_iter().zip(groups) {
            let score =
                |rollout: Rollout| Response { score: config.reward.score(step, &rollout.judged), rollout };
            let group = Group { problem, responses: group.into_iter().map(score).collect() };
            if all_equal(&group.rewards()) {
                collected.equal += 1;
                spare.push(group);
            } else if collected.groups.len() < config.prompts {
                collected.groups.push(group);
            }
        }
        if collected.groups.len() == config.prompts {
            break;
        }
    }
    // Groups that teach nothing still tell how the model does.
    let missing = config.prompts - collected.groups.len();
    collected.groups.extend(spare.into_iter().take(missing));
    Ok(collected)
}

impl Collected {
    fn report(&self, metrics: &mut StepMetrics) {
        let responses: Vec<&Response> = self.groups.iter().flat_map(|g| &g.responses).collect();
        let mean = |f: &dyn Fn(&Response) -> f64| {
            responses.iter().map(|r| f(r)).sum::<f64>() / responses.len().max(1) as f64
        };
        metrics.set("reward", mean(&|r| f64::from(r.score.reward)));
        metrics.set("accuracy", mean(&|r| f64::from(r.score.correct == Some(true))));
        metrics.set("parallel_ratio", mean(&|r| f64::from(r.score.blocks > 0 && r.score.well_formed)));
        metrics.set("well_formed", mean(&|r| f64::from(r.score.well_formed)));
        let known: Vec<&&Response> = responses.iter().filter(|r| r.rollout.path_right.is_some()).collect();
        let found: Vec<&&&Response> = known.iter().filter(|r| r.rollout.path_right == Some(true)).collect();
        if !known.is_empty() {
            metrics.set("some_path_right", found.len() as f64 / known.len() as f64);
        }
        if !found.is_empty() {
            let right = found.iter().filter(|r| r.score.correct == Some(true)).count();
            metrics.set("answer_right_given_path", right as f64 / found.len() as f64);
        }
        metrics.set("response_tokens", mean(&|r| r.rollout.trace.response_tokens() as f64));
        metrics.set("critical_path_tokens", mean(&|r| r.rollout.trace.critical_path() as f64));
        metrics.set("truncated", mean(&|r| f64::from(r.rollout.trace.truncated())));
        metrics.set("cut_paths", mean(&|r| r.rollout.trace.cut_paths() as f64));
        metrics.set("equal_groups", self.equal as f64);
        metrics.set("resample_rounds", self.rounds as f64);
        metrics.set("sampled_tokens", self.stats.sampled_tokens as f64);
    }

    /// What is kept of a step for people to read: two responses to its first problem.
    pub fn samples(&self) -> impl Iterator<Item = (&Problem, &Response)> {
        self.groups.iter().take(1).flat_map(|g| g.responses.iter().take(2).map(|r| (&g.problem, r)))
    }
}

/// Sums over the actions of a step.
#[derive(Default)]
struct Seen {
    actions: usize,
    loss: f64,
    entropy: f64,
    gap: f64,
    largest_gap: f64,
    clipped: f64,
    kl: f64,
}

impl Seen {
    fn add(&mut self, loss: &Tensor, scored: &Tensor, data: &ActionData, clip: Clip) -> Result<()> {
        let (log_probs, entropies) = columns(scored)?;
        self.actions += log_probs.len();
        self.loss += f64::from(loss.to_scalar::<f32>()?);
        self.entropy += entropies.iter().map(|&e| f64::from(e)).sum::<f64>();
        for (now, old) in log_probs.iter().zip(&data.old) {
            let gap = f64::from((now - old).abs());
            self.gap += gap;
            self.largest_gap = self.largest_gap.max(gap);
        }
        self.clipped += clip_fraction(&log_probs, data, clip) * log_probs.len() as f64;
        for (now, reference) in log_probs.iter().zip(data.reference.iter().flatten()) {
            let gap = f64::from(reference - now);
            self.kl += gap.exp() - gap - 1.0;
        }
        Ok(())
    }

    fn report(&self, metrics: &mut StepMetrics) {
        let n = self.actions.max(1) as f64;
        metrics.set("loss", self.loss);
        metrics.set("entropy", self.entropy / n);
        metrics.set("log_prob_gap", self.gap / n);
        metrics.set("log_prob_gap_max", self.largest_gap);
        metrics.set("clip_fraction", self.clipped / n);
        metrics.set("kl", self.kl / n);
        metrics.set("actions", self.actions as f64);
    }
}
