//! The value of an expression at a point, in high precision with its error.

use super::complex::Complex;
use super::exact;
use super::real::{Calculator, Fail, Found, Real, TOO_LARGE};
use crate::answer::{Constant, Expr, Function, Rational};

/// Values of variables.
pub(crate) type Point = Vec<(String, Rational)>;

/// Which logarithm `\log` without a base is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    Natural,
    Common,
}

pub(crate) struct Evaluator<'p, 'f> {
    pub(crate) calculator: Calculator<'f>,
    pub(crate) point: &'p Point,
    pub(crate) log: Log,
}

impl Evaluator<'_, '_> {
    pub(crate) fn value(&mut self, expr: &Expr) -> Found<Complex> {
        self.calculator.burn(1)?;
        match expr {
            Expr::Number(value) | Expr::Decimal(value, _) => Ok(self.calculator.rational(value)?.into()),
            Expr::Symbol(name) => self.variable(name),
            Expr::Constant(constant) => self.constant(*constant),
            Expr::Sum(terms) => {
                let mut total = Complex::integer(0);
                for term in terms {
                    let term = self.value(term)?;
                    total = self.calculator.cadd(&total, &term)?;
                }
                Ok(total)
            }
            Expr::Product(factors) => self.product(factors),
            Expr::Power(base, exponent) => self.power(base, exponent),
            Expr::Function(function, arguments) => self.function(*function, arguments),
            Expr::Apply(name, arguments) => self.unknown(name, arguments),
            Expr::Matrix(_) => Err(Fail::Undefined),
        }
    }

    fn variable(&mut self, name: &str) -> Found<Complex> {
        let value = self.point.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        Ok(self.calculator.rational(value.ok_or(Fail::Undefined)?)?.into())
    }

    fn constant(&mut self, constant: Constant) -> Found<Complex> {
        Ok(match constant {
            Constant::Pi => self.calculator.pi()?.into(),
            Constant::E => self.calculator.exp(&Real::integer(1))?.into(),
            Constant::I => Complex::i(),
            Constant::Degree => {
                let pi = self.calculator.pi()?;
                self.calculator.div(&pi, &Real::integer(180))?.into()
            }
            Constant::Infinity => return Err(Fail::Undefined),
        })
    }

    fn product(&mut self, factors: &[Expr]) -> Found<Complex> {
        let mut total = Complex::integer(1);
        for factor in factors {
            // A reciprocal is one division.
            if let Expr::Power(base, exponent) = factor
                && **exponent == Expr::integer(-1)
            {
                let base = self.value(base)?;
                total = self.calculator.cdiv(&total, &base)?;
                continue;
            }
            let factor = self.value(factor)?;
            total = self.calculator.cmul(&total, &factor)?;
        }
        Ok(total)
    }

    fn power(&mut self, base: &Expr, exponent: &Expr) -> Found<Complex> {
        if *base == Expr::Constant(Constant::E) {
            let exponent = self.value(exponent)?;
            return self.calculator.cexp(&exponent);
        }
        let fraction = exponent.literal().and_then(|value| {
            let top = i64::try_from(value.numerator()).ok()?;
            Some((top, u32::try_from(value.denominator()).ok()?))
        });
        let base = self.value(base)?;
        match fraction {
            Some((top, bottom)) => self.calculator.cpowq(&base, top, bottom),
            None => {
                let exponent = self.value(exponent)?;
                self.calculator.cpow(&base, &exponent)
            }
        }
    }

    /// An unknown function is taken to be one fixed, tame function of its arguments.
    fn unknown(&mut self, name: &str, arguments: &[Expr]) -> Found<Complex> {
        let mut seed = name.bytes().fold(7u64, |seed, byte| seed * 31 % 1009 + u64::from(byte));
        let mut total = Complex::integer(seed as i64);
        for argument in arguments {
            let value = self.value(argument)?;
            seed = seed * 17 % 1013 + 3;
            // (x + s)^2 + s / (x + total): no polynomial, and nothing is symmetric.
            let shifted = self.calculator.cadd(&value, &Complex::integer(seed as i64))?;
            let square = self.calculator.cmul(&shifted, &shifted)?;
            let below = self.calculator.cadd(&value, &total)?;
            let quotient = self.calculator.cdiv(&Complex::integer(seed as i64), &below)?;
            total = self.calculator.cadd(&square, &quotient)?;
        }
        Ok(total)
    }

    fn function(&mut self, function: Function, arguments: &[Expr]) -> Found<Complex> {
        use Function::*;
        if let Some(value) = self.whole(function, arguments)? {
            return Ok(value);
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.value(argument)?);
        }
        let natural = self.log == self::Log::Natural;
        let calculator = &mut self.calculator;
        let (first, second) = (values.first().ok_or(Fail::Undefined)?, values.get(1));
        let one = Complex::integer(1);
        match function {
            Sin => Ok(calculator.csin_cos(first)?.0),
            Cos => Ok(calculator.csin_cos(first)?.1),
            Tan | Cot | Sec | Csc => {
                let (sin, cos) = calculator.csin_cos(first)?;
                let (top, bottom) = match function {
                    Tan => (&sin, &cos),
                    Cot => (&cos, &sin),
                    Sec => (&one, &cos),
                    _ => (&one, &sin),
                };
                calculator.cdiv(top, bottom)
            }
            Arcsin | Arccos => inverse_sine(calculator, first.real()?, function == Arccos),
            Arctan => Ok(calculator.atan2(first.real()?, &Real::integer(1))?.into()),
            Arccot => Ok(calculator.atan2(&Real::integer(1), first.real()?)?.into()),
            Sinh => Ok(calculator.sinh_cosh(first.real()?)?.0.into()),
            Cosh => Ok(calculator.sinh_cosh(first.real()?)?.1.into()),
            Tanh => {
                let (sinh, cosh) = calculator.sinh_cosh(first.real()?)?;
                Ok(calculator.div(&sinh, &cosh)?.into())
            }
            Ln => calculator.cln(first),
            LogBare if natural => calculator.cln(first),
            LogBare => logarithm(calculator, &Complex::integer(10), first),
            Log => match second {
                Some(value) => logarithm(calculator, first, value),
                None => logarithm(calculator, &Complex::integer(10), first),
            },
            Exp => calculator.cexp(first),
            Abs => calculator.cabs(first),
            Re => Ok(first.re.clone().into()),
            Im => Ok(first.im.clone().into()),
            Conjugate => Ok(first.conjugate()),
            Transpose | Determinant => Ok(first.clone()),
            Sign => match first.real()?.sign() {
                Some(sign) => Ok(Complex::integer(sign as i64)),
                None => Err(Fail::Imprecise),
            },
            Floor | Ceil => rounded(first.real()?, function == Ceil),
            Min | Max => extreme(calculator, &values, function == Max),
            Factorial | DoubleFactorial | Binomial | Gcd | Lcm | Mod => self.integers(function, &values),
        }
    }

    /// Functions of integers, from exact arguments.
    fn whole(&mut self, function: Function, arguments: &[Expr]) -> Found<Option<Complex>> {
        use Function::*;
        if !matches!(function, Factorial | DoubleFactorial | Binomial | Gcd | Lcm | Mod) {
            return Ok(None);
        }
        let mut fixed = Vec::with_capacity(arguments.len());
        for argument in arguments {
            fixed.push(substitute(argument, self.point));
        }
        let call = Expr::Function(function, fixed);
        let value = self.calculator.exact(&call)?;
        match value {
            Some(value) => Ok(Some(self.calculator.rational(&value)?.into())),
            None => Ok(None),
        }
    }

    fn integers(&mut self, function: Function, values: &[Complex]) -> Found<Complex> {
        let mut literals = Vec::with_capacity(values.len());
        for value in values {
            let whole = value.real()?.as_integer().ok_or(Fail::Undefined)?;
            literals.push(Expr::Number(Rational::from(whole)));
        }
        let call = Expr::Function(function, literals);
        let value = self.calculator.exact(&call)?.ok_or(Fail::Undefined)?;
        Ok(self.calculator.rational(&value)?.into())
    }
}

impl Calculator<'_> {
    fn exact(&mut self, expr: &Expr) -> Found<Option<Rational>> {
        self.with_fuel(|fuel| exact::rational(expr, fuel)).map_err(|why| match why {
            super::fuel::Why::Undecided("a value is not defined") => Fail::Undefined,
            why => Fail::Stop(why),
        })
    }
}

/// The expression with the variables replaced by their values.
fn substitute(expr: &Expr, point: &Point) -> Expr {
    match expr {
        Expr::Symbol(name) => match point.iter().find(|(known, _)| known == name) {
            Some((_, value)) => Expr::Number(value.clone()),
            None => expr.clone(),
        },
        Expr::Sum(terms) => Expr::Sum(terms.iter().map(|term| substitute(term, point)).collect()),
        Expr::Product(factors) => {
            Expr::Product(factors.iter().map(|factor| substitute(factor, point)).collect())
        }
        Expr::Power(base, exponent) => substitute(base, point).power(substitute(exponent, point)),
        Expr::Function(function, arguments) => {
            Expr::Function(*function, arguments.iter().map(|argument| substitute(argument, point)).collect())
        }
        other => other.clone(),
    }
}

fn logarithm(calculator: &mut Calculator<'_>, base: &Complex, value: &Complex) -> Found<Complex> {
    let (value, base) = (calculator.cln(value)?, calculator.cln(base)?);
    calculator.cdiv(&value, &base)
}

/// asin(x) = atan2(x, sqrt(1 - x^2)), acos(x) = atan2(sqrt(1 - x^2), x).
fn inverse_sine(calculator: &mut Calculator<'_>, x: &Real, cosine: bool) -> Found<Complex> {
    let square = calculator.mul(x, x)?;
    let rest = calculator.sub(&Real::integer(1), &square)?;
    let other = calculator.root(&rest, 2)?;
    let angle = if cosine { calculator.atan2(&other, x)? } else { calculator.atan2(x, &other)? };
    Ok(angle.into())
}

fn rounded(value: &Real, up: bool) -> Found<Complex> {
    if let Some(whole) = value.as_integer() {
        return Ok(Real::integer(whole).into());
    }
    if value.magnitude() > 4096 || value.error() > -8.0 {
        return Err(TOO_LARGE);
    }
    let middle = value.middle().ok_or(TOO_LARGE)?;
    let whole = if up { middle.ceil() } else { middle.floor() };
    Ok(Real::integer(whole).into())
}

fn extreme(calculator: &mut Calculator<'_>, values: &[Complex], largest: bool) -> Found<Complex> {
    let mut best = values.first().ok_or(Fail::Undefined)?;
    for value in &values[1..] {
        let difference = calculator.sub(value.real()?, best.real()?)?;
        if largest && difference.is_positive() || !largest && difference.is_negative() {
            best = value;
        }
    }
    Ok(best.clone())
}
