//! Unicode spellings of ASCII: full-width characters, and digits above and below the line.

use std::borrow::Cow;

/// The text with `１２` as `12`, `x²⁰` as `x^{20}` and `x₁` as `x_{1}`.
pub(super) fn fold(text: &str) -> Cow<'_, str> {
    let special = |c: char| wide(c).is_some() || above(c).is_some() || below(c).is_some();
    if text.is_ascii() || !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let (mark, level): (char, fn(char) -> Option<char>) = match (above(c), below(c)) {
            (Some(_), _) => ('^', above),
            (_, Some(_)) => ('_', below),
            _ => {
                out.push(wide(c).unwrap_or(c));
                continue;
            }
        };
        out.push(mark);
        out.push('{');
        out.extend(level(c));
        while let Some(next) = chars.peek().and_then(|&c| level(c)) {
            out.push(next);
            chars.next();
        }
        out.push('}');
    }
    Cow::Owned(out)
}

fn wide(c: char) -> Option<char> {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xff01 + 0x21),
        '\u{3000}' | '\u{a0}' | '\u{2009}' | '\u{202f}' => Some(' '),
        _ => None,
    }
}

fn above(c: char) -> Option<char> {
    Some(match c {
        '⁰' => '0',
        '¹' => '1',
        '²' => '2',
        '³' => '3',
        '⁴'..='⁹' => char::from_u32(c as u32 - '⁴' as u32 + '4' as u32)?,
        '⁺' => '+',
        '⁻' => '-',
        'ⁿ' => 'n',
        'ⁱ' => 'i',
        _ => return None,
    })
}

fn below(c: char) -> Option<char> {
    match c {
        '₀'..='₉' => char::from_u32(c as u32 - '₀' as u32 + '0' as u32),
        '₊' => Some('+'),
        '₋' => Some('-'),
        'ₙ' => Some('n'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn digits_find_their_level() {
        for (text, expected) in [
            ("x²⁰", "x^{20}"),
            ("10⁻³", "10^{-3}"),
            ("x₁+x₁₂", "x_{1}+x_{12}"),
            ("（１，２）", "(1,2)"),
            ("√2", "√2"),
        ] {
            assert_eq!(fold(text), expected);
        }
    }
}
