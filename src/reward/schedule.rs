//! Which reward applies at which step, as a recipe writes it.
//!
//! ```toml
//! reward = "accuracy"
//! reward = { kind = "alternating", window = 10, share = 0.8, bonus = 1.2 }
//! reward = { kind = "tiered", bonus = 1.2, add = [{ kind = "likeness", weight = -0.2 }] }
//! reward = [{ kind = "alternating", until = 200 }, "accuracy"]
//! ```

mod written;

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use thiserror::Error;

use super::accuracy::accuracy;
use super::bonus::Bonus;
use super::parallel::{accuracy_x_parallel, tiered, uses_blocks};
use super::{Evidence, Score};

/// What a reward starts from. The formulas stand at the head of [the module](super).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Base {
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
    /// The score that the recipe's external command gives.
    External,
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
    /// A list of rewards whose steps don't follow one another.
    #[error("reward: {0}")]
    Order(&'static str),
}

/// Whether a number is in its range, which the caller has looked at.
pub(super) fn fits(
    field: &'static str,
    expected: &'static str,
    got: f64,
    fits: bool,
) -> Result<(), RewardError> {
    if fits { Ok(()) } else { Err(RewardError::OutOfRange { field, expected, got }) }
}

impl Base {
    fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::AccuracyXParallel => "accuracy_x_parallel",
            Self::Tiered { .. } => "tiered",
            Self::Alternating { .. } => "alternating",
            Self::External => "external",
        }
    }

    fn reward(self, step: usize, correct: bool, seen: &Evidence) -> f32 {
        match self {
            _ if self.is_accuracy(step) => accuracy(correct),
            Self::Accuracy => accuracy(correct),
            Self::AccuracyXParallel => accuracy_x_parallel(correct, &seen.judged),
            Self::Tiered { bonus } | Self::Alternating { bonus, .. } => {
                tiered(correct, &seen.judged, bonus as f32)
            }
            Self::External => seen.score.unwrap_or_default(),
        }
    }

    /// Whether this step is scored by accuracy alone.
    fn is_accuracy(self, step: usize) -> bool {
        match self {
            Self::Accuracy => true,
            Self::AccuracyXParallel | Self::Tiered { .. } | Self::External => false,
            Self::Alternating { window, share, .. } => {
                step % window.max(1) < (share * window as f64).round() as usize
            }
        }
    }

    fn check(self) -> Result<Self, RewardError> {
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

/// A base with its additions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RewardConfig {
    /// What it starts from.
    #[serde(flatten)]
    pub base: Base,
    /// What is added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<Bonus>,
}

impl RewardConfig {
    /// Scores a response at a step of training, counted from 0.
    pub fn score(&self, step: usize, seen: &Evidence) -> Score {
        let correct = seen.judged.correct;
        let mut parts = BTreeMap::new();
        let reward = correct.map_or(0.0, |correct| {
            let base = self.base.reward(step, correct, seen);
            parts.insert("accuracy", accuracy(correct));
            if !self.base.is_accuracy(step) {
                parts.insert("parallel", f32::from(uses_blocks(&seen.judged)));
                parts.insert("bonus", base - accuracy(correct));
            }
            let earned = |bonus: &Bonus| (bonus.kind.name(), bonus.earned(step, correct, seen));
            self.add.iter().map(earned).fold(base, |reward, (name, value)| {
                *parts.entry(name).or_default() += value;
                reward + value
            })
        });
        let (blocks, well_formed) = (seen.judged.blocks, seen.judged.well_formed);
        Score { reward, parts, correct, blocks, well_formed }
    }
}

/// A reward of a schedule, with the step at which the next one takes over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// The reward.
    #[serde(flatten)]
    pub reward: RewardConfig,
    /// The stage's step, counted from 0, at which the next phase begins; the last phase has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<usize>,
}

/// The rewards of a stage, one after the other; most stages have one.
#[derive(Clone, Debug, PartialEq)]
pub struct RewardSchedule(Vec<Phase>);

impl RewardSchedule {
    /// Scores a response at a step of the stage. Windows and decay count from where their phase began.
    pub fn score(&self, step: usize, seen: &Evidence) -> Score {
        let at = self.0.iter().position(|phase| phase.until.is_none_or(|until| step < until));
        let at = at.unwrap_or(self.0.len() - 1);
        let began = at.checked_sub(1).and_then(|before| self.0[before].until).unwrap_or(0);
        self.0[at].reward.score(step - began, seen)
    }

    /// The phases, in order; at least one.
    pub fn phases(&self) -> &[Phase] {
        &self.0
    }

    /// Whether some phase asks for blocks beyond their use: a right answer without one earns less.
    pub fn asks_for_blocks(&self) -> bool {
        self.0.iter().any(|phase| !matches!(phase.reward.base, Base::Accuracy | Base::External))
    }

    fn checked(phases: Vec<Phase>) -> Result<Self, RewardError> {
        let Some((last, before)) = phases.split_last() else {
            return Err(RewardError::Order("expected at least one reward, got an empty list"));
        };
        let ends: Option<Vec<usize>> = before.iter().map(|phase| phase.until).collect();
        let Some(ends) = ends else {
            return Err(RewardError::Order("all rewards of a list but the last need `until`"));
        };
        if last.until.is_some() {
            return Err(RewardError::Order("the last reward has no `until`: it stays to the end; remove it"));
        }
        if ends.first() == Some(&0) || ends.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(RewardError::Order(
                "each `until` must be later than the one before, the first after 0",
            ));
        }
        Ok(Self(phases))
    }
}

/// As it was written: one reward, or the list.
impl Serialize for RewardSchedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [only] => only.serialize(serializer),
            phases => phases.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{evidence, problem};
    use super::super::{Judged, Measure};
    use super::*;
    use crate::data::Problem;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    struct Stage {
        reward: RewardSchedule,
    }

    fn read(line: &str) -> Result<RewardSchedule, String> {
        toml::from_str::<Stage>(line).map(|stage| stage.reward).map_err(|e| e.to_string())
    }

    fn only(base: Base) -> RewardSchedule {
        RewardSchedule(vec![Phase { reward: RewardConfig { base, add: vec![] }, until: None }])
    }

    const S2: Base = Base::Alternating { window: 10, share: 0.8, bonus: 1.2 };

    #[test]
    fn as_written_in_a_recipe() {
        for (line, expected) in [
            ("reward = 'accuracy'", Base::Accuracy),
            ("reward = { kind = 'accuracy' }", Base::Accuracy),
            ("reward = 'accuracy_x_parallel'", Base::AccuracyXParallel),
            ("reward = 'tiered'", Base::Tiered { bonus: 1.2 }),
            ("reward = { kind = 'tiered', bonus = 2.0 }", Base::Tiered { bonus: 2.0 }),
            ("reward = 'alternating'", S2),
            ("reward = { kind = 'alternating', window = 10, share = 0.8, bonus = 1.2 }", S2),
            ("reward = ['alternating']", S2),
            ("reward = 'external'", Base::External),
        ] {
            assert_eq!(read(line), Ok(only(expected)), "{line}");
        }
        let diverse = read("reward = { kind = 'tiered', add = ['likeness', 'clarity'] }").unwrap();
        let measures: Vec<Measure> = diverse.phases()[0].reward.add.iter().map(|bonus| bonus.kind).collect();
        assert_eq!(measures, [Measure::Likeness, Measure::Clarity]);
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
            ("reward = { kind = 'accuracy', add = ['speed'] }", "speed"),
            ("reward = []", "expected at least one reward"),
            ("reward = ['accuracy', 'tiered']", "need `until`"),
            ("reward = { kind = 'accuracy', until = 5 }", "the last reward has no `until`"),
            ("reward = [{ kind = 'accuracy', until = 0 }, 'tiered']", "later than the one before"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn written_and_read_again() {
        for line in [
            "reward = 'accuracy'",
            "reward = 'alternating'",
            "reward = { kind = 'tiered', add = ['efficiency', { kind = 'format', decay = 5.0 }] }",
            "reward = [{ kind = 'alternating', until = 200, add = ['clarity'] }, 'accuracy']",
        ] {
            let schedule = read(line).unwrap();
            let text = toml::to_string(&BTreeMap::from([("reward", &schedule)])).unwrap();
            assert_eq!(read(&text), Ok(schedule), "{text}");
        }
    }

    fn seen(problem: &Problem, correct: Option<bool>, blocks: usize) -> Evidence<'_> {
        Evidence { judged: Judged { correct, blocks, well_formed: true }, ..evidence(problem, "") }
    }

    #[test]
    fn eight_steps_of_accuracy_then_two_tiered() {
        let (problem, s2) = (problem("?", "1"), only(S2));
        let rewards: Vec<f32> =
            (0..20).map(|step| s2.score(step, &seen(&problem, Some(true), 1)).reward).collect();
        let window = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.2, 1.2];
        assert_eq!(rewards, [window, window].concat());
        for step in 0..20 {
            assert_eq!(s2.score(step, &seen(&problem, Some(true), 0)).reward, 1.0);
            assert_eq!(s2.score(step, &seen(&problem, Some(false), 1)).reward, -1.0);
        }
    }

    #[test]
    fn phases_follow_one_another_and_count_from_their_beginning() {
        let problem = problem("?", "1");
        let schedule = read(
            "reward = [{ kind = 'accuracy', until = 3 }, { kind = 'alternating', window = 2, share = 0.5, \
             until = 7 }, { kind = 'tiered', bonus = 2.0 }]",
        );
        let schedule = schedule.unwrap();
        let rewards: Vec<f32> =
            (0..9).map(|step| schedule.score(step, &seen(&problem, Some(true), 1)).reward).collect();
        assert_eq!(rewards, [1.0, 1.0, 1.0, 1.0, 1.2, 1.0, 1.2, 2.0, 2.0]);
        assert!(schedule.asks_for_blocks() && !only(Base::Accuracy).asks_for_blocks());
    }

    #[test]
    fn scores_say_what_they_are_made_of() {
        let (problem, s2) = (problem("?", "1"), only(S2));
        let score = s2.score(9, &seen(&problem, Some(true), 2));
        assert_eq!(
            (score.reward, score.correct, score.blocks, score.well_formed),
            (1.2, Some(true), 2, true)
        );
        assert_eq!(score.parts.keys().copied().collect::<Vec<_>>(), ["accuracy", "bonus", "parallel"]);
        assert!((score.parts["accuracy"] + score.parts["bonus"] - score.reward).abs() < 1e-6);
        assert_eq!(s2.score(0, &seen(&problem, Some(true), 2)).parts, BTreeMap::from([("accuracy", 1.0)]));
        let required = only(Base::AccuracyXParallel).score(0, &seen(&problem, Some(true), 0));
        assert_eq!((required.reward, required.parts["accuracy"]), (-1.0, 1.0));
    }

    /// The published rewards that are made of a base and something more, in right and wrong answers.
    #[test]
    fn published_compositions_by_hand() {
        let problem = problem("5 + 7?", "12");
        let text =
            "<Parallel><Path>a b c d</Path><Path>a b c d</Path></Parallel>\n<Summary>s</Summary>\nAnswer: 12";
        let paths = Evidence { total_tokens: 40, critical_path_tokens: 20, ..evidence(&problem, text) };
        let alone = evidence(&problem, "Answer: 12");
        for (line, right, wrong, right_alone) in [
            // Tiered with diversity: 1.2 - 0.2 B, here B = 1.
            (
                "{ kind = 'tiered', bonus = 1.2, add = [{ kind = 'likeness', weight = -0.2 }] }",
                1.0,
                -1.0,
                1.0,
            ),
            // Accuracy + 0.5 [n >= 1, f].
            (
                "{ kind = 'accuracy', add = [{ kind = 'format', weight = 0.5, wrong_weight = 0.5 }] }",
                1.5,
                -0.5,
                1.0,
            ),
            // Accuracy - 0.3 B.
            (
                "{ kind = 'accuracy', add = [{ kind = 'likeness', weight = -0.3, wrong_weight = -0.3 }] }",
                0.7,
                -1.3,
                1.0,
            ),
            // c -> 1 + 0.4 e, else -1 + 0.1 e, here e = 0.5.
            ("{ kind = 'accuracy', add = [{ kind = 'efficiency', wrong_weight = 0.1 }] }", 1.2, -0.95, 1.0),
            // Right + 0.5 min(acceleration, 0.2).
            ("{ kind = 'accuracy', add = ['acceleration'] }", 1.1, -1.0, 1.0),
        ] {
            let reward = read(&format!("reward = {line}")).unwrap();
            let failed = Evidence { judged: Judged { correct: Some(false), ..paths.judged }, ..paths };
            for (seen, expected) in [(&paths, right), (&failed, wrong), (&alone, right_alone)] {
                let score = reward.score(0, seen);
                assert!((score.reward - expected).abs() < 1e-6, "{line}: {score:?}, expected {expected}");
                let named = score.parts.iter().filter(|(name, _)| **name != "parallel");
                assert!((named.map(|(_, part)| part).sum::<f32>() - score.reward).abs() < 1e-6, "{score:?}");
            }
        }
    }

    #[test]
    fn an_external_score_is_the_reward() {
        let problem = problem("?", "1");
        let seen = Evidence { score: Some(0.25), ..seen(&problem, Some(false), 0) };
        assert_eq!(only(Base::External).score(0, &seen).reward, 0.25);
        assert_eq!(only(Base::Accuracy).score(0, &seen).reward, -1.0);
    }

    #[test]
    fn an_unreadable_gold_scores_nothing() {
        let problem = problem("?", "1");
        let score = only(S2).score(9, &seen(&problem, None, 1));
        assert_eq!((score.reward, score.correct, score.parts.len()), (0.0, None, 0));
    }
}
