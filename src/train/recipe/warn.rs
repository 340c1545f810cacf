//! What is possible in a recipe and known to go wrong. Each warning names its key and gives the reason.
//!
//! The ranges are those of the paper (arXiv 2509.07980, its code) and of what summaries of the method recommend. They are
//! for language models: the embedded model and models from random weights are a thousand times smaller and learn at
//! other rates, adapters too, so learning rates are looked at for whole real models only.

mod jumps;

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use jumps::Reached;

use super::{Arm, GrpoConfig, ProblemData, Recipe, SftConfig, Stage};
use crate::layout::Structure;
use crate::model::EMBEDDED;
use crate::reward::{Base, Measure};

/// Something that a user should know before the recipe runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The key in the recipe.
    pub key: String,
    /// What is known of it.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.text)
    }
}

/// Collects warnings below a key.
struct Found<'a> {
    key: String,
    all: &'a mut Vec<Warning>,
}

impl Found<'_> {
    fn below(&mut self, key: impl fmt::Display) -> Found<'_> {
        let key = if self.key.is_empty() { key.to_string() } else { format!("{}.{key}", self.key) };
        Found { key, all: self.all }
    }

    fn add(&mut self, key: &str, text: impl Into<String>) {
        let key = self.below(key).key;
        self.all.push(Warning { key, text: text.into() });
    }

    /// A number outside the range that is known to work.
    fn range(&mut self, key: &str, value: f64, low: f64, high: f64, reason: &str) {
        // What was read as f32 is not quite the number that was written.
        let close = 1e-6 * value.abs();
        if value + close < low || value - close > high {
            self.add(key, format!("{} is outside {} to {}: {reason}", shown(value), shown(low), shown(high)));
        }
    }
}

fn shown(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 { format!("{value:e}") } else { format!("{}", value as f32) }
}

impl Recipe {
    /// All warnings, in the order of the keys.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut all = Vec::new();
        let mut found = Found { key: String::new(), all: &mut all };
        self.sampling_warnings(&mut found);
        for (a, arm) in self.arms.iter().enumerate() {
            self.arm_warnings(arm, &mut found.below(format_args!("arms.{a}")));
        }
        self.evaluation_warnings(&mut found);
        all
    }

    /// Whether a whole language model is trained, for which published settings mean something.
    fn is_real(&self) -> bool {
        self.model.path != EMBEDDED && self.model.init.is_none() && self.model.lora.is_none()
    }

    fn grpo(&self) -> impl Iterator<Item = &GrpoConfig> {
        self.arms.iter().flat_map(|arm| &arm.stages).filter_map(|stage| stage.grpo.as_ref())
    }

    fn sampling_warnings(&self, found: &mut Found) {
        if self.grpo().next().is_none() {
            return;
        }
        let sampling = &self.sampling;
        found.range("sampling.temperature", sampling.temperature.into(), 0.7, 1.0, TEMPERATURE);
        found.range("sampling.top_p", sampling.top_p.into(), 0.9, 1.0, "it cuts off what should be explored");
        if sampling.top_p < 1.0 || sampling.top_k > 0 {
            let key = if sampling.top_k > 0 { "sampling.top_k" } else { "sampling.top_p" };
            found.add(key, CUT);
        }
        if self.arms.iter().any(|arm| arm.structure.is_some()) {
            found.range("sampling.num_paths", sampling.num_paths as f64, 2.0, 6.0, PATHS);
            found.range(
                "sampling.max_blocks",
                sampling.max_blocks as f64,
                1.0,
                4.0,
                "more blocks leave no room for an answer",
            );
        }
    }

    fn evaluation_warnings(&self, found: &mut Found) {
        let Some(evaluation) = &self.evaluation else { return };
        if let Some(paths) = evaluation.num_paths {
            found.range("evaluation.num_paths", paths as f64, 2.0, 10.0, "beyond it returns diminish");
        }
        let shown = self.arms.iter().flat_map(|arm| &arm.stages).filter_map(|s| s.sft.as_ref());
        let shown = shown.flat_map(|sft| sft.data.parts()).filter_map(|part| part.file.as_deref());
        let learned: HashSet<&Path> = shown.chain(self.rl_data().flat_map(ProblemData::files)).collect();
        for (i, file) in
            evaluation.files.iter().enumerate().filter(|(_, file)| learned.contains(file.as_path()))
        {
            let text = format!("{} is trained on too, so its accuracy says little", file.display());
            found.add(&format!("evaluation.files.{i}"), text);
        }
    }

    fn arm_warnings(&self, arm: &Arm, found: &mut Found) {
        let mut reached = Reached::default();
        let mut fine_tuned: Option<&SftConfig> = None;
        for (s, stage) in arm.stages.iter().enumerate() {
            let mut found = found.below(format_args!("stages.{s}"));
            reached.step(stage, &mut found);
            if let Some(sft) = &stage.sft {
                self.sft_warnings(sft, &mut found.below("sft"));
                fine_tuned = Some(sft);
            }
            if let Some(grpo) = &stage.grpo {
                if fine_tuned.is_none() && arm.structure.is_some() {
                    found.add("grpo", COLD);
                }
                if let Some(sft) = fine_tuned.filter(|sft| grpo.optim.lr > sft.optim.lr) {
                    let (rl, sft) = (shown(grpo.optim.lr), shown(sft.optim.lr));
                    found.add(
                        "grpo.optim.lr",
                        format!("{rl} is above the {sft} of fine-tuning: {RL_ABOVE_SFT}"),
                    );
                }
                self.grpo_warnings(arm, stage, grpo, &mut found.below("grpo"));
            }
        }
    }

    fn sft_warnings(&self, sft: &SftConfig, found: &mut Found) {
        if self.is_real() {
            found.range("optim.lr", sft.optim.lr, 1e-5, 5e-5, "slower teaches no format, faster forgets");
        }
        if let Some(epochs) = sft.epochs {
            found.range("epochs", epochs, 1.0, 5.0, "more repeats the rows by heart");
        }
    }

    fn grpo_warnings(&self, arm: &Arm, stage: &Stage, grpo: &GrpoConfig, found: &mut Found) {
        if self.is_real() {
            found.range(
                "optim.lr",
                grpo.optim.lr,
                1e-6,
                2e-5,
                "slower learns nothing in a few hundred steps, faster collapses",
            );
        }
        if let Some(epochs) = grpo.epochs {
            found.range("epochs", epochs, 1.0, 5.0, "3 to 5 a stage are usual, then the next tier");
        }
        let generations = grpo.num_generations as f64;
        found.range(
            "num_generations",
            generations,
            4.0,
            64.0,
            "small groups are often all right or all wrong",
        );
        found.range("epsilon_low", grpo.epsilon_low.into(), 0.1, 0.3, CLIP);
        found.range("epsilon_high", grpo.epsilon_high.into(), 0.1, 0.3, CLIP);
        if let Some(paths) = grpo.num_paths {
            found.range("num_paths", paths as f64, 2.0, 6.0, PATHS);
        }
        if grpo.temperature.is_some_and(|t| t != self.sampling.temperature) {
            found.add(
                "temperature",
                "it differs from sampling.temperature: held through training and evaluation, results compare",
            );
        }
        reward_warnings(arm, stage, grpo, self.is_real(), found);
    }
}

const CUT: &str =
    "it cuts the distribution that is sampled, not the one that is trained, so gradients are biased";
const TEMPERATURE: &str =
    "cooler sampling leaves the responses of a group alike, hotter sampling makes them senseless";
const PATHS: &str = "fewer paths explore nothing, more share the budget into pieces too short to finish";
const CLIP: &str = "0.2 below and 0.2 to 0.28 above are what the method was run with";
const COLD: &str = "reinforcement learning without a cold start: a base that never writes blocks is never rewarded for \
    one; put an `sft` stage before it, unless the base has learned the tags";
const RL_ABOVE_SFT: &str = "it undoes what fine-tuning has taught";
const NO_BLOCKS: &str = "it wants blocks, and the arm has no `structure`: every response earns -1";
const UNSEEN_EASY: &str = "reinforcement learning for blocks on easy problems hurts isolated paths (38.5 against 47.1 \
    on average in the paper, which skips this stage for them)";

fn reward_warnings(arm: &Arm, stage: &Stage, grpo: &GrpoConfig, real: bool, found: &mut Found) {
    let mut began = 0;
    for phase in grpo.reward.phases() {
        match phase.reward.base {
            Base::AccuracyXParallel if arm.structure.is_none() => {
                found.add("reward", NO_BLOCKS);
            }
            Base::AccuracyXParallel if arm.structure == Some(Structure::PathWindow) && real => {
                found.add("reward", UNSEEN_EASY);
            }
            Base::Tiered { bonus } | Base::Alternating { bonus, .. } => {
                found.range(
                    "reward.bonus",
                    bonus,
                    1.0,
                    2.0,
                    "below 1 blocks are punished, above 2 they matter more than being right",
                );
            }
            _ => {}
        }
        let end = phase.until.or(grpo.steps);
        if let (Base::Alternating { window, share, .. }, Some(end)) = (phase.reward.base, end)
            && end.saturating_sub(began) <= (share * window as f64).round() as usize
        {
            let name = &stage.name;
            found.add(
                "reward.window",
                format!("stage {name} ends before the first step with the tiered reward"),
            );
        }
        began = phase.until.unwrap_or(began);
        for bonus in &phase.reward.add {
            let name = bonus.kind.name();
            if bonus.hackable() {
                let text = format!(
                    "wrong answers earn `{name}` too (wrong_weight = {}), so the policy can be paid for form alone",
                    bonus.wrong_weight
                );
                found.add("reward.add", text);
            }
            if bonus.kind == Measure::Likeness && bonus.weight > 0.0 {
                found.add("reward.add", "`likeness` with a weight above 0 pays for paths that say the same");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMOKE: &str = include_str!("../../../recipes/countdown/smoke.toml");
    const DEFAULT: &str = include_str!("../../../recipes/countdown/default.toml");

    fn warnings(text: &str, overrides: &[&str]) -> Vec<String> {
        let overrides: Vec<String> = overrides.iter().map(|o| o.to_string()).collect();
        let recipe = Recipe::parse("test.toml", text, &overrides, Path::new("")).unwrap();
        recipe.warnings().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_recipes_that_are_compiled_in_have_none() {
        for text in [SMOKE, DEFAULT, include_str!("../../../recipes/countdown/base.toml")] {
            assert_eq!(warnings(text, &[]), Vec::<String>::new());
        }
    }

    #[test]
    fn published_settings_have_none_but_what_is_known_of_them() {
        let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes");
        let of = |file: &str| warnings(&std::fs::read_to_string(recipes.join(file)).unwrap(), &[]);
        for name in ["seen", "unseen-s1", "unseen-s2", "scaffold", "sequential"] {
            assert_eq!(of(&format!("paper/{name}.toml")), Vec::<String>::new(), "{name}");
        }
        let tutorial = of("tutorial/math.toml");
        assert!(tutorial.len() == 1 && tutorial[0].starts_with("sampling.top_p: "), "{tutorial:#?}");
    }

    /// Each known mistake, with the key it is found at and a word of its reason.
    #[test]
    fn every_warning_names_its_key_and_reason() {
        let real = "model.path=some/model";
        let adapter = "model.lora={r=8}";
        let early = "arms.0.stages.1.grpo.reward={kind=\"alternating\", window=10}";
        let hackable =
            "arms.0.stages.1.grpo.reward={kind=\"accuracy\", add=[{kind=\"format\", wrong_weight=0.5}]}";
        let alike = "arms.0.stages.1.grpo.reward={kind=\"accuracy\", add=[{kind=\"likeness\", weight=0.5}]}";
        for (overrides, key, reason) in [
            (vec!["arms.0.stages.0.sft.optim.lr=1e-6"], "arms.0.stages.1.grpo.optim.lr", "above the 1e-6"),
            (vec!["arms.0.stages.2.grpo.data.countdown.tiers=[\"4-hard\"]"], "arms.0.stages.2.data", "jump"),
            (
                vec!["arms.0.stages.1.grpo.num_generations=2"],
                "arms.0.stages.1.grpo.num_generations",
                "outside 4",
            ),
            (vec!["arms.0.stages.1.grpo.epsilon_high=0.5"], "arms.0.stages.1.grpo.epsilon_high", "0.28"),
            (vec!["arms.0.stages.1.grpo.epsilon_low=0.9"], "arms.0.stages.1.grpo.epsilon_low", "0.2"),
            (vec!["arms.0.stages.1.grpo.temperature=0.8"], "arms.0.stages.1.grpo.temperature", "held"),
            (vec!["arms.0.stages.1.grpo.num_paths=9"], "arms.0.stages.1.grpo.num_paths", "share the budget"),
            (vec!["sampling.temperature=0.3"], "sampling.temperature", "0.3 is outside 0.7 to 1"),
            (vec!["sampling.top_p=0.95"], "sampling.top_p", "biased"),
            (vec!["sampling.top_p=0.5"], "sampling.top_p", "explored"),
            (vec!["sampling.top_k=20"], "sampling.top_k", "biased"),
            (vec!["sampling.num_paths=8"], "sampling.num_paths", "share the budget"),
            (vec!["sampling.max_blocks=9"], "sampling.max_blocks", "room"),
            (vec!["evaluation.num_paths=20"], "evaluation.num_paths", "diminish"),
            (vec![hackable], "arms.0.stages.1.grpo.reward.add", "form alone"),
            (vec![alike], "arms.0.stages.1.grpo.reward.add", "say the same"),
            (vec![early], "arms.0.stages.1.grpo.reward.window", "before the first step"),
            (
                vec!["arms.0.stages.2.grpo.reward={kind=\"tiered\", bonus=5.0}"],
                "arms.0.stages.2.grpo.reward.bonus",
                "matter more",
            ),
            (
                vec!["arms.2.stages.1.grpo.reward=accuracy_x_parallel"],
                "arms.2.stages.1.grpo.reward",
                "no `structure`",
            ),
            (vec![real], "arms.0.stages.0.sft.optim.lr", "0.001 is outside 1e-5 to 5e-5"),
            (vec![real, "arms.0.stages.1.grpo.optim.lr=1e-4"], "arms.0.stages.1.grpo.optim.lr", "collapses"),
            (vec![real], "arms.0.stages.1.grpo.reward", "38.5"),
        ] {
            let found = warnings(SMOKE, &overrides);
            let fits =
                |warning: &&String| warning.starts_with(&format!("{key}: ")) && warning.contains(reason);
            assert_eq!(found.iter().filter(fits).count(), 1, "{overrides:?}: {found:#?}");
        }
        assert!(!warnings(SMOKE, &[real, adapter]).iter().any(|w| w.contains("optim.lr")));
    }

    #[test]
    fn reinforcement_learning_without_a_cold_start() {
        let stages = |arm: &str| {
            format!(
                "{arm}\n[[arms.stages]]\nname = \"easy\"\n[arms.stages.grpo]\nsteps = 1\nprompts = 2\n\
                 num_generations = 4\nreward = \"accuracy\"\ndata = {{ countdown = {{ tiers = [\"3\"] }} }}\n"
            )
        };
        let found = warnings(&stages("[[arms]]\nname = \"a\"\nstructure = \"path_window\""), &[]);
        assert!(
            found.len() == 1
                && found[0].starts_with("arms.0.stages.0.grpo: ")
                && found[0].contains("cold start")
        );
        // The sequential baseline of the paper starts from the base.
        assert_eq!(warnings(&stages("[[arms]]\nname = \"a\""), &[]), Vec::<String>::new());
    }

    #[test]
    fn files_and_levels_are_looked_at_too() {
        let recipe = "[[arms]]\nname = \"a\"\n[[arms.stages]]\nname = \"sft\"\n[arms.stages.sft]\nepochs = 9.0\n\
            batch_size = 2\ndata = { file = \"rows.jsonl\", levels = [\"1\"] }\n[[arms.stages]]\nname = \"easy\"\n\
            [arms.stages.grpo]\nepochs = 9.0\nprompts = 2\nnum_generations = 4\nreward = \"accuracy\"\n\
            optim = { lr = 1e-6 }\ndata = { tiers = [{ file = \"rows.jsonl\", levels = [\"2\"] }, \
            { file = \"more.jsonl\", levels = [\"4\"] }] }\n[evaluation]\nproblems = 1\nsamples = 1\nfiles = [\"more.jsonl\"]\n";
        let found = warnings(recipe, &[]).join("\n");
        for key in [
            "arms.0.stages.0.sft.epochs: 9",
            "arms.0.stages.1.grpo.epochs: 9",
            "arms.0.stages.1.data: a jump",
            "evaluation.files.0: ",
        ] {
            assert!(found.contains(key), "{key} in {found}");
        }
        assert_eq!(found.lines().count(), 4, "{found}");
        // One by one, each tier is met before the next; but 2 to 4 is still a jump.
        let climbing = recipe.replace("\"4\"", "\"3\"").replace("] }\n[eval", "], progression = {} }\n[eval");
        assert!(!warnings(&climbing, &[]).join("\n").contains("jump"));
        assert!(warnings(&climbing.replace("\"3\"", "\"4\""), &[]).join("\n").contains("jump"));
    }
}
