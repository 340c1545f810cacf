//! Decimals that stand for a value which they only round.
//!
//! A decimal with enough digits (six, unless the options say otherwise) equals a value that rounds or
//! is cut to it at its own last digit: `0.333333` is 1/3, `0.333334` and `0.33` are not. Integers round
//! nothing. Either side may be the decimal, and of two decimals the one with fewer digits rounds.

use super::evaluate::Log;
use super::fuel::{Fuel, Judged, different};
use super::{Options, exact, identity};
use crate::answer::{Expr, Rational};

/// Says whether one side is a decimal that stands for the other.
pub(super) fn stands_for(a: &Expr, b: &Expr, options: &Options, fuel: &mut Fuel) -> Judged {
    let (decimal, other) = match (a, b) {
        (Expr::Decimal(_, p), Expr::Decimal(_, q)) if p > q => (b, a),
        (Expr::Decimal(..), _) => (a, b),
        (_, Expr::Decimal(..)) => (b, a),
        _ => return different("the values differ"),
    };
    let Expr::Decimal(decimal, places) = decimal else { return different("the values differ") };
    let scale = Rational::from(dashu_int::UBig::from(10u8).pow((*places).min(4000) as usize));
    let digits = decimal * &scale;
    if significant(&digits) < options.precision {
        return different("the decimal has too few digits for the value");
    }
    let Some(value) = value_of(other, fuel)? else { return different("the values differ") };
    let value = value * scale;
    let half = Rational::from_parts(1.into(), 2u8.into());
    let distance = if value > digits { &value - &digits } else { &digits - &value };
    let cut = Rational::from(value.trunc()) == digits;
    if distance <= half || cut { Ok(()) } else { different("the decimal is not the value, rounded") }
}

fn significant(digits: &Rational) -> u32 {
    if digits.is_zero() { 0 } else { digits.numerator().to_string().trim_start_matches('-').len() as u32 }
}

/// The exact value, or one that is far more precise than any decimal here.
fn value_of(expr: &Expr, fuel: &mut Fuel) -> Judged<Option<Rational>> {
    if let Some(value) = exact::rational(expr, fuel)? {
        return Ok(Some(value));
    }
    if !identity::variables(&[expr]).is_empty() {
        return Ok(None);
    }
    let values = identity::values(&[expr], &Vec::new(), Log::Natural, identity::precision(&[expr]), fuel);
    Ok(values.ok().and_then(|values| values.first()?.real().ok()?.middle()))
}
