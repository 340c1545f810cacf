//! Words.

use super::fuel::{Judged, different};

/// Says whether two texts, in one spelling each, say the same.
pub(super) fn same(a: &str, b: &str) -> Judged {
    let tight = |text: &str| -> String {
        text.chars()
            .filter(|c| {
                c.is_alphanumeric()
                    || matches!(
                        c,
                        '+' | '-'
                            | '/'
                            | '^'
                            | '='
                            | '<'
                            | '>'
                            | '('
                            | ')'
                            | '['
                            | ']'
                            | ','
                            | '.'
                            | '\\'
                            | '_'
                            | '|'
                            | '!'
                            | '*'
                            | '%'
                            | ':'
                    )
            })
            .collect()
    };
    if a == b || synonym(a) == synonym(b) || tight(a) == tight(b) {
        Ok(())
    } else {
        different("the texts differ")
    }
}

fn synonym(text: &str) -> &str {
    match text {
        "yes" | "true" | "correct" => "yes",
        "no" | "false" | "incorrect" => "no",
        "no solution" | "no solutions" | "none" | "no real solutions" | "no real solution"
        | "does not exist" | "dne" => "none",
        text => text,
    }
}

/// The number that a word is.
pub(super) fn number(text: &str) -> Option<u32> {
    const NAMES: [&str; 21] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    NAMES.iter().position(|name| *name == text).map(|at| at as u32)
}
