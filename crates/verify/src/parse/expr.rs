//! Expressions: sums of products of powers of atoms, with implicit products.

use super::apply::applied;
use super::cursor::{Cursor, step};
use super::matrix::matrix;
use super::symbol::{is_product, letter, letters, subscripted};
use super::token::{Kind, Token};
use super::{Fault, ParseError, names, number};
use crate::answer::{Constant, Expr, Function, Rational};

/// Reads all tokens as one expression.
pub(super) fn whole(tokens: &[Token<'_>]) -> Result<Expr, Fault> {
    over(&Cursor::new(tokens), tokens)
}

fn all(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    let value = sum(cursor)?;
    if cursor.done() { Ok(value) } else { Err(Fault::Unexpected) }
}

pub(super) fn inside(cursor: &Cursor<'_, '_>, tokens: &[Token<'_>]) -> Result<Expr, Fault> {
    cursor.within(tokens).deeper(all)
}

fn sum(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    cursor.deeper(|cursor| {
        let negative = sign(cursor);
        let first = product(cursor)?;
        let mut terms = vec![if negative { first.negated() } else { first }];
        while matches!(cursor.peek(), Some(Kind::Mark('+' | '-'))) {
            let negative = sign(cursor);
            let term = product(cursor)?;
            terms.push(if negative { term.negated() } else { term });
        }
        Ok(match terms.pop() {
            Some(only) if terms.is_empty() => only,
            Some(last) => {
                terms.push(last);
                Expr::Sum(terms)
            }
            None => return Err(Fault::Unexpected),
        })
    })
}

/// Operators that nest what stands before them may follow each other so often.
pub(super) const MAX_REPEATS: usize = 8;
pub(super) const TOO_MANY: Fault =
    Fault::Fatal(ParseError::TooLarge { what: "operators in a row", limit: MAX_REPEATS });

/// Any number of signs; says whether they make a minus.
pub(super) fn sign(cursor: &mut Cursor<'_, '_>) -> bool {
    let mut negative = false;
    loop {
        if cursor.eat('-') {
            negative = !negative;
        } else if !cursor.eat('+') {
            return negative;
        }
    }
}

pub(super) fn product(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    let mut value = power(cursor)?;
    let mut choices = 0;
    loop {
        if cursor.eat('*') {
            value = value.times(signed(cursor)?);
        } else if cursor.eat('/') {
            value = value.over(signed(cursor)?).ok_or(Fault::Unexpected)?;
        } else if matches!(cursor.peek(), Some(Kind::Word("choose"))) || choose(cursor) {
            cursor.next();
            choices += 1;
            if choices > MAX_REPEATS {
                return Err(TOO_MANY);
            }
            value = Expr::Function(Function::Binomial, vec![value, power(cursor)?]);
        } else if starts_factor(cursor) {
            value = value.times(power(cursor)?);
        } else {
            return Ok(value);
        }
    }
}

fn choose(cursor: &Cursor<'_, '_>) -> bool {
    cursor.peek() == Some(Kind::Command("choose"))
}

pub(super) fn signed(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    let negative = sign(cursor);
    let value = power(cursor)?;
    Ok(if negative { value.negated() } else { value })
}

/// May what is ahead be a factor without a product sign before it? Two numbers side by side may not.
pub(super) fn starts_factor(cursor: &Cursor<'_, '_>) -> bool {
    match cursor.peek() {
        Some(Kind::Word(word)) => word != "choose" && word != "mod",
        Some(Kind::Root | Kind::Begin(_)) => true,
        Some(Kind::Command(name)) => {
            !matches!(name, "choose" | "dots" | "to" | "bmod" | "pmod" | "mod" | "circ" | "over")
        }
        Some(Kind::Mark(c)) => matches!(c, '(' | '{' | '⌊' | '⌈' | '°') || c == '[',
        _ => false,
    }
}

pub(super) fn power(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    cursor.deeper(|cursor| {
        let base = postfix(cursor)?;
        raised(cursor, base)
    })
}

pub(super) fn raised(cursor: &mut Cursor<'_, '_>, base: Expr) -> Result<Expr, Fault> {
    let base = if degrees(cursor) { base.times(Expr::Constant(Constant::Degree)) } else { base };
    if !cursor.eat('^') {
        return Ok(base);
    }
    let exponent = exponent(cursor)?;
    factorials(cursor, base.power(exponent))
}

/// `°`, `^\circ`, `^{\circ}`.
fn degrees(cursor: &mut Cursor<'_, '_>) -> bool {
    if cursor.eat('°') {
        return true;
    }
    let mut ahead = cursor.clone();
    if !ahead.eat('^') {
        return false;
    }
    let found = match ahead.peek() {
        Some(Kind::Command("circ") | Kind::Mark('°')) => {
            ahead.next();
            true
        }
        Some(Kind::Mark('{')) => {
            matches!(ahead.group(), Some([Token { kind: Kind::Command("circ") | Kind::Mark('°'), .. }]))
        }
        _ => false,
    };
    if found {
        *cursor = ahead;
    }
    found
}

pub(super) fn exponent(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    let negative = sign(cursor);
    let value = match cursor.peek() {
        Some(Kind::Mark('{')) => braced(cursor)?,
        // e^xy is e^x y.
        Some(Kind::Word(word)) if is_product(word) => letter(cursor)?,
        _ => {
            // x^y^z is a tower.
            let base = postfix(cursor)?;
            if cursor.eat('^') { base.power(cursor.deeper(exponent)?) } else { base }
        }
    };
    Ok(if negative { value.negated() } else { value })
}

fn braced(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    let inner = cursor.group().ok_or(Fault::Unexpected)?;
    over(cursor, inner)
}

/// The inside of a group: `{n \choose k}` and `{a \over b}` are infix.
fn over(cursor: &Cursor<'_, '_>, inner: &[Token<'_>]) -> Result<Expr, Fault> {
    let mut depth = 0;
    let infix = inner.iter().position(|token| {
        depth += step(token.kind);
        depth == 0 && matches!(token.kind, Kind::Command("choose" | "over"))
    });
    let Some(at) = infix else { return inside(cursor, inner) };
    let (top, bottom) = (inside(cursor, &inner[..at])?, inside(cursor, &inner[at + 1..])?);
    if inner[at].kind == Kind::Command("over") {
        return top.over(bottom).ok_or(Fault::Unexpected);
    }
    Ok(Expr::Function(Function::Binomial, vec![top, bottom]))
}

fn postfix(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    let value = atom(cursor)?;
    factorials(cursor, value)
}

pub(super) fn factorials(cursor: &mut Cursor<'_, '_>, mut value: Expr) -> Result<Expr, Fault> {
    for _ in 0..MAX_REPEATS {
        if !cursor.eat('!') {
            return Ok(value);
        }
        let double = cursor.is('!') && !cursor.spaced(0);
        if double {
            cursor.next();
        }
        let function = if double { Function::DoubleFactorial } else { Function::Factorial };
        value = Expr::Function(function, vec![value]);
    }
    if cursor.is('!') { Err(TOO_MANY) } else { Ok(value) }
}

pub(super) fn atom(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    match cursor.peek().ok_or(Fault::Unexpected)? {
        Kind::Digits(_) | Kind::Grouped(_) | Kind::Mark('.') | Kind::Text(_) => number::read(cursor),
        Kind::Vulgar(top, bottom) => {
            cursor.next();
            Ok(Expr::Number(Rational::from_parts(top.into(), bottom.into())))
        }
        Kind::Root => {
            cursor.next();
            cursor.deeper(postfix)?.root(Expr::integer(2)).ok_or(Fault::Unexpected)
        }
        Kind::Mark('(' | '[') => {
            let inner = cursor.group().ok_or(Fault::Unexpected)?;
            inside(cursor, inner)
        }
        Kind::Mark('{') => braced(cursor),
        Kind::Mark('|') => {
            let inner = cursor.bars().ok_or(Fault::Unexpected)?;
            Ok(Expr::Function(Function::Abs, vec![inside(cursor, inner)?]))
        }
        Kind::Mark(open @ ('⌊' | '⌈')) => {
            let function = if open == '⌊' { Function::Floor } else { Function::Ceil };
            let inner = cursor.group().ok_or(Fault::Unexpected)?;
            Ok(Expr::Function(function, vec![inside(cursor, inner)?]))
        }
        Kind::Mark('∞') => {
            cursor.next();
            Ok(Expr::Constant(Constant::Infinity))
        }
        Kind::Begin(name) => matrix(cursor, name),
        Kind::Command(name) => command(cursor, name),
        Kind::Word(word) => letters(cursor, word),
        _ => Err(Fault::Unexpected),
    }
}

fn command(cursor: &mut Cursor<'_, '_>, name: &str) -> Result<Expr, Fault> {
    if let Some(function) = names::function(name) {
        cursor.next();
        return applied(cursor, function);
    }
    match name {
        "frac" => fraction(cursor),
        "sqrt" => root(cursor),
        "binom" => {
            cursor.next();
            let (n, k) = (argument(cursor)?, argument(cursor)?);
            Ok(Expr::Function(Function::Binomial, vec![n, k]))
        }
        "overline" | "widetilde" | "tilde" | "hat" | "dot" => {
            cursor.next();
            argument(cursor)
        }
        "angle" | "triangle" | "measuredangle" => {
            cursor.next();
            let Some(Kind::Word(word)) = cursor.peek() else { return Err(Fault::Unexpected) };
            cursor.next();
            Ok(Expr::Symbol(format!("{name} {word}")))
        }
        "dots" | "circ" | "emptyset" | "pmod" | "bmod" | "mod" | "choose" | "over" | "forall" | "exists"
        | "sum" | "prod" | "int" | "lim" | "to" | "rightarrow" | "implies" | "iff" => Err(Fault::Unexpected),
        _ => {
            cursor.next();
            match names::constant(name) {
                Some(constant) => Ok(Expr::Constant(constant)),
                None => Ok(subscripted(cursor, format!("\\{name}"))),
            }
        }
    }
}

/// `\frac` with its two arguments.
pub(super) fn fraction(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    cursor.next();
    let top = argument(cursor)?;
    // `\frac12/3` and the like are read as they stand.
    cursor.eat('/');
    let bottom = argument(cursor)?;
    top.over(bottom).ok_or(Fault::Unexpected)
}

/// An argument of a command: a group, one digit, or one atom.
pub(super) fn argument(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    match cursor.peek() {
        Some(Kind::Mark('{')) => braced(cursor),
        Some(Kind::Digits(_)) => {
            let digit = cursor.digit().and_then(|digit| digit.parse::<u8>().ok()).ok_or(Fault::Unexpected)?;
            Ok(Expr::integer(digit))
        }
        Some(Kind::Word(word)) if is_product(word) => letter(cursor),
        Some(Kind::Mark('-')) => {
            cursor.next();
            Ok(argument(cursor)?.negated())
        }
        _ => cursor.deeper(atom),
    }
}

fn root(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    cursor.next();
    let degree = if cursor.is('[') {
        let inner = cursor.group().ok_or(Fault::Unexpected)?;
        inside(cursor, inner)?
    } else {
        Expr::integer(2)
    };
    let radicand = match cursor.peek() {
        Some(Kind::Mark('{')) => braced(cursor)?,
        // Nobody means the root of one times five by \sqrt15.
        _ => cursor.deeper(atom)?,
    };
    radicand.root(degree).ok_or(Fault::Unexpected)
}

/// Splits at a mark on the upper level.
pub(super) fn split<'t, 'a>(tokens: &'t [Token<'a>], mark: char) -> Vec<&'t [Token<'a>]> {
    let mut depth = 0;
    tokens
        .split(|token| {
            depth += step(token.kind);
            depth == 0 && token.kind == Kind::Mark(mark)
        })
        .collect()
}
