//! The forms an answer can take, and the one spelling of each.
//!
//! Today: exact numbers, lists and tuples of forms, and text. A new kind of answer (a polynomial, an
//! interval with algebraic ends) is a new variant here and a reader beside `number.rs`.

use std::fmt;

use num_bigint::BigInt;
use num_rational::Ratio;

use crate::normalise;
use crate::number;

/// Lists nested deeper than this are text.
const MAX_NESTING: usize = 8;

/// What an answer says, with nothing left of how it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    /// An exact rational number.
    Number(Ratio<BigInt>),
    /// Comma-separated parts, with the brackets around them (empty for a bare list). Order counts,
    /// except between `\{` and `\}`, where the parts are sorted and unique.
    List { open: &'static str, items: Vec<Form>, close: &'static str },
    /// Anything else, in its normalised spelling.
    Text(String),
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Number(value) => write!(f, "{value}"),
            Form::Text(text) => f.write_str(text),
            Form::List { open, items, close } => {
                f.write_str(open)?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i == 0 { "" } else { "," })?;
                }
                f.write_str(close)
            }
        }
    }
}

/// Reads an answer; `None` if it says nothing or is beyond the bounds.
pub(crate) fn read(raw: &str) -> Option<Form> {
    let clean = normalise::clean(raw)?;
    let form = form(&clean, 0);
    (form != Form::Text(String::new())).then_some(form)
}

fn form(text: &str, nesting: usize) -> Form {
    let text = normalise::right_hand_side(text);
    if let Some(value) = number::parse(text) {
        return Form::Number(value);
    }
    if nesting < MAX_NESTING {
        let (open, inner, close) = brackets(text).unwrap_or(("", text, ""));
        let items = split_at_commas(inner);
        if items.len() > 1 || open == "\\{" {
            return list(open, &items, close, nesting);
        }
        if open == "(" {
            return form(inner, nesting + 1); // one thing in parentheses is that thing: (C), (5)
        }
    }
    Form::Text(normalise::text(text))
}

fn list(open: &'static str, items: &[&str], close: &'static str, nesting: usize) -> Form {
    let plain = |item: &&str| form(item.strip_prefix("and ").unwrap_or(item), nesting + 1);
    let mut items: Vec<Form> = items.iter().map(plain).collect();
    if open == "\\{" {
        items.sort_by_cached_key(Form::to_string);
        items.dedup();
    }
    Form::List { open, items, close }
}

/// Splits off the bracket that opens at the start and closes at the end, if it is one pair.
fn brackets(text: &str) -> Option<(&'static str, &str, &'static str)> {
    let open = ["\\{", "(", "["].into_iter().find(|open| text.starts_with(open))?;
    let close = ["\\}", ")", "]"].into_iter().find(|close| text.ends_with(close))?;
    let inner = text.strip_prefix(open)?.strip_suffix(close)?;
    let mut depth = 0i32;
    for c in inner.chars() {
        depth += step(c);
        if depth < 0 {
            return None; // "(1,2),(3,4)": the first bracket closes before the end
        }
    }
    (depth == 0).then(|| (open, inner.trim(), close))
}

fn split_at_commas(text: &str) -> Vec<&str> {
    let mut depth = 0i32;
    text.split(|c| {
        depth += step(c);
        c == ',' && depth == 0
    })
    .map(str::trim)
    .collect()
}

/// Braces count as brackets, whether they group or are printed.
fn step(c: char) -> i32 {
    match c {
        '(' | '[' | '{' => 1,
        ')' | ']' | '}' => -1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(raw: &str) -> String {
        read(raw).map_or_else(String::new, |form| form.to_string())
    }

    #[test]
    fn forms_have_one_spelling() {
        for (raw, expected) in [
            ("$0.50$", "1/2"),
            ("(1, 2)", "(1,2)"),
            ("(1,234)", "(1,234)"), // a pair; without brackets it is one number
            ("1,234", "1234"),
            ("(7)", "7"),
            ("\\{3, 1, 3\\}", "\\{1,3\\}"),
            ("(1,2),(3,\\frac12)", "(1,2),(3,1/2)"),
            ("19, 46, \\text{ and } 82", "19,46,82"),
            ("[0, 0.5)", "[0,1/2)"),
            ("x^{2} + 1", "x^2+1"),
            ("x \\in [1,2]", "[1,2]"),
        ] {
            assert_eq!(key(raw), expected, "{raw}");
        }
    }

    #[test]
    fn deep_brackets_are_text() {
        let deep = format!("{}1,2{}", "(".repeat(40), ")".repeat(40));
        assert!(key(&deep).contains("1,2"));
    }
}
