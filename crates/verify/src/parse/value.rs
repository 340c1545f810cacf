//! One value: currency, expression, unit; `\pm` makes several.

use super::token::{Kind, Token};
use super::{Fault, expr, number, unit};
use crate::answer::{Answer, Constant, Expr, Quantity, Rational, Unit};

/// More signs `\pm` than this are not read.
const MAX_PLUS_MINUS: usize = 4;

/// Reads all tokens as one value, or as the values that `\pm` makes of it.
pub(super) fn read(tokens: &[Token<'_>], source: &str) -> Result<Answer, Fault> {
    let signs = tokens.iter().filter(|t| matches!(t.kind, Kind::Mark('±' | '∓'))).count();
    match signs {
        0 => match single_letter_unit(tokens) {
            Some((head, unit)) => {
                let product = quantity(tokens, source).map(Answer::Value)?;
                let measured = Quantity { value: expr::whole(head)?, unit: Some(unit) };
                Ok(Answer::Either(vec![product, Answer::Value(measured)]))
            }
            None => quantity(tokens, source).map(Answer::Value),
        },
        1..=MAX_PLUS_MINUS => several(tokens, source, signs),
        _ => Err(Fault::Unexpected),
    }
}

/// `5 m` is a product or a length.
fn single_letter_unit<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<(&'t [Token<'a>], Unit)> {
    let [head @ .., number, Token { kind: Kind::Word(word), spaced: true, .. }] = tokens else { return None };
    let plain = head.len() <= 2 && matches!(number.kind, Kind::Digits(_) | Kind::Grouped(_));
    (plain && unit::is_single(word)).then(|| (&tokens[..tokens.len() - 1], unit::read(word)))
}

/// With `\mp` all signs go together; else each is free.
fn several(tokens: &[Token<'_>], source: &str, signs: usize) -> Result<Answer, Fault> {
    let together = tokens.iter().any(|t| t.kind == Kind::Mark('∓'));
    let all = (1u8 << signs) - 1;
    let read = |upper: u8| quantity(&resolved(tokens, upper), source).map(Answer::Value);
    let choices: Vec<u8> = if together { vec![0, all] } else { (0..=all).collect() };
    let values = choices.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if together || signs == 1 {
        return Ok(Answer::Several(values));
    }
    let pair = Answer::Several(vec![read(0)?, read(all)?]);
    Ok(Answer::Either(vec![Answer::Several(values), pair]))
}

/// Each `\pm` replaced: a set bit stands for the lower sign.
fn resolved<'a>(tokens: &[Token<'a>], lower: u8) -> Vec<Token<'a>> {
    let mut out = tokens.to_vec();
    let mut index = 0;
    for token in &mut out {
        let plus = match token.kind {
            Kind::Mark('±') => lower >> index & 1 == 0,
            Kind::Mark('∓') => lower >> index & 1 == 1,
            _ => continue,
        };
        index += 1;
        token.kind = Kind::Mark(if plus { '+' } else { '-' });
    }
    out
}

fn quantity(tokens: &[Token<'_>], source: &str) -> Result<Quantity, Fault> {
    if let Some(found) = money(tokens, source)? {
        return Ok(found);
    }
    if let Some(base) = number::base(tokens)
        && let Ok(value @ Expr::Number(_)) = expr::whole(tokens)
    {
        return Ok(Quantity { value, unit: Some(Unit::Base(base)) });
    }
    let (head, modulus) = congruence(tokens, source);
    if let Some(unit) = modulus {
        return Ok(Quantity { value: expr::whole(head)?, unit: Some(unit) });
    }
    let (head, unit) = unit::peel(head, source);
    match expr::whole(head) {
        Ok(value) => {
            let (value, unit) = counted(value, unit);
            Ok(angle(value, unit))
        }
        // The words were no unit after all.
        Err(Fault::Unexpected) if unit.is_some() => Ok(angle(expr::whole(tokens)?, None)),
        Err(fault) => Err(fault),
    }
}

/// `$5`, `-$5`, `$-5`, `5$`, `$5 million`.
fn money(tokens: &[Token<'_>], source: &str) -> Result<Option<Quantity>, Fault> {
    let sign = |token: &Token<'_>| match token.kind {
        Kind::Mark(c) => unit::currency(c),
        _ => None,
    };
    let (unit, value): (Unit, Vec<Token<'_>>) = match tokens {
        [first, rest @ ..] if sign(first).is_some() => (sign(first).ok_or(Fault::Unexpected)?, rest.to_vec()),
        [minus, first, rest @ ..] if minus.kind == Kind::Mark('-') && sign(first).is_some() => {
            let signed = std::iter::once(*minus).chain(rest.iter().copied()).collect();
            (sign(first).ok_or(Fault::Unexpected)?, signed)
        }
        [rest @ .., last] if sign(last).is_some() => (sign(last).ok_or(Fault::Unexpected)?, rest.to_vec()),
        _ => return Ok(None),
    };
    let (head, counts) = unit::peel(&value, source);
    let (value, _) = counted(expr::whole(head)?, counts);
    Ok(Some(Quantity { value, unit: Some(unit) }))
}

/// `2.5 million dollars` is a number of dollars.
fn counted(value: Expr, unit: Option<Unit>) -> (Expr, Option<Unit>) {
    let Some(Unit::Words(words)) = &unit else { return (value, unit) };
    let (first, rest) = words.split_once(' ').unwrap_or((words, ""));
    let zeros = match first {
        "hundred" => 2,
        "thousand" => 3,
        "million" => 6,
        "billion" => 9,
        "trillion" => 12,
        _ => return (value, unit),
    };
    let power = Rational::from(10u64.pow(zeros));
    let value = match value {
        Expr::Number(value) => Expr::Number(value * power),
        Expr::Decimal(value, places) if places > zeros => Expr::Decimal(value * power, places - zeros),
        Expr::Decimal(value, _) => Expr::Number(value * power),
        value => value.times(Expr::Number(power)),
    };
    (value, (!rest.is_empty()).then(|| unit::read(rest)))
}

/// `3 \pmod{7}`, `3 mod 7`.
fn congruence<'t, 'a>(tokens: &'t [Token<'a>], source: &str) -> (&'t [Token<'a>], Option<Unit>) {
    let is_mod = |t: &Token<'_>| matches!(t.kind, Kind::Command("pmod" | "bmod" | "mod") | Kind::Word("mod"));
    let Some(at) = tokens.iter().position(is_mod) else { return (tokens, None) };
    let open = at > 0
        && tokens[at - 1].kind == Kind::Mark('(')
        && tokens.last().is_some_and(|t| t.kind == Kind::Mark(')'));
    let (head, last) = (if open { at - 1 } else { at }, tokens[tokens.len() - 1].end);
    let modulus = source.get(tokens[at].end..last).unwrap_or("");
    let modulus: String = modulus.chars().filter(|c| c.is_alphanumeric() || "+-*^".contains(*c)).collect();
    (&tokens[..head], Some(Unit::Words(format!("mod {modulus}"))))
}

/// A value that is so many degrees has the unit degree.
fn angle(value: Expr, unit: Option<Unit>) -> Quantity {
    let Expr::Product(mut factors) = value else { return Quantity { value, unit } };
    let degrees = factors.iter().filter(|f| **f == Expr::Constant(Constant::Degree)).count();
    if unit.is_some() || degrees != 1 {
        return Quantity { value: Expr::Product(factors), unit };
    }
    factors.retain(|f| *f != Expr::Constant(Constant::Degree));
    let value = if factors.len() == 1 { factors.remove(0) } else { Expr::Product(factors) };
    Quantity { value, unit: Some(Unit::Degree) }
}
