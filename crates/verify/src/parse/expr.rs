//! Expressions: sums of products of powers of atoms, with implicit products.

use super::cursor::{Cursor, step};
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

fn inside(cursor: &Cursor<'_, '_>, tokens: &[Token<'_>]) -> Result<Expr, Fault> {
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
const MAX_REPEATS: usize = 8;
const TOO_MANY: Fault = Fault::Fatal(ParseError::TooLarge { what: "operators in a row", limit: MAX_REPEATS });

/// Any number of signs; says whether they make a minus.
fn sign(cursor: &mut Cursor<'_, '_>) -> bool {
    let mut negative = false;
    loop {
        if cursor.eat('-') {
            negative = !negative;
        } else if !cursor.eat('+') {
            return negative;
        }
    }
}

fn product(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
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

fn signed(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    let negative = sign(cursor);
    let value = power(cursor)?;
    Ok(if negative { value.negated() } else { value })
}

/// May what is ahead be a factor without a product sign before it? Two numbers side by side may not.
fn starts_factor(cursor: &Cursor<'_, '_>) -> bool {
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

fn power(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    cursor.deeper(|cursor| {
        let base = postfix(cursor)?;
        raised(cursor, base)
    })
}

fn raised(cursor: &mut Cursor<'_, '_>, base: Expr) -> Result<Expr, Fault> {
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

fn exponent(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
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

fn factorials(cursor: &mut Cursor<'_, '_>, mut value: Expr) -> Result<Expr, Fault> {
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

fn atom(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
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
fn argument(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
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

/// A known function with its exponent, base and arguments.
fn applied(cursor: &mut Cursor<'_, '_>, function: Function) -> Result<Expr, Fault> {
    let mut function = function;
    let mut exponents = Vec::new();
    let mut base = None;
    loop {
        if cursor.is('^') && !matches!(cursor.peek_at(1), Some(Kind::Command("circ"))) {
            cursor.next();
            let exponent = exponent(cursor)?;
            match names::inverse(function).filter(|_| exponent == Expr::integer(-1)) {
                Some(inverse) => function = inverse,
                None if exponents.len() == MAX_REPEATS => return Err(TOO_MANY),
                None => exponents.push(exponent),
            }
        } else if base.is_none()
            && matches!(function, Function::LogBare | Function::Min | Function::Max)
            && cursor.eat('_')
        {
            base = Some(argument(cursor)?);
        } else {
            break;
        }
    }
    let mut arguments = arguments(cursor, function)?;
    if let (Function::LogBare, Some(base)) = (function, base) {
        function = Function::Log;
        arguments.insert(0, base);
    }
    let value = Expr::Function(function, arguments);
    let value = exponents.into_iter().fold(value, Expr::power);
    Ok(value)
}

fn arguments(cursor: &mut Cursor<'_, '_>, function: Function) -> Result<Vec<Expr>, Fault> {
    if matches!(cursor.peek(), Some(Kind::Mark('(' | '[' | '⦃'))) {
        let inner = cursor.group().ok_or(Fault::Unexpected)?;
        return split(inner, ',').into_iter().map(|part| inside(cursor, part)).collect();
    }
    if !names::is_prefix(function) {
        return Ok(vec![argument(cursor)?]);
    }
    // `\sin 5x \cos x`: the argument ends before the next function, sum or quotient sign.
    let negative = sign(cursor);
    let mut value = power(cursor)?;
    loop {
        let next_function = match cursor.peek() {
            Some(Kind::Command(name) | Kind::Word(name)) => names::function(name).is_some(),
            Some(Kind::Mark('(' | '[')) => true,
            _ => false,
        };
        if next_function || !starts_factor(cursor) {
            break;
        }
        value = value.times(power(cursor)?);
    }
    if cursor.is('/') && matches!(cursor.peek_at(1), Some(Kind::Digits(_))) {
        cursor.next();
        value = value.over(power(cursor)?).ok_or(Fault::Unexpected)?;
    }
    Ok(vec![if negative { value.negated() } else { value }])
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

/// A run of letters: a name, or the product of its letters.
fn letters(cursor: &mut Cursor<'_, '_>, word: &str) -> Result<Expr, Fault> {
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
fn is_product(word: &str) -> bool {
    word.len() > 1 && names::function(word).is_none() && names::constant(word).is_none() && word != "sqrt"
}

/// The next letter of a run.
fn letter(cursor: &mut Cursor<'_, '_>) -> Result<Expr, Fault> {
    cursor.letter().map(product_of).ok_or(Fault::Unexpected)
}

/// Longer runs of letters are words.
const MAX_PRODUCT: usize = 4;

fn product_of(word: &str) -> Expr {
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

fn subscripted(cursor: &mut Cursor<'_, '_>, mut name: String) -> Expr {
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

fn matrix(cursor: &mut Cursor<'_, '_>, name: &str) -> Result<Expr, Fault> {
    let shape = name.trim_end_matches('*');
    if !matches!(shape, "matrix" | "pmatrix" | "bmatrix" | "Bmatrix" | "vmatrix" | "smallmatrix" | "array") {
        return Err(Fault::Unexpected);
    }
    let inner = cursor.group().ok_or(Fault::Unexpected)?;
    let mut depth = 0;
    let mut rows = Vec::new();
    for row in inner.split(|token| {
        depth += step(token.kind);
        depth == 0 && token.kind == Kind::Row
    }) {
        if row.is_empty() {
            continue; // a final `\\`
        }
        let entries =
            split(row, '&').into_iter().map(|entry| inside(cursor, entry)).collect::<Result<Vec<_>, _>>()?;
        rows.push(entries);
    }
    let width = rows.first().map_or(0, Vec::len);
    if width == 0 || rows.iter().any(|row| row.len() != width) {
        return Err(Fault::Unexpected);
    }
    let matrix = Expr::Matrix(rows);
    let transposed = transpose(cursor);
    let matrix = if transposed { Expr::Function(Function::Transpose, vec![matrix]) } else { matrix };
    Ok(if shape == "vmatrix" { Expr::Function(Function::Determinant, vec![matrix]) } else { matrix })
}

/// `^T`, `^{\top}`.
fn transpose(cursor: &mut Cursor<'_, '_>) -> bool {
    let mut ahead = cursor.clone();
    let is_t = |kind| matches!(kind, Kind::Word("T") | Kind::Command("top" | "intercal"));
    let found = ahead.eat('^')
        && if ahead.is('{') {
            matches!(ahead.group(), Some([token]) if is_t(token.kind))
        } else {
            let found = ahead.peek().is_some_and(is_t);
            ahead.next();
            found
        };
    if found {
        *cursor = ahead;
    }
    found
}
