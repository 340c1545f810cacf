//! Whether several values form one answer: `\boxed{1} and \boxed{2}`, `$x=1$, $y=2$`.

use std::borrow::Cow;

/// Farther apart, values are statements of their own.
const MAX_GAP: usize = 48;

/// What joins the values on its two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// A comma, "and", "or".
    Said,
    /// Nothing but layout.
    Silent,
}

/// Reads what stands between two values; `None` if it parts them.
pub(super) fn joint(gap: &str) -> Option<Joint> {
    if gap.len() > MAX_GAP {
        return None;
    }
    match named(gap) {
        // "x = 3 or x = -3" with the values alone in boxes; "= 3 = 4" goes on computing.
        Some(before) => joint(before).filter(|joint| *joint == Joint::Said),
        None => unnamed(gap),
    }
}

/// What stands before the name in "or x =".
fn named(gap: &str) -> Option<&str> {
    let before = gap.trim_end_matches([' ', '$', '(', '\\']).strip_suffix('=')?.trim_end();
    let rest = before.trim_end_matches(|c: char| c.is_alphanumeric() || "_{}".contains(c));
    before[rest.len()..].starts_with(|c: char| c.is_alphabetic()).then_some(rest)
}

fn unnamed(gap: &str) -> Option<Joint> {
    // "(b)" counts parts of one answer.
    let mut said = gap.split('(').skip(1).any(|part| part.get(1..2) == Some(")"));
    let mut rest = gap;
    while let Some(c) = rest.chars().next() {
        let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_alphabetic()).len();
        let (word, after) = rest.split_at(letters.max(c.len_utf8()));
        rest = after;
        match c {
            '\\' => rest = command(rest)?,
            ',' | ';' | '，' | '、' => said = true,
            '.' | '?' | '!' | ':' | '=' | '<' | '>' | '0'..='9' => return None,
            _ if letters > 0 => said |= word_joins(word)?,
            _ => {}
        }
    }
    let parted = !said && gap.contains('\n');
    (!parted).then_some(if said { Joint::Said } else { Joint::Silent })
}

/// Skips a command that only lays out text.
fn command(rest: &str) -> Option<&str> {
    const LAYOUT: [&str; 8] = ["text", "textbf", "textrm", "mbox", "mathrm", "quad", "qquad", "hspace"];
    let after = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let name = &rest[..rest.len() - after.len()];
    if name.is_empty() {
        let mut after = rest.chars();
        after.next();
        return Some(after.as_str());
    }
    LAYOUT.contains(&name).then_some(after)
}

/// Whether the word joins by itself; `None` if it parts.
fn word_joins(word: &str) -> Option<bool> {
    let filler = ["for", "part", "parts", "case", "cases", "also", "as", "well", "with", "the", "both"];
    match word {
        "and" | "or" => Some(true),
        _ => (filler.contains(&word) || word.chars().count() == 1).then_some(false),
    }
}

/// The values as one list, each once.
pub(super) fn list<'a>(values: &[&'a str]) -> Cow<'a, str> {
    let mut unique: Vec<&str> = Vec::new();
    for value in values {
        if !unique.contains(value) {
            unique.push(value);
        }
    }
    match unique[..] {
        [value] => Cow::Borrowed(value),
        _ => Cow::Owned(unique.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joints() {
        for gap in
            [", ", " and ", "$ or $", r"} \text{ for part (a) and } ", r"\)、\(", r",\ ", "; and also "]
        {
            assert_eq!(joint(gap), Some(Joint::Said), "{gap}");
        }
        for gap in ["", " ", " +++ ", r"\quad "] {
            assert_eq!(joint(gap), Some(Joint::Silent), "{gap}");
        }
        for gap in
            [" but then ", ". And ", "\n", " = ", " 3, ", " is wrong and ", r" \times ", " + 4 = ", " x = "]
        {
            assert_eq!(joint(gap), None, "{gap}");
        }
    }

    #[test]
    fn lists_have_each_value_once() {
        assert_eq!(list(&["1", "2", "1"]), "1, 2");
        assert_eq!(list(&["5", "5"]), "5");
    }
}
