//! Numerals: separators, decimals, repeating decimals, mixed numbers, other bases, powers of ten.

use dashu_int::{IBig, UBig};

use super::cursor::Cursor;
use super::expr;
use super::token::{Kind, Token};
use super::{Fault, ParseError};
use crate::answer::{Expr, Rational};

/// Numbers with more digits are not read.
const MAX_DIGITS: usize = 2000;
/// Larger powers of ten are not read.
const MAX_EXPONENT: usize = 10_000;

/// The numeral ahead.
pub(super) fn read(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    if let Some(value) = based(cursor)? {
        return Ok(value);
    }
    let whole = whole_digits(cursor);
    let plain = !matches!(cursor.peek(), Some(Kind::Mark('.')));
    let fraction = if plain { None } else { fraction_digits(cursor) };
    let (Some(whole), fraction) = (whole.or_else(|| fraction.map(|_| String::new())), fraction) else {
        return Err(Fault::Unexpected);
    };
    if let Some(value) = repeating(cursor, &whole, fraction)? {
        return Ok(value);
    }
    let value = match fraction {
        None => mixed(cursor, Expr::Number(exact(&whole, "")?))?,
        Some(part) => Expr::Decimal(exact(&whole, part)?, part.len() as u32),
    };
    scientific(cursor, value)
}

fn whole_digits(cursor: &mut Cursor<'_, '_>) -> Option<String> {
    match cursor.peek() {
        Some(Kind::Digits(digits)) => {
            cursor.next();
            Some(digits.to_owned())
        }
        Some(Kind::Grouped(digits)) => {
            cursor.next();
            Some(digits.chars().filter(char::is_ascii_digit).collect())
        }
        _ => None,
    }
}

/// A point with digits behind it, or a final point such as in `5.`.
fn fraction_digits<'a>(cursor: &mut Cursor<'_, 'a>) -> Option<&'a str> {
    match cursor.peek_at(1) {
        Some(Kind::Digits(digits)) if !cursor.spaced(1) => {
            cursor.next();
            cursor.next();
            Some(digits)
        }
        _ => None,
    }
}

fn exact(whole: &str, part: &str) -> Result<Rational, Fault> {
    let digits = whole.len() + part.len();
    if digits > MAX_DIGITS {
        return Err(ParseError::TooLarge { what: "digits", limit: MAX_DIGITS }.into());
    }
    let whole = if whole.is_empty() && part.is_empty() { "0" } else { whole };
    if part.is_empty()
        && let Ok(small) = whole.parse::<u64>()
    {
        return Ok(Rational::from(small));
    }
    let value: UBig = format!("{whole}{part}").parse().map_err(|_| Fault::Unexpected)?;
    Ok(Rational::from_parts(IBig::from(value), UBig::from(10u8).pow(part.len())))
}

/// `0.\overline{3}`, `0.1\overline{6}`, `0.1(6)` and `0.333...`.
fn repeating(cursor: &mut Cursor<'_, '_>, whole: &str, part: Option<&str>) -> Result<Option<Expr>, Fault> {
    let mut ahead = cursor.clone();
    let (fixed, block) = match (part, ahead.peek()) {
        (None, Some(Kind::Mark('.')))
            if matches!(ahead.peek_at(1), Some(Kind::Command("overline" | "dot"))) =>
        {
            ahead.next();
            ("", overlined(&mut ahead))
        }
        (Some(part), Some(Kind::Command("overline" | "dot"))) => (part, overlined(&mut ahead)),
        (Some(part), Some(Kind::Mark('('))) if !ahead.spaced(0) => {
            (part, ahead.group().and_then(only_digits))
        }
        (Some(part), Some(Kind::Command("dots") | Kind::Mark('.'))) => {
            let dots = ahead.clone();
            while matches!(ahead.peek(), Some(Kind::Command("dots") | Kind::Mark('.'))) {
                ahead.next();
            }
            let Some((fixed, block)) = period(part) else {
                if dots.peek_at(1).is_some() {
                    *cursor = ahead;
                }
                return Ok(None);
            };
            (fixed, Some(block))
        }
        _ => return Ok(None),
    };
    let Some(block) = block.filter(|block| !block.is_empty() && block.len() + fixed.len() <= 100) else {
        return Ok(None);
    };
    *cursor = ahead;
    let start = exact(whole, fixed)?;
    let nines = UBig::from(10u8).pow(block.len()) - UBig::ONE;
    let shift = UBig::from(10u8).pow(fixed.len());
    let block: UBig = block.parse().map_err(|_| Fault::Unexpected)?;
    Ok(Some(Expr::Number(start + Rational::from_parts(block.into(), nines * shift))))
}

fn overlined<'a>(cursor: &mut Cursor<'_, 'a>) -> Option<&'a str> {
    cursor.next();
    if cursor.is('{') { cursor.group().and_then(only_digits) } else { cursor.digit() }
}

fn only_digits<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    match tokens {
        [Token { kind: Kind::Digits(digits), .. }] => Some(digits),
        _ => None,
    }
}

/// The fixed digits and the block that repeats at least three times to the end (twice if it is longer).
fn period(part: &str) -> Option<(&str, &str)> {
    (1..=6).find_map(|len| {
        let times = if len == 1 { 3 } else { 2 };
        (0..part.len()).find_map(|start| {
            let tail = part.get(start..)?;
            let block = tail.get(..len)?;
            let whole =
                tail.len() >= len * times && tail.bytes().zip(block.bytes().cycle()).all(|(a, b)| a == b);
            whole.then_some((&part[..start], block))
        })
    })
}

/// `3\frac12`, `3 1/2`, `3½`: an integer right before a proper fraction.
fn mixed(cursor: &mut Cursor<'_, '_>, whole: Expr) -> Result<Expr, Fault> {
    let mut ahead = cursor.clone();
    let part = match ahead.peek() {
        Some(Kind::Command("frac")) => expr::fraction(&mut ahead)?,
        Some(Kind::Vulgar(top, bottom)) => {
            ahead.next();
            ratio(top.into(), bottom.into())
        }
        Some(Kind::Digits(top)) if ahead.spaced(0) && ahead.peek_at(1) == Some(Kind::Mark('/')) => {
            let Some(Kind::Digits(bottom)) = ahead.peek_at(2) else { return Ok(whole) };
            ahead.next();
            ahead.next();
            ahead.next();
            match (top.parse::<u32>(), bottom.parse::<u32>()) {
                (Ok(top), Ok(bottom)) if bottom > 0 => ratio(top, bottom),
                _ => return Ok(whole),
            }
        }
        _ => return Ok(whole),
    };
    let (Expr::Number(value), Expr::Number(part)) = (&whole, &part) else { return Ok(whole) };
    let proper = *part > Rational::ZERO && *part < Rational::ONE;
    if !proper {
        return Ok(whole);
    }
    *cursor = ahead;
    Ok(Expr::Number(value + part))
}

fn ratio(top: u32, bottom: u32) -> Expr {
    Expr::Number(Rational::from_parts(IBig::from(top), UBig::from(bottom)))
}

/// `1.2e-3`, written without spaces.
fn scientific(cursor: &mut Cursor<'_, '_>, value: Expr) -> Result<Expr, Fault> {
    if !matches!(cursor.peek(), Some(Kind::Word("e" | "E"))) || cursor.spaced(0) || cursor.spaced(1) {
        return Ok(value);
    }
    let mut ahead = cursor.clone();
    ahead.next();
    let negative = ahead.eat('-');
    if !negative {
        ahead.eat('+');
    }
    let Some(Kind::Digits(digits)) = ahead.peek() else { return Ok(value) };
    ahead.next();
    let exponent = digits.parse::<usize>().ok().filter(|&e| e <= MAX_EXPONENT);
    let exponent = exponent.ok_or(ParseError::TooLarge { what: "exponent", limit: MAX_EXPONENT })?;
    *cursor = ahead;
    let power = Rational::from(UBig::from(10u8).pow(exponent));
    Ok(match value {
        Expr::Number(value) if negative => Expr::Number(value / power),
        Expr::Number(value) => Expr::Number(value * power),
        Expr::Decimal(value, places) if negative => Expr::Decimal(value / power, places + exponent as u32),
        Expr::Decimal(value, places) if places > exponent as u32 => {
            Expr::Decimal(value * power, places - exponent as u32)
        }
        Expr::Decimal(value, _) => Expr::Number(value * power),
        other => other,
    })
}

/// `204_5`, `A5_{11}`: digits with the base below.
fn based(cursor: &mut Cursor<'_, '_>) -> Result<Option<Expr>, Fault> {
    let mut ahead = cursor.clone();
    let mut numeral = String::new();
    loop {
        match ahead.peek() {
            Some(Kind::Digits(part) | Kind::Word(part) | Kind::Text(part) | Kind::Grouped(part))
                if numeral.is_empty() || !ahead.spaced(0) =>
            {
                numeral.push_str(part);
            }
            Some(Kind::Mark('_')) if !numeral.is_empty() => break,
            _ => return Ok(None),
        }
        ahead.next();
    }
    ahead.next();
    let base = subscript(&mut ahead);
    let Some(base) = base.filter(|base: &u32| (2..=36).contains(base)) else { return Ok(None) };
    if numeral.len() > MAX_DIGITS {
        return Err(ParseError::TooLarge { what: "digits", limit: MAX_DIGITS }.into());
    }
    // A_{11} is a variable, AB_{11} may be a number.
    let letters = numeral.chars().filter(|c| c.is_alphabetic()).count();
    if letters > 0 && (letters == numeral.len() && letters < 2 || numeral.chars().any(char::is_lowercase)) {
        return Ok(None);
    }
    let Ok(value) = UBig::from_str_radix(&numeral, base) else { return Ok(None) };
    *cursor = ahead;
    Ok(Some(Expr::Number(Rational::from(value))))
}

fn subscript(cursor: &mut Cursor<'_, '_>) -> Option<u32> {
    if cursor.is('{') {
        return match cursor.group() {
            Some([Token { kind: Kind::Digits(base), .. }]) => base.parse().ok(),
            Some([Token { kind: Kind::Word(word) | Kind::Text(word), .. }]) => spelled_base(word),
            _ => None,
        };
    }
    let Some(Kind::Digits(base)) = cursor.peek() else { return None };
    cursor.next();
    base.parse().ok()
}

/// The base of tokens that are one numeral, with the base below, and nothing else.
pub(super) fn base(tokens: &[Token<'_>]) -> Option<u32> {
    let at = tokens.iter().position(|token| token.kind == Kind::Mark('_'))?;
    let sign = |token: &Token<'_>| matches!(token.kind, Kind::Mark('-' | '+'));
    let digits = |token: &Token<'_>| matches!(token.kind, Kind::Digits(_) | Kind::Word(_) | Kind::Text(_));
    let (first, rest) = tokens[..at].split_first()?;
    let numeral = rest.iter().all(digits) && (digits(first) || sign(first) && !rest.is_empty());
    let base = if tokens.len() == at + 2 || tokens.len() == at + 4 {
        subscript(&mut Cursor::new(&tokens[at + 1..]))
    } else {
        None
    };
    base.filter(|_| numeral)
}

fn spelled_base(word: &str) -> Option<u32> {
    const NAMES: [&str; 11] =
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    NAMES.iter().position(|name| name.eq_ignore_ascii_case(word)).map(|at| at as u32 + 2)
}
