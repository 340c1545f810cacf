//! Times: `12:00`, `8:34 p.m.`, `4:51:06`.

use super::token::{Kind, Token};
use crate::answer::{Answer, Expr, HalfDay};

/// A time; without half of the day and seconds it may also be a ratio.
pub(super) fn read(tokens: &[Token<'_>]) -> Option<Answer> {
    let (clock, half) = half_day(tokens);
    let fields = fields(clock)?;
    let seconds = match fields[..] {
        [hours, minutes] if hours < 100 && minutes < 60 => hours * 3600 + minutes * 60,
        [hours, minutes, seconds] if hours < 100 && minutes < 60 && seconds < 60 => {
            hours * 3600 + minutes * 60 + seconds
        }
        _ => return None,
    };
    let time = Answer::Time(seconds, half);
    if half.is_some() || fields.len() > 2 {
        return Some(time);
    }
    let ratio = fields.into_iter().map(Expr::integer).collect();
    Some(Answer::Either(vec![time, Answer::Ratio(ratio)]))
}

/// Numbers between colons, two digits each after the first.
fn fields(tokens: &[Token<'_>]) -> Option<Vec<u32>> {
    let mut fields = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Digits(digits) if i % 2 == 0 && digits.len() <= 2 && (i == 0 || digits.len() == 2) => {
                fields.push(digits.parse().ok()?);
            }
            Kind::Mark(':') if i % 2 == 1 => {}
            _ => return None,
        }
    }
    (fields.len() >= 2).then_some(fields)
}

fn half_day<'t, 'a>(tokens: &'t [Token<'a>]) -> (&'t [Token<'a>], Option<HalfDay>) {
    let start = tokens.iter().position(|t| matches!(t.kind, Kind::Word(_) | Kind::Text(_)));
    let Some(start) = start else { return (tokens, None) };
    let letters: String = tokens[start..]
        .iter()
        .filter_map(|token| match token.kind {
            Kind::Word(word) | Kind::Text(word) => Some(word),
            _ => None,
        })
        .flat_map(str::chars)
        .filter(|c| c.is_alphabetic())
        .flat_map(char::to_lowercase)
        .collect();
    match letters.as_str() {
        "am" => (&tokens[..start], Some(HalfDay::Am)),
        "pm" => (&tokens[..start], Some(HalfDay::Pm)),
        _ => (tokens, None),
    }
}
