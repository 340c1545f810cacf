//! Known functions with their arguments, written in many ways.

use super::cursor::Cursor;
use super::expr::{MAX_REPEATS, TOO_MANY, argument, exponent, inside, power, sign, split, starts_factor};
use super::token::Kind;
use super::{Fault, names};
use crate::answer::{Expr, Function};

/// A known function with its exponent, base and arguments.
pub(super) fn applied(cursor: &mut Cursor<'_, '_>, function: Function) -> Result<Expr, Fault> {
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
