//! What a recipe adds to a reward: a measure of the response's form, weighted.
//!
//! ```toml
//! add = ["efficiency", { kind = "likeness", weight = -0.3 }]
//! ```

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::schedule::{RewardError, fits};
use super::{Evidence, brevity, clarity, efficiency, first_word, likeness, verification};
use crate::prompt::tags::outline;

/// What can be measured. Each is from 0 to 1, and 0 for a response whose tags are ill-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// 1 with at least one block, else 0.
    Format,
    /// [`likeness`]: mean pairwise BLEU of the paths.
    Likeness,
    /// [`first_word`]: pairs of paths that begin differently.
    FirstWord,
    /// [`efficiency`]: 1 - critical path / tokens.
    Efficiency,
    /// The same, capped; for right answers only.
    Acceleration,
    /// [`verification`]: the answer is derived again.
    Verification,
    /// [`brevity`]: nothing said after the answer is settled.
    Brevity,
    /// [`clarity`]: steps separated, paths named in summaries, nothing repeated.
    Clarity,
}

impl Measure {
    /// Its name, as recipes have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Likeness => "likeness",
            Self::FirstWord => "first_word",
            Self::Efficiency => "efficiency",
            Self::Acceleration => "acceleration",
            Self::Verification => "verification",
            Self::Brevity => "brevity",
            Self::Clarity => "clarity",
        }
    }

    /// The value of a response.
    pub fn of(self, seen: &Evidence) -> f32 {
        if !seen.judged.well_formed {
            return 0.0;
        }
        let outline = || outline(seen.response);
        match self {
            Self::Format => f32::from(u8::from(seen.judged.blocks > 0)),
            Self::Likeness => likeness(seen.response, &outline()),
            Self::FirstWord => first_word(seen.response, &outline()),
            Self::Efficiency | Self::Acceleration => efficiency(seen.total_tokens, seen.critical_path_tokens),
            Self::Verification => verification(seen.response, &outline(), &seen.answers()),
            Self::Brevity => brevity(seen.response, &outline(), &seen.answers()),
            Self::Clarity => clarity(seen.response, &outline()),
        }
    }

    /// Weight and cap of a bonus that says no more than its name; published values where there are any.
    fn defaults(self) -> (f64, f64) {
        match self {
            Self::Format => (0.5, 1.0),       // arXiv 2509.07980, its code
            Self::Likeness => (-0.2, 1.0),    // the same: tiered with diversity, 1.2 - 0.2 B
            Self::Efficiency => (0.4, 1.0),   // the same
            Self::Acceleration => (0.5, 0.2), // arXiv 2512.07843
            Self::FirstWord | Self::Verification | Self::Brevity => (0.2, 1.0),
            Self::Clarity => (0.1, 1.0),
        }
    }
}

/// A weighted measure: `weight x min(measure, cap) x exp(-t / decay)` for a right answer, with `wrong_weight` for a
/// wrong one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bonus {
    /// What is measured.
    pub kind: Measure,
    /// What the whole measure is worth in a right answer; below 0 it costs.
    pub weight: f64,
    /// The same in a wrong answer. Hackable unless 0: the policy can earn by form alone.
    pub wrong_weight: f64,
    /// The measure counts up to here.
    pub cap: f64,
    /// Steps after which the bonus has fallen to 37 %; without it it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<f64>,
}

impl Bonus {
    /// What a response earns at a step, counted from 0.
    pub fn earned(&self, step: usize, correct: bool, seen: &Evidence) -> f32 {
        let weight = if correct { self.weight } else { self.wrong_weight };
        if weight == 0.0 {
            return 0.0;
        }
        let fading = self.decay.map_or(1.0, |decay| (-(step as f64) / decay).exp());
        let measure = f64::from(self.kind.of(seen)).min(self.cap);
        (weight * measure * fading) as f32
    }

    /// Whether wrong answers can earn it.
    pub fn hackable(&self) -> bool {
        self.wrong_weight != 0.0
    }

    fn check(self) -> Result<Self, RewardError> {
        fits("add.weight", "a number from -10 to 10", self.weight, self.weight.abs() <= 10.0)?;
        fits(
            "add.wrong_weight",
            "a number from -10 to 10",
            self.wrong_weight,
            self.wrong_weight.abs() <= 10.0,
        )?;
        fits("add.cap", "a number above 0, at most 1", self.cap, self.cap > 0.0 && self.cap <= 1.0)?;
        let decay = self.decay.unwrap_or(1.0);
        fits("add.decay", "a number of steps above 0", decay, decay > 0.0 && decay.is_finite())?;
        if self.kind == Measure::Acceleration && self.hackable() {
            return Err(RewardError::Superfluous { kind: "acceleration", field: "add.wrong_weight" });
        }
        Ok(self)
    }
}

/// The table as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    kind: Measure,
    weight: Option<f64>,
    wrong_weight: Option<f64>,
    cap: Option<f64>,
    decay: Option<f64>,
}

impl TryFrom<Written> for Bonus {
    type Error = RewardError;

    fn try_from(written: Written) -> Result<Self, RewardError> {
        let Written { kind, weight, wrong_weight, cap, decay } = written;
        let (default_weight, default_cap) = kind.defaults();
        let bonus = Bonus {
            kind,
            weight: weight.unwrap_or(default_weight),
            wrong_weight: wrong_weight.unwrap_or(0.0),
            cap: cap.unwrap_or(default_cap),
            decay,
        };
        bonus.check()
    }
}

/// A name, or a table.
impl<'de> Deserialize<'de> for Bonus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = Bonus;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a measure, or a table with its `kind` and settings")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Bonus, E> {
        let kind = Measure::deserialize(StrDeserializer::new(name))?;
        let written = Written { kind, weight: None, wrong_weight: None, cap: None, decay: None };
        written.try_into().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Bonus, A::Error> {
        Written::deserialize(MapAccessDeserializer::new(map))?.try_into().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{evidence, problem};
    use super::*;

    const BLOCK: &str =
        "<Parallel><Path>5+7=12</Path><Path>7+5=12</Path></Parallel>\n<Summary>12</Summary>\nAnswer: 12";

    #[test]
    fn measures_by_hand() {
        let problem = problem("5 + 7?", "12");
        let mut seen = evidence(&problem, BLOCK);
        (seen.total_tokens, seen.critical_path_tokens) = (40, 30);
        for (measure, expected) in [
            (Measure::Format, 1.0),
            (Measure::FirstWord, 1.0),
            (Measure::Efficiency, 0.25),
            (Measure::Acceleration, 0.25),
            (Measure::Verification, 1.0),
            (Measure::Brevity, 1.0),
            (Measure::Clarity, 1.0),
        ] {
            assert_eq!(measure.of(&seen), expected, "{}", measure.name());
        }
        // Words 5 + 7 = 12 and 7 + 5 = 12: of 5, 4, 3 and 2 runs 5, 1, 0 and 0 are in both, longer ones smoothed.
        let alike = (1.0f32 * 2.0 / 5.0 * 1.0 / 4.0 * 1.0 / 3.0).powf(0.25);
        assert!((Measure::Likeness.of(&seen) - alike).abs() < 1e-6);
        let broken = evidence(&problem, "<Parallel><Path>5+7=12</Path>\nAnswer: 12");
        let plain = evidence(&problem, "Answer: 12");
        assert_eq!(Measure::Brevity.of(&broken), 0.0);
        assert_eq!(Measure::Format.of(&plain), 0.0);
    }

    fn bonus(text: &str) -> Result<Bonus, String> {
        #[derive(Deserialize)]
        struct Stage {
            add: Bonus,
        }
        toml::from_str::<Stage>(text).map(|stage| stage.add).map_err(|e| e.to_string())
    }

    #[test]
    fn weights_caps_and_decay_by_hand() {
        let problem = problem("5 + 7?", "12");
        let mut seen = evidence(&problem, BLOCK);
        (seen.total_tokens, seen.critical_path_tokens) = (40, 20); // e = 0.5
        for (text, step, right, wrong) in [
            ("add = 'efficiency'", 0, 0.2, 0.0),
            ("add = { kind = 'efficiency', wrong_weight = 0.1 }", 0, 0.2, 0.05), // as published
            ("add = { kind = 'efficiency', decay = 50.0 }", 50, 0.2 * (-1.0f32).exp(), 0.0),
            ("add = 'acceleration'", 0, 0.1, 0.0), // 0.5 min(0.5, 0.2)
            ("add = 'format'", 9, 0.5, 0.0),
            ("add = { kind = 'format', wrong_weight = 0.5 }", 9, 0.5, 0.5), // as published
            ("add = 'verification'", 0, 0.2, 0.2 - 0.2),
        ] {
            let bonus = bonus(text).unwrap();
            for (correct, expected) in [(true, right), (false, wrong)] {
                let got = bonus.earned(step, correct, &seen);
                assert!((got - expected).abs() < 1e-6, "{text}, {correct}: {got}, expected {expected}");
            }
        }
    }

    #[test]
    fn only_what_wrong_answers_earn_is_hackable() {
        assert!(!bonus("add = 'format'").unwrap().hackable());
        assert!(bonus("add = { kind = 'format', wrong_weight = 0.5 }").unwrap().hackable());
        assert!(bonus("add = { kind = 'likeness', wrong_weight = -0.3 }").unwrap().hackable());
    }

    #[test]
    fn faults_name_the_field() {
        for (text, said) in [
            ("add = 'speed'", "speed"),
            ("add = 3", "the name of a measure"),
            ("add = { kind = 'format', wieght = 1.0 }", "wieght"),
            (
                "add = { kind = 'format', weight = 11.0 }",
                "add.weight: expected a number from -10 to 10, got 11",
            ),
            ("add = { kind = 'format', weight = nan }", "add.weight"),
            ("add = { kind = 'format', cap = 0.0 }", "add.cap"),
            ("add = { kind = 'format', decay = -1.0 }", "add.decay"),
            ("add = { kind = 'acceleration', wrong_weight = 0.1 }", "`acceleration` has no such setting"),
        ] {
            let error = bonus(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
