//! What makes a recipe impossible to run, or quietly other than it says. Every fault names its key.

use std::collections::HashSet;

use super::super::curriculum::column_name;
use super::{
    Arm, DemonstrationData, EvaluationConfig, GrpoConfig, ProblemData, Progression, Recipe, SftConfig, Stage,
    StopRule, TierData,
};
use crate::engine::SamplingParams;
use crate::layout::Structure;
use crate::prompt::tokenizer::MAX_PATH_REWIND;
use crate::reward::Base;
use crate::train::optim::OptimConfig;

/// The key and what is wrong with it.
type Checked = Result<(), String>;

fn below(key: impl std::fmt::Display) -> impl FnOnce(String) -> String {
    move |reason| format!("{key}.{reason}")
}

/// Beyond this a count is a slip; memory for it would run out.
const MOST: usize = 1_000_000;

fn count(key: &str, value: usize) -> Checked {
    if (1..=MOST).contains(&value) {
        Ok(())
    } else {
        Err(format!("{key}: expected 1 to {MOST}, got {value}"))
    }
}

fn within(key: &str, value: f64, low: f64, high: f64) -> Checked {
    if value >= low && value <= high {
        Ok(())
    } else {
        Err(format!("{key}: expected {low} to {high}, got {value}"))
    }
}

fn name(key: &str, name: &str) -> Checked {
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(sound) {
        Ok(())
    } else {
        Err(format!("{key}: expected letters, digits, - and _, got {name:?}"))
    }
}

/// Where data may come from: a name, whether it is given, and the settings that mean something beside it alone.
type Place<'a> = (&'a str, bool, &'a [(&'a str, bool)]);

/// Data comes from one place, and only with the settings that this place has.
fn one_place(places: &[Place]) -> Checked {
    if places.iter().filter(|(_, given, _)| *given).count() != 1 {
        let names: Vec<String> = places.iter().map(|(name, ..)| format!("`{name}`")).collect();
        let (last, others) = names.split_last().expect("data has some place");
        return Err(format!("expected exactly one of {} and {last}", others.join(", ")));
    }
    for (name, _, settings) in places.iter().filter(|(_, given, _)| !given) {
        if let Some((key, _)) = settings.iter().find(|(_, set)| *set) {
            return Err(format!("{key}: means something beside `{name}` only; remove it"));
        }
    }
    Ok(())
}

/// Both styles at once, or none.
fn one_style(given: bool, stream: (&str, bool), paths: (&str, bool)) -> Checked {
    match given && stream.1 == paths.1 {
        true => Err(format!("expected exactly one of `{}` and `{}`", stream.0, paths.0)),
        false => Ok(()),
    }
}

impl Recipe {
    /// Says what is wrong with the recipe.
    pub(super) fn check(&self) -> Checked {
        self.sampling.validate().map_err(|e| format!("sampling.{e}"))?;
        let defaults = SamplingParams::default();
        if self.sampling.seed != defaults.seed {
            return Err("sampling.seed: set `seed` at the top of the recipe instead".into());
        }
        if self.sampling.structure != defaults.structure {
            return Err("sampling.structure: set `structure` of an arm instead".into());
        }
        count("engine.max_batch", self.engine.max_batch)?;
        if let Some(init) = &self.model.init {
            init.config(1).check().map_err(below("model.init"))?;
        }
        if let Some(lora) = &self.model.lora {
            lora.check().map_err(below("model.lora"))?;
            if self.model.init.is_some() {
                return Err("model.lora: needs an existing model beside it; remove `model.init`".into());
            }
        }
        self.external.iter().try_for_each(|e| e.check()).map_err(below("external"))?;
        if self.arms.is_empty() {
            return Err("arms: expected at least one, got none".into());
        }
        let mut columns = HashSet::from(["base".to_owned()]);
        for (a, arm) in self.arms.iter().enumerate() {
            name(&format!("arms.{a}.name"), &arm.name)?;
            if self.arms[..a].iter().any(|other| other.name == arm.name) {
                return Err(format!("arms.{a}.name: {:?} is the name of an earlier arm too", arm.name));
            }
            arm.check_rewind().map_err(below(format_args!("arms.{a}")))?;
            for (s, stage) in arm.stages.iter().enumerate() {
                stage.check(arm, &self.sampling).map_err(below(format_args!("arms.{a}.stages.{s}")))?;
                if self.external.is_none() && stage.asks_external() {
                    return Err(format!(
                        "arms.{a}.stages.{s}.grpo.reward: `external` needs a command; add an [external] section"
                    ));
                }
                let column = column_name(a, arm, s);
                if stage.evaluate && !columns.insert(column.clone()) {
                    return Err(format!(
                        "arms.{a}.stages.{s}.name: its evaluation would be called {column:?}, as an earlier one; \
                         choose another name"
                    ));
                }
            }
        }
        self.evaluation.as_ref().map_or(Ok(()), |e| e.check().map_err(below("evaluation")))
    }
}

impl Arm {
    fn check_rewind(&self) -> Checked {
        let Some(by) = self.path_rewind else { return Ok(()) };
        if self.structure != Some(Structure::PathWindow) {
            return Err(
                "path_rewind: only the paths of structure = \"path_window\" have positions of their own"
                    .into(),
            );
        }
        within("path_rewind", by.into(), 0.0, MAX_PATH_REWIND.into())
    }
}

impl EvaluationConfig {
    pub(crate) fn check(&self) -> Checked {
        count("problems", self.problems)?;
        count("samples", self.samples)?;
        within("num_paths", self.num_paths.unwrap_or(1) as f64, 1.0, 1024.0)?;
        if self.countdown.is_none() && self.arithmetic.is_none() && self.files.is_empty() {
            return Err("countdown: expected `countdown`, `arithmetic`, `files`, or several of them".into());
        }
        let weighted = [
            ("countdown", self.countdown.as_ref().is_some_and(|c| c.weights.is_some())),
            ("arithmetic", self.arithmetic.as_ref().is_some_and(|a| a.weights.is_some())),
        ];
        if let Some((key, _)) = weighted.iter().find(|(_, weighted)| *weighted) {
            return Err(format!("{key}.weights: each tier is evaluated by itself; remove it"));
        }
        let mut names = HashSet::new();
        let of_files = (0..self.files.len()).map(|i| self.tier_name(i));
        match self.generated_tiers().into_iter().chain(of_files).find(|name| !names.insert(name.clone())) {
            Some(name) => Err(format!("files: two tiers would be called {name:?}")),
            None => Ok(()),
        }
    }
}

impl Stage {
    fn check(&self, arm: &Arm, sampling: &SamplingParams) -> Checked {
        name("name", &self.name)?;
        self.stop.iter().try_for_each(|s| s.check(self.grpo.is_some())).map_err(below("stop"))?;
        match (&self.sft, &self.grpo) {
            (Some(sft), None) => sft.check(arm).map_err(below("sft")),
            (None, Some(grpo)) => grpo.check(arm, &arm.sampling(sampling)).map_err(below("grpo")),
            _ => Err("sft: expected exactly one of `sft` and `grpo`".into()),
        }
    }

    fn asks_external(&self) -> bool {
        let phases = self.grpo.iter().flat_map(|grpo| grpo.reward.phases());
        phases.into_iter().any(|phase| phase.reward.base == Base::External)
    }
}

impl StopRule {
    fn check(&self, of_grpo: bool) -> Checked {
        if self.solve_rate.is_none() && self.plateau.is_none() && self.tokens.is_none() {
            return Err("solve_rate: expected this, `plateau`, `tokens`, or several of them, got none".into());
        }
        if self.solve_rate.is_some() && !of_grpo {
            return Err("solve_rate: fine-tuning solves nothing; use `plateau`".into());
        }
        within("solve_rate", self.solve_rate.unwrap_or(1.0), 0.0, 1.0)?;
        within("plateau", self.plateau.unwrap_or(0.0), -1e3, 1e3)?;
        count("window", self.window)
    }
}

/// Steps are said, or follow from epochs over rows.
fn steps_or_epochs(steps: Option<usize>, epochs: Option<f64>, endless: bool) -> Checked {
    match (steps, epochs) {
        (Some(_), None) => Ok(()),
        (None, Some(_)) if endless => Err("epochs: generated tasks have no end; set `steps` instead".into()),
        (None, Some(epochs)) => within("epochs", epochs, 1e-6, 1e4),
        _ => Err("steps: expected exactly one of `steps` and `epochs`".into()),
    }
}

impl SftConfig {
    fn check(&self, arm: &Arm) -> Checked {
        let endless = |part: &DemonstrationData| part.countdown.is_some() || part.arithmetic.is_some();
        steps_or_epochs(self.steps, self.epochs, self.data.parts().iter().any(endless))?;
        count("batch_size", self.batch_size)?;
        count("micro_batch_tokens", self.micro_batch_tokens)?;
        within("summary_weight", self.summary_weight.into(), 0.0, 1e3)?;
        self.optim.check().map_err(below("optim"))?;
        self.data.check(arm).map_err(|reason| nested("data", reason))
    }
}

/// A key below another one, or what is expected of that one itself.
fn nested(key: impl std::fmt::Display, reason: String) -> String {
    if reason.starts_with("expected") { format!("{key}: {reason}") } else { format!("{key}.{reason}") }
}

impl DemonstrationData {
    fn check(&self, arm: &Arm) -> Checked {
        if self.share != 1.0 {
            return Err("share: means something within `mix` only; remove it".into());
        }
        for (i, part) in self.mix.iter().enumerate() {
            within(&format!("mix.{i}.share"), part.share.into(), 1e-6, 1e6)?;
            let part_check =
                if part.mix.is_empty() { part.check_part(arm) } else { Err("mix: is one already".into()) };
            part_check.map_err(|reason| nested(format_args!("mix.{i}"), reason))?;
        }
        self.check_part(arm)
    }

    fn check_part(&self, arm: &Arm) -> Checked {
        let (sequential, parallel) = (self.sequential.is_some(), self.parallel.is_some());
        let (repeated, independent) = (self.repeated.is_some(), self.independent.is_some());
        one_place(&[
            ("countdown", self.countdown.is_some(), &[("sequential", sequential), ("parallel", parallel)]),
            (
                "arithmetic",
                self.arithmetic.is_some(),
                &[("repeated", repeated), ("independent", independent)],
            ),
            (
                "file",
                self.file.is_some(),
                &[("response_field", self.response_field.is_some()), ("levels", !self.levels.is_empty())],
            ),
            ("mix", !self.mix.is_empty(), &[]),
        ])?;
        one_style(self.countdown.is_some(), ("sequential", sequential), ("parallel", parallel))?;
        one_style(self.arithmetic.is_some(), ("repeated", repeated), ("independent", independent))?;
        for (key, given) in [("parallel", parallel), ("independent", independent)] {
            if given && arm.structure.is_none() {
                return Err(format!("{key}: the arm has no `structure`, so its model has no tags"));
            }
        }
        self.sequential.iter().try_for_each(|o| o.check()).map_err(|e| format!("sequential.{e}"))?;
        self.parallel.iter().try_for_each(|o| o.check()).map_err(|e| format!("parallel.{e}"))?;
        self.repeated.iter().try_for_each(|o| o.check()).map_err(|e| format!("repeated.{e}"))?;
        self.independent.iter().try_for_each(|o| o.check()).map_err(|e| format!("independent.{e}"))
    }
}

impl GrpoConfig {
    fn check(&self, arm: &Arm, of_arm: &SamplingParams) -> Checked {
        steps_or_epochs(self.steps, self.epochs, self.data.is_endless())?;
        count("prompts", self.prompts)?;
        count("num_generations", self.num_generations)?;
        count("mini_batches", self.mini_batches)?;
        count("num_iterations", self.num_iterations)?;
        count("micro_batch_tokens", self.micro_batch_tokens)?;
        if self.num_generations < 2 {
            let got = self.num_generations;
            return Err(format!(
                "num_generations: expected at least 2 (a group is compared with itself), got {got}"
            ));
        }
        within("epsilon_low", self.epsilon_low.into(), 0.0, 1.0)?;
        within("epsilon_high", self.epsilon_high.into(), 0.0, 100.0)?;
        within("dual_clip", self.dual_clip.unwrap_or(2.0).into(), 1.0, 1e6)?;
        within("beta", self.beta.into(), 0.0, 100.0)?;
        for (key, weight) in [("path_credit", self.path_credit), ("summary_credit", self.summary_credit)] {
            within(key, weight.into(), 0.0, 100.0)?;
            if weight > 0.0 && arm.structure.is_none() {
                return Err(format!("{key}: the arm has no `structure`, so its responses have no paths"));
            }
        }
        within("importance_cap", self.importance_cap.unwrap_or(1.0).into(), 1e-3, 1e6)?;
        if self.fork && arm.structure != Some(Structure::Causal) {
            return Err(
                "fork: the paths of this arm are concurrent anyway; it is for structure = \"causal\"".into(),
            );
        }
        if self.importance_cap.is_some() && !self.fork {
            return Err("importance_cap: means something beside `fork` only; remove it".into());
        }
        let sampling = self.sampling(of_arm);
        sampling.validate().map_err(|e| e.to_string())?;
        if sampling.temperature == 0.0 {
            return Err("temperature: expected above 0 (the responses of a group must differ), got 0".into());
        }
        self.optim.check().map_err(below("optim"))?;
        self.data.check(sampling.max_response_tokens).map_err(|reason| nested("data", reason))
    }
}

impl ProblemData {
    /// `of_stage`: tokens of a response in the stage, at most.
    fn check(&self, of_stage: usize) -> Checked {
        one_place(&[
            ("countdown", self.countdown.is_some(), &[]),
            ("arithmetic", self.arithmetic.is_some(), &[]),
            (
                "file",
                self.file.is_some(),
                &[("limit", self.limit.is_some()), ("levels", !self.levels.is_empty())],
            ),
            ("tiers", !self.tiers.is_empty(), &[]),
        ])?;
        self.limit.map_or(Ok(()), |limit| count("limit", limit))?;
        for (i, tier) in self.tiers.iter().enumerate() {
            tier.check(of_stage).map_err(|reason| nested(format_args!("tiers.{i}"), reason))?;
        }
        let Some(progression) = &self.progression else { return Ok(()) };
        let of_countdown =
            self.countdown.as_ref().map(|source| (source.tiers.len(), source.weights.is_some()));
        let of_arithmetic =
            self.arithmetic.as_ref().map(|source| (source.tiers.len(), source.weights.is_some()));
        let shared = self.tiers.iter().any(|tier| tier.share != 1.0);
        let (tiers, weighted) = of_countdown.or(of_arithmetic).unwrap_or((self.tiers.len(), shared));
        if tiers < 2 {
            return Err(format!("progression: expected at least two tiers to move through, got {tiers}"));
        }
        if weighted {
            let tiers = "remove the `weights` and `share` of the tiers";
            return Err(format!("progression: decides by itself what each tier gives; {tiers}"));
        }
        progression.check().map_err(below("progression"))
    }
}

impl TierData {
    fn check(&self, of_stage: usize) -> Checked {
        one_place(&[
            (
                "file",
                self.file.is_some(),
                &[("limit", self.limit.is_some()), ("levels", !self.levels.is_empty())],
            ),
            ("countdown", self.countdown.is_some(), &[]),
            ("arithmetic", self.arithmetic.is_some(), &[]),
        ])?;
        self.limit.map_or(Ok(()), |limit| count("limit", limit))?;
        self.max_response_tokens.map_or(Ok(()), |most| budget(most, of_stage))?;
        within("share", self.share.into(), 1e-6, 1e6)
    }
}

/// What a tier allows a response fits into what its stage does.
fn budget(most: usize, of_stage: usize) -> Checked {
    count("max_response_tokens", most)?;
    if most > of_stage {
        return Err(format!("max_response_tokens: expected at most the stage's {of_stage}, got {most}"));
    }
    Ok(())
}

impl Progression {
    fn check(&self) -> Checked {
        within("solve_rate", self.solve_rate, 0.0, 1.0)?;
        within("keep", self.keep, 0.0, 0.99)?;
        count("window", self.window)
    }
}

impl OptimConfig {
    fn check(&self) -> Checked {
        within("lr", self.lr, 0.0, 1.0)?;
        within("warmup", self.warmup, 0.0, 1.0)?;
        within("beta1", self.beta1, 0.0, 0.9999)?;
        within("beta2", self.beta2, 0.0, 0.99999)?;
        within("eps", self.eps, 1e-20, 1.0)?;
        within("weight_decay", self.weight_decay, 0.0, 10.0)?;
        within("max_grad_norm", self.max_grad_norm, 0.0, f64::MAX)
    }
}
