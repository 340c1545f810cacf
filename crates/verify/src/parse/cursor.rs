//! A place in a run of tokens.

use super::token::{Kind, Token, closes, opens};
use super::{Fault, ParseError};

/// Reads tokens one by one; of a run of digits or letters it may take some.
#[derive(Clone)]
pub(super) struct Cursor<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    /// Bytes already taken from the current run of digits or letters.
    taken: usize,
    /// How deep the grammar is in itself.
    depth: usize,
}

/// Deeper towers of exponents and functions are not read.
const MAX_DEPTH: usize = 100;

impl<'t, 'a> Cursor<'t, 'a> {
    pub(super) fn new(tokens: &'t [Token<'a>]) -> Self {
        Cursor { tokens, at: 0, taken: 0, depth: 0 }
    }

    /// A cursor over a part of what this one reads.
    pub(super) fn within<'u>(&self, tokens: &'u [Token<'a>]) -> Cursor<'u, 'a> {
        Cursor { tokens, at: 0, taken: 0, depth: self.depth }
    }

    /// Runs one level of the grammar.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth == MAX_DEPTH {
            return Err(ParseError::TooLarge { what: "nesting", limit: MAX_DEPTH }.into());
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub(super) fn peek(&self) -> Option<Kind<'a>> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<Kind<'a>> {
        let kind = self.tokens.get(self.at + ahead)?.kind;
        Some(match kind {
            Kind::Digits(digits) if ahead == 0 => Kind::Digits(&digits[self.taken..]),
            Kind::Word(word) if ahead == 0 => Kind::Word(&word[self.taken..]),
            kind => kind,
        })
    }

    /// Is there space before the token that many ahead?
    pub(super) fn spaced(&self, ahead: usize) -> bool {
        self.tokens.get(self.at + ahead).is_some_and(|token| token.spaced)
    }

    pub(super) fn next(&mut self) {
        self.at += 1;
        self.taken = 0;
    }

    pub(super) fn done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn is(&self, mark: char) -> bool {
        self.peek() == Some(Kind::Mark(mark))
    }

    pub(super) fn eat(&mut self, mark: char) -> bool {
        let found = self.is(mark);
        if found {
            self.next();
        }
        found
    }

    /// One digit of the digits ahead.
    pub(super) fn digit(&mut self) -> Option<&'a str> {
        let Some(Kind::Digits(digits)) = self.peek() else { return None };
        if digits.len() == 1 {
            self.next();
        } else {
            self.taken += 1;
        }
        Some(&digits[..1])
    }

    /// One letter of the letters ahead.
    pub(super) fn letter(&mut self) -> Option<&'a str> {
        let Some(Kind::Word(word)) = self.peek() else { return None };
        let len = word.chars().next()?.len_utf8();
        if word.len() == len {
            self.next();
        } else {
            self.taken += len;
        }
        Some(&word[..len])
    }

    /// What stands between the bracket ahead and its partner; the cursor moves behind that.
    pub(super) fn group(&mut self) -> Option<&'t [Token<'a>]> {
        let open = self.at;
        let close = open + partner(&self.tokens[open..])?;
        self.at = close + 1;
        self.taken = 0;
        Some(&self.tokens[open + 1..close])
    }

    /// Tokens up to the next `|` on this level.
    pub(super) fn bars(&mut self) -> Option<&'t [Token<'a>]> {
        let open = self.at;
        let mut depth = 0i32;
        for (i, token) in self.tokens.iter().enumerate().skip(open + 1) {
            match token.kind {
                Kind::Mark('|') if depth == 0 => {
                    self.at = i + 1;
                    return Some(&self.tokens[open + 1..i]);
                }
                kind => depth += step(kind),
            }
        }
        None
    }
}

/// +1 for what opens, -1 for what closes.
pub(super) fn step(kind: Kind<'_>) -> i32 {
    match kind {
        Kind::Begin(_) => 1,
        Kind::End => -1,
        Kind::Mark(c) if opens(c) => 1,
        Kind::Mark(c) if closes(c) => -1,
        _ => 0,
    }
}

/// The index of what closes the bracket at the start. Half-open intervals mix brackets, so any kind
/// closes any.
pub(super) fn partner(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate() {
        depth += step(token.kind);
        if depth <= 0 {
            return (i > 0).then_some(i);
        }
    }
    None
}
