//! What the parts of an answer are: lists, sets, intervals, relations, values.

use super::cursor::{partner, step};
use super::expr::{self, split};
use super::token::{Kind, Token, closes, opens};
use super::{Fault, time, words};
use crate::answer::{Answer, Bracket, Relation, Sign};

type Tokens<'t, 'a> = &'t [Token<'a>];

/// Reads tokens of a source as an answer.
pub(super) struct Structure<'s> {
    pub(super) source: &'s str,
}

impl Structure<'_> {
    /// A list of answers, or one.
    pub(super) fn answer(&self, tokens: Tokens<'_, '_>) -> Result<Answer, Fault> {
        let tokens = bare(tokens);
        if tokens.is_empty() {
            return Err(Fault::Unexpected);
        }
        if let Some(inner) = grouped(tokens) {
            return self.answer(inner);
        }
        if let Some(rows) = rows(tokens) {
            return self.answer(&rows);
        }
        if let Some(choice) = self.choice(tokens)? {
            return Ok(choice);
        }
        self.list_or_item(tokens)
    }

    fn list_or_item(&self, tokens: Tokens<'_, '_>) -> Result<Answer, Fault> {
        let (parts, joint) = items(tokens);
        match parts[..] {
            [] => Err(Fault::Unexpected),
            [only] => self.item(only),
            _ => self.list(&parts, joint),
        }
    }

    fn list(&self, parts: &[Tokens<'_, '_>], joint: Joint) -> Result<Answer, Fault> {
        let items = parts.iter().map(|part| self.item(part)).collect::<Result<Vec<_>, _>>()?;
        Ok(gather(items, joint))
    }

    /// One answer: a relation, a set or a value; words if it is none of these.
    fn item(&self, tokens: Tokens<'_, '_>) -> Result<Answer, Fault> {
        let read = || {
            if let Some(inner) = grouped(tokens) {
                return self.answer(inner);
            }
            if let Some(at) = top(tokens, |kind| matches!(kind, Kind::Mark('∈' | '∉'))) {
                return self.member(tokens, at);
            }
            if top(tokens, |kind| sign(kind).is_some()).is_some() {
                return self.relation(tokens);
            }
            self.side(tokens)
        };
        match read() {
            Err(Fault::Unexpected) => self.text(tokens),
            result => result,
        }
    }

    fn text(&self, tokens: Tokens<'_, '_>) -> Result<Answer, Fault> {
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            return Err(Fault::Unexpected);
        };
        let source = self.source.get(first.start..last.end).unwrap_or("");
        words::text(source).map(Answer::Text).ok_or(Fault::Unexpected)
    }

    fn member(&self, tokens: Tokens<'_, '_>, at: usize) -> Result<Answer, Fault> {
        if top(&tokens[at + 1..], |kind| matches!(kind, Kind::Mark('∈' | '∉'))).is_some() {
            return Err(Fault::Unexpected);
        }
        let inside = tokens[at].kind == Kind::Mark('∈');
        let element = expr::whole(bare(&tokens[..at]))?;
        Ok(Answer::Member(element, inside, Box::new(self.answer(&tokens[at + 1..])?)))
    }

    fn relation(&self, tokens: Tokens<'_, '_>) -> Result<Answer, Fault> {
        let mut depth = 0;
        let mut signs = Vec::new();
        let mut sides = Vec::new();
        let mut start = 0;
        for (i, token) in tokens.iter().enumerate() {
            depth += step(token.kind);
            if let Some(sign) = sign(token.kind).filter(|_| depth == 0) {
                signs.push(sign);
                sides.push(&tokens[start..i]);
                start = i + 1;
            }
        }
        sides.push(&tokens[start..]);
        if sides.iter().any(|side| bare(side).is_empty()) {
            return Err(Fault::Unexpected);
        }
        let sides = sides.into_iter().map(|side| self.labelled(side)).collect::<Result<Vec<_>, _>>()?;
        Ok(Answer::Relation(Relation { sides, signs }))
    }

    /// A side of a relation; words may name what is related.
    fn labelled(&self, tokens: Tokens<'_, '_>) -> Result<Answer, Fault> {
        let tokens = bare(tokens);
        if tokens.is_empty() {
            return Err(Fault::Unexpected);
        }
        match self.side(tokens) {
            Err(Fault::Unexpected) => self.text(tokens),
            result => result,
        }
    }

    /// Sets with operators between them, or one value.
    fn side(&self, tokens: Tokens<'_, '_>) -> Result<Answer, Fault> {
        let tokens = bare(tokens);
        if let Some(inner) = grouped(tokens) {
            return self.answer(inner);
        }
        for mark in ['∪', '∩'] {
            let pieces = unions(tokens, mark);
            if pieces.len() > 1 {
                let pieces = pieces.into_iter().map(|piece| self.side(piece)).collect::<Result<_, _>>()?;
                return Ok(if mark == '∪' { Answer::Union(pieces) } else { Answer::Intersection(pieces) });
            }
        }
        if let Some(at) = difference(tokens) {
            let part = &tokens[at + 1..];
            if difference(part).is_some() {
                return Err(Fault::Unexpected); // without brackets it is not clear what goes first
            }
            let (whole, part) = (self.side(&tokens[..at])?, self.side(part)?);
            return Ok(Answer::Without(Box::new(whole), Box::new(part)));
        }
        if let Some(time) = time::read(tokens) {
            return Ok(time);
        }
        let ratio = split(tokens, ':');
        if ratio.len() > 1 {
            let parts = ratio.into_iter().map(expr::whole).collect::<Result<_, _>>()?;
            return Ok(Answer::Ratio(parts));
        }
        if let Some(collection) = self.collection(tokens)? {
            return Ok(collection);
        }
        self.value(tokens)
    }

    /// What stands in one pair of brackets, unless the brackets only group an expression.
    fn collection(&self, tokens: Tokens<'_, '_>) -> Result<Option<Answer>, Fault> {
        if let [Token { kind: Kind::Command("emptyset"), .. }] = tokens {
            return Ok(Some(Answer::Set(Vec::new())));
        }
        let Some(Kind::Mark(open)) = tokens.first().map(|t| t.kind) else { return Ok(None) };
        let Some(Kind::Mark(close)) = tokens.last().map(|t| t.kind) else { return Ok(None) };
        if partner(tokens) != Some(tokens.len() - 1) {
            return Ok(None);
        }
        let inner = &tokens[1..tokens.len() - 1];
        if open == '⦃' {
            return self.set(inner).map(Some);
        }
        let (Some(left), Some(right)) = (bracket(open), bracket(close)) else { return Ok(None) };
        let semicolons = split(inner, ';');
        let parts = if semicolons.len() > 1 { semicolons } else { split(inner, ',') };
        if parts.len() > 1 {
            let items = parts.into_iter().map(|part| self.item(bare(part))).collect::<Result<_, _>>()?;
            return Ok(Some(Answer::Tuple(left, items, right)));
        }
        if open == '[' || open == '⟨' {
            return Ok(match self.value(tokens) {
                Ok(value) if open == '[' => Some(value),
                _ => Some(Answer::Tuple(left, vec![self.item(inner)?], right)),
            });
        }
        // (C), (x = 5), (\text{none})
        match expr::whole(tokens) {
            Ok(_) => Ok(None),
            Err(Fault::Unexpected) => self.answer(inner).map(Some),
            Err(fault) => Err(fault),
        }
    }

    fn set(&self, inner: Tokens<'_, '_>) -> Result<Answer, Fault> {
        if bare(inner).is_empty() {
            return Ok(Answer::Set(Vec::new()));
        }
        // {x | x > 2}: what satisfies the condition.
        if let Some(at) = top(inner, |kind| matches!(kind, Kind::Mark('|' | ':')))
            && at <= 3
            && let Ok(condition) = self.answer(&inner[at + 1..])
            && matches!(
                condition,
                Answer::Relation(_) | Answer::Member(..) | Answer::Intersection(_) | Answer::Union(_)
            )
        {
            return Ok(condition);
        }
        let (parts, _) = items(inner);
        let items = parts.iter().map(|part| self.item(part)).collect::<Result<Vec<_>, _>>()?;
        Ok(Answer::Set(flat(items)))
    }

    /// `(C) 12`, `C. 12`, `C) 12`.
    fn choice(&self, tokens: Tokens<'_, '_>) -> Result<Option<Answer>, Fault> {
        let kinds: Vec<Kind<'_>> = tokens.iter().take(4).map(|t| t.kind).collect();
        let spaced = |at: usize| tokens.get(at).is_some_and(|t| t.spaced || matches!(t.kind, Kind::Text(_)));
        let (letter, from) = match kinds[..] {
            [Kind::Mark('('), Kind::Word(letter), Kind::Mark(')'), _] if spaced(3) => (letter, 3),
            [Kind::Word(letter), Kind::Mark('.' | ')' | ':'), _, ..] if spaced(2) => (letter, 2),
            _ => return Ok(None),
        };
        let mut letters = letter.chars();
        let (Some(letter @ 'A'..='J'), None) = (letters.next(), letters.next()) else { return Ok(None) };
        let rest = &tokens[from..];
        if matches!(rest[0].kind, Kind::Mark('=' | '+' | '-' | '*' | '/' | '^' | '∪' | ',')) {
            return Ok(None);
        }
        Ok(Some(Answer::Choice(letter, Box::new(self.list_or_item(bare(rest))?))))
    }

    /// A number or expression with currency and unit; several of them if there is `\pm`.
    fn value(&self, tokens: Tokens<'_, '_>) -> Result<Answer, Fault> {
        super::value::read(tokens, self.source)
    }
}

/// How the items of a list hang together.
#[derive(Clone, Copy, PartialEq)]
enum Joint {
    Comma,
    And,
    Or,
}

/// Splits at commas, semicolons, "and" and "or". Semicolons are stronger than commas.
fn items<'t, 'a>(tokens: Tokens<'t, 'a>) -> (Vec<Tokens<'t, 'a>>, Joint) {
    let strong = top(tokens, |kind| kind == Kind::Mark(';')).is_some();
    let mut joint = Joint::Comma;
    let mut depth = 0;
    let parts = tokens
        .split(|token| {
            depth += step(token.kind);
            let found = depth == 0
                && match token.kind {
                    Kind::Mark(',') => !strong,
                    Kind::Mark(';') => strong,
                    Kind::And | Kind::Or | Kind::Command("land" | "lor") => true,
                    _ => false,
                };
            if found {
                match token.kind {
                    Kind::And | Kind::Command("land") if joint == Joint::Comma => joint = Joint::And,
                    Kind::Or | Kind::Command("lor") => joint = Joint::Or,
                    _ => {}
                }
            }
            found
        })
        .map(bare)
        .filter(|part| !part.is_empty())
        .collect();
    (parts, joint)
}

/// The meaning of several items side by side.
fn gather(items: Vec<Answer>, joint: Joint) -> Answer {
    if items.iter().all(is_condition) {
        return if joint == Joint::Or { Answer::Union(items) } else { Answer::Intersection(items) };
    }
    // n = 2, 3, 4
    let mut rest = items.iter().skip(1);
    if let Some(Answer::Relation(first)) = items.first()
        && first.signs == [Sign::Equal]
        && rest.all(|item| matches!(item, Answer::Value(_)))
    {
        let mut sides = first.sides.clone();
        let mut values: Vec<Answer> = sides.pop().into_iter().collect();
        values.extend(items.into_iter().skip(1));
        sides.push(Answer::Several(flat(values)));
        return Answer::Relation(Relation { sides, signs: vec![Sign::Equal] });
    }
    Answer::Several(flat(items))
}

/// Inequalities and memberships restrict; equations state.
fn is_condition(item: &Answer) -> bool {
    match item {
        Answer::Relation(relation) => {
            !relation.signs.iter().any(|sign| matches!(sign, Sign::Equal | Sign::Near))
        }
        Answer::Member(..) => true,
        _ => false,
    }
}

/// Lists without brackets within a list are part of it.
pub(super) fn flat(items: Vec<Answer>) -> Vec<Answer> {
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Answer::Several(inner) => out.extend(flat(inner)),
            other => out.push(other),
        }
    }
    out
}

/// Without the commas and dots that prose leaves at the ends, and without "= " before a value.
fn bare<'t, 'a>(mut tokens: Tokens<'t, 'a>) -> Tokens<'t, 'a> {
    while let [Token { kind: Kind::Mark(',' | ';' | '=' | '≈' | ':') | Kind::Row, .. }, rest @ ..] = tokens
    {
        tokens = rest;
    }
    while let [rest @ .., Token { kind: Kind::Mark(',' | ';' | '.' | ':') | Kind::Row, .. }] = tokens {
        if let [.., Token { kind: Kind::Mark('.'), .. }] = rest {
            break; // 0.333...
        }
        tokens = rest;
    }
    tokens
}

/// The rows of a system as a list.
fn rows<'a>(tokens: Tokens<'_, 'a>) -> Option<Vec<Token<'a>>> {
    let Kind::Begin(
        "cases" | "aligned" | "align*" | "align" | "gathered" | "split" | "equation" | "equation*",
    ) = tokens.first()?.kind
    else {
        return None;
    };
    if partner(tokens) != Some(tokens.len() - 1) {
        return None;
    }
    let inner = &tokens[1..tokens.len() - 1];
    let mut depth = 0;
    let kept = inner.iter().filter_map(|token| {
        depth += step(token.kind);
        match token.kind {
            Kind::Row if depth == 0 => Some(Token { kind: Kind::Mark(','), ..*token }),
            Kind::Mark('&') if depth == 0 => None,
            _ => Some(*token),
        }
    });
    Some(kept.collect())
}

/// The inside of one pair of braces around everything.
fn grouped<'t, 'a>(tokens: Tokens<'t, 'a>) -> Option<Tokens<'t, 'a>> {
    let braces =
        matches!(tokens.first()?.kind, Kind::Mark('{')) && matches!(tokens.last()?.kind, Kind::Mark('}'));
    (braces && partner(tokens) == Some(tokens.len() - 1)).then(|| &tokens[1..tokens.len() - 1])
}

/// The first token on the upper level that fits.
fn top(tokens: Tokens<'_, '_>, fits: impl Fn(Kind<'_>) -> bool) -> Option<usize> {
    let mut depth = 0;
    tokens.iter().position(|token| {
        depth += step(token.kind);
        depth == 0 && fits(token.kind)
    })
}

fn sign(kind: Kind<'_>) -> Option<Sign> {
    let Kind::Mark(mark) = kind else { return None };
    Some(match mark {
        '=' => Sign::Equal,
        '≈' => Sign::Near,
        '≠' => Sign::NotEqual,
        '<' => Sign::Less,
        '≤' => Sign::LessEqual,
        '>' => Sign::Greater,
        '≥' => Sign::GreaterEqual,
        _ => return None,
    })
}

/// The pieces of a union; "U" between brackets is one, too.
fn unions<'t, 'a>(tokens: Tokens<'t, 'a>, mark: char) -> Vec<Tokens<'t, 'a>> {
    let mut depth = 0;
    let mut start = 0;
    let mut pieces = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        depth += step(token.kind);
        let is_mark = match token.kind {
            Kind::Mark(c) => c == mark,
            Kind::Word("U" | "u") => mark == '∪' && between_brackets(tokens, i),
            _ => false,
        };
        if depth == 0 && is_mark {
            pieces.push(&tokens[start..i]);
            start = i + 1;
        }
    }
    pieces.push(&tokens[start..]);
    pieces
}

fn between_brackets(tokens: Tokens<'_, '_>, at: usize) -> bool {
    let mark = |i: usize| match tokens.get(i).map(|t| t.kind) {
        Some(Kind::Mark(c)) => c,
        _ => ' ',
    };
    at > 0 && closes(mark(at - 1)) && opens(mark(at + 1))
}

/// Where `A \setminus B` or `\mathbb{R} - \{0\}` splits.
fn difference(tokens: Tokens<'_, '_>) -> Option<usize> {
    let at = top(tokens, |kind| kind == Kind::Mark('∖') || kind == Kind::Mark('\\'));
    at.or(match tokens {
        [
            Token { kind: Kind::Command("reals"), .. },
            Token { kind: Kind::Mark('-' | '/'), .. },
            Token { kind: Kind::Mark('⦃'), .. },
            ..,
        ] => Some(1),
        _ => None,
    })
    .filter(|&at| at > 0)
}

fn bracket(mark: char) -> Option<Bracket> {
    Some(match mark {
        '(' | ')' => Bracket::Round,
        '[' | ']' => Bracket::Square,
        '⟨' | '⟩' => Bracket::Angle,
        _ => return None,
    })
}
