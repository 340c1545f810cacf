//! What a study compares, and on what: its TOML file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::train::recipe::{EvaluationConfig, Recipe, Tier};
use crate::train::{Result, TrainError};

/// A study, as its file says it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Seeds of training; each arm runs with each.
    pub seeds: Vec<u64>,
    /// The arm that the others are compared with.
    pub baseline: String,
    /// The tiers of the comparison at equal latency: the hardest one of each family.
    pub hardest: Vec<String>,
    /// B: the most generated tokens of an answer, the same for every arm.
    pub max_tokens: usize,
    /// L: the most tokens of an answer that follow one another, in the comparison at equal latency.
    pub critical_tokens: usize,
    /// Paths of a block at inference, besides as many as in training.
    #[serde(default)]
    pub more_paths: Vec<usize>,
    /// The held-out problems, and how often each is answered.
    pub evaluation: EvaluationConfig,
    /// What is compared.
    pub arms: Vec<StudyArm>,
}

/// One way of training.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyArm {
    /// Its name.
    pub name: String,
    /// A recipe with a single arm, beside the study's file.
    pub recipe: PathBuf,
    /// What the recipe says.
    #[serde(skip)]
    resolved: Option<Recipe>,
}

impl StudyArm {
    /// The recipe of one cell: with its seed, and without an evaluation of its own.
    pub fn recipe(&self, seed: u64) -> Recipe {
        let recipe = self.resolved.clone().expect("`Study::parse` reads the recipes");
        Recipe { seed, evaluation: None, ..recipe }
    }

    /// Whether its answers can have parallel blocks.
    pub fn is_parallel(&self) -> bool {
        self.recipe(0).arms[0].structure.is_some()
    }

    /// Paths of a block, as trained.
    pub fn num_paths(&self) -> usize {
        self.recipe(0).sampling.num_paths
    }
}

impl Study {
    /// Reads a study and the recipes of its arms, which are looked up in `folder`.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self> {
        let wrong = |reason: String| TrainError::Recipe { recipe: name.into(), reason };
        let mut study: Study = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
        for (i, arm) in study.arms.iter_mut().enumerate() {
            let file = folder.join(&arm.recipe);
            let text = std::fs::read_to_string(&file)
                .map_err(|e| wrong(format!("arms.{i}.recipe: {}: {e}", file.display())))?;
            let of_file = file.parent().unwrap_or(folder);
            let recipe = Recipe::parse(&file.display().to_string(), &text, &[], of_file)?;
            if recipe.arms.len() != 1 {
                let got = recipe.arms.len();
                return Err(wrong(format!("arms.{i}.recipe: expected a recipe with one arm, got {got}")));
            }
            arm.resolved = Some(recipe);
        }
        study.check().map_err(wrong)?;
        Ok(study)
    }

    fn check(&self) -> std::result::Result<(), String> {
        let different = |seeds: &[u64]| seeds.iter().collect::<HashSet<_>>().len() == seeds.len();
        if self.seeds.is_empty() || !different(&self.seeds) {
            return Err(format!("seeds: expected at least one, each once, got {:?}", self.seeds));
        }
        for (i, arm) in self.arms.iter().enumerate() {
            let sound = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if arm.name.is_empty() || !arm.name.chars().all(sound) {
                return Err(format!("arms.{i}.name: expected letters, digits, - and _, got {:?}", arm.name));
            }
            if self.arms[..i].iter().any(|other| other.name == arm.name) {
                return Err(format!("arms.{i}.name: {:?} is the name of an earlier arm too", arm.name));
            }
        }
        if self.arms.len() < 2 || !self.arms.iter().any(|arm| arm.name == self.baseline) {
            let names: Vec<&str> = self.arms.iter().map(|arm| arm.name.as_str()).collect();
            return Err(format!(
                "baseline: expected one of at least two arms, got {:?} of {names:?}",
                self.baseline
            ));
        }
        for (key, value) in [("max_tokens", self.max_tokens), ("critical_tokens", self.critical_tokens)] {
            if !(1..=1_000_000).contains(&value) {
                return Err(format!("{key}: expected 1 to 1000000, got {value}"));
            }
        }
        if let Some(paths) = self.more_paths.iter().find(|paths| !(2..=64).contains(*paths)) {
            return Err(format!("more_paths: expected 2 to 64, got {paths}"));
        }
        self.evaluation.check().map_err(|reason| format!("evaluation.{reason}"))?;
        let names = self.evaluation.generated_tiers();
        let known = !self.hardest.is_empty() && self.hardest.iter().all(|tier| names.contains(tier));
        if !self.evaluation.files.is_empty() || !known {
            return Err(format!(
                "hardest: expected some of the generated tiers {names:?}, and no `evaluation.files`, got {:?}",
                self.hardest
            ));
        }
        Ok(())
    }

    /// The arm that the others are compared with.
    pub fn baseline(&self) -> &StudyArm {
        self.arms.iter().find(|arm| arm.name == self.baseline).expect("a checked study has it")
    }

    /// The problems: the same for every arm and seed, held out from all training.
    pub fn tiers(&self) -> Result<Vec<Tier>> {
        let recipe = Recipe { evaluation: Some(self.evaluation.clone()), ..self.baseline().recipe(0) };
        recipe.tiers()
    }

    /// The numbers of paths that an arm answers with, first as many as in training.
    pub fn paths(&self, arm: &StudyArm) -> Vec<usize> {
        let more = self.more_paths.iter().copied().filter(|&paths| paths != arm.num_paths());
        let more: Vec<usize> = if arm.is_parallel() { more.collect() } else { vec![] };
        std::iter::once(arm.num_paths()).chain(more).collect()
    }

    /// Where a cell's run lies below the study's folder.
    pub fn cell(&self, out: &Path, arm: &StudyArm, seed: u64) -> PathBuf {
        out.join("cells").join(&arm.name).join(format!("seed-{seed}"))
    }

    /// Changes when the answers to the problems would: what was asked, how often and in how many tokens.
    pub fn fingerprint(&self, paths: usize) -> String {
        let asked = serde_json::json!([self.evaluation, self.max_tokens, paths]);
        format!("{:016x}", XxHash64::oneshot(0, asked.to_string().as_bytes()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A study of two arms whose recipes lie in `folder`.
    pub(in crate::study) fn text() -> String {
        r#"
seeds = [1, 2]
baseline = "sequential"
hardest = ["4"]
max_tokens = 100
critical_tokens = 50
more_paths = [6]
evaluation = { problems = 2, samples = 2, countdown = { tiers = ["3", "4"] } }
[[arms]]
name = "sequential"
recipe = "sequential.toml"
[[arms]]
name = "parallel"
recipe = "unseen-s1.toml"
"#
        .into()
    }

    pub(in crate::study) fn parse(text: &str) -> Result<Study> {
        Study::parse("study.toml", text, &Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes/countdown"))
    }

    #[test]
    fn a_study_knows_its_cells() {
        let study = parse(&text()).unwrap();
        let (sequential, parallel) = (&study.arms[0], &study.arms[1]);
        assert_eq!((study.paths(sequential), study.paths(parallel)), (vec![4], vec![4, 6]));
        assert_eq!(study.cell(Path::new("o"), parallel, 2), Path::new("o/cells/parallel/seed-2"));
        let recipe = parallel.recipe(7);
        assert!(recipe.seed == 7 && recipe.evaluation.is_none());
        let tiers: Vec<(String, bool)> =
            study.tiers().unwrap().into_iter().map(|tier| (tier.name, tier.trained)).collect();
        assert_eq!(tiers, [("3".into(), true), ("4".into(), true)]);
        let other = Study { max_tokens: 99, ..study.clone() };
        assert_ne!(study.fingerprint(4), other.fingerprint(4));
        assert_ne!(study.fingerprint(4), study.fingerprint(6));
        // More seeds or another latency need no new answers.
        let same = Study { seeds: vec![1], critical_tokens: 3, ..study.clone() };
        assert_eq!(study.fingerprint(4), same.fingerprint(4));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (old, new, expected) in [
            ("seeds = [1, 2]", "seeds = [1, 1]", "seeds: expected at least one, each once"),
            ("seeds = [1, 2]", "seeds = []", "seeds: expected at least one"),
            ("baseline = \"sequential\"", "baseline = \"s\"", "baseline: expected one of"),
            ("hardest = [\"4\"]", "hardest = [\"5\"]", "hardest: expected some of the generated tiers"),
            ("max_tokens = 100", "max_tokens = 0", "max_tokens: expected 1"),
            ("critical_tokens = 50", "critical_token = 50", "critical_token"),
            ("more_paths = [6]", "more_paths = [1]", "more_paths: expected 2 to 64, got 1"),
            ("problems = 2", "problems = 0", "evaluation.problems: expected 1"),
            ("unseen-s1.toml", "nowhere.toml", "arms.1.recipe:"),
            ("unseen-s1.toml", "default.toml", "arms.1.recipe: expected a recipe with one arm, got 2"),
            ("name = \"parallel\"", "name = \"sequential\"", "arms.1.name"),
            ("name = \"parallel\"", "name = \"../x\"", "arms.1.name: expected letters"),
        ] {
            let error = parse(&text().replace(old, new)).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with("study.toml: ") && error.contains(expected), "{new}: {error}");
        }
    }
}
