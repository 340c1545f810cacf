//! Numbers: everything that is plainly one rational number, read exactly.
//!
//! The input has been through `normalise::clean`: single spaces, `\frac{a}{b}` with braces, `\cdot`
//! for every product sign. What is not a number for certain (`2x`, `5!`, `12:00`, `3 or 4`) is refused
//! and stays text.

use num_bigint::BigInt;
use num_rational::Ratio;
use num_traits::{One, Zero};

/// More digits than this are compared as text.
const MAX_DIGITS: usize = 1000;
/// Larger exponents of ten are compared as text.
const MAX_EXPONENT: u32 = 1000;

type Rational = Ratio<BigInt>;

/// Reads a number with its sign, currency and unit (the last two are dropped).
pub(crate) fn parse(text: &str) -> Option<Rational> {
    let mut cursor = Cursor(text.trim());
    let negative = cursor.sign_and_currency();
    let value = cursor.magnitude()?;
    let value = value * tail(cursor.0)?;
    Some(if negative { -value } else { value })
}

/// The rest of the text still to be read.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn eat(&mut self, prefix: &str) -> bool {
        self.0.strip_prefix(prefix).map(|rest| self.0 = rest).is_some()
    }

    fn spaces(&mut self) {
        self.0 = self.0.trim_start();
    }

    fn digits(&mut self) -> &'a str {
        let len = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(len);
        self.0 = rest;
        digits
    }

    /// `-`, `+`, `$`, `-$`, `$-`. Says whether the number is negative.
    fn sign_and_currency(&mut self) -> bool {
        let negative = self.sign();
        let rest = self.0.trim_start_matches(['$', '£', '€', '¥', '₹']);
        let money = rest.len() < self.0.len();
        self.0 = rest.trim_start();
        negative.unwrap_or_else(|| money && self.sign().unwrap_or(false))
    }

    fn sign(&mut self) -> Option<bool> {
        let sign = if self.eat("-") {
            Some(true)
        } else if self.eat("+") {
            Some(false)
        } else {
            None
        };
        self.spaces();
        sign
    }

    /// A decimal, a fraction, a mixed number or a power of ten times a decimal.
    fn magnitude(&mut self) -> Option<Rational> {
        if self.0.starts_with("\\frac") {
            return self.fraction();
        }
        let value = self.decimal()?;
        if value.is_integer()
            && let Some(part) = self.attempt(Self::fraction_of_mixed)
        {
            return Some(value + part);
        }
        if let Some(divisor) = self.attempt(Self::divisor) {
            return Some(value / divisor);
        }
        match self.attempt(Self::power_of_ten) {
            Some(power) => Some(value * power),
            None => Some(value),
        }
    }

    /// Runs a reader; puts the text back if it fails.
    fn attempt(&mut self, read: fn(&mut Self) -> Option<Rational>) -> Option<Rational> {
        let before = self.0;
        let value = read(self);
        if value.is_none() {
            self.0 = before;
        }
        value
    }

    /// What follows the whole part: `\frac{1}{2}`, or ` 1/2` after a space. Only proper fractions.
    fn fraction_of_mixed(&mut self) -> Option<Rational> {
        let spaced = self.0.starts_with(' ');
        self.spaces();
        let part = if self.0.starts_with("\\frac") {
            self.fraction()?
        } else if spaced {
            let top = self.decimal()?;
            top / self.divisor()?
        } else {
            return None;
        };
        (part > Rational::zero() && part < Rational::one()).then_some(part)
    }

    fn divisor(&mut self) -> Option<Rational> {
        self.spaces();
        if !self.eat("/") {
            return None;
        }
        self.spaces();
        self.decimal().filter(|d| !d.is_zero())
    }

    fn fraction(&mut self) -> Option<Rational> {
        if !self.eat("\\frac") {
            return None;
        }
        let (top, bottom) = (self.braced()?, self.braced()?);
        (!bottom.is_zero()).then(|| top / bottom)
    }

    fn braced(&mut self) -> Option<Rational> {
        let (inner, rest) = self.0.strip_prefix('{')?.split_once('}')?;
        self.0 = rest;
        let mut inner = Cursor(inner.trim());
        let negative = inner.sign().unwrap_or(false);
        let value = inner.decimal()?;
        inner.0.trim().is_empty().then_some(if negative { -value } else { value })
    }

    /// `e-5` or `\cdot 10^{-5}`.
    fn power_of_ten(&mut self) -> Option<Rational> {
        let braced = if self.eat("e") || self.eat("E") {
            false
        } else {
            self.spaces();
            let product = self.eat("\\cdot") || self.eat("*") || self.eat("x");
            self.spaces();
            if !(product && self.eat("10^")) {
                return None;
            }
            self.eat("{")
        };
        let negative = self.sign().unwrap_or(false);
        let exponent: u32 = self.digits().parse().ok().filter(|&e| e <= MAX_EXPONENT)?;
        if braced && !self.eat("}") {
            return None;
        }
        let power = Rational::from(BigInt::from(10).pow(exponent));
        Some(if negative { power.recip() } else { power })
    }

    /// Digits with thousands separators and a decimal part.
    fn decimal(&mut self) -> Option<Rational> {
        let first = self.digits();
        let mut whole = first.to_owned();
        if (1..=3).contains(&first.len()) && !first.starts_with('0') {
            whole.extend(self.thousands());
        }
        let comma = first == "0" && self.0.starts_with(','); // 0,25: nothing else it could be
        let mut after = Cursor(self.0.strip_prefix(if comma { ',' } else { '.' }).unwrap_or(""));
        let part = after.digits();
        if !part.is_empty() {
            self.0 = after.0;
        }
        exact(&whole, part)
    }

    /// Groups of exactly three digits, all behind the same separator.
    fn thousands(&mut self) -> Vec<&'a str> {
        let mut groups = Vec::new();
        let Some(separator) = self.0.chars().next().filter(|c| matches!(c, ',' | ' ')) else {
            return groups;
        };
        while let Some(rest) = self.0.strip_prefix(separator) {
            let mut after = Cursor(rest);
            let group = after.digits();
            if group.len() != 3 {
                break;
            }
            groups.push(group);
            self.0 = after.0;
        }
        groups
    }
}

fn exact(whole: &str, part: &str) -> Option<Rational> {
    let digits = whole.len() + part.len();
    if digits == 0 || digits > MAX_DIGITS {
        return None;
    }
    let value: BigInt = format!("{whole}{part}").parse().ok()?;
    Some(Rational::new(value, BigInt::from(10).pow(part.len() as u32)))
}

/// The factor in what follows a number: 1 for nothing, a percent sign or a unit; a million for that
/// word; `None` for anything that makes the whole something else.
fn tail(rest: &str) -> Option<Rational> {
    let attached = !rest.starts_with(' ');
    let rest = rest.trim();
    let (word, more) = rest.split_once(' ').unwrap_or((rest, ""));
    let factor = match word {
        "thousand" => 1_000u64,
        "million" => 1_000_000,
        "billion" => 1_000_000_000,
        "trillion" => 1_000_000_000_000,
        _ => 1,
    };
    let units = if factor > 1 { more } else { rest };
    let fits = units.is_empty()
        || matches!(units, "%" | "$" | "£" | "€" | "¥")
        || if attached && factor == 1 { is_short_unit(units) } else { are_units(units) };
    fits.then(|| Rational::from(BigInt::from(factor)))
}

fn are_units(text: &str) -> bool {
    let words = text.split(' ').flat_map(|word| word.split('/')).filter(|word| !word.is_empty());
    words.clone().count() <= 6 && words.clone().all(is_unit)
}

/// Words behind a number that are no unit: they join, compute, or change what it is.
const NOT_UNITS: &[&str] = &[
    "and",
    "or",
    "to",
    "plus",
    "minus",
    "times",
    "over",
    "mod",
    "pi",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "log",
    "exp",
    "dozen",
    "hundred",
    "remainder",
    "abc",
    "xyz",
    "not",
    "choose",
    "is",
    "if",
    "factorial",
];

/// Two letters could be a product of variables, so only these are taken.
const SHORT_UNITS: &[&str] = &[
    "cm", "mm", "km", "ft", "in", "yd", "mi", "kg", "mg", "lb", "lbs", "oz", "ml", "mL", "hr", "hrs", "min",
    "mins", "sec", "mph", "kph", "pct", "of", "sq", "cu", "GB", "MB", "kB",
];

fn is_unit(word: &str) -> bool {
    let word = word.split('^').next().unwrap_or(word).trim_end_matches('.');
    let word = word.trim_matches(['(', ')']);
    let long = word.chars().count() > 2
        && word.chars().all(|c| c.is_alphabetic() || c == '-' || c == '\'')
        && !NOT_UNITS.contains(&word.to_lowercase().as_str());
    long || is_short_unit(word)
}

fn is_short_unit(word: &str) -> bool {
    SHORT_UNITS.contains(&word.split('^').next().unwrap_or(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<String> {
        parse(&crate::normalise::clean(text)?).map(|value| value.to_string())
    }

    #[test]
    fn numbers() {
        for (text, expected) in [
            ("0", "0"),
            ("007", "7"),
            ("-5", "-5"),
            ("+5", "5"),
            ("- 5", "-5"),
            ("−5", "-5"),
            ("1,234", "1234"),
            ("1{,}234{,}567.50", "2469135/2"),
            ("1 000", "1000"),
            ("1\\,000", "1000"),
            (".4", "2/5"),
            ("0,25", "1/4"),
            ("1000.0", "1000"),
            ("10/4", "5/2"),
            ("1.5/2", "3/4"),
            ("\\frac{10}{-4}", "-5/2"),
            ("-\\dfrac12", "-1/2"),
            ("3\\frac12", "7/2"),
            ("-3 1/2", "-7/2"),
            ("2½", "5/2"),
            ("28\\%", "28"),
            ("28 percent", "28"),
            ("\\$1,000.99", "100099/100"),
            ("-$5", "-5"),
            ("$-5", "-5"),
            ("12€", "12"),
            ("35 cm", "35"),
            ("35cm", "35"),
            ("15\\mbox{ cm}^2", "15"),
            ("60 miles per hour", "60"),
            ("60 \\text{km/hr}", "60"),
            ("2.5 million dollars", "2500000"),
            ("1.2e3", "1200"),
            ("3 \\times 10^{-2}", "3/100"),
            ("90^\\circ", "90"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn not_numbers() {
        for text in [
            "",
            "-",
            "x",
            "2x",
            "2 x",
            "2\\pi",
            "2 pi",
            "5!",
            "12:00",
            "3 or 4",
            "204_5",
            "1,2",
            "5 am",
            "1/0",
            "\\frac{1}{0}",
            "\\frac{x}{2}",
            "2^{10}",
            "1e9999",
            "10^{1000000000}",
            "3 \\cdot 4",
            "5 choose 2",
            "1 2",
            "--5",
            "2 xy",
            "1/2/3",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn too_many_digits_are_text() {
        assert!(parse(&"7".repeat(1000)).is_some());
        assert!(parse(&"7".repeat(1001)).is_none());
    }

    proptest! {
        #[test]
        fn spellings_of_a_fraction_agree(a in -9999i64..9999, b in 1i64..9999) {
            let plain = parse(&format!("{a}/{b}"));
            prop_assert!(plain.is_some());
            prop_assert_eq!(&plain, &parse(&format!("\\frac{{{a}}}{{{b}}}")));
            prop_assert_eq!(&plain, &Some(Rational::new(a.into(), b.into())));
        }

        #[test]
        fn decimals_are_exact(n in 0u32..100_000_000) {
            let text = format!("{}.{:04}", n / 10_000, n % 10_000);
            prop_assert_eq!(parse(&text), Some(Rational::new(n.into(), 10_000.into())));
        }

        #[test]
        fn never_panics(text in "[-+$0-9., /\\\\a-e{}^%]{0,30}") {
            parse(&text);
        }
    }
}
