//! A reward as it is written: a name, a table, or a list of both.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::super::bonus::Bonus;
use super::{Base, Phase, RewardConfig, RewardError, RewardSchedule};

/// The paper's values: S2 with W = 10, four fifths accuracy, and +1.2 for a right answer with blocks.
const WINDOW: usize = 10;
const SHARE: f64 = 0.8;
const BONUS: f64 = 1.2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Accuracy,
    AccuracyXParallel,
    Tiered,
    Alternating,
    External,
}

/// The table as written, before the settings are matched with the kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    kind: Kind,
    window: Option<usize>,
    share: Option<f64>,
    bonus: Option<f64>,
    #[serde(default)]
    add: Vec<Bonus>,
    until: Option<usize>,
}

impl TryFrom<Written> for Phase {
    type Error = RewardError;

    fn try_from(written: Written) -> Result<Self, RewardError> {
        let Written { kind, window, share, bonus, add, until } = written;
        let value = bonus.unwrap_or(BONUS);
        let base = match kind {
            Kind::Accuracy => Base::Accuracy,
            Kind::AccuracyXParallel => Base::AccuracyXParallel,
            Kind::Tiered => Base::Tiered { bonus: value },
            Kind::Alternating => {
                let (window, share) = (window.unwrap_or(WINDOW), share.unwrap_or(SHARE));
                Base::Alternating { window, share, bonus: value }
            }
            Kind::External => Base::External,
        };
        let alternates = kind == Kind::Alternating;
        for (field, given, known) in [
            ("window", window.is_some(), alternates),
            ("share", share.is_some(), alternates),
            ("bonus", bonus.is_some(), alternates || kind == Kind::Tiered),
        ] {
            if given && !known {
                return Err(RewardError::Superfluous { kind: base.name(), field });
            }
        }
        Ok(Phase { reward: RewardConfig { base: base.check()?, add }, until })
    }
}

impl From<Kind> for Written {
    fn from(kind: Kind) -> Self {
        Self { kind, window: None, share: None, bonus: None, add: vec![], until: None }
    }
}

/// Any form. (An untagged enum would read them too, but say nothing useful when none fits.)
impl<'de> Deserialize<'de> for RewardSchedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMore)
    }
}

impl<'de> Deserialize<'de> for Phase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

const FORMS: &str = "the name of a reward, or a table with its `kind` and settings";

struct OneOrMore;

impl<'de> Visitor<'de> for OneOrMore {
    type Value = RewardSchedule;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORMS}, or a list of these")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<RewardSchedule, E> {
        RewardSchedule::checked(vec![NameOrTable.visit_str(name)?]).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RewardSchedule, A::Error> {
        RewardSchedule::checked(vec![NameOrTable.visit_map(map)?]).map_err(de::Error::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RewardSchedule, A::Error> {
        let mut phases = Vec::new();
        while let Some(phase) = list.next_element()? {
            phases.push(phase);
        }
        RewardSchedule::checked(phases).map_err(de::Error::custom)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = Phase;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORMS)
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Phase, E> {
        let kind = Kind::deserialize(StrDeserializer::new(name))?;
        Written::from(kind).try_into().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Phase, A::Error> {
        let written = Written::deserialize(MapAccessDeserializer::new(map))?;
        written.try_into().map_err(de::Error::custom)
    }
}
