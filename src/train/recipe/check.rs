//! What makes a recipe impossible to run, or quietly other than it says. Every fault names its key.

use std::collections::HashSet;

use super::super::curriculum::column_name;
use super::{Arm, DemonstrationData, EvaluationConfig, GrpoConfig, ProblemData, Recipe, SftConfig, Stage};
use crate::engine::SamplingParams;
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

/// Data comes from one place, and only with the settings that this place has.
fn one_source(
    countdown: bool,
    file: bool,
    of_countdown: &[(&str, bool)],
    of_file: &[(&str, bool)],
) -> Checked {
    if countdown == file {
        return Err("data: expected exactly one of `countdown` and `file`".into());
    }
    let strangers = if countdown { of_file } else { of_countdown };
    match strangers.iter().find(|(_, set)| *set) {
        Some((key, _)) => {
            let other = if countdown { "file" } else { "countdown" };
            Err(format!("data.{key}: means something beside `{other}` only; remove it"))
        }
        None => Ok(()),
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
        if self.arms.is_empty() {
            return Err("arms: expected at least one, got none".into());
        }
        let mut columns = HashSet::from(["base".to_owned()]);
        for (a, arm) in self.arms.iter().enumerate() {
            name(&format!("arms.{a}.name"), &arm.name)?;
            if self.arms[..a].iter().any(|other| other.name == arm.name) {
                return Err(format!("arms.{a}.name: {:?} is the name of an earlier arm too", arm.name));
            }
            for (s, stage) in arm.stages.iter().enumerate() {
                stage.check(arm, &self.sampling).map_err(below(format_args!("arms.{a}.stages.{s}")))?;
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

impl EvaluationConfig {
    fn check(&self) -> Checked {
        count("problems", self.problems)?;
        count("samples", self.samples)?;
        if self.countdown.is_none() && self.files.is_empty() {
            return Err("countdown: expected `countdown`, `files`, or both".into());
        }
        if self.countdown.as_ref().is_some_and(|c| c.weights.is_some()) {
            return Err("countdown.weights: each tier is evaluated by itself; remove it".into());
        }
        let mut names = HashSet::new();
        let tiers = self.countdown.iter().flat_map(|c| &c.tiers).map(|tier| tier.name().to_owned());
        let stems = self.files.iter().filter_map(|f| Some(f.file_stem()?.to_string_lossy().into_owned()));
        match tiers.chain(stems).find(|name| !names.insert(name.clone())) {
            Some(name) => Err(format!("files: two tiers would be called {name:?}")),
            None => Ok(()),
        }
    }
}

impl Stage {
    fn check(&self, arm: &Arm, sampling: &SamplingParams) -> Checked {
        name("name", &self.name)?;
        match (&self.sft, &self.grpo) {
            (Some(sft), None) => sft.check(arm).map_err(below("sft")),
            (None, Some(grpo)) => grpo.check(&arm.sampling(sampling)).map_err(below("grpo")),
            _ => Err("sft: expected exactly one of `sft` and `grpo`".into()),
        }
    }
}

impl SftConfig {
    fn check(&self, arm: &Arm) -> Checked {
        count("batch_size", self.batch_size)?;
        count("micro_batch_tokens", self.micro_batch_tokens)?;
        within("summary_weight", self.summary_weight.into(), 0.0, 1e3)?;
        self.optim.check().map_err(below("optim"))?;
        self.data.check(arm)
    }
}

impl DemonstrationData {
    fn check(&self, arm: &Arm) -> Checked {
        let (sequential, parallel) = (self.sequential.is_some(), self.parallel.is_some());
        one_source(
            self.countdown.is_some(),
            self.file.is_some(),
            &[("sequential", sequential), ("parallel", parallel)],
            &[("response_field", self.response_field.is_some())],
        )?;
        if self.countdown.is_some() && sequential == parallel {
            return Err("data: expected exactly one of `sequential` and `parallel`".into());
        }
        if parallel && arm.structure.is_none() {
            return Err("data.parallel: the arm has no `structure`, so its model has no tags".into());
        }
        self.sequential.iter().try_for_each(|o| o.check()).map_err(|e| format!("data.sequential.{e}"))?;
        self.parallel.iter().try_for_each(|o| o.check()).map_err(|e| format!("data.parallel.{e}"))
    }
}

impl GrpoConfig {
    fn check(&self, arm: &SamplingParams) -> Checked {
        count("prompts", self.prompts)?;
        count("num_generations", self.num_generations)?;
        count("mini_batches", self.mini_batches)?;
        count("micro_batch_tokens", self.micro_batch_tokens)?;
        if self.num_generations < 2 {
            let got = self.num_generations;
            return Err(format!(
                "num_generations: expected at least 2 (a group is compared with itself), got {got}"
            ));
        }
        within("epsilon_low", self.epsilon_low.into(), 0.0, 1.0)?;
        within("epsilon_high", self.epsilon_high.into(), 0.0, 100.0)?;
        within("beta", self.beta.into(), 0.0, 100.0)?;
        let sampling = self.sampling(arm);
        sampling.validate().map_err(|e| e.to_string())?;
        if sampling.temperature == 0.0 {
            return Err("temperature: expected above 0 (the responses of a group must differ), got 0".into());
        }
        self.optim.check().map_err(below("optim"))?;
        self.data.check()
    }
}

impl ProblemData {
    fn check(&self) -> Checked {
        one_source(self.countdown.is_some(), self.file.is_some(), &[], &[("limit", self.limit.is_some())])?;
        self.limit.map_or(Ok(()), |limit| count("data.limit", limit))
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
