//! A run folder, read as it is and again while it grows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use parallel_r1::eval::Evaluation;
use parallel_r1::train::curriculum::{Summary, column_name};
use parallel_r1::train::recipe::{self, Recipe};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::arm::{Arm, record};
use super::tail::{Change, Tail};
use super::traces::{Trace, Traces};
use crate::failure::Failure;

/// A larger recipe, summary or evaluation is none.
const LARGEST: u64 = 256 << 20;
/// The longest recipe that a page shows, in bytes.
const LONGEST_RECIPE: usize = 100_000;

/// A run folder as far as it has been read.
pub(crate) struct Run {
    folder: PathBuf,
    metrics: Tail,
    traces: Tail,
    arms: Vec<Arm>,
    kept: Traces,
    /// Lines that were no records.
    unreadable: usize,
}

/// What a page shows of a run.
#[derive(Serialize)]
pub(super) struct RunData {
    pub(super) name: String,
    pub(super) folder: String,
    /// Whether the run has come to its end.
    pub(super) finished: bool,
    seconds: Option<f64>,
    peak_memory_bytes: Option<u64>,
    model: Option<String>,
    seed: Option<u64>,
    recipe: String,
    /// What could not be read, and why.
    pub(super) notes: Vec<String>,
    pub(super) arms: Vec<Arm>,
    /// The evaluations in the order of the run.
    pub(super) columns: Vec<Column>,
    tiers: Vec<TierData>,
    traces: Vec<Trace>,
}

/// An evaluation.
#[derive(Default, Serialize)]
pub(super) struct Column {
    /// What the run calls it.
    pub(super) name: String,
    /// The arm, unless it is the base that all arms share.
    pub(super) arm: Option<String>,
    /// Steps of the arm before it.
    pub(super) step: usize,
    /// By tier; without the results by problem, which the page doesn't need.
    pub(super) tiers: BTreeMap<String, Evaluation>,
    /// With them, for the verdicts.
    #[serde(skip)]
    pub(super) full: BTreeMap<String, Evaluation>,
}

#[derive(Serialize)]
struct TierData {
    name: String,
    /// Whether reinforcement learning used it, where that is known.
    trained: Option<bool>,
}

impl Run {
    /// Reads a run folder.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        if !folder.join("recipe.toml").is_file() {
            return Err(Failure::error(
                format!("{}: expected the folder of a run, with a recipe.toml in it", folder.display()),
                "`parallel-r1 train` names its run folder; give that",
            ));
        }
        let mut run = Self::new(folder);
        run.refresh()?;
        Ok(run)
    }

    /// A folder that need not be there yet.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.into(),
            metrics: Tail::new(&folder.join("metrics.jsonl")),
            traces: Tail::new(&folder.join("traces.jsonl")),
            arms: vec![],
            kept: Traces::default(),
            unreadable: 0,
        }
    }

    /// Reads what has come since the last look.
    pub(crate) fn refresh(&mut self) -> anyhow::Result<()> {
        // A run that is resumed takes the records back that it will make again.
        if [self.metrics.look()?, self.traces.look()?].contains(&Change::Anew) {
            *self = Self::new(&self.folder.clone());
        }
        let (arms, kept, unreadable) = (&mut self.arms, &mut self.kept, &mut self.unreadable);
        self.metrics.read(|line| *unreadable += usize::from(!record(arms, line)))?;
        self.traces.read(|line| *unreadable += usize::from(!kept.push(line)))
    }

    /// What a page shows of it.
    pub(super) fn data(&self) -> anyhow::Result<RunData> {
        let mut notes = Vec::new();
        if self.unreadable > 0 {
            let message = "lines of metrics.jsonl and traces.jsonl that are no records";
            notes.push(format!("{message}: {}", self.unreadable));
        }
        let text = self.text("recipe.toml")?.unwrap_or_default();
        let recipe = Recipe::parse("recipe.toml", &text, &[], &self.folder);
        let recipe = recipe.map_err(|error| notes.push(format!("the recipe can't be read: {error}"))).ok();
        let summary: Option<Summary> = self.json("summary.json", &mut notes)?;
        let mut arms = self.arms.clone();
        recipe.iter().for_each(|recipe| describe(&mut arms, recipe));
        let columns = self.columns(&arms, recipe.as_ref(), &mut notes)?;
        Ok(RunData {
            name: self.name(),
            folder: self.folder.display().to_string(),
            finished: summary.is_some(),
            seconds: match &summary {
                Some(summary) => Some(summary.seconds),
                None => self.json("seconds.json", &mut notes)?,
            },
            peak_memory_bytes: summary.as_ref().and_then(|summary| summary.peak_memory_bytes),
            model: recipe.as_ref().map(|recipe| recipe.model.name().to_owned()),
            seed: recipe.as_ref().map(|recipe| recipe.seed),
            recipe: text[..text.floor_char_boundary(LONGEST_RECIPE)].to_owned(),
            tiers: tiers(&columns, summary.as_ref()),
            traces: self.kept.shown(&|arm, stage| {
                self.arms.iter().find(|known| known.name == arm).map_or(0, |arm| arm.before(stage))
            }),
            notes,
            arms,
            columns,
        })
    }

    fn name(&self) -> String {
        let absolute = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        absolute
            .file_name()
            .map_or_else(|| absolute.display().to_string(), |name| name.to_string_lossy().into())
    }

    /// The evaluations that are there: those of the recipe in its order, then any others.
    fn columns(
        &self,
        arms: &[Arm],
        recipe: Option<&Recipe>,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<Vec<Column>> {
        let mut columns = Vec::new();
        let mut known = places(recipe);
        let others =
            self.evaluations().into_iter().filter(|name| known.iter().all(|place| place.name != *name));
        let others: Vec<Place> = others.map(|name| Place { name, stage: None }).collect();
        known.extend(others);
        for Place { name, stage } in known {
            let file = format!("evaluations/{name}.json");
            let Some(full) = self.json::<BTreeMap<String, Evaluation>>(&file, notes)? else { continue };
            let without_rows =
                |(tier, e): (&String, &Evaluation)| (tier.clone(), Evaluation { rows: vec![], ..e.clone() });
            columns.push(Column {
                step: stage.as_ref().map_or(0, |(arm, stage)| steps_after(arms, arm, stage)),
                arm: stage.map(|(arm, _)| arm),
                tiers: full.iter().map(without_rows).collect(),
                full,
                name,
            });
        }
        Ok(columns)
    }

    /// The names of the evaluations that are there, in the order of letters.
    fn evaluations(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.join("evaluations")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> =
            names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect();
        names.sort();
        names
    }

    /// A file's text; `None` if there is no such file.
    fn text(&self, name: &str) -> anyhow::Result<Option<String>> {
        let path = self.folder.join(name);
        let Ok(about) = path.metadata() else { return Ok(None) };
        anyhow::ensure!(
            about.len() <= LARGEST,
            "{}: expected at most {LARGEST} bytes, got {}",
            path.display(),
            about.len()
        );
        std::fs::read_to_string(&path)
            .map(Some)
            .with_context(|| format!("{}: cannot be read", path.display()))
    }

    /// What a JSON file says; what is none is noted.
    fn json<T: DeserializeOwned>(&self, name: &str, notes: &mut Vec<String>) -> anyhow::Result<Option<T>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        Ok(serde_json::from_str(&text)
            .map_err(|error| notes.push(format!("{name} can't be read: {error}")))
            .ok())
    }
}

/// An evaluation by its name, and the arm and the stage that it comes after, if any.
struct Place {
    name: String,
    stage: Option<(String, String)>,
}

/// The evaluations of a recipe, in its order.
fn places(recipe: Option<&Recipe>) -> Vec<Place> {
    let mut places = vec![Place { name: "base".into(), stage: None }];
    for (index, arm) in recipe.iter().flat_map(|recipe| recipe.arms.iter().enumerate()) {
        let place = |(number, stage): (usize, &recipe::Stage)| Place {
            name: column_name(index, arm, number),
            stage: Some((arm.name.clone(), stage.name.clone())),
        };
        places.extend(arm.stages.iter().enumerate().map(place));
    }
    places
}

/// Steps that an arm had done after a stage.
fn steps_after(arms: &[Arm], arm: &str, stage: &str) -> usize {
    let arm = arms.iter().find(|known| known.name == arm);
    let stage = arm.and_then(|arm| arm.stages.iter().find(|known| known.name == stage));
    stage.map_or(0, |stage| stage.to)
}

/// Adds to the arms what the recipe says of them.
fn describe(arms: &mut [Arm], recipe: &Recipe) {
    for arm in arms {
        let Some(planned) = recipe.arms.iter().find(|planned| planned.name == arm.name) else { continue };
        arm.structure = planned.structure.and_then(|structure| word(&structure));
        for stage in &mut arm.stages {
            let Some(planned) = planned.stages.iter().find(|planned| planned.name == stage.name) else {
                continue;
            };
            // Epochs are not counted yet.
            stage.planned = Some(planned.steps()).filter(|&steps| steps > 0);
            stage.reward = planned.grpo.as_ref().and_then(|grpo| word(&grpo.reward));
        }
    }
}

/// How a recipe writes a setting: its word, or the word of its kind.
fn word(setting: &impl Serialize) -> Option<String> {
    let value = serde_json::to_value(setting).ok()?;
    if let Some(list) = value.as_array() {
        return Some(list.iter().filter_map(word).collect::<Vec<_>>().join(", then "));
    }
    value.as_str().or(value["kind"].as_str()).map(str::to_owned)
}

/// The tiers, as the summary or else the evaluations have them.
fn tiers(columns: &[Column], summary: Option<&Summary>) -> Vec<TierData> {
    let of_summary = summary.iter().flat_map(|summary| &summary.tiers);
    let mut tiers: Vec<TierData> =
        of_summary.map(|tier| TierData { name: tier.name.clone(), trained: Some(tier.trained) }).collect();
    for name in columns.iter().flat_map(|column| column.tiers.keys()) {
        if tiers.iter().all(|tier| tier.name != *name) {
            tiers.push(TierData { name: name.clone(), trained: None });
        }
    }
    tiers
}
