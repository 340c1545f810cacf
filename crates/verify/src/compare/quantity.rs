//! Values with units.
//!
//! A unit that only one side gives is what the problem asked for, so it is ignored; two known units of
//! one dimension are converted; two of different dimensions are different answers. A percentage or an
//! angle in degrees is both the number before the sign and the number that it stands for: `50%` is 50
//! and 1/2, `90°` is 90 and pi/2, but 50 is not 1/2.

use super::fuel::{Fuel, Judged, different, either};
use super::{Options, decimal, identity};
use crate::answer::{Constant, Expr, Quantity, Rational, Unit};

/// Says whether two values with their units are equal.
pub(super) fn same(gold: &Quantity, answer: &Quantity, options: &Options, fuel: &mut Fuel) -> Judged {
    let plain = |fuel: &mut Fuel| number(&gold.value, &answer.value, options, fuel);
    match (&gold.unit, &answer.unit) {
        (None, None) => plain(fuel),
        (Some(Unit::Known { dimension: a, size: p }), Some(Unit::Known { dimension: b, size: q })) => {
            if a != b {
                return different("the units differ");
            }
            if p == q {
                plain(fuel)
            } else {
                number(&scaled(&gold.value, p), &scaled(&answer.value, q), options, fuel)
            }
        }
        // The base is what such a problem asks for.
        (Some(Unit::Base(a)), Some(Unit::Base(b))) if a != b => different("the bases differ"),
        (Some(Unit::Words(a)), Some(Unit::Words(b)))
            if a.starts_with("mod ") && b.starts_with("mod ") && a != b =>
        {
            different("the moduli differ")
        }
        (Some(unit @ (Unit::Percent | Unit::Degree)), other) => {
            signed(unit, &gold.value, &answer.value, other.as_ref(), options, fuel)
        }
        (other, Some(unit @ (Unit::Percent | Unit::Degree))) => {
            signed(unit, &answer.value, &gold.value, other.as_ref(), options, fuel)
        }
        _ => plain(fuel),
    }
}

/// A value with a sign that has a value itself, against one that has another unit or none.
fn signed(
    unit: &Unit,
    value: &Expr,
    other: &Expr,
    other_unit: Option<&Unit>,
    options: &Options,
    fuel: &mut Fuel,
) -> Judged {
    match other_unit {
        Some(same) if same == unit => return number(value, other, options, fuel),
        Some(Unit::Percent | Unit::Degree | Unit::Known { .. }) => return different("the units differ"),
        _ => {}
    }
    let before_sign = number(value, other, options, fuel);
    let stands_for = match unit {
        Unit::Percent => scaled(value, &Rational::from_parts(1.into(), 100u8.into())),
        _ => value.clone().times(Expr::Constant(Constant::Degree)),
    };
    either(before_sign, || number(&stands_for, other, options, fuel))
}

fn scaled(value: &Expr, size: &Rational) -> Expr {
    match value {
        Expr::Number(value) => Expr::Number(value * size),
        // Two places move with the percent sign; for other sizes the digits say little.
        Expr::Decimal(value, places) => Expr::Decimal(value * size, places + 2),
        value => value.clone().times(Expr::Number(size.clone())),
    }
}

/// Numbers or expressions: exactly, or by a decimal.
pub(super) fn number(a: &Expr, b: &Expr, options: &Options, fuel: &mut Fuel) -> Judged {
    either(identity::same(a, b, fuel), || {
        if !matches!(a, Expr::Decimal(..)) && !matches!(b, Expr::Decimal(..)) {
            return different("the values differ");
        }
        decimal::stands_for(a, b, options, fuel)
    })
}
