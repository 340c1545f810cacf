//! Units of measurement.

use super::Rational;

/// What a number counts.
#[derive(Clone, Debug, PartialEq)]
pub enum Unit {
    /// `%`
    Percent,
    /// An angle in degrees.
    Degree,
    /// A numeral written in this base.
    Base(u32),
    /// A unit with a known size.
    Known {
        /// What kind of thing it measures.
        dimension: Dimension,
        /// Its size in the basic unit of the dimension.
        size: Rational,
    },
    /// Any other words: `apples`, `ways`. They say nothing about equality.
    Words(String),
}

/// What a unit measures, as powers of what is counted by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Dimension {
    /// Metres.
    pub length: i8,
    /// Kilograms.
    pub mass: i8,
    /// Seconds.
    pub time: i8,
    /// Money, of the currency of this sign.
    pub money: Option<char>,
}
