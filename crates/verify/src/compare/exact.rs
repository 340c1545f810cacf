//! Exact values of expressions that are rational numbers.

use dashu_base::{Abs, BitTest, DivRem, Gcd, Sign, UnsignedAbs};
use dashu_int::{IBig, UBig};

use super::fuel::{Fuel, Judged, Why};
use crate::answer::{Expr, Function, Rational};
use crate::parse::{MAX_BITS, MAX_FACTORIAL};

const TOO_LARGE: Why = Why::Undecided("too large: bits of a number");
const NOT_DEFINED: Why = Why::Undecided("a value is not defined");

/// The value of an expression that is plainly rational; `None` for any other.
pub(crate) fn rational(expr: &Expr, fuel: &mut Fuel) -> Judged<Option<Rational>> {
    match expr {
        Expr::Number(value) | Expr::Decimal(value, _) => Ok(Some(value.clone())),
        Expr::Sum(terms) => fold(terms, Rational::ZERO, fuel, |a, b| a + b),
        Expr::Product(factors) => fold(factors, Rational::ONE, fuel, |a, b| a * b),
        Expr::Power(base, exponent) => {
            let Some(exponent) = rational(exponent, fuel)? else { return Ok(None) };
            let Some(base) = rational(base, fuel)? else { return Ok(None) };
            power(&base, &exponent, fuel)
        }
        Expr::Function(function, arguments) => {
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                match rational(argument, fuel)? {
                    Some(value) => values.push(value),
                    None => return Ok(None),
                }
            }
            apply(*function, &values, fuel)
        }
        _ => Ok(None),
    }
}

fn fold(
    parts: &[Expr],
    start: Rational,
    fuel: &mut Fuel,
    join: impl Fn(Rational, Rational) -> Rational,
) -> Judged<Option<Rational>> {
    let mut total = start;
    for part in parts {
        let Some(value) = rational(part, fuel)? else { return Ok(None) };
        charge(&total, &value, fuel)?;
        total = join(total, value);
    }
    Ok(Some(total))
}

pub(super) fn bits(value: &Rational) -> usize {
    value.numerator().bit_len() + value.denominator().bit_len()
}

/// Takes the cost of an operation, mostly of the division by the common factor.
fn charge(a: &Rational, b: &Rational, fuel: &mut Fuel) -> Judged {
    let words = (bits(a) + bits(b)) as u64 / 64;
    if words * 64 > 4 * MAX_BITS as u64 {
        return Err(TOO_LARGE);
    }
    let integers = a.is_int() && b.is_int();
    fuel.burn(1 + words * words / if integers { 4096 } else { 256 })
}

fn power(base: &Rational, exponent: &Rational, fuel: &mut Fuel) -> Judged<Option<Rational>> {
    let (Ok(top), Ok(bottom)) = (i32::try_from(exponent.numerator()), u32::try_from(exponent.denominator()))
    else {
        return if is_unit(base) && exponent.is_int() {
            Ok(Some(unit_power(base, exponent)))
        } else {
            Err(TOO_LARGE)
        };
    };
    if base.is_zero() {
        return if top > 0 { Ok(Some(Rational::ZERO)) } else { Err(NOT_DEFINED) };
    }
    let Some(root) = root(base, bottom) else { return Ok(None) };
    let size = bits(&root).saturating_mul(top.unsigned_abs() as usize);
    if is_unit(&root) {
        return Ok(Some(unit_power(&root, &Rational::from(top))));
    }
    if size > 2 * MAX_BITS {
        return Err(TOO_LARGE);
    }
    fuel.burn(1 + (size as u64 / 64).pow(2) / 512)?;
    Ok(Some(root.pow(top as isize)))
}

fn is_unit(value: &Rational) -> bool {
    value.is_int() && value.numerator().clone().unsigned_abs().is_one()
}

fn unit_power(base: &Rational, exponent: &Rational) -> Rational {
    let even = exponent.numerator().clone() % IBig::from(2) == IBig::ZERO;
    if even { Rational::ONE } else { base.clone() }
}

/// The rational root, if there is one. Odd roots of negative numbers are negative.
fn root(base: &Rational, degree: u32) -> Option<Rational> {
    if degree == 1 {
        return Some(base.clone());
    }
    let negative = base.sign() == Sign::Negative;
    if negative && degree.is_multiple_of(2) || degree > 64 {
        return None;
    }
    let top = integer_root(&base.numerator().clone().unsigned_abs(), degree)?;
    let bottom = integer_root(base.denominator(), degree)?;
    let sign = if negative { Sign::Negative } else { Sign::Positive };
    Some(Rational::from_parts(IBig::from_parts(sign, top), bottom))
}

fn integer_root(value: &UBig, degree: u32) -> Option<UBig> {
    if value.is_one() {
        return Some(UBig::ONE);
    }
    if value.bit_len() > 4096 {
        return None;
    }
    let root = value.nth_root(degree as usize);
    (root.pow(degree as usize) == *value).then_some(root)
}

fn apply(function: Function, values: &[Rational], fuel: &mut Fuel) -> Judged<Option<Rational>> {
    let integers = || values.iter().map(integer).collect::<Option<Vec<IBig>>>();
    Ok(match (function, values) {
        (Function::Abs, [x]) => Some(x.clone().abs()),
        (Function::Floor, [x]) => Some(Rational::from(x.floor())),
        (Function::Ceil, [x]) => Some(Rational::from(x.ceil())),
        (Function::Sign, [x]) => Some(x.signum()),
        (Function::Re | Function::Conjugate | Function::Determinant | Function::Transpose, [x]) => {
            Some(x.clone())
        }
        (Function::Im, [_]) => Some(Rational::ZERO),
        (Function::Factorial, [n]) => return factorial(n, 1, fuel),
        (Function::DoubleFactorial, [n]) => return factorial(n, 2, fuel),
        (Function::Binomial, [n, k]) => return binomial(n, k, fuel),
        (Function::Min, [first, rest @ ..]) => {
            Some(rest.iter().fold(first, |a, b| if b < a { b } else { a }).clone())
        }
        (Function::Max, [first, rest @ ..]) => {
            Some(rest.iter().fold(first, |a, b| if b > a { b } else { a }).clone())
        }
        (Function::Gcd, [_, ..]) => integers().map(|all| Rational::from(gcd(&all))),
        (Function::Lcm, [_, ..]) => {
            let Some(all) = integers() else { return Ok(None) };
            lcm(&all, fuel)?.map(Rational::from)
        }
        (Function::Mod, [_, modulus]) if !modulus.is_zero() => integers().map(|pair| {
            let (a, m) = (pair[0].clone(), pair[1].clone().unsigned_abs());
            let (_, rest) = a.div_rem(IBig::from(m.clone()));
            let rest = if rest.sign() == Sign::Negative { rest + IBig::from(m) } else { rest };
            Rational::from(rest)
        }),
        _ => None,
    })
}

fn integer(value: &Rational) -> Option<IBig> {
    value.is_int().then(|| value.numerator().clone())
}

fn gcd(all: &[IBig]) -> UBig {
    all.iter().fold(UBig::ZERO, |a, b| {
        let b = b.clone().unsigned_abs();
        if a.is_zero() {
            b
        } else if b.is_zero() {
            a
        } else {
            a.gcd(b)
        }
    })
}

fn lcm(all: &[IBig], fuel: &mut Fuel) -> Judged<Option<UBig>> {
    let mut total = UBig::ONE;
    for value in all {
        let value = value.clone().unsigned_abs();
        if value.is_zero() {
            return Ok(None);
        }
        if total.bit_len() + value.bit_len() > MAX_BITS {
            return Err(TOO_LARGE);
        }
        fuel.burn(1 + ((total.bit_len() + value.bit_len()) as u64 / 64).pow(2) / 256)?;
        let common = (&total).gcd(&value);
        total *= value / common;
    }
    Ok(Some(total))
}

fn factorial(n: &Rational, step: usize, fuel: &mut Fuel) -> Judged<Option<Rational>> {
    let Some(n) = integer(n) else { return Ok(None) };
    if n.sign() == Sign::Negative {
        return Err(NOT_DEFINED);
    }
    let n = usize::try_from(&n).ok().filter(|&n| n as f64 <= MAX_FACTORIAL).ok_or(TOO_LARGE)?;
    fuel.burn(1 + (n as u64).pow(2) / 10_000)?;
    let start = if step == 2 && n % 2 == 1 { 1 } else { step.min(n.max(1)) };
    Ok(Some(Rational::from(product(start.max(1), n, step))))
}

/// from * (from + step) * ... up to at most `to`, halved again and again, so that the factors are of
/// one size.
fn product(from: usize, to: usize, step: usize) -> UBig {
    if from > to {
        return UBig::ONE;
    }
    let count = (to - from) / step + 1;
    if count <= 4 {
        return (0..count).fold(UBig::ONE, |total, i| total * UBig::from(from + i * step));
    }
    let middle = from + (count / 2) * step;
    product(from, middle - step, step) * product(middle, to, step)
}

fn binomial(n: &Rational, k: &Rational, fuel: &mut Fuel) -> Judged<Option<Rational>> {
    let (Some(n), Some(k)) = (integer(n), integer(k)) else { return Ok(None) };
    if n.sign() == Sign::Negative || k.sign() == Sign::Negative {
        return Ok(None);
    }
    if k > n {
        return Ok(Some(Rational::ZERO));
    }
    let k = if &n - &k < k { &n - &k } else { k };
    let k = usize::try_from(&k).map_err(|_| TOO_LARGE)?;
    let size = k.saturating_mul(n.bit_len());
    if size > MAX_BITS {
        return Err(TOO_LARGE);
    }
    fuel.burn(1 + (size as u64 / 64).pow(2) / 16)?;
    let n = n.unsigned_abs();
    let mut total = UBig::ONE;
    for i in 0..k {
        total = total * (&n - UBig::from(i)) / UBig::from(i + 1);
    }
    Ok(Some(Rational::from(total)))
}
