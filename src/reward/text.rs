//! Words and numbers of a text.

use std::sync::LazyLock;

use regex::Regex;

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
        .expect("the pattern is a constant that the tests compile")
});

/// Runs of letters, runs of digits, and single signs.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let kind = |c: char| match c {
        c if c.is_whitespace() => 0,
        c if c.is_alphabetic() => 1,
        c if c.is_numeric() => 2,
        _ => 3,
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let end = match kind(first) {
            3 => first.len_utf8(),
            same => rest.find(|c| kind(c) != same).unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// The numbers of a text, without signs: a minus and a dash look alike.
pub(crate) fn numbers(text: &str) -> Vec<f64> {
    NUMBER.find_iter(text).filter_map(|found| found.as_str().replace(',', "").parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_digits_and_signs() {
        let split: Vec<&str> = words("Add 12km, née $\\frac{1}{2}$.").collect();
        assert_eq!(
            split,
            ["Add", "12", "km", ",", "née", "$", "\\", "frac", "{", "1", "}", "{", "2", "}", "$", "."]
        );
    }

    #[test]
    fn numbers_are_read_with_their_separators() {
        assert_eq!(numbers("1,500 of 2.50, then (1,2) and 1,000,000."), [1500.0, 2.5, 1.0, 2.0, 1e6]);
    }
}
