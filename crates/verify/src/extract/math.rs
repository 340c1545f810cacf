//! Formulas: what stands between the delimiters of LaTeX and Markdown.

use std::ops::Range;

use super::is_prose;

/// A formula between delimiters is at most this long.
const MAX_FORMULA: usize = 2048;

/// A formula in its text.
#[derive(Clone, Debug)]
pub(super) struct Formula<'a> {
    /// With its delimiters.
    pub(super) outer: Range<usize>,
    /// Without them.
    pub(super) inner: &'a str,
}

const DELIMITERS: [(&str, &str); 4] = [("$$", "$$"), ("$", "$"), ("\\[", "\\]"), ("\\(", "\\)")];
const ENVIRONMENTS: [&str; 6] = ["align", "aligned", "equation", "gather", "eqnarray", "multline"];

/// The formulas of a text, in order. A `$` that opens a price opens no formula.
pub(super) fn formulas(text: &str) -> Vec<Formula<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = text[at..].find(['$', '\\']) {
        at += step;
        let rest = &text[at..];
        if let Some((length, inner)) = environment(rest) {
            found.push(Formula { outer: at..at + length, inner });
            at += length;
            continue;
        }
        let Some((open, close)) = DELIMITERS.into_iter().find(|(open, _)| rest.starts_with(open)) else {
            // Skip the backslash and what it escapes.
            at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
            continue;
        };
        match closed(&rest[open.len()..], open, close) {
            Some(inner) => {
                let length = open.len() + inner.len() + close.len();
                found.push(Formula { outer: at..at + length, inner });
                at += length;
            }
            None => at += open.len(),
        }
    }
    found
}

fn closed<'a>(rest: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let mut near = &rest[..rest.floor_char_boundary(MAX_FORMULA)];
    if open != close {
        // Formulas don't nest; this also keeps a run of openings linear.
        near = near.split(open).next().unwrap_or(near);
    }
    let mut from = 0;
    let end = loop {
        let at = from + near[from..].find(close)?;
        let escapes = near[..at].bytes().rev().take_while(|&b| b == b'\\').count();
        if !(close == "$" && escapes % 2 == 1) {
            break at;
        }
        from = at + 1;
    };
    let formula = &near[..end];
    let paragraph = !formula.contains("\n\n");
    let price = close == "$" && is_price(formula, &rest[end + 1..]);
    (paragraph && !price && !formula.trim().is_empty()).then_some(formula)
}

/// "$5 a piece and $": a dollar sign before an amount, up to the next one.
fn is_price(formula: &str, after: &str) -> bool {
    let amount = formula.starts_with(|c: char| c.is_ascii_digit());
    let digit_follows = after.starts_with(|c: char| c.is_ascii_digit());
    let words = formula.split("\\text").next().unwrap_or_default(); // \text{..} may bring in any
    amount && (is_prose(words) || digit_follows && formula.ends_with(' '))
}

/// `\begin{align*}..\end{align*}` and its like: its length and the right-hand side of its last line.
fn environment(rest: &str) -> Option<(usize, &str)> {
    let named = rest.strip_prefix("\\begin{")?;
    let (name, _) = named[..named.floor_char_boundary(16)].split_once('}')?;
    if !ENVIRONMENTS.contains(&name.trim_end_matches('*')) {
        return None;
    }
    let body = &named[name.len() + 1..];
    let close = format!("\\end{{{name}}}");
    let end = body[..body.floor_char_boundary(MAX_FORMULA)].find(&close)?;
    let length = rest.len() - body.len() + end + close.len();
    let line = body[..end].rsplit("\\\\").map(str::trim).find(|line| !line.is_empty())?;
    let value = line.rsplit('&').next().unwrap_or(line).trim();
    Some((length, value.trim_start_matches('=').trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters() {
        for (text, expected) in [
            ("$a$ and $$b$$", &["a", "b"][..]),
            (r"\(a\) \[b\] \$5 \\", &["a", "b"]),
            ("it costs $5 and the other $7", &[]),
            ("between $5 and $7", &[]),
            ("$5 \\text{ and the like}$", &["5 \\text{ and the like}"]),
            (r"$\$10$", &[r"\$10"]),
            ("$open\n\nand$ closed", &[]),
            ("\\begin{align*} x &= 3 + 4 \\\\ &= 7. \\end{align*} so", &["7."]),
            ("\\begin{align} x", &[]),
            ("$", &[]),
        ] {
            let found: Vec<&str> = formulas(text).iter().map(|formula| formula.inner).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn spans_include_the_delimiters() {
        for text in ["a $x$ b", "\\begin{equation}x=1\\end{equation}", r"\[ x \]"] {
            let formula = &formulas(text)[0];
            assert!(text[formula.outer.clone()].starts_with(['$', '\\']), "{text}");
            assert!(text[formula.outer.clone()].ends_with(['$', '}', ']']), "{text}");
        }
    }
}
