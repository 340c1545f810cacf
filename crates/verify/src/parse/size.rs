//! Numbers that are too large to be computed are found before anyone tries.

use super::ParseError;
use crate::answer::{Answer, Constant, Expr, Function, Quantity, Rational};

/// Numbers may have this many bits.
pub(crate) const MAX_BITS: usize = 200_000;
/// Factorials of larger numbers are not computed; they have fewer bits than the bound.
pub(crate) const MAX_FACTORIAL: f64 = 12_000.0;

const TOO_LARGE: ParseError = ParseError::TooLarge { what: "bits of a number", limit: MAX_BITS };

/// Refuses answers with numbers beyond the bounds.
pub(super) fn check(answer: &Answer) -> Result<(), ParseError> {
    match answer {
        Answer::Value(Quantity { value, .. }) => expr(value),
        Answer::Text(_) | Answer::Time(..) => Ok(()),
        Answer::Choice(_, content) => check(content),
        Answer::Tuple(_, items, _)
        | Answer::Set(items)
        | Answer::Several(items)
        | Answer::Union(items)
        | Answer::Intersection(items)
        | Answer::Either(items) => items.iter().try_for_each(check),
        Answer::Without(whole, part) => check(whole).and_then(|()| check(part)),
        Answer::Relation(relation) => relation.sides.iter().try_for_each(check),
        Answer::Member(element, _, set) => expr(element).and_then(|()| check(set)),
        Answer::Ratio(parts) => parts.iter().try_for_each(expr),
    }
}

fn expr(value: &Expr) -> Result<(), ParseError> {
    estimate(value).map(|_| ())
}

/// About how large a constant is, as the logarithm to base 2 of its absolute value; `None` if it has
/// variables. A rough value is enough: it only decides whether to compute.
fn estimate(expr: &Expr) -> Result<Option<f64>, ParseError> {
    let log = match expr {
        Expr::Number(value) | Expr::Decimal(value, _) => Some(log2(value)),
        Expr::Symbol(_) => None,
        Expr::Constant(Constant::Infinity) => Some(0.0),
        Expr::Constant(_) => Some(1.0),
        Expr::Sum(terms) => combine(terms, |largest, term| largest.max(term))?.map(|log| log + 1.0),
        Expr::Product(factors) => combine(factors, |total, factor| total + factor)?,
        Expr::Power(base, exponent) => power(base, exponent)?,
        Expr::Function(function, arguments) => function_size(*function, arguments)?,
        Expr::Apply(_, arguments) => {
            arguments.iter().try_for_each(self::expr)?;
            None
        }
        Expr::Matrix(rows) => {
            rows.iter().flatten().try_for_each(self::expr)?;
            None
        }
    };
    match log {
        Some(log) if !log.is_finite() || log.abs() > MAX_BITS as f64 => Err(TOO_LARGE),
        log => Ok(log),
    }
}

fn combine(parts: &[Expr], join: impl Fn(f64, f64) -> f64) -> Result<Option<f64>, ParseError> {
    let mut total = None;
    let mut open = false;
    for part in parts {
        match estimate(part)? {
            Some(log) => total = Some(total.map_or(log, |total| join(total, log))),
            None => open = true,
        }
    }
    Ok(total.filter(|_| !open))
}

fn power(base: &Expr, exponent: &Expr) -> Result<Option<f64>, ParseError> {
    let (base, log_exponent) = (estimate(base)?, estimate(exponent)?);
    // The exponent itself, from its literal if it is one.
    let exponent = match exponent.literal() {
        Some(value) => Some(value.to_f64_fast()),
        None => log_exponent.map(|log| if log > 60.0 { f64::INFINITY } else { log.exp2() }),
    };
    let (Some(base), Some(exponent)) = (base, exponent) else {
        // x^{10^{30}} has no use either.
        return if exponent.is_some_and(|e| e.abs() > 1e9) { Err(TOO_LARGE) } else { Ok(None) };
    };
    // 1^n is 1, and 2^{-n} is as large as 2^n.
    let size = if base.abs() < 1e-9 { 0.0 } else { base.abs().max(0.01) * exponent.abs() };
    if size > MAX_BITS as f64 || !size.is_finite() { Err(TOO_LARGE) } else { Ok(Some(base * exponent)) }
}

fn function_size(function: Function, arguments: &[Expr]) -> Result<Option<f64>, ParseError> {
    let mut sizes = Vec::with_capacity(arguments.len());
    for argument in arguments {
        sizes.push(estimate(argument)?);
    }
    let Some(&Some(log)) = sizes.first() else { return Ok(None) };
    let value = log.min(1000.0).exp2();
    match function {
        Function::Factorial | Function::DoubleFactorial if value > MAX_FACTORIAL * 1.5 => Err(TOO_LARGE),
        Function::Factorial | Function::DoubleFactorial => Ok(Some(value * log.max(1.0))),
        Function::Binomial => {
            let k = sizes.get(1).copied().flatten().unwrap_or(0.0).min(60.0).exp2();
            let size = k.min(value) * log.max(1.0);
            if size > MAX_BITS as f64 && k.min(value) > 20_000.0 { Err(TOO_LARGE) } else { Ok(Some(log)) }
        }
        Function::Exp | Function::Sinh | Function::Cosh if value > MAX_BITS as f64 => Err(TOO_LARGE),
        Function::Exp | Function::Sinh | Function::Cosh => Ok(Some(value * 1.5)),
        _ if sizes.iter().any(Option::is_none) => Ok(None),
        Function::Ln | Function::Log | Function::LogBare => Ok(Some(log.abs().max(1.0).log2())),
        _ => Ok(Some(log)),
    }
}

fn log2(value: &Rational) -> f64 {
    use dashu_base::BitTest;
    if value.is_zero() {
        return 0.0;
    }
    let approximate = value.to_f64_fast().abs();
    if approximate.is_normal() {
        return approximate.log2();
    }
    value.numerator().bit_len() as f64 - value.denominator().bit_len() as f64
}
