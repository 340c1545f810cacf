//! Normal forms: quotients of polynomials over variables, constants, square roots of primes and
//! whatever else stays closed.
//!
//! Square roots of different primes and their products are independent over the rationals, as is i;
//! so a difference that is no zero polynomial in variables, i, roots of primes and at most one of pi
//! and e is no zero at all, and the decision is exact. With other closed parts (functions, roots of
//! sums) only equality is certain.

use std::collections::BTreeMap;

use dashu_base::{Sign, UnsignedAbs};
use dashu_int::{IBig, UBig};

use super::exact;
use super::fuel::{Fuel, Judged, Why, different};
use crate::answer::{Constant, Expr, Rational};

/// Exponents of atoms, by their number.
type Monomial = Vec<(u16, u32)>;
/// Terms that are not zero.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Polynomial(BTreeMap<Monomial, Rational>);

/// A quotient of polynomials.
#[derive(Clone, Debug)]
pub(crate) struct Fraction {
    top: Polynomial,
    bottom: Polynomial,
}

/// What a polynomial takes for a variable.
#[derive(Clone, Debug, PartialEq)]
enum Atom {
    I,
    /// The square root of a prime.
    Root(u32),
    /// A variable, a constant, or a closed expression.
    Closed(Expr),
}

/// More terms than this are not expanded.
const MAX_TERMS: usize = 1200;
/// Larger powers of sums are not expanded.
const MAX_POWER: u32 = 200;
/// Square roots of larger numbers stay closed.
const MAX_RADICAND: u32 = 1_000_000;

/// The share of the budget that expanding may take.
pub(super) const SHARE: u64 = 20_000;

/// Why there is no normal form: too large, or not defined.
#[derive(Debug)]
pub(crate) struct NoForm;

impl From<Why> for NoForm {
    fn from(_: Why) -> NoForm {
        NoForm
    }
}

type Formed<T> = Result<T, NoForm>;

/// Makes normal forms over common atoms.
pub(crate) struct Forms<'f> {
    atoms: Vec<Atom>,
    fuel: &'f mut Fuel,
}

impl<'f> Forms<'f> {
    pub(crate) fn new(fuel: &'f mut Fuel) -> Self {
        Forms { atoms: Vec::new(), fuel }
    }

    /// Are the two equal? `None` if this can't tell.
    pub(crate) fn same(&mut self, a: &Expr, b: &Expr) -> Option<bool> {
        let difference = self.difference(a, b).ok()?;
        if difference.0.is_empty() {
            return Some(true);
        }
        self.decisive().then_some(false)
    }

    fn difference(&mut self, a: &Expr, b: &Expr) -> Formed<Polynomial> {
        let (a, b) = (self.fraction(a)?, self.fraction(b)?);
        let (left, right) = (self.multiply(&a.top, &b.bottom)?, self.multiply(&b.top, &a.bottom)?);
        Ok(subtract(&left, &right))
    }

    /// Are the numerators of two expressions equal up to a constant factor? `None` if this can't tell.
    pub(crate) fn proportional(&mut self, a: &Expr, b: &Expr) -> Option<bool> {
        let (a, b) = (self.fraction(a).ok()?.top, self.fraction(b).ok()?.top);
        let (Some((monomial, factor)), Some((other, divisor))) =
            (a.0.first_key_value(), b.0.first_key_value())
        else {
            return (a.0.is_empty() && b.0.is_empty()).then_some(true);
        };
        if monomial == other {
            let scale = factor / divisor;
            if b.0.len() == a.0.len() && b.0.iter().all(|(m, c)| a.0.get(m) == Some(&(c * &scale))) {
                return Some(true);
            }
        }
        // Constants such as a root of two may be the factor.
        let plain = |atom: &Atom| matches!(atom, Atom::Closed(Expr::Symbol(_)));
        self.atoms.iter().all(plain).then_some(false)
    }

    fn decisive(&self) -> bool {
        let mut constants = 0;
        self.atoms.iter().all(|atom| match atom {
            Atom::I | Atom::Root(_) | Atom::Closed(Expr::Symbol(_)) => true,
            Atom::Closed(Expr::Constant(Constant::Pi | Constant::E | Constant::Degree)) => {
                constants += 1;
                constants == 1
            }
            Atom::Closed(_) => false,
        })
    }

    fn atom(&mut self, atom: Atom) -> Formed<Polynomial> {
        let index = match self.atoms.iter().position(|known| *known == atom) {
            Some(index) => index,
            None => {
                self.atoms.push(atom);
                self.atoms.len() - 1
            }
        };
        self.fuel.burn(1 + self.atoms.len() as u64)?;
        let index = u16::try_from(index).map_err(|_| NoForm)?;
        Ok(Polynomial(BTreeMap::from([(vec![(index, 1)], Rational::ONE)])))
    }

    fn closed(&mut self, expr: &Expr) -> Formed<Fraction> {
        let top = self.atom(Atom::Closed(expr.clone()))?;
        Ok(Fraction { top, bottom: constant(Rational::ONE) })
    }

    fn fraction(&mut self, expr: &Expr) -> Formed<Fraction> {
        self.fuel.burn(1)?;
        match expr {
            Expr::Number(value) | Expr::Decimal(value, _) => Ok(whole(value.clone())),
            Expr::Constant(Constant::I) => {
                Ok(Fraction { top: self.atom(Atom::I)?, bottom: constant(Rational::ONE) })
            }
            Expr::Sum(terms) => {
                let mut total = whole(Rational::ZERO);
                for term in terms {
                    let term = self.fraction(term)?;
                    total = self.add(total, term)?;
                }
                Ok(total)
            }
            Expr::Product(factors) => {
                let mut total = whole(Rational::ONE);
                for factor in factors {
                    let factor = self.fraction(factor)?;
                    total = self.times(total, factor)?;
                }
                Ok(total)
            }
            Expr::Power(base, exponent) => self.power(expr, base, exponent),
            Expr::Function(..) => match exact::rational(expr, self.fuel)? {
                Some(value) => Ok(whole(value)),
                None => self.closed(expr),
            },
            Expr::Matrix(_) => Err(NoForm),
            _ => self.closed(expr),
        }
    }

    fn power(&mut self, whole_power: &Expr, base: &Expr, exponent: &Expr) -> Formed<Fraction> {
        let Some(exponent) = exact::rational(exponent, self.fuel)? else { return self.closed(whole_power) };
        if let Some(value) = exact::rational(base, self.fuel)?
            && let Some(value) =
                exact::rational(&Expr::Number(value).power(Expr::Number(exponent.clone())), self.fuel)?
        {
            return Ok(whole(value));
        }
        let top = i32::try_from(exponent.numerator()).map_err(|_| NoForm)?;
        let base = if exponent.is_int() {
            self.fraction(base)?
        } else {
            match exact::rational(base, self.fuel)? {
                Some(value) if *exponent.denominator() == UBig::from(2u8) => {
                    match self.square_root(&value)? {
                        Some(root) => root,
                        None => return self.closed(whole_power),
                    }
                }
                // The power of a root: x^{3/2} is (x^{1/2})^3.
                _ => {
                    let unit = Rational::from_parts(IBig::ONE, exponent.denominator().clone());
                    self.closed(&base.clone().power(Expr::Number(unit)))?
                }
            }
        };
        let power = self.raise(&base, top.unsigned_abs())?;
        if top >= 0 {
            return Ok(power);
        }
        if power.top.0.is_empty() {
            return Err(NoForm);
        }
        Ok(Fraction { top: power.bottom, bottom: power.top })
    }

    /// The square root of a fraction, in roots of primes.
    fn square_root(&mut self, value: &Rational) -> Formed<Option<Fraction>> {
        let negative = value.sign() == Sign::Negative;
        let radicand = value.numerator().clone().unsigned_abs() * value.denominator();
        let Ok(mut rest) = u64::try_from(&radicand) else { return Ok(None) };
        if rest > u64::from(MAX_RADICAND) {
            return Ok(None);
        }
        self.fuel.burn(5)?;
        let mut top = constant(Rational::from_parts(IBig::ONE, value.denominator().clone()));
        let mut prime = 2u64;
        while rest > 1 {
            if prime * prime > rest {
                prime = rest;
            }
            let mut count = 0u32;
            while rest % prime == 0 {
                rest /= prime;
                count += 1;
            }
            if count > 0 {
                let outside = constant(Rational::from(UBig::from(prime).pow(count as usize / 2)));
                top = self.multiply(&top, &outside)?;
                if count % 2 == 1 {
                    let root = self.atom(Atom::Root(prime as u32))?;
                    top = self.multiply(&top, &root)?;
                }
            }
            prime += 1;
        }
        if negative {
            let i = self.atom(Atom::I)?;
            top = self.multiply(&top, &i)?;
        }
        Ok(Some(Fraction { top, bottom: constant(Rational::ONE) }))
    }

    fn raise(&mut self, base: &Fraction, exponent: u32) -> Formed<Fraction> {
        let single = base.top.0.len() <= 1 && base.bottom.0.len() <= 1;
        if !single && exponent > MAX_POWER || exponent > 1_000_000 {
            return Err(NoForm);
        }
        let mut total = whole(Rational::ONE);
        let mut square = base.clone();
        let mut left = exponent;
        while left > 0 {
            if left & 1 == 1 {
                total = self.times(total, square.clone())?;
            }
            left >>= 1;
            if left > 0 {
                square = self.times(square.clone(), square)?;
            }
        }
        Ok(total)
    }

    fn add(&mut self, a: Fraction, b: Fraction) -> Formed<Fraction> {
        if a.bottom == b.bottom {
            self.fuel.burn((a.top.0.len() + b.top.0.len()) as u64)?;
            return Ok(Fraction { top: sum(&a.top, &b.top), bottom: a.bottom });
        }
        let (left, right) = (self.multiply(&a.top, &b.bottom)?, self.multiply(&b.top, &a.bottom)?);
        Ok(Fraction { top: sum(&left, &right), bottom: self.multiply(&a.bottom, &b.bottom)? })
    }

    fn times(&mut self, a: Fraction, b: Fraction) -> Formed<Fraction> {
        Ok(Fraction { top: self.multiply(&a.top, &b.top)?, bottom: self.multiply(&a.bottom, &b.bottom)? })
    }

    fn multiply(&mut self, a: &Polynomial, b: &Polynomial) -> Formed<Polynomial> {
        if is_one(a) {
            return Ok(b.clone());
        }
        if is_one(b) {
            return Ok(a.clone());
        }
        self.fuel.burn(2 * (a.0.len() * b.0.len()) as u64)?;
        let mut out = BTreeMap::new();
        for (left, p) in &a.0 {
            for (right, q) in &b.0 {
                let words = (exact::bits(p) + exact::bits(q)) as u64 / 64;
                if words > 20 {
                    self.fuel.burn(words * words / 100)?;
                }
                let (monomial, factor) = self.product(left, right)?;
                accumulate(&mut out, monomial, p * q * factor);
            }
            if out.len() > MAX_TERMS {
                return Err(NoForm);
            }
        }
        Ok(Polynomial(out))
    }

    /// The product of monomials, with squares of i and of roots replaced.
    fn product(&self, a: &Monomial, b: &Monomial) -> Formed<(Monomial, Rational)> {
        let mut out: Monomial = Vec::with_capacity(a.len() + b.len());
        let mut factor = Rational::ONE;
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            let (atom, exponent) = match (a.get(i), b.get(j)) {
                (Some(x), Some(y)) if x.0 == y.0 => {
                    (i, j) = (i + 1, j + 1);
                    (x.0, x.1.checked_add(y.1).ok_or(NoForm)?)
                }
                (Some(x), Some(y)) if x.0 < y.0 => {
                    i += 1;
                    *x
                }
                (Some(x), None) => {
                    i += 1;
                    *x
                }
                (_, Some(y)) => {
                    j += 1;
                    *y
                }
                (None, None) => break,
            };
            let square = match self.atoms[atom as usize] {
                Atom::I => -Rational::ONE,
                Atom::Root(prime) => Rational::from(prime),
                Atom::Closed(_) => {
                    out.push((atom, exponent));
                    continue;
                }
            };
            factor *= square.pow((exponent / 2) as isize);
            if exponent % 2 == 1 {
                out.push((atom, 1));
            }
        }
        Ok((out, factor))
    }
}

fn constant(value: Rational) -> Polynomial {
    Polynomial(if value.is_zero() { BTreeMap::new() } else { BTreeMap::from([(Vec::new(), value)]) })
}

fn whole(value: Rational) -> Fraction {
    Fraction { top: constant(value), bottom: constant(Rational::ONE) }
}

fn is_one(polynomial: &Polynomial) -> bool {
    polynomial.0.len() == 1 && polynomial.0.first_key_value().is_some_and(|(m, c)| m.is_empty() && c.is_one())
}

fn accumulate(terms: &mut BTreeMap<Monomial, Rational>, monomial: Monomial, value: Rational) {
    use std::collections::btree_map::Entry;
    match terms.entry(monomial) {
        Entry::Vacant(entry) => {
            if !value.is_zero() {
                entry.insert(value);
            }
        }
        Entry::Occupied(mut entry) => {
            *entry.get_mut() += value;
            if entry.get().is_zero() {
                entry.remove();
            }
        }
    }
}

fn sum(a: &Polynomial, b: &Polynomial) -> Polynomial {
    let mut out = a.0.clone();
    for (monomial, value) in &b.0 {
        accumulate(&mut out, monomial.clone(), value.clone());
    }
    Polynomial(out)
}

fn subtract(a: &Polynomial, b: &Polynomial) -> Polynomial {
    let mut out = a.0.clone();
    for (monomial, value) in &b.0 {
        accumulate(&mut out, monomial.clone(), -value.clone());
    }
    Polynomial(out)
}

/// Says whether two expressions are equal as far as normal forms tell.
pub(super) fn judge(a: &Expr, b: &Expr, fuel: &mut Fuel) -> Option<Judged> {
    let same = fuel.share(SHARE, |fuel| Forms::new(fuel).same(a, b))?;
    Some(if same { Ok(()) } else { different("the values differ") })
}
