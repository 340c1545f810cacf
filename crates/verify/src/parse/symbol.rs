//! Letters: names, products of variables, subscripts, unknown functions.

use super::apply::applied;
use super::cursor::Cursor;
use super::expr::{atom, factorials, inside, raised, split};
use super::token::{Kind, Token};
use super::{Fault, names, number};
use crate::answer::{Expr, Function};

/// A run of letters: a name, or the product of its letters.
pub(super) fn letters(cursor: &mut Cursor<'_, '_>, word: &str) -> Result<Expr, Fault> {
    if let Some(value) = based_word(cursor)? {
        return Ok(value);
    }
    cursor.next();
    if let Some(function) = names::function(word) {
        return applied(cursor, function);
    }
    if word == "sqrt" || word == "cbrt" {
        let degree = Expr::integer(if word == "sqrt" { 2 } else { 3 });
        return cursor.deeper(atom)?.root(degree).ok_or(Fault::Unexpected);
    }
    if let Some(constant) = names::constant(word) {
        return Ok(Expr::Constant(constant));
    }
    let count = word.chars().count();
    if count > 1
        && let Some((head, function)) = ends_in_function(word)
    {
        let value = product_of(head);
        return Ok(value.times(applied(cursor, function)?));
    }
    if count > MAX_PRODUCT || is_english(word) {
        return Err(Fault::Unexpected);
    }
    let last = word.chars().next_back().map_or(0, char::len_utf8);
    let (head, last) = word.split_at(word.len() - last);
    let last = match names::constant(last) {
        Some(constant) if !cursor.is('_') => Expr::Constant(constant),
        _ => call(cursor, last)?,
    };
    // `xy^2`: the power is of the last letter.
    if head.is_empty() {
        return Ok(last);
    }
    let last = factorials(cursor, last)?;
    let last = raised(cursor, last)?;
    Ok(product_of(head).times(last))
}

/// Are these letters several variables?
pub(super) fn is_product(word: &str) -> bool {
    word.len() > 1 && names::function(word).is_none() && names::constant(word).is_none() && word != "sqrt"
}

/// The next letter of a run.
pub(super) fn letter(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    cursor.letter().map(product_of).ok_or(Fault::Unexpected)
}

/// Longer runs of letters are words.
const MAX_PRODUCT: usize = 4;

pub(super) fn product_of(word: &str) -> Expr {
    let letter = |c: char| match names::constant(c.encode_utf8(&mut [0; 4])) {
        Some(constant) => Expr::Constant(constant),
        None => Expr::Symbol(c.to_string()),
    };
    let mut factors: Vec<Expr> = word.chars().map(letter).collect();
    match factors.len() {
        1 => factors.remove(0),
        _ => Expr::Product(factors),
    }
}

fn ends_in_function(word: &str) -> Option<(&str, Function)> {
    ["sin", "cos", "tan", "log", "ln", "cot", "sec", "csc"].iter().find_map(|name| {
        let head = word.strip_suffix(name)?;
        (!head.is_empty() && head.len() <= 2)
            .then(|| names::function(name).map(|function| (head, function)))?
    })
}

/// Short words that stand for no product of variables.
fn is_english(word: &str) -> bool {
    matches!(
        word,
        "is" | "if"
            | "no"
            | "No"
            | "NO"
            | "the"
            | "The"
            | "for"
            | "and"
            | "or"
            | "not"
            | "yes"
            | "Yes"
            | "YES"
            | "are"
            | "any"
            | "all"
            | "of"
            | "to"
            | "then"
            | "with"
            | "true"
            | "True"
            | "by"
            | "per"
            | "be"
            | "at"
            | "it"
            | "was"
            | "as"
            | "so"
            | "has"
            | "from"
            | "where"
            | "mod"
            | "on"
            | "an"
    )
}

fn based_word(cursor: &mut Cursor<'_, '_>) -> Result<Option<Expr>, Fault> {
    let upper =
        matches!(cursor.peek(), Some(Kind::Word(word)) if word.bytes().all(|b| b.is_ascii_uppercase()));
    let followed = matches!(cursor.peek_at(1), Some(Kind::Digits(_) | Kind::Mark('_')));
    if !(upper && followed) {
        return Ok(None);
    }
    let mut ahead = cursor.clone();
    match number::read(&mut ahead) {
        Ok(value) => {
            *cursor = ahead;
            Ok(Some(value))
        }
        Err(Fault::Unexpected) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// A variable with its subscript and primes; or a function applied, `f(x)`.
fn call(cursor: &mut Cursor<'_, '_>, name: &str) -> Result<Expr, Fault> {
    let symbol = subscripted(cursor, name.to_owned());
    let Expr::Symbol(full) = &symbol else { return Ok(symbol) };
    if !cursor.is('(') || cursor.spaced(0) && !matches!(name, "f" | "g" | "h") {
        return Ok(symbol);
    }
    let always = matches!(name, "f" | "g" | "h" | "F" | "G" | "H" | "W") || full.contains('\'');
    let mut ahead = cursor.clone();
    let Some(inner) = ahead.group() else { return Ok(symbol) };
    let simple = matches!(name, "P" | "Q" | "T" | "p" | "q" | "N" | "V")
        && matches!(inner, [Token { kind: Kind::Word(_) | Kind::Digits(_), .. }]);
    if !always && !simple {
        return Ok(symbol);
    }
    let arguments =
        split(inner, ',').into_iter().map(|part| inside(cursor, part)).collect::<Result<_, _>>()?;
    *cursor = ahead;
    Ok(Expr::Apply(full.clone(), arguments))
}

pub(super) fn subscripted(cursor: &mut Cursor<'_, '_>, mut name: String) -> Expr {
    loop {
        if cursor.is('_') {
            let mut ahead = cursor.clone();
            ahead.next();
            let subscript = match ahead.peek() {
                Some(Kind::Mark('{')) => ahead.group().map(spelling),
                Some(Kind::Digits(_)) => ahead.digit().map(str::to_owned),
                Some(Kind::Word(word)) if word.chars().count() == 1 => {
                    ahead.next();
                    Some(word.to_owned())
                }
                Some(kind) => {
                    ahead.next();
                    Some(spelling(&[Token { kind, spaced: false, start: 0, end: 0 }]))
                }
                None => None,
            };
            let Some(subscript) = subscript else { return Expr::Symbol(name) };
            *cursor = ahead;
            name = format!("{name}_{subscript}");
        } else if cursor.is('\'') {
            cursor.next();
            name.push('\'');
        } else {
            return Expr::Symbol(name);
        }
    }
}

/// Tokens as one spelling, for names.
fn spelling(tokens: &[Token<'_>]) -> String {
    let mut out = String::new();
    for token in tokens {
        match token.kind {
            Kind::Digits(text) | Kind::Grouped(text) | Kind::Word(text) | Kind::Text(text) => {
                out.push_str(text)
            }
            Kind::Command(name) => {
                out.push('\\');
                out.push_str(name);
            }
            Kind::Mark('{' | '}') => {}
            Kind::Mark(c) => out.push(c),
            _ => out.push('?'),
        }
    }
    out
}
