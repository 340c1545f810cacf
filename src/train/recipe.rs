//! A training recipe: what a TOML file says, checked before anything runs.
//!
//! A recipe names a base model and one or more *arms*. Each arm starts from the base and goes through its stages in
//! order; the end of each stage is a checkpoint from which the next starts.

mod check;
mod overrides;
mod stage;
mod warn;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Result, TrainError};
use crate::data::arithmetic::ArithmeticSource;
use crate::data::countdown::CountdownSource;
use crate::data::family::{Family, Source};
use crate::data::hub::{HubError, Kind, is_name};
use crate::data::{Problem, Split, load_problems};
use crate::engine::{EngineOptions, SamplingParams};
use crate::layout::Structure;
use crate::model::{Config, EMBEDDED, Info, LoraConfig, Precision, adapter_base};
use crate::reward::ExternalConfig;

pub use stage::{
    DemonstrationData, GrpoConfig, LossType, ProblemData, Progression, SftConfig, Stage, StopRule, TierData,
};
pub use warn::Warning;

/// A whole recipe.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Every random stream of the run starts here.
    #[serde(default)]
    pub seed: u64,
    /// The base model.
    #[serde(default)]
    pub model: ModelSource,
    /// How much the engine takes on at a time.
    #[serde(default)]
    pub engine: EngineOptions,
    /// How responses are sampled, in training and evaluation, unless a stage says otherwise.
    #[serde(default)]
    pub sampling: SamplingParams,
    /// A command that judges responses, in training and evaluation, instead of the comparison with the gold answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalConfig>,
    /// The models to train.
    pub arms: Vec<Arm>,
    /// What is measured before, between and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<EvaluationConfig>,
}

/// Where the base model comes from: an existing one, or random weights of given sizes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSource {
    /// `embedded`, a folder in Hugging Face form, a GGUF file, or a name on the Hub.
    pub path: String,
    /// In what forward and backward passes compute, here and in the engine. Trained weights are f32 either way.
    pub precision: Precision,
    /// Train an adapter (and the tags' rows) beside the fixed model instead of the whole model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora: Option<LoraConfig>,
    /// Start from random weights instead, with the character tokenizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<InitConfig>,
    /// Variables that the chat template reads besides the messages, like `enable_thinking` of Qwen 3.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub chat_options: Map<String, Value>,
    /// The name on the Hub that `path` was before its files were fetched.
    #[serde(skip)]
    hub_name: Option<String>,
}

impl ModelSource {
    /// The name that others find the model by: a name on the Hub, or a path.
    pub fn name(&self) -> &str {
        self.hub_name.as_deref().unwrap_or(&self.path)
    }
}

impl Default for ModelSource {
    fn default() -> Self {
        Self {
            path: EMBEDDED.into(),
            precision: Precision::F32,
            lora: None,
            init: None,
            chat_options: Map::new(),
            hub_name: None,
        }
    }
}

/// Sizes of a model that starts from random weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitConfig {
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the gated MLP.
    pub intermediate_size: usize,
    /// Decoder layers.
    pub num_hidden_layers: usize,
    /// Query heads; as many key/value heads.
    pub num_attention_heads: usize,
    /// The position limit.
    pub max_position_embeddings: usize,
}

impl InitConfig {
    /// The model's configuration for a vocabulary.
    pub fn config(&self, vocab: usize) -> Config {
        let (d, inner) = (self.hidden_size, self.intermediate_size);
        let sizes = Config::llama(vocab, d, inner, self.num_hidden_layers, self.num_attention_heads);
        Config { max_position_embeddings: self.max_position_embeddings, ..sizes }
    }
}

/// One model to train.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its name, in the run folder and in tables.
    pub name: String,
    /// How paths see each other; without it the model answers sequentially and gets no tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<Structure>,
    /// By how many positions its paths are moved back, so that they stand as near to the prompt as text without tags
    /// would: see [`Controls::path_rewind`](crate::prompt::Controls::path_rewind). The model keeps it. When absent, what
    /// the base says, which is 0 unless it was trained so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_rewind: Option<u32>,
    /// What it goes through.
    pub stages: Vec<Stage>,
}

impl Arm {
    /// Sampling settings of this arm: its structure, or none.
    pub fn sampling(&self, base: &SamplingParams) -> SamplingParams {
        sampling(self.structure, base)
    }
}

/// Sampling settings for paths of some structure, or for none.
pub fn sampling(structure: Option<Structure>, base: &SamplingParams) -> SamplingParams {
    match structure {
        Some(structure) => SamplingParams { structure, ..base.clone() },
        None => SamplingParams { max_blocks: 0, structure: Structure::Causal, ..base.clone() },
    }
}

/// What is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationConfig {
    /// Problems of each tier or file.
    pub problems: usize,
    /// Responses to each problem.
    pub samples: usize,
    /// Countdown tiers, from the test split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub countdown: Option<CountdownSource>,
    /// Tiers of long arithmetic, from the test split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<ArithmeticSource>,
    /// Files of problems, here or on the Hub, one tier each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
    /// Paths of a block in evaluation, where that is to be another number than in training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_paths: Option<usize>,
    /// The names on the Hub that some of `files` were before they were fetched.
    #[serde(skip)]
    hub_names: Vec<Option<String>>,
}

impl EvaluationConfig {
    /// The names of the generated tiers.
    pub fn generated_tiers(&self) -> Vec<String> {
        let countdown = self.countdown.iter().flat_map(|c| &c.tiers).map(|tier| tier.name().to_owned());
        let chains = self.arithmetic.iter().flat_map(|a| &a.tiers).map(|tier| tier.name().to_owned());
        countdown.chain(chains).collect()
    }

    /// What the tier of a file is called: after the repository on the Hub, or after the file.
    fn tier_name(&self, index: usize) -> String {
        let file = &self.files[index];
        let written = file.to_string_lossy();
        let fetched = self.hub_names.get(index).and_then(Option::as_deref);
        let on_hub = fetched.or(Some(&*written).filter(|name| is_name(Kind::DataSet, name)));
        let repository = on_hub.and_then(|name| name.split(['/', '@']).nth(1).map(str::to_owned));
        let stem = || file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        repository.or_else(stem).unwrap_or_default()
    }
}

/// A named set of test problems.
pub struct Tier {
    /// Its name.
    pub name: String,
    /// Its problems.
    pub problems: Vec<Problem>,
    /// Whether reinforcement learning of some arm used problems of its kind (Countdown tier, or source of the rows).
    pub trained: bool,
}

impl Recipe {
    /// Reads a recipe; `overrides` are `a.b=c` pairs in TOML's own notation (a bare word is a string, a number in
    /// the path is an index). Files in it are looked up beside the recipe, then in the
    /// current folder.
    pub fn parse(name: &str, text: &str, overrides: &[String], folder: &Path) -> Result<Self> {
        let wrong = |e: toml::de::Error| TrainError::Recipe { recipe: name.into(), reason: e.to_string() };
        let mut table: toml::Table = text.parse().map_err(wrong)?;
        for argument in overrides {
            overrides::apply(&mut table, argument)?;
        }
        // Through text again where nothing was overridden, so that errors point at the line.
        let mut recipe: Self =
            if overrides.is_empty() { toml::from_str(text) } else { table.try_into() }.map_err(wrong)?;
        recipe.resolve_files(folder);
        recipe.check().map_err(|reason| TrainError::Recipe { recipe: name.into(), reason })?;
        Ok(recipe)
    }

    fn resolve_files(&mut self, folder: &Path) {
        if let Some(external) = &mut self.external {
            let place = external.folder.clone().unwrap_or_default();
            let place = folder.join(place);
            external.folder = Some(std::path::absolute(&place).unwrap_or(place));
        }
        // Absolute, so that the run can be resumed from any folder.
        self.change_files(&mut |kind, name| {
            let (file, beside) = (PathBuf::from(name), folder.join(name));
            let found = match (beside.exists(), file.exists()) {
                (true, _) => beside,
                (false, true) => file,
                (false, false) if is_name(kind, name) => return Ok(file),
                (false, false) => beside,
            };
            Ok(std::path::absolute(&found).unwrap_or(found))
        })
        .unwrap_or_else(|never: std::convert::Infallible| match never {});
    }

    /// The recipe as it runs on this machine: `resolve` says which local file or folder a name on the Hub stands for (and
    /// returns what is none as it is), as [`Hub::resolve`](crate::data::hub::Hub::resolve) does.
    pub fn localised(
        &self,
        mut resolve: impl FnMut(Kind, &str) -> std::result::Result<PathBuf, HubError>,
    ) -> Result<Self> {
        let mut local = self.clone();
        local.change_files(&mut resolve)?;
        let recipe = || "the recipe with its files from the Hub".into();
        local.check().map_err(|reason| TrainError::Recipe { recipe: recipe(), reason })?;
        Ok(local)
    }

    /// Replaces each file and folder that the recipe names.
    fn change_files<E>(
        &mut self,
        change: &mut dyn FnMut(Kind, &str) -> std::result::Result<PathBuf, E>,
    ) -> std::result::Result<(), E> {
        if self.model.init.is_none() && self.model.path != EMBEDDED {
            let path = change(Kind::Model, &self.model.path)?.to_string_lossy().into_owned();
            let fetched = path != self.model.path && is_name(Kind::Model, &self.model.path);
            self.model.hub_name = fetched.then(|| self.model.path.clone());
            self.model.path = path;
        }
        let stages = self.arms.iter_mut().flat_map(|arm| &mut arm.stages);
        let files = stages.flat_map(|stage| {
            let shown = stage.sft.iter_mut().flat_map(|sft| sft.data.parts_mut());
            let shown = shown.filter_map(|part| part.file.as_mut());
            shown.chain(stage.grpo.iter_mut().flat_map(|grpo| grpo.data.files_mut()))
        });
        for file in files {
            *file = change(Kind::DataSet, &file.to_string_lossy())?;
        }
        if let Some(evaluation) = &mut self.evaluation {
            evaluation.hub_names.clear();
            for file in &mut evaluation.files {
                let written = file.to_string_lossy().into_owned();
                *file = change(Kind::DataSet, &written)?;
                let fetched = is_name(Kind::DataSet, &written) && *file != Path::new(&written);
                evaluation.hub_names.push(fetched.then_some(written));
            }
        }
        Ok(())
    }

    /// The recipe with each stage's epochs as steps, which takes the number of rows.
    pub fn counted(&self) -> Result<Self> {
        let mut counted = self.clone();
        for stage in counted.arms.iter_mut().flat_map(|arm| &mut arm.stages) {
            *stage = stage.counted()?;
        }
        Ok(counted)
    }

    /// Says what is wrong with the base model for this recipe, as far as its files tell without its weights.
    pub fn check_model(&self) -> Result<()> {
        let path = Path::new(&self.model.path);
        if self.model.init.is_some() || adapter_base(path)?.is_none() {
            return Ok(());
        }
        let wrong = |reason: &str| TrainError::Recipe {
            recipe: self.model.path.clone(),
            reason: format!("{reason}; merge it first (`model export`)"),
        };
        if self.model.lora.is_some() {
            return Err(wrong("model.lora: model.path is an adapter already"));
        }
        if self.arms.iter().any(|arm| arm.structure.is_some()) && !Info::read(&self.model.path)?.tags {
            return Err(wrong("model.path: an adapter without the tags, and an arm has a `structure`"));
        }
        Ok(())
    }

    /// The test problems of each tier.
    pub fn tiers(&self) -> Result<Vec<Tier>> {
        let Some(evaluation) = &self.evaluation else { return Ok(vec![]) };
        let mut tiers = Vec::new();
        let countdown = self.rl_data().flat_map(ProblemData::countdown);
        tiers.extend(self.generated(evaluation.countdown.as_ref(), countdown)?);
        let arithmetic = self.rl_data().flat_map(ProblemData::arithmetic);
        tiers.extend(self.generated(evaluation.arithmetic.as_ref(), arithmetic)?);
        let rl_sources = if evaluation.files.is_empty() { HashSet::new() } else { self.rl_sources()? };
        for (i, file) in evaluation.files.iter().enumerate() {
            let name = evaluation.tier_name(i);
            let mut problems = load_problems(file)?;
            problems.truncate(evaluation.problems);
            let trained = problems.first().is_some_and(|p| rl_sources.contains(&p.source));
            tiers.push(Tier { name, problems, trained });
        }
        Ok(tiers)
    }

    /// The test problems of each tier of a family.
    fn generated<'a, F: Family + 'a>(
        &self,
        tested: Option<&Source<F>>,
        trained: impl Iterator<Item = &'a Source<F>>,
    ) -> Result<Vec<Tier>> {
        let trained: Vec<F::Tier> = trained.flat_map(|source| source.tiers.iter().copied()).collect();
        let count = self.evaluation.as_ref().map_or(0, |evaluation| evaluation.problems);
        let tier = |source: Source<F>| {
            let problems = source.problems(Split::Test, self.seed, count)?;
            let tier = source.tiers[0];
            Ok(Tier { name: tier.to_string(), problems, trained: trained.contains(&tier) })
        };
        tested.into_iter().flat_map(Source::each).map(tier).collect()
    }

    /// The sources of the rows that reinforcement learning uses.
    fn rl_sources(&self) -> Result<HashSet<String>> {
        let rows = self
            .rl_data()
            .flat_map(ProblemData::files)
            .map(load_problems)
            .collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(rows.into_iter().flatten().map(|problem| problem.source).collect())
    }

    fn rl_data(&self) -> impl Iterator<Item = &ProblemData> {
        self.arms.iter().flat_map(|arm| &arm.stages).filter_map(|stage| Some(&stage.grpo.as_ref()?.data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMOKE: &str = include_str!("../../recipes/countdown/smoke.toml");

    fn parse(text: &str, overrides: &[&str]) -> Result<Recipe> {
        let overrides: Vec<String> = overrides.iter().map(|s| s.to_string()).collect();
        Recipe::parse("test.toml", text, &overrides, Path::new(""))
    }

    fn message(text: &str, overrides: &[&str]) -> String {
        parse(text, overrides).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn every_recipe_in_the_repository_is_sound() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes");
        let mut count = 0;
        // cold-start/ holds prompts and prices for `data cold-start`.
        let is_family = |e: &std::fs::DirEntry| e.path().is_dir() && e.file_name() != "cold-start";
        for family in std::fs::read_dir(folder).unwrap().flatten().filter(is_family) {
            let is_recipe = |e: &std::fs::DirEntry| e.path().extension().is_some_and(|e| e == "toml");
            for file in std::fs::read_dir(family.path()).unwrap().flatten().filter(is_recipe) {
                let text = std::fs::read_to_string(file.path()).unwrap();
                let name = file.path().display().to_string();
                Recipe::parse(&name, &text, &[], &family.path()).unwrap_or_else(|e| panic!("{e}"));
                count += 1;
            }
        }
        assert!(count >= 16, "{count} recipes");
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let text = SMOKE.replace("num_paths = 3", "num_path = 3");
        let message = message(&text, &[]);
        assert!(
            message.contains("num_path") && message.contains("test.toml") && message.contains('|'),
            "{message}"
        );
    }

    #[test]
    fn overrides_change_numbers_words_and_list_entries() {
        let recipe = parse(
            SMOKE,
            &[
                "seed=7",
                "arms.0.stages.0.sft.steps=9",
                "model.path=somewhere",
                "sampling.path_temperature=0.5",
            ],
        )
        .unwrap();
        assert_eq!(recipe.seed, 7);
        assert_eq!(recipe.arms[0].stages[0].steps(), 9);
        assert!(Path::new(&recipe.model.path).ends_with("somewhere"), "{}", recipe.model.path);
        assert_eq!(recipe.sampling.path_temperature, Some(0.5));
    }

    #[test]
    fn names_on_the_hub_stay_names_until_the_run_starts() {
        let recipe = parse(
            SMOKE,
            &[
                "model.path=org/model",
                "evaluation.files=[\"org/rows\", \"org/more/test.jsonl@v1\", \"here/here.jsonl\", \"src\"]",
            ],
        )
        .unwrap();
        assert_eq!(recipe.model.path, "org/model");
        let files = &recipe.evaluation.as_ref().unwrap().files;
        assert_eq!(files[..2], [Path::new("org/rows"), Path::new("org/more/test.jsonl@v1")]);
        assert!(files[2..].iter().all(|file| file.is_absolute()), "{files:?}");
        let mut asked = Vec::new();
        let local = recipe.localised(|kind, name| {
            asked.push((kind, name.to_owned()));
            Ok(if is_name(kind, name) { Path::new("/cache").join(name) } else { name.into() })
        });
        let local = local.unwrap();
        assert_eq!((local.model.path.as_str(), local.model.name()), ("/cache/org/model", "org/model"));
        let evaluation = local.evaluation.unwrap();
        assert_eq!(evaluation.files[0], Path::new("/cache/org/rows"));
        let names: Vec<String> = (0..4).map(|i| evaluation.tier_name(i)).collect();
        assert_eq!(names, ["rows", "more", "here", "src"]);
        assert_eq!(asked[..2], [(Kind::Model, "org/model".into()), (Kind::DataSet, "org/rows".into())]);
        let twice = recipe.localised(|_, _| Ok("/cache/rows.jsonl".into())).unwrap_err().to_string();
        assert!(twice.contains("two tiers would be called \"rows\""), "{twice}");
    }

    #[test]
    fn chat_options_keep_their_types() {
        let options = "model.chat_options={enable_thinking=false, date_string=\"03 Feb 2025\"}";
        let recipe = parse(SMOKE, &[options]).unwrap();
        let again = parse(&toml::to_string(&recipe).unwrap(), &[]).unwrap();
        assert_eq!(again.model.chat_options["enable_thinking"], false);
        assert_eq!(again.model.chat_options["date_string"], "03 Feb 2025");
    }

    #[test]
    fn overrides_that_do_not_fit_say_why() {
        for (argument, word) in [
            ("seed", "key=value"),
            ("=3", "key before"),
            ("arms.9.name=x", "index below 3"),
            ("arms.x.name=x", "index below 3"),
            ("seed.x=1", "below a value"),
            ("sampling.num_pathz=1", "num_pathz"),
        ] {
            let message = message(SMOKE, &[argument]);
            assert!(message.contains(word), "{argument}: {message}");
        }
    }

    #[test]
    fn impossible_settings_name_the_key() {
        for (argument, word) in [
            ("arms=[]", "arms: expected at least one"),
            ("arms.1.name=parallel", "arms.1.name"),
            ("arms.1.name=a/b", "arms.1.name"),
            ("arms.0.stages.1.grpo.num_generations=1", "arms.0.stages.1.grpo.num_generations"),
            ("arms.0.stages.1.grpo.prompts=1000000000000", "arms.0.stages.1.grpo.prompts"),
            ("engine.max_batch=0", "engine.max_batch"),
            ("sampling.num_paths=9223372036854775806", "sampling.num_paths"),
            ("arms.0.stages.1.grpo.prompts=0", "arms.0.stages.1.grpo.prompts"),
            ("arms.0.stages.0.sft.batch_size=0", "arms.0.stages.0.sft.batch_size"),
            (
                "arms.0.stages.0.sft.data.file=x.jsonl",
                "exactly one of `countdown`, `arithmetic`, `file` and `mix`",
            ),
            ("arms.0.stages.0.sft.data.response_field=x", "data.response_field"),
            ("arms.0.stages.0.sft.summary_weight=-1", "summary_weight"),
            ("arms.0.stages.0.sft.optim.eps=0", "optim.eps"),
            ("arms.0.stages.0.sft.optim.beta2=1", "optim.beta2"),
            ("arms.0.stages.0.sft.optim.lr=nan", "optim.lr"),
            ("arms.0.stages.1.grpo.temperature=0", "arms.0.stages.1.grpo.temperature"),
            ("arms.0.stages.1.grpo.max_response_tokens=0", "max_response_tokens"),
            ("arms.0.stages.1.grpo.epsilon_low=-0.1", "epsilon_low"),
            ("arms.0.stages.1.grpo.data.limit=3", "data.limit"),
            ("arms.0.stages.1.name=rl", "choose another name"),
            (
                "model.init={hidden_size=3, intermediate_size=4, num_hidden_layers=1, num_attention_heads=4, \
              max_position_embeddings=8}",
                "model.init.head_dim",
            ),
            ("sampling.seed=3", "sampling.seed"),
            ("external.command=[]", "external.command"),
            ("arms.0.stages.1.grpo.reward=external", "needs a command"),
            ("arms.0.stages.0.stop={window=5}", "arms.0.stages.0.stop.solve_rate"),
            ("arms.0.stages.0.stop={solve_rate=0.5}", "fine-tuning solves nothing"),
            ("arms.0.stages.1.stop={solve_rate=1.5}", "arms.0.stages.1.stop.solve_rate"),
            ("arms.0.stages.1.stop={plateau=0.1, window=0}", "arms.0.stages.1.stop.window"),
            ("arms.0.stages.0.sft.epochs=1.0", "exactly one of `steps` and `epochs`"),
            (
                "arms.0.stages.1.grpo={epochs=1.0, prompts=1, num_generations=4, reward=\"accuracy\", \
              data={countdown={tiers=[\"3\"]}}}",
                "have no end",
            ),
            ("arms.0.stages.1.grpo.num_iterations=0", "num_iterations"),
            (
                "arms.0.stages.1.grpo.data={tiers=[{countdown={tiers=[\"3\"]}, max_response_tokens=100000}]}",
                "tiers.0.max_response_tokens: expected at most the stage's",
            ),
            ("arms.0.stages.1.grpo.summary_credit=-1", "summary_credit"),
            (
                "arms.0.stages.0.sft.data={arithmetic={tiers=[\"chain-2\"]}, independent={misread=2.0}}",
                "misread",
            ),
            ("arms.0.stages.1.grpo.dual_clip=0.5", "dual_clip"),
            ("arms.0.stages.1.grpo.scale_rewards=true", "scale_rewards"),
            ("arms.0.stages.1.grpo.num_paths=0", "num_paths"),
            ("arms.0.stages.1.grpo.fork=true", "it is for structure = \"causal\""),
            ("arms.0.stages.1.grpo.importance_cap=3.0", "beside `fork` only"),
            ("arms.0.stages.1.grpo.data.levels=[\"1\"]", "data.levels"),
            (
                "arms.0.stages.1.grpo.data.tiers=[{file=\"x.jsonl\"}]",
                "exactly one of `countdown`, `arithmetic`, `file` and `tiers`",
            ),
            ("arms.0.stages.1.grpo.data.progression={}", "at least two tiers"),
            ("arms.0.stages.2.grpo.data.progression.keep=1.0", "arms.0.stages.2.grpo.data.progression.keep"),
            (
                "arms.0.stages.2.grpo.data={countdown={tiers=[\"3\", \"4\"], weights=[1.0, 2.0]}, progression={}}",
                "decides by itself",
            ),
            ("arms.0.stages.0.sft.data.levels=[\"1\"]", "data.levels"),
            ("arms.0.stages.0.sft.data.share=2.0", "data.share: means something within `mix` only"),
            ("arms.0.stages.0.sft.data.repeated={}", "beside `arithmetic` only"),
            (
                "arms.0.stages.0.sft.data={arithmetic={tiers=[\"chain-2\"]}}",
                "of `repeated` and `independent`",
            ),
            (
                "arms.0.stages.0.sft.data={arithmetic={tiers=[\"chain-2\"]}, repeated={slip=2.0}}",
                "data.repeated.field `slip`",
            ),
            (
                "arms.2.stages.0.sft.data={arithmetic={tiers=[\"chain-2\"]}, independent={}}",
                "data.independent: the arm has no `structure`",
            ),
            ("arms.0.stages.0.sft.data={mix=[{file=\"x.jsonl\", share=-1.0}]}", "data.mix.0.share"),
            ("arms.0.stages.0.sft.data={mix=[{mix=[{file=\"x.jsonl\"}]}]}", "data.mix.0.mix: is one already"),
            ("arms.0.stages.0.sft.data={mix=[{levels=[\"1\"]}]}", "data.mix.0: expected exactly one of"),
            ("arms.0.stages.1.grpo.data={tiers=[{share=2.0}]}", "data.tiers.0: expected exactly one of"),
            (
                "arms.0.stages.1.grpo.data={tiers=[{arithmetic={tiers=[\"chain-2\"]}, limit=3}]}",
                "data.tiers.0.limit: means something beside `file` only",
            ),
            ("evaluation.arithmetic={tiers=[\"chain-2\"], weights=[1.0]}", "evaluation.arithmetic.weights"),
            ("evaluation.num_paths=0", "evaluation.num_paths"),
            ("sampling.structure=causal", "sampling.structure"),
            ("arms.0.path_rewind=65", "arms.0.path_rewind: expected 0 to 64, got 65"),
            ("arms.2.path_rewind=1", "arms.2.path_rewind: only the paths of"),
            ("evaluation.countdown.weights=[1.0, 2.0]", "evaluation.countdown.weights"),
            ("evaluation.countdown.tiers=[\"3\", \"3\"]", "two tiers"),
            ("arms.0.stages.0.sft.data.sequential.rounded=0.1", "exactly one of `sequential` and `parallel`"),
            ("arms.2.stages.0.name=a b", "arms.2.stages.0.name"),
            ("sampling.temperature=-1", "sampling.temperature"),
            ("evaluation.samples=0", "evaluation.samples"),
        ] {
            let message = message(SMOKE, &[argument]);
            assert!(message.contains(word), "{argument}: {message}");
        }
    }

    #[test]
    fn tiers_that_reinforcement_learning_used_are_marked() {
        let mut recipe = parse(SMOKE, &["evaluation.countdown.tiers=[\"3\", \"4-hard\"]"]).unwrap();
        let trained: Vec<bool> = recipe.tiers().unwrap().iter().map(|t| t.trained).collect();
        assert_eq!(trained, [true, false]);
        recipe.arms.clear();
        assert!(recipe.tiers().unwrap().iter().all(|t| !t.trained));
    }
}
