//! What an answer says, with little left of how it was written: the tree between reading and comparing.
//!
//! ```text
//! text ── parse ──> Answer ── compare ──> equal, different (why), undecided (why)
//! ```
//! Reading decides nothing that needs algebra or a second answer: `(0,1)` may be a point or an open
//! interval, and `1,22` keeps both of its readings ([`Answer::Either`]). Comparing decides.

mod display;
mod unit;

use dashu_base::UnsignedAbs;

pub use dashu_ratio::RBig as Rational;
pub use unit::{Dimension, Unit};

/// One answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A number or an expression, perhaps with a unit.
    Value(Quantity),
    /// Words, in lower case with single spaces.
    Text(String),
    /// A letter of a multiple choice with what it stands for: `(C) 12`. A letter alone is a symbol.
    Choice(char, Box<Answer>),
    /// Parts in round, square or angle brackets: a point, a vector, an interval, a tuple.
    Tuple(Bracket, Vec<Answer>, Bracket),
    /// Parts between braces; order and repetition don't count.
    Set(Vec<Answer>),
    /// Several answers without brackets, by commas, "and", "or" or `\pm`; order doesn't count.
    Several(Vec<Answer>),
    /// `A \cup B`.
    Union(Vec<Answer>),
    /// `A \cap B`.
    Intersection(Vec<Answer>),
    /// `A \setminus B`.
    Without(Box<Answer>, Box<Answer>),
    /// `a < b <= c`, `x = 5`, `f(x) = x + 1`.
    Relation(Relation),
    /// `x \in S`; the sign says whether it is in.
    Member(Expr, bool, Box<Answer>),
    /// A time of the day or a duration, in seconds, with what was said about the half of the day.
    Time(u32, Option<HalfDay>),
    /// `a : b`, in two or more parts.
    Ratio(Vec<Expr>),
    /// Readings of one ambiguous spelling, the likeliest first.
    Either(Vec<Answer>),
}

/// A value with its unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// The number.
    pub value: Expr,
    /// What it counts, if that was said.
    pub unit: Option<Unit>,
}

/// The bracket at one end of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bracket {
    /// `(` or `)`; of an interval, an end that doesn't belong to it.
    Round,
    /// `[` or `]`; of an interval, an end that belongs to it.
    Square,
    /// `\langle` or `\rangle`.
    Angle,
}

/// Before or after noon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HalfDay {
    /// Before noon.
    Am,
    /// After noon.
    Pm,
}

/// Sides with the signs between them: one more side than signs.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// What stands between the signs; at least two.
    pub sides: Vec<Answer>,
    /// The signs, left to right.
    pub signs: Vec<Sign>,
}

/// How two sides are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// `=`
    Equal,
    /// `\approx`
    Near,
    /// `\ne`
    NotEqual,
    /// `<`
    Less,
    /// `\le`
    LessEqual,
    /// `>`
    Greater,
    /// `\ge`
    GreaterEqual,
}

/// An expression. Differences, quotients and roots are sums, products and powers.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// An exact number.
    Number(Rational),
    /// A number that was written with a decimal point: its value and how many digits stand after it.
    Decimal(Rational, u32),
    /// A variable, by its name without layout: `x`, `a_1`, `\alpha`.
    Symbol(String),
    /// A number that has a name.
    Constant(Constant),
    /// Terms.
    Sum(Vec<Expr>),
    /// Factors.
    Product(Vec<Expr>),
    /// Base and exponent.
    Power(Box<Expr>, Box<Expr>),
    /// A known function of its arguments.
    Function(Function, Vec<Expr>),
    /// An unknown function or operator: `f(x)`.
    Apply(String, Vec<Expr>),
    /// Rows of equal length.
    Matrix(Vec<Vec<Expr>>),
}

/// Numbers with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constant {
    /// 3.14159...
    Pi,
    /// 2.71828...
    E,
    /// The imaginary unit.
    I,
    /// Positive infinity.
    Infinity,
    /// One degree as an angle: pi / 180.
    Degree,
}

/// Functions with known values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "they bear the usual names")]
pub enum Function {
    Sin,
    Cos,
    Tan,
    Cot,
    Sec,
    Csc,
    Arcsin,
    Arccos,
    Arctan,
    Arccot,
    Sinh,
    Cosh,
    Tanh,
    /// The natural logarithm.
    Ln,
    /// Logarithm of the second argument to the base of the first, 10 if there is one argument.
    Log,
    /// The logarithm of which the base was left to the reader: 10 or e.
    LogBare,
    Exp,
    Abs,
    Floor,
    Ceil,
    Factorial,
    DoubleFactorial,
    /// n over k.
    Binomial,
    Gcd,
    Lcm,
    Min,
    Max,
    /// Remainder of the first argument divided by the second.
    Mod,
    Re,
    Im,
    Conjugate,
    Sign,
    Determinant,
    Transpose,
}

impl Answer {
    /// An expression without a unit.
    pub fn value(value: Expr) -> Answer {
        Answer::Value(Quantity { value, unit: None })
    }
}

impl Expr {
    /// A whole number.
    pub fn integer(value: impl Into<dashu_int::IBig>) -> Expr {
        Expr::Number(Rational::from(value.into()))
    }

    /// The value of a literal, fractions of integers included.
    pub fn literal(&self) -> Option<&Rational> {
        match self {
            Expr::Number(value) | Expr::Decimal(value, _) => Some(value),
            _ => None,
        }
    }

    /// With the other sign; a literal stays one.
    pub fn negated(self) -> Expr {
        match self {
            Expr::Number(value) => Expr::Number(-value),
            Expr::Decimal(value, places) => Expr::Decimal(-value, places),
            Expr::Product(mut factors) => {
                match factors.first().cloned() {
                    Some(first @ (Expr::Number(_) | Expr::Decimal(..))) => factors[0] = first.negated(),
                    _ => factors.insert(0, Expr::integer(-1)),
                }
                Expr::Product(factors)
            }
            other => Expr::Product(vec![Expr::integer(-1), other]),
        }
    }

    /// The product of two factors, flat.
    pub fn times(self, other: Expr) -> Expr {
        let mut factors = match self {
            Expr::Product(factors) => factors,
            one => vec![one],
        };
        match other {
            Expr::Product(more) => factors.extend(more),
            one => factors.push(one),
        }
        Expr::Product(factors)
    }

    /// The quotient; a fraction of integers becomes one number. `None` for division by a literal zero.
    pub fn over(self, other: Expr) -> Option<Expr> {
        match (&self, &other) {
            (_, Expr::Number(zero) | Expr::Decimal(zero, _)) if zero.is_zero() => None,
            (Expr::Number(a), Expr::Number(b)) => Some(Expr::Number(a / b)),
            (_, Expr::Number(b)) => Some(self.times(Expr::Number(Rational::ONE / b))),
            _ => Some(self.times(other.power(Expr::integer(-1)))),
        }
    }

    /// This to the power of another.
    pub fn power(self, exponent: Expr) -> Expr {
        Expr::Power(Box::new(self), Box::new(exponent))
    }

    /// The root of this, the square root for 2.
    pub fn root(self, degree: Expr) -> Option<Expr> {
        Some(self.power(Expr::integer(1).over(degree)?))
    }
}

/// A decimal by its digits, `12.50`.
fn decimal(value: &Rational, places: u32) -> String {
    let scaled = value * Rational::from(dashu_int::UBig::from(10u8).pow(places as usize));
    let digits = format!("{:0>width$}", scaled.trunc().unsigned_abs(), width = places as usize + 1);
    let sign = if value.sign() == dashu_base::Sign::Negative { "-" } else { "" };
    let (whole, part) = digits.split_at(digits.len() - places as usize);
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}
