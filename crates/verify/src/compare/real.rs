//! Real numbers of any precision with a bound of their error.
//!
//! A [`Real`] says: the true value is within `2^err` of `mid`. Every operation adds what it inherits
//! and what it rounds, always upwards; sizes are taken as powers of two, coarse but safe. The library
//! below rounds correctly and reports what is out of range, so nothing here panics.

use dashu_base::{Abs, BitTest, Sign};
use dashu_float::round::mode::HalfEven;
use dashu_float::{Context, FBig, FpError, FpResult, Repr};
use dashu_int::IBig;

use super::fuel::{Fuel, Why};
use crate::answer::Rational;

/// The exponent of an error that is none.
const EXACT: f64 = f64::NEG_INFINITY;
/// The magnitude of zero.
const NOTHING: i64 = i64::MIN / 4;

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fail {
    /// Not defined here: a logarithm of zero, a division by zero.
    Undefined,
    /// The error is too large to decide; more digits may help.
    Imprecise,
    /// Beyond the bounds, or too much work.
    Stop(Why),
}

pub(crate) const TOO_LARGE: Fail = Fail::Stop(Why::Undecided("too large: a value"));

impl From<Why> for Fail {
    fn from(why: Why) -> Fail {
        Fail::Stop(why)
    }
}

pub(crate) type Found<T> = Result<T, Fail>;

#[derive(Clone, Debug)]
pub(crate) struct Real {
    mid: Repr<2>,
    err: f64,
}

/// The exponent of the first power of two above the absolute value.
fn magnitude(value: &Repr<2>) -> i64 {
    let bits = value.significand().bit_len() as i64;
    if bits == 0 { NOTHING } else { bits + value.exponent() as i64 }
}

impl Real {
    pub(crate) fn zero() -> Real {
        Real { mid: Repr::zero(), err: EXACT }
    }

    pub(crate) fn integer(value: impl Into<IBig>) -> Real {
        Real { mid: Repr::new(value.into(), 0), err: EXACT }
    }

    pub(crate) fn magnitude(&self) -> i64 {
        magnitude(&self.mid)
    }

    /// The exponent of the bound of the error.
    pub(crate) fn error(&self) -> f64 {
        self.err
    }

    pub(crate) fn is_exact_zero(&self) -> bool {
        self.err == EXACT && self.mid.significand().is_zero()
    }

    /// May it be zero, as far as is known?
    pub(crate) fn may_be_zero(&self) -> bool {
        (self.magnitude() - 1) as f64 <= self.err || self.mid.significand().is_zero()
    }

    /// The sign, if it is known; zero only if exact.
    pub(crate) fn sign(&self) -> Option<std::cmp::Ordering> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        if self.is_exact_zero() {
            Some(Equal)
        } else if self.may_be_zero() {
            None
        } else if self.mid.sign() == Sign::Negative {
            Some(Less)
        } else {
            Some(Greater)
        }
    }

    pub(crate) fn is_positive(&self) -> bool {
        self.sign() == Some(std::cmp::Ordering::Greater)
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.sign() == Some(std::cmp::Ordering::Less)
    }

    pub(crate) fn neg(&self) -> Real {
        Real { mid: -self.mid.clone(), err: self.err }
    }

    pub(crate) fn abs(&self) -> Real {
        if self.mid.sign() == Sign::Negative { self.neg() } else { self.clone() }
    }

    /// The middle as a fraction.
    pub(crate) fn middle(&self) -> Option<Rational> {
        let (significand, exponent) = (self.mid.significand().clone(), self.mid.exponent());
        if exponent.unsigned_abs() > 100_000 {
            return None;
        }
        let power = Rational::from(IBig::ONE << exponent.unsigned_abs());
        let significand = Rational::from(significand);
        Some(if exponent < 0 { significand / power } else { significand * power })
    }

    /// The integer that it is, if it can be no other and the error is small.
    pub(crate) fn as_integer(&self) -> Option<IBig> {
        if self.magnitude() > 64 || self.err > -20.0 {
            return None;
        }
        let middle = self.middle()?;
        let rounded = middle.round();
        let distance = (middle - Rational::from(rounded.clone())).abs();
        let tiny = distance.is_zero() || self.err != EXACT && distance.to_f64_fast().log2() <= self.err + 1.0;
        tiny.then_some(rounded)
    }
}

/// Computes with one precision.
pub(crate) struct Calculator<'f> {
    context: Context<HalfEven>,
    precision: i64,
    fuel: &'f mut Fuel,
}

impl<'f> Calculator<'f> {
    pub(crate) fn new(precision: usize, fuel: &'f mut Fuel) -> Self {
        let context = Context::new(precision);
        Calculator { context, precision: precision as i64, fuel }
    }

    pub(crate) fn burn(&mut self, cost: u64) -> Found<()> {
        Ok(self.fuel.burn(cost)?)
    }

    /// Runs exact arithmetic on the same budget.
    pub(crate) fn with_fuel<T>(&mut self, run: impl FnOnce(&mut Fuel) -> T) -> T {
        run(self.fuel)
    }

    fn cheap(&mut self) -> Found<()> {
        let words = self.precision as u64 / 64;
        self.burn(2 + words * words / 32)
    }

    fn dear(&mut self) -> Found<()> {
        let words = self.precision as u64 / 64;
        self.burn(100 + 25 * words * words)
    }

    fn take(result: FpResult<FBig<HalfEven, 2>>) -> Found<Repr<2>> {
        match result {
            Ok(value) => {
                let repr = value.value().into_repr();
                // Beyond this, exponents may overflow later.
                if magnitude(&repr).abs() > 1 << 40 && !repr.significand().is_zero() {
                    Err(TOO_LARGE)
                } else {
                    Ok(repr)
                }
            }
            Err(FpError::OutOfDomain | FpError::Indeterminate | FpError::InfiniteInput) => {
                Err(Fail::Undefined)
            }
            Err(FpError::ZivRetryLimitExceeded) => Err(Fail::Imprecise),
            Err(_) => Err(TOO_LARGE),
        }
    }

    /// A result with its rounding and the errors that it inherits, by their exponents.
    fn with(&self, mid: Repr<2>, inherited: &[f64]) -> Real {
        let rounding = (magnitude(&mid) - self.precision) as f64;
        let worst = inherited.iter().copied().fold(rounding, f64::max);
        let sum: f64 = inherited.iter().chain([&rounding]).map(|err| (err - worst).exp2()).sum();
        // Rounded up for the floats here.
        Real { mid, err: worst + sum.log2() + 1e-6 }
    }

    pub(crate) fn rational(&mut self, value: &Rational) -> Found<Real> {
        let top = value.numerator();
        if value.is_int() && (top.bit_len() as i64) <= self.precision {
            return Ok(Real::integer(top.clone()));
        }
        let words = (super::exact::bits(value) / 64) as u64;
        self.burn(2 + words * words / 256)?;
        let bottom = IBig::from(value.denominator().clone());
        let mid = Self::take(self.context.div(&Repr::new(top.clone(), 0), &Repr::new(bottom, 0)))?;
        Ok(self.with(mid, &[]))
    }

    pub(crate) fn pi(&mut self) -> Found<Real> {
        self.cheap()?;
        let pi = self.context.pi::<2>(Some(self.fuel.constants())).value().into_repr();
        Ok(self.with(pi, &[]))
    }

    pub(crate) fn add(&mut self, a: &Real, b: &Real) -> Found<Real> {
        if a.is_exact_zero() {
            return Ok(b.clone());
        }
        if b.is_exact_zero() {
            return Ok(a.clone());
        }
        self.cheap()?;
        let mid = Self::take(self.context.add(&a.mid, &b.mid))?;
        // Small integers stay exact.
        if a.err == EXACT
            && b.err == EXACT
            && mid.exponent() >= 0
            && magnitude(&mid) < self.precision
            && a.mid.exponent() >= 0
            && b.mid.exponent() >= 0
        {
            return Ok(Real { mid, err: EXACT });
        }
        Ok(self.with(mid, &[a.err, b.err]))
    }

    pub(crate) fn sub(&mut self, a: &Real, b: &Real) -> Found<Real> {
        self.add(a, &b.neg())
    }

    pub(crate) fn mul(&mut self, a: &Real, b: &Real) -> Found<Real> {
        if a.is_exact_zero() || b.is_exact_zero() {
            return Ok(Real::zero());
        }
        self.cheap()?;
        let mid = Self::take(self.context.mul(&a.mid, &b.mid))?;
        if a.err == EXACT && b.err == EXACT && a.magnitude() + b.magnitude() < self.precision {
            let exact =
                a.mid.significand().bit_len() + b.mid.significand().bit_len() <= self.precision as usize;
            if exact {
                return Ok(Real { mid, err: EXACT });
            }
        }
        Ok(self.with(mid, &[a.magnitude() as f64 + b.err, b.magnitude() as f64 + a.err, a.err + b.err]))
    }

    pub(crate) fn div(&mut self, a: &Real, b: &Real) -> Found<Real> {
        if b.is_exact_zero() {
            return Err(Fail::Undefined);
        }
        if ((b.magnitude() - 2) as f64) < b.err {
            return Err(Fail::Imprecise);
        }
        if a.is_exact_zero() {
            return Ok(Real::zero());
        }
        self.cheap()?;
        let mid = Self::take(self.context.div(&a.mid, &b.mid))?;
        // |b| is above 2^below.
        let below = (b.magnitude() - 2) as f64;
        Ok(self.with(mid.clone(), &[a.err - below, magnitude(&mid) as f64 + b.err - below]))
    }

    /// The root of a number that is not negative.
    pub(crate) fn root(&mut self, a: &Real, degree: usize) -> Found<Real> {
        if a.is_exact_zero() {
            return Ok(Real::zero());
        }
        if a.may_be_zero() {
            // Between zero and the root of the bound.
            let err = ((a.magnitude() as f64).max(a.err) + 1.0) / degree as f64 + 1.0;
            return Ok(Real { mid: Repr::zero(), err });
        }
        if a.is_negative() {
            return Err(Fail::Undefined);
        }
        self.cheap()?;
        let result =
            if degree == 2 { self.context.sqrt(&a.mid) } else { self.context.nth_root(degree, &a.mid) };
        let mid = Self::take(result)?;
        // The relative error gets no larger.
        Ok(self.with(mid.clone(), &[a.err - (a.magnitude() - 2) as f64 + magnitude(&mid) as f64]))
    }

    pub(crate) fn exp(&mut self, a: &Real) -> Found<Real> {
        if a.is_exact_zero() {
            return Ok(Real::integer(1));
        }
        if a.magnitude() > 32 {
            return Err(TOO_LARGE);
        }
        if a.err > -2.0 {
            return Err(Fail::Imprecise);
        }
        self.dear()?;
        let mid = Self::take(self.context.exp(&a.mid, Some(self.fuel.constants())))?;
        Ok(self.with(mid.clone(), &[magnitude(&mid) as f64 + a.err + 1.0]))
    }

    /// The logarithm of a positive number.
    pub(crate) fn ln(&mut self, a: &Real) -> Found<Real> {
        if a.is_exact_zero() {
            return Err(Fail::Undefined);
        }
        if a.may_be_zero() || ((a.magnitude() - 2) as f64) < a.err {
            return Err(Fail::Imprecise);
        }
        self.dear()?;
        let mid = Self::take(self.context.ln(&a.mid, Some(self.fuel.constants())))?;
        Ok(self.with(mid, &[a.err - (a.magnitude() - 2) as f64]))
    }

    pub(crate) fn sin_cos(&mut self, a: &Real) -> Found<(Real, Real)> {
        if a.is_exact_zero() {
            return Ok((Real::zero(), Real::integer(1)));
        }
        if a.magnitude() > 2048 {
            return Err(TOO_LARGE);
        }
        if a.err > -1.0 {
            return Err(Fail::Imprecise);
        }
        self.burn(a.magnitude().max(0) as u64)?;
        self.dear()?;
        let (sin, cos) = self.context.sin_cos(&a.mid, Some(self.fuel.constants()));
        let (sin, cos) = (Self::take(sin)?, Self::take(cos)?);
        Ok((self.with(sin, &[a.err]), self.with(cos, &[a.err])))
    }

    /// The angle of the point (x, y).
    pub(crate) fn atan2(&mut self, y: &Real, x: &Real) -> Found<Real> {
        if y.is_exact_zero() {
            return match x.sign() {
                Some(std::cmp::Ordering::Greater) => Ok(Real::zero()),
                Some(std::cmp::Ordering::Less) => self.pi(),
                Some(std::cmp::Ordering::Equal) => Err(Fail::Undefined),
                None => Err(Fail::Imprecise),
            };
        }
        let radius = y.magnitude().max(x.magnitude());
        // Near zero, and near the cut along the negative axis, the angle is not known.
        if ((radius - 2) as f64) < y.err.max(x.err) || y.may_be_zero() && !x.is_positive() {
            return Err(Fail::Imprecise);
        }
        self.dear()?;
        self.dear()?;
        self.dear()?;
        let mid = Self::take(self.context.atan2(&y.mid, &x.mid, Some(self.fuel.constants())))?;
        Ok(self.with(mid, &[y.err - (radius - 2) as f64, x.err - (radius - 2) as f64]))
    }
}
