//! Which reward applies at which step, as a recipe writes it.
//!
//! ```toml
//! reward = "accuracy"
//! reward = { kind = "alternating", window = 10, share = 0.8, bonus = 1.2 }
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use super::Score;
use super::accuracy::{Judged, accuracy};
use super::parallel::{accuracy_x_parallel, tiered, uses_blocks};

/// The paper's values: S2 with W = 10, four fifths accuracy, and +1.2 for a right answer with blocks.
const WINDOW: usize = 10;
const SHARE: f64 = 0.8;
const BONUS: f64 = 1.2;

/// A reward by name, with its settings. The formulas stand at the head of [the module](super).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RewardConfig {
    /// +1 for a right answer, else -1.
    Accuracy,
    /// +1 for a right answer that used well-formed blocks, else -1.
    AccuracyXParallel,
    /// +1 for a right answer without blocks, `bonus` for one with well-formed blocks, else -1.
    Tiered {
        /// What a right answer with well-formed blocks earns.
        bonus: f64,
    },
    /// In each window of steps first `accuracy`, then `tiered`.
    Alternating {
        /// Steps in a window.
        window: usize,
        /// The part of each window, from 0 to 1, that uses `accuracy`; rounded to whole steps.
        share: f64,
        /// As in `tiered`.
        bonus: f64,
    },
}

/// A reward whose settings make no sense.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RewardError {
    /// The reward has no such setting.
    #[error("reward.{field}: `{kind}` has no such setting; remove it")]
    Superfluous {
        /// The reward.
        kind: &'static str,
        /// The setting.
        field: &'static str,
    },
    /// The value is outside its range.
    #[error("reward.{field}: expected {expected}, got {got}")]
    OutOfRange {
        /// The setting.
        field: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        got: f64,
    },
}

impl RewardConfig {
    /// Scores a response at a step of training, counted from 0.
    pub fn score(&self, step: usize, judged: &Judged) -> Score {
        let Judged { correct, blocks, well_formed } = *judged;
        let mut parts = BTreeMap::new();
        let reward = correct.map_or(0.0, |correct| {
            parts.insert("accuracy", accuracy(correct));
            let reward = self.reward(step, correct, judged);
            if !self.is_accuracy(step) {
                parts.insert("parallel", f32::from(uses_blocks(judged)));
                parts.insert("bonus", reward - accuracy(correct));
            }
            reward
        });
        Score { reward, parts, correct, blocks, well_formed }
    }

    fn reward(&self, step: usize, correct: bool, judged: &Judged) -> f32 {
        match *self {
            _ if self.is_accuracy(step) => accuracy(correct),
            Self::Accuracy => accuracy(correct),
            Self::AccuracyXParallel => accuracy_x_parallel(correct, judged),
            Self::Tiered { bonus } | Self::Alternating { bonus, .. } => tiered(correct, judged, bonus as f32),
        }
    }

    /// Whether this step is scored by accuracy alone.
    fn is_accuracy(&self, step: usize) -> bool {
        match *self {
            Self::Accuracy => true,
            Self::AccuracyXParallel | Self::Tiered { .. } => false,
            Self::Alternating { window, share, .. } => {
                step % window.max(1) < (share * window as f64).round() as usize
            }
        }
    }

    fn check(self) -> Result<Self, RewardError> {
        let fits = |field, expected, got: f64, fits: bool| {
            if fits { Ok(()) } else { Err(RewardError::OutOfRange { field, expected, got }) }
        };
        if let Self::Tiered { bonus } | Self::Alternating { bonus, .. } = self {
            fits("bonus", "a number above 0", bonus, bonus > 0.0 && bonus.is_finite())?;
        }
        if let Self::Alternating { window, share, .. } = self {
            fits("window", "at least 1 step", window as f64, window >= 1)?;
            fits("share", "a number from 0 to 1", share, (0.0..=1.0).contains(&share))?;
        }
        Ok(self)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Accuracy,
    AccuracyXParallel,
    Tiered,
    Alternating,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Accuracy => "accuracy",
            Kind::AccuracyXParallel => "accuracy_x_parallel",
            Kind::Tiered => "tiered",
            Kind::Alternating => "alternating",
        }
    }
}

/// The table as written, before the settings are matched with the kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    kind: Kind,
    window: Option<usize>,
    share: Option<f64>,
    bonus: Option<f64>,
}

impl TryFrom<Written> for RewardConfig {
    type Error = RewardError;

    fn try_from(written: Written) -> Result<Self, RewardError> {
        let Written { kind, window, share, bonus } = written;
        let alternates = kind == Kind::Alternating;
        for (field, given, known) in [
            ("window", window.is_some(), alternates),
            ("share", share.is_some(), alternates),
            ("bonus", bonus.is_some(), alternates || kind == Kind::Tiered),
        ] {
            if given && !known {
                return Err(RewardError::Superfluous { kind: kind.name(), field });
            }
        }
        let bonus = bonus.unwrap_or(BONUS);
        let config = match kind {
            Kind::Accuracy => Self::Accuracy,
            Kind::AccuracyXParallel => Self::AccuracyXParallel,
            Kind::Tiered => Self::Tiered { bonus },
            Kind::Alternating => {
                Self::Alternating { window: window.unwrap_or(WINDOW), share: share.unwrap_or(SHARE), bonus }
            }
        };
        config.check()
    }
}

impl From<Kind> for Written {
    fn from(kind: Kind) -> Self {
        Self { kind, window: None, share: None, bonus: None }
    }
}

/// Either form. (An untagged enum would read them too, but say nothing useful when neither fits.)
impl<'de> Deserialize<'de> for RewardConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = RewardConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a reward, or a table with its `kind` and settings")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<RewardConfig, E> {
        let kind = Kind::deserialize(StrDeserializer::new(name))?;
        Written::from(kind).try_into().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RewardConfig, A::Error> {
        let written = Written::deserialize(MapAccessDeserializer::new(map))?;
        written.try_into().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Stage {
        reward: RewardConfig,
    }

    fn read(line: &str) -> Result<RewardConfig, String> {
        toml::from_str::<Stage>(line).map(|stage| stage.reward).map_err(|e| e.to_string())
    }

    const S2: RewardConfig = RewardConfig::Alternating { window: 10, share: 0.8, bonus: 1.2 };

    #[test]
    fn as_written_in_a_recipe() {
        for (line, expected) in [
            ("reward = 'accuracy'", RewardConfig::Accuracy),
            ("reward = { kind = 'accuracy' }", RewardConfig::Accuracy),
            ("reward = 'accuracy_x_parallel'", RewardConfig::AccuracyXParallel),
            ("reward = 'tiered'", RewardConfig::Tiered { bonus: 1.2 }),
            ("reward = { kind = 'tiered', bonus = 2.0 }", RewardConfig::Tiered { bonus: 2.0 }),
            ("reward = 'alternating'", S2),
            ("reward = { kind = 'alternating', window = 10, share = 0.8, bonus = 1.2 }", S2),
        ] {
            assert_eq!(read(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn faults_name_the_field() {
        for (line, said) in [
            ("reward = 'accurate'", "accurate"),
            ("reward = 3", "the name of a reward"),
            ("reward = { window = 10 }", "kind"),
            ("reward = { kind = 'tiered', bonsu = 2.0 }", "bonsu"),
            ("reward = { kind = 'accuracy', bonus = 2.0 }", "reward.bonus: `accuracy` has no such setting"),
            ("reward = { kind = 'tiered', window = 5 }", "reward.window: `tiered` has no such setting"),
            ("reward = { kind = 'tiered', bonus = -1.0 }", "reward.bonus: expected a number above 0, got -1"),
            ("reward = { kind = 'tiered', bonus = inf }", "reward.bonus"),
            (
                "reward = { kind = 'alternating', window = 0 }",
                "reward.window: expected at least 1 step, got 0",
            ),
            (
                "reward = { kind = 'alternating', share = 1.5 }",
                "reward.share: expected a number from 0 to 1, got 1.5",
            ),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn written_and_read_again() {
        for config in [RewardConfig::Accuracy, RewardConfig::Tiered { bonus: 1.2 }, S2] {
            let text = toml::to_string(&BTreeMap::from([("reward", config)])).unwrap();
            assert_eq!(read(&text), Ok(config), "{text}");
        }
    }

    fn judged(correct: Option<bool>, blocks: usize) -> Judged {
        Judged { correct, blocks, well_formed: true }
    }

    #[test]
    fn eight_steps_of_accuracy_then_two_tiered() {
        let rewards: Vec<f32> = (0..20).map(|step| S2.score(step, &judged(Some(true), 1)).reward).collect();
        let window = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.2, 1.2];
        assert_eq!(rewards, [window, window].concat());
        for step in 0..20 {
            assert_eq!(S2.score(step, &judged(Some(true), 0)).reward, 1.0);
            assert_eq!(S2.score(step, &judged(Some(false), 1)).reward, -1.0);
        }
    }

    #[test]
    fn scores_say_what_they_are_made_of() {
        let score = S2.score(9, &judged(Some(true), 2));
        assert_eq!(
            (score.reward, score.correct, score.blocks, score.well_formed),
            (1.2, Some(true), 2, true)
        );
        assert_eq!(score.parts.keys().copied().collect::<Vec<_>>(), ["accuracy", "bonus", "parallel"]);
        assert!((score.parts["accuracy"] + score.parts["bonus"] - score.reward).abs() < 1e-6);
        assert_eq!(S2.score(0, &judged(Some(true), 2)).parts, BTreeMap::from([("accuracy", 1.0)]));
        let required = RewardConfig::AccuracyXParallel.score(0, &judged(Some(true), 0));
        assert_eq!((required.reward, required.parts["accuracy"]), (-1.0, 1.0));
    }

    #[test]
    fn an_unreadable_gold_scores_nothing() {
        let score = S2.score(9, &judged(None, 1));
        assert_eq!((score.reward, score.correct, score.parts.len()), (0.0, None, 0));
    }
}
