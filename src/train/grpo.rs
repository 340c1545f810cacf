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
//! 6. Mini-batches, like everything that is compared, are made of whole groups.
//! 7. Groups whose rewards are all equal can be replaced by further problems (DAPO's dynamic sampling), in a bounded
//!    number of rounds; what is still equal after them is left out of the update.
//! 8. Responses to problems whose gold answer can't be read are left out, not counted wrong.
//! 9. What is sampled with another structure than it is learned with (`fork`) has old log-probabilities of its own and
//!    truncated importance weights; see `fork`.
//! 10. A path's own verdict can count for its tokens (`path_credit`), and what a summary adds to its paths for those of the
//!     summary (`summary_credit`); see `credit`.

use std::time::Instant;

use candle_core::Tensor;

use super::Result;
use super::advantage::{advantages, all_equal};
use super::batch::{MicroBatch, Sequence, columns, split};
use super::credit::{credits, paths_differ};
use super::curriculum::Session;
use super::fork;
use super::loss::{ActionData, Clip, clip_fraction, policy_loss, response_weights};
use super::metrics::{StageId, StepMetrics};
use super::optim::AdamW;
use super::problems::{Drawn, Problems};
use super::recipe::GrpoConfig;
use crate::data::Problem;
use crate::engine::{EngineStats, SamplingParams};
use crate::eval::{Means, Rollout, rollouts, stats};
use crate::model::Gradients;
use crate::prompt::Controls;
use crate::reward::{Evidence, Score};

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
    let clip = Clip {
        epsilon_low: config.epsilon_low,
        epsilon_high: config.epsilon_high,
        dual: config.dual_clip,
        beta: config.beta,
    };
    let reference = session.reference.take();
    for step in first..stage.steps {
        // Sample and judge.
        let started = Instant::now();
        let collected = collect(session, stage, &problems, config, &sampling, step)?;
        let sampled_after = started.elapsed().as_secs_f64();

        // Update, mini-batch by mini-batch of whole groups. The first one sees the weights that sampled.
        let lr = config.optim.rate(step, stage.steps);
        let (mut seen, mut grad_norm, mut gradients) = (Seen::default(), 0.0f64, Gradients::default());
        let mut batches = compare(&collected.groups, config, &controls);
        let forked = match config.fork {
            true => Some(fork::reread(&mut batches, &session.model, &controls, config)?),
            false => None,
        };
        let passes = (0..config.num_iterations).flat_map(|_| &batches).enumerate();
        for (pass, Compared { sequences, advantages, credits, old, importance }) in passes {
            // Denominators before the first micro-batch.
            let actions: Vec<usize> = sequences.iter().map(Sequence::actions).collect();
            let weights = response_weights(config.loss_type, &actions, sampling.max_response_tokens);
            gradients.clear();
            for run in split(sequences, config.micro_batch_tokens) {
                let micro = MicroBatch::new(sequences, run)?.recomputing(config.recompute);
                let each = |values: &[f32]| micro.actions().iter().map(|a| values[a.sequence]).collect();
                let of_token = |values: &[Vec<f32>]| -> Vec<f32> {
                    micro.actions().iter().map(|a| values[a.sequence][a.token]).collect()
                };
                let reference =
                    reference.as_ref().map(|r| micro.log_probs_frozen(r, &controls)).transpose()?;
                let mut advantages: Vec<f32> = each(advantages);
                if config.credits_parts() {
                    advantages.iter_mut().zip(of_token(credits)).for_each(|(a, credit)| *a += credit);
                }
                if let Some(importance) = importance {
                    advantages.iter_mut().zip(of_token(importance)).for_each(|(a, weight)| *a *= weight);
                }
                let data = ActionData {
                    advantages,
                    old: of_token(old),
                    reference: reference.map(|(log_probs, _)| log_probs),
                    weights: each(&weights),
                };
                let scored = micro.score(&session.model.decoder, &controls)?;
                let log_probs = scored.pairs().narrow(1, 0, 1)?.squeeze(1)?; // [actions]
                let loss = policy_loss(&log_probs, &data, clip)?;
                seen.add(&loss, scored.pairs(), &data, clip, pass == 0)?;
                scored.backward(&loss, &mut gradients)?;
            }
            if !sequences.is_empty() {
                let norm = optim.step(&mut session.model.decoder, &gradients, &config.optim, lr)?;
                grad_norm = grad_norm.max(norm);
            }
        }

        // The next rollouts have its place.
        session.model.decoder.release_memory();

        // Report.
        let mut metrics = StepMetrics::new(stage, step);
        collected.report(&mut metrics);
        seen.report(&mut metrics);
        if let Some(forked) = forked {
            forked.report(&mut metrics);
        }
        let rate = collected.solve_rate(session.climb.tier);
        if problems.progression().is_some() {
            metrics.set("tier", session.climb.tier as f64);
            metrics.set("solve_rate", rate);
        }
        metrics.set("grad_norm", grad_norm);
        metrics.set("lr", lr);
        metrics.set("seconds_rollout", sampled_after);
        metrics.set("seconds", started.elapsed().as_secs_f64());
        session.run.append_traces(stage, step, &collected)?;
        if let Some(progression) = problems.progression()
            && session.climb.step(progression, problems.tiers(), rate)
        {
            session.message(&format!("tier {} begins after step {}", session.climb.tier + 1, step + 1));
        }
        if session.after_step(stage, &metrics, optim)? {
            break;
        }
    }
    Ok(())
}

/// Responses to learn from in one optimizer step. All vectors have one entry a response.
#[derive(Default)]
pub(super) struct Compared {
    pub(super) sequences: Vec<Sequence>,
    pub(super) advantages: Vec<f32>,
    /// What a token's own part of the response adds to them, by token; empty without credit for parts.
    pub(super) credits: Vec<Vec<f32>>,
    /// Log-probabilities before the update, by token.
    pub(super) old: Vec<Vec<f32>>,
    /// Importance weights, by token, where the sampler is not what is trained.
    pub(super) importance: Option<Vec<Vec<f32>>>,
}

/// Each response against its group: the mini-batches of a step, of whole groups. Groups are dealt in turn, since problems
/// come tier by tier: an optimizer step on one tier alone would undo what the one before it did for another.
fn compare(groups: &[Group], config: &GrpoConfig, controls: &Controls) -> Vec<Compared> {
    let rewards: Vec<Vec<Option<f32>>> = groups.iter().map(Group::rewards).collect();
    let advantages = advantages(&rewards, config.scale_rewards);
    let count = groups.len().min(config.mini_batches).max(1);
    let mut batches: Vec<Compared> = (0..count).map(|_| Compared::default()).collect();
    for (i, group) in groups.iter().enumerate() {
        let batch = &mut batches[i % count];
        let mut credits = match config.credits_parts() {
            true => credits(group, config, controls),
            false => vec![],
        }
        .into_iter();
        for (response, (reward, advantage)) in
            group.responses.iter().zip(rewards[i].iter().zip(&advantages[i]))
        {
            let credits = credits.next();
            let trace = &response.rollout.trace;
            if reward.is_some() && !(config.mask_truncated && trace.truncated()) {
                batch.sequences.push(Sequence::from(trace));
                batch.advantages.push(*advantage);
                batch.credits.extend(credits);
                batch.old.push(trace.logprobs.clone());
            }
        }
    }
    batches
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
    /// The tier that it was drawn from, counted from 0.
    pub tier: usize,
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
    /// Groups whose rewards are all equal, and what came after there were enough.
    left_out: Vec<Group>,
    rounds: usize,
    stats: EngineStats,
}

/// Samples until there are `prompts` groups that teach something, in at most `resample_rounds` further rounds.
fn collect(
    session: &mut Session,
    stage: &StageId,
    problems: &Problems,
    config: &GrpoConfig,
    sampling: &SamplingParams,
    step: usize,
) -> Result<Collected> {
    let mut collected =
        Collected { groups: vec![], left_out: vec![], rounds: 0, stats: EngineStats::default() };
    for round in 0..=config.resample_rounds {
        let number = step * (config.resample_rounds + 1) + round;
        let drawn = problems.draw(stage.seed, number, config.prompts, session.climb.tier)?;
        let (tiers, drawn): (Vec<usize>, Vec<Problem>) =
            drawn.into_iter().map(|Drawn { tier, problem }| (tier, problem)).unzip();
        // Tiers with budgets of their own are sampled apart.
        let budget = |tier| problems.max_response_tokens(tier).unwrap_or(sampling.max_response_tokens);
        let (mut groups, mut sampled) = (Vec::with_capacity(drawn.len()), 0);
        for run in tiers.chunk_by(|&a, &b| budget(a) == budget(b)) {
            let params = SamplingParams { max_response_tokens: budget(run[0]), ..sampling.clone() };
            let (first_id, n) = ((number * config.prompts + sampled) as u64, config.num_generations);
            let of_run = &drawn[sampled..sampled + run.len()];
            let (of_run, stats) =
                rollouts(&session.model, of_run, n, first_id, &params, session.engine, &mut ())?;
            groups.extend(of_run);
            collected.stats.merge(&stats);
            sampled += run.len();
        }
        collected.rounds = round;
        let scores = session.judge(&drawn, &mut groups)?;
        for (((problem, tier), group), scores) in drawn.into_iter().zip(tiers).zip(groups).zip(scores) {
            let score = |(rollout, score): (Rollout, Option<f32>)| {
                let seen = evidence(&problem, &rollout, score);
                Response { score: config.reward.score(step, &seen), rollout }
            };
            let responses = group.into_iter().zip(scores).map(score).collect();
            let group = Group { problem, tier, responses };
            let teaches = !all_equal(&group.rewards()) || config.credits_parts() && paths_differ(&group);
            if !teaches || collected.groups.len() == config.prompts {
                collected.left_out.push(group);
            } else {
                collected.groups.push(group);
            }
        }
        if collected.groups.len() == config.prompts {
            break;
        }
    }
    Ok(collected)
}

/// A response as rewards see it.
fn evidence<'a>(problem: &'a Problem, rollout: &'a Rollout, score: Option<f32>) -> Evidence<'a> {
    Evidence {
        problem,
        response: &rollout.text,
        judged: rollout.judged,
        total_tokens: rollout.trace.response_tokens(),
        critical_path_tokens: rollout.trace.critical_path(),
        score,
    }
}

impl Collected {
    /// The share of right responses to problems of a tier; 0 where there are none.
    fn solve_rate(&self, tier: usize) -> f64 {
        let groups = self.groups.iter().chain(&self.left_out).filter(|group| group.tier == tier);
        let correct = groups.flat_map(|group| &group.responses).filter_map(|r| r.score.correct);
        stats::mean(&correct.map(|c| f64::from(u8::from(c))).collect::<Vec<_>>()).unwrap_or(0.0)
    }

    /// Over everything that was sampled, also groups that the update leaves out.
    fn report(&self, metrics: &mut StepMetrics) {
        let responses = || self.groups.iter().chain(&self.left_out).flat_map(|group| &group.responses);
        let rewards: Vec<f64> =
            responses().filter(|r| r.score.correct.is_some()).map(|r| f64::from(r.score.reward)).collect();
        let means = Means::of(responses().map(|r| &r.rollout));
        metrics.set("reward", stats::mean(&rewards).unwrap_or(0.0));
        means.named().for_each(|(name, value)| metrics.set(name, value));
        for (name, metric) in PARTS {
            let parts: Vec<f64> =
                responses().filter_map(|r| r.score.parts.get(name)).map(|&part| f64::from(part)).collect();
            stats::mean(&parts).into_iter().for_each(|mean| metrics.set(metric, mean));
        }
        metrics.set("equal_groups", self.left_out.len() as f64);
        metrics.set("resample_rounds", self.rounds as f64);
        metrics.set("sampled_tokens", self.stats.sampled_tokens as f64);
    }

    /// What is kept of a step for people to read: two responses to its first problem.
    pub fn samples(&self) -> impl Iterator<Item = (&Problem, &Response)> {
        self.groups
            .iter()
            .chain(&self.left_out)
            .take(1)
            .flat_map(|g| g.responses.iter().take(2).map(|r| (&g.problem, r)))
    }
}

/// The parts of a score besides accuracy, and what the metrics call their means.
const PARTS: [(&str, &str); 9] = [
    ("bonus", "reward_bonus"),
    ("format", "reward_format"),
    ("likeness", "reward_likeness"),
    ("first_word", "reward_first_word"),
    ("efficiency", "reward_efficiency"),
    ("acceleration", "reward_acceleration"),
    ("verification", "reward_verification"),
    ("brevity", "reward_brevity"),
    ("clarity", "reward_clarity"),
];

/// Sums over the actions of a step.
#[derive(Default)]
struct Seen {
    actions: usize,
    /// Actions whose log-probability was compared with the engine's.
    compared: usize,
    loss: f64,
    entropy: f64,
    gap: f64,
    largest_gap: f64,
    clipped: f64,
    kl: f64,
}

impl Seen {
    /// `untouched`: the weights are those that sampled, so the log-probabilities should be the recorded ones.
    fn add(
        &mut self,
        loss: &Tensor,
        scored: &Tensor,
        data: &ActionData,
        clip: Clip,
        untouched: bool,
    ) -> Result<()> {
        let (log_probs, entropies) = columns(scored)?;
        self.actions += log_probs.len();
        self.loss += f64::from(loss.to_scalar::<f32>()?);
        self.entropy += entropies.iter().map(|&e| f64::from(e)).sum::<f64>();
        for (now, old) in log_probs.iter().zip(&data.old).filter(|_| untouched) {
            let gap = f64::from((now - old).abs());
            self.compared += 1;
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
        metrics.set("log_prob_gap", self.gap / self.compared.max(1) as f64);
        metrics.set("log_prob_gap_max", self.largest_gap);
        metrics.set("clip_fraction", self.clipped / n);
        metrics.set("kl", self.kl / n);
        metrics.set("actions", self.actions as f64);
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::data::{Split, countdown};
    use crate::engine::EngineOptions;
    use crate::model::Pretrained;

    #[test]
    fn mini_batches_are_of_whole_groups_dealt_in_turn() {
        let model = Pretrained::embedded(&Device::Cpu).unwrap();
        let problems = countdown::problems(countdown::Tier::Three, Split::Train, 1, 5).unwrap();
        let sampling = SamplingParams {
            max_response_tokens: 4,
            max_blocks: 0,
            structure: crate::layout::Structure::Causal,
            ..Default::default()
        };
        let (rolled, _) =
            rollouts(&model, &problems, 2, 0, &sampling, EngineOptions::default(), &mut ()).unwrap();
        let scored = |rollout: Rollout| Response {
            score: Score {
                reward: 0.0,
                parts: Default::default(),
                correct: Some(false),
                blocks: 0,
                well_formed: true,
            },
            rollout,
        };
        let group = |(problem, rollouts): (&Problem, Vec<Rollout>)| Group {
            problem: problem.clone(),
            tier: 0,
            responses: rollouts.into_iter().map(scored).collect(),
        };
        let groups: Vec<Group> = problems.iter().zip(rolled).map(group).collect();
        let recipe = "steps = 1\nprompts = 5\nnum_generations = 2\nmini_batches = 2\nreward = \"accuracy\"\n\
                      data = { countdown = { tiers = [\"3\"] } }";
        let config: GrpoConfig = toml::from_str(recipe).unwrap();
        let prompts = |batch: &Compared| -> Vec<Vec<u32>> {
            batch.sequences.iter().map(|s| s.tokens[..s.layout.segments()[0].len].to_vec()).collect()
        };
        let expected = |of: &[usize]| -> Vec<Vec<u32>> {
            of.iter().map(|&i| model.prompt(&problems[i].problem).unwrap()).collect()
        };
        let batches = compare(&groups, &config, &model.controls().unwrap());
        assert_eq!(prompts(&batches[0]), expected(&[0, 0, 2, 2, 4, 4]));
        assert_eq!(prompts(&batches[1]), expected(&[1, 1, 3, 3]));
        assert_eq!(compare(&groups[..1], &config, &model.controls().unwrap()).len(), 1);
    }
}
