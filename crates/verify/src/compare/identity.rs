//! Are two expressions equal, as numbers or as functions of their variables?
//!
//! Exact values first, then normal forms, then values at seeded random points in high precision. At a
//! point two expressions differ for certain if their difference exceeds its error bound; that they
//! agree at several random points within 2^-64 of their size, and mostly within 2^-180, is what "equal"
//! means for what has no normal form. Expressions of real variables are compared where both are real,
//! so `\ln x^2` equals `2 \ln x`, and `\sqrt{x^2}` is not `x`.

use super::complex::Complex;
use super::evaluate::{Evaluator, Log, Point};
use super::fuel::{Fuel, Judged, Why, different};
use super::real::{Calculator, Fail, Found};
use super::{exact, matrix, polynomial};
use crate::answer::{Constant, Expr, Function, Rational};

const DIFFERENT: &str = "the values differ";

/// Says whether two expressions are equal.
pub(super) fn same(a: &Expr, b: &Expr, fuel: &mut Fuel) -> Judged {
    fuel.burn(1)?;
    if let (Expr::Number(a), Expr::Number(b)) = (a, b) {
        return if a == b { Ok(()) } else { different(DIFFERENT) };
    }
    if a == b {
        return Ok(());
    }
    if has(a, &|e| matches!(e, Expr::Matrix(_))) || has(b, &|e| matches!(e, Expr::Matrix(_))) {
        return matrix::same(a, b, fuel);
    }
    if infinite(a) || infinite(b) {
        return if infinity_sign(a).is_some() && infinity_sign(a) == infinity_sign(b) {
            Ok(())
        } else {
            different(DIFFERENT)
        };
    }
    if let (Some(a), Some(b)) = (exact::rational(a, fuel)?, exact::rational(b, fuel)?) {
        return if a == b { Ok(()) } else { different(DIFFERENT) };
    }
    match polynomial::judge(a, b, fuel) {
        Some(judged) => judged,
        None => numeric(a, b, fuel),
    }
}

fn infinite(expr: &Expr) -> bool {
    has(expr, &|e| *e == Expr::Constant(Constant::Infinity))
}

/// The sign of plus or minus infinity.
pub(super) fn infinity_sign(expr: &Expr) -> Option<bool> {
    let infinity = Expr::Constant(Constant::Infinity);
    if *expr == infinity {
        return Some(true);
    }
    (*expr == infinity.negated()).then_some(false)
}

/// Does a part of the expression fit?
pub(super) fn has(expr: &Expr, fits: &dyn Fn(&Expr) -> bool) -> bool {
    fits(expr)
        || match expr {
            Expr::Sum(parts) | Expr::Product(parts) | Expr::Function(_, parts) | Expr::Apply(_, parts) => {
                parts.iter().any(|part| has(part, fits))
            }
            Expr::Power(base, exponent) => has(base, fits) || has(exponent, fits),
            Expr::Matrix(rows) => rows.iter().flatten().any(|part| has(part, fits)),
            _ => false,
        }
}

/// The names of the variables, in order.
pub(super) fn variables(exprs: &[&Expr]) -> Vec<String> {
    let names = std::cell::RefCell::new(Vec::new());
    for expr in exprs {
        has(expr, &|e| {
            if let Expr::Symbol(name) = e {
                names.borrow_mut().push(name.clone());
            }
            false
        });
    }
    let mut names = names.into_inner();
    names.sort();
    names.dedup();
    names
}

fn numeric(a: &Expr, b: &Expr, fuel: &mut Fuel) -> Judged {
    let bare = |e: &Expr| matches!(e, Expr::Function(Function::LogBare, _));
    let natural = at_points(a, b, Log::Natural, fuel);
    if (has(a, &bare) || has(b, &bare)) && matches!(natural, Err(Why::Different(_))) {
        return at_points(a, b, Log::Common, fuel);
    }
    natural
}

/// Points tried at most, and those that must agree.
const POINTS: usize = 14;
const ENOUGH: usize = 5;

fn at_points(a: &Expr, b: &Expr, log: Log, fuel: &mut Fuel) -> Judged {
    let names = variables(&[a, b]);
    let whole = whole_variables(&[a, b]);
    let complex = names.is_empty() || [a, b].iter().any(|e| has(e, &|e| *e == Expr::Constant(Constant::I)));
    let digits = precision(&[a, b]);
    let (mut agreed, mut complex_agreed, mut complex_differs, mut imprecise) = (0, 0, false, false);
    for index in 0..if names.is_empty() { 1 } else { POINTS } {
        let point = point(&names, &whole, index);
        match at_point(a, b, &point, log, digits, fuel)? {
            At::Undefined => {}
            At::Imprecise => imprecise = true,
            At::Values { real, equal } => match (complex || real == Reals::Both, equal) {
                (true, true) => agreed += 1,
                (true, false) => return different(DIFFERENT),
                (false, _) if real == Reals::One => {}
                (false, true) => complex_agreed += 1,
                (false, false) => complex_differs = true,
            },
        }
        if agreed >= ENOUGH {
            return Ok(());
        }
    }
    let needed = if names.is_empty() { 1 } else { 2 };
    if agreed >= needed || complex_agreed >= needed && !complex_differs {
        return Ok(());
    }
    if complex_differs {
        return different(DIFFERENT);
    }
    Err(Why::Undecided(if imprecise { "the values are too close to tell" } else { "a value is not defined" }))
}

#[derive(Clone, Copy, PartialEq)]
enum Reals {
    Both,
    One,
    None,
}

enum At {
    Undefined,
    Imprecise,
    Values { real: Reals, equal: bool },
}

/// Compares at one point, with more digits if need be.
fn at_point(a: &Expr, b: &Expr, point: &Point, log: Log, digits: usize, fuel: &mut Fuel) -> Judged<At> {
    for factor in [1, 2, 4] {
        let found = values(&[a, b], point, log, digits * factor, fuel);
        let values = match found {
            Ok(values) => values,
            Err(Fail::Undefined) => return Ok(At::Undefined),
            Err(Fail::Imprecise) => continue,
            Err(Fail::Stop(why)) => return Err(why),
        };
        let real = match (values[0].may_be_real(), values[1].may_be_real()) {
            (true, true) => Reals::Both,
            (false, false) => Reals::None,
            _ => Reals::One,
        };
        match close(&values[0], &values[1], digits * factor, fuel) {
            Ok(equal) => return Ok(At::Values { real, equal }),
            Err(Fail::Stop(why)) => return Err(why),
            Err(_) => {}
        }
    }
    Ok(At::Imprecise)
}

/// The values of expressions at a point.
pub(super) fn values(
    exprs: &[&Expr],
    point: &Point,
    log: Log,
    precision: usize,
    fuel: &mut Fuel,
) -> Found<Vec<Complex>> {
    let mut evaluator = Evaluator { calculator: Calculator::new(precision, fuel), point, log };
    exprs.iter().map(|expr| evaluator.value(expr)).collect()
}

/// Are two values equal as far as their errors allow, which must be small?
pub(super) fn close(a: &Complex, b: &Complex, precision: usize, fuel: &mut Fuel) -> Found<bool> {
    let mut calculator = Calculator::new(precision, fuel);
    let difference = calculator.cadd(a, &b.neg())?;
    if !difference.may_be_zero() {
        return Ok(false);
    }
    let size = a.magnitude().max(b.magnitude());
    let unsure = difference.error() > (size - 64) as f64 && difference.error() > -(precision as f64) / 2.0;
    if unsure { Err(Fail::Imprecise) } else { Ok(true) }
}

/// Bits of precision that tell apart what the digits of the expressions can tell apart.
pub(super) fn precision(exprs: &[&Expr]) -> usize {
    let longest = std::cell::Cell::new(0);
    for expr in exprs {
        has(expr, &|e| {
            if let Some(value) = e.literal() {
                longest.set(longest.get().max(exact::bits(value)));
            }
            // 10^{-100} has as many digits as it says.
            if let Expr::Power(base, exponent) = e
                && let (Some(base), Some(exponent)) = (base.literal(), exponent.literal())
            {
                let times = exponent.to_f64_fast().abs().min(1e5);
                longest.set(longest.get().max((exact::bits(base) as f64 * times) as usize));
            }
            false
        });
    }
    192 + 2 * longest.get().min(2048)
}

/// Variables that only make sense as whole numbers: in factorials, and in powers of negative numbers.
fn whole_variables(exprs: &[&Expr]) -> Vec<String> {
    let found = std::cell::RefCell::new(Vec::new());
    for expr in exprs {
        has(expr, &|e| {
            use Function::*;
            match e {
                Expr::Function(Factorial | DoubleFactorial | Binomial | Gcd | Lcm | Mod, arguments) => {
                    found.borrow_mut().extend(variables(&arguments.iter().collect::<Vec<_>>()));
                }
                Expr::Power(base, exponent) if base.literal().is_some_and(|b| *b < Rational::ZERO) => {
                    found.borrow_mut().extend(variables(&[exponent]));
                }
                _ => {}
            }
            false
        });
    }
    found.into_inner()
}

/// A seeded random point: positive values first, then negative ones, then all signs; values below one, larger ones, and
/// whole numbers, too.
pub(super) fn point(names: &[String], whole: &[String], index: usize) -> Point {
    const SEED: u64 = 0x5eed_0a75_0e12_5000;
    let mut state = SEED.wrapping_add(index as u64);
    names
        .iter()
        .map(|name| {
            let random = split_mix(&mut state);
            if whole.contains(name) {
                return (name.clone(), Rational::from(2 + random % 23));
            }
            let numerator = (random >> 16) % (1 << 20) + (1 << 14);
            let negative = index == 2 || index > 2 && random & 1 == 1;
            let value = match index % 5 {
                4 => Rational::from(1 + random % 19),
                2 => Rational::from_parts(numerator.into(), (1u64 << 21).into()),
                3 => Rational::from_parts(numerator.into(), (1u64 << 16).into()),
                _ => Rational::from_parts(numerator.into(), (1u64 << 18).into()),
            };
            (name.clone(), if negative { -value } else { value })
        })
        .collect()
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
