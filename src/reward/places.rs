//! The parts of a response that stand for themselves: stretches of the trunk, paths, summaries. And whether an answer
//! is derived or only mentioned in one.

use std::ops::Range;

use crate::prompt::tags::Outline;

/// What a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text outside blocks.
    Trunk,
    /// A path of an outer block; a block nested in it is part of it.
    Path,
    /// The summary of an outer block.
    Summary,
}

/// A place, by its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
}

/// All places of a text in their order, those without text left out.
pub(super) fn places(text: &str, outline: &Outline) -> Vec<Place> {
    let (mut found, mut done) = (Vec::new(), 0);
    let mut add = |kind, range: Range<usize>| {
        if !text[range.clone()].trim().is_empty() {
            found.push(Place { kind, range });
        }
    };
    for block in outline.blocks.iter().filter(|block| block.nesting == 1) {
        add(Kind::Trunk, done..block.range.start);
        block.paths.iter().for_each(|path| add(Kind::Path, path.clone()));
        block.summary.iter().for_each(|summary| add(Kind::Summary, summary.clone()));
        done = block.range.end;
    }
    add(Kind::Trunk, done..text.len());
    found
}

/// What may stand between a sign of equality and the value.
const WRAPPING: [&str; 9] = ["\\boxed{", "\\(", "\\[", "\\ ", " ", "$", "{", "(", "*"];

/// Whether an answer is the right side of an equation in this text, as it is in `5 + 7 = 12`. Returns the byte behind
/// the first such place.
pub(super) fn derived(text: &str, answer: &str) -> Option<usize> {
    let behind = |(sign, _): (usize, &str)| {
        let mut value = &text[sign + 1..];
        loop {
            if let Some(after) = value.strip_prefix(answer) {
                return ends(after).then_some(text.len() - after.len());
            }
            value = WRAPPING.iter().find_map(|wrapping| value.strip_prefix(wrapping))?;
        }
    };
    if answer.is_empty() { None } else { text.match_indices('=').find_map(behind) }
}

/// Whether an answer stands in this text by itself, not as a part of a longer number or word.
pub(super) fn mentioned(text: &str, answer: &str) -> bool {
    let alone = |at: usize| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '.') && ends(&text[at + answer.len()..])
    };
    !answer.is_empty() && text.match_indices(answer).any(|(at, _)| alone(at))
}

/// Whether a value that this text follows ends there: what follows is no letter, no digit, no decimals and no further
/// group of thousands.
fn ends(after: &str) -> bool {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    match after.chars().next() {
        Some('.') => digits(&after[1..]) == 0,
        Some(',') => digits(&after[1..]) != 3,
        Some(c) => !c.is_alphanumeric(),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tags::outline;

    #[test]
    fn a_text_in_parts() {
        let text = "a<Parallel><Path>b</Path><Path>c<Parallel><Path>d</Path></Parallel><Summary>e</Summary></Path>\
            </Parallel>\n<Summary>f</Summary> \n<Parallel><Path> </Path></Parallel>\n<Summary>g</Summary>h";
        let found = places(text, &outline(text));
        let read = |place: &Place| (place.kind, &text[place.range.clone()]);
        let inner = "c<Parallel><Path>d</Path></Parallel><Summary>e</Summary>";
        let expected = [
            (Kind::Trunk, "a"),
            (Kind::Path, "b"),
            (Kind::Path, inner),
            (Kind::Summary, "f"),
            (Kind::Summary, "g"),
            (Kind::Trunk, "h"),
        ];
        assert_eq!(found.iter().map(read).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn derived_is_more_than_mentioned() {
        for (text, derives, mentions) in [
            ("5 + 7 = 12.", true, true),
            ("so $5+7 = \\boxed{12}$", true, true),
            ("15-3=12,12*2=24 no", true, true),
            ("there are 12 of them", false, true),
            ("5 + 7 = 120", false, false),
            ("5 + 7 = 12.5", false, false),
            ("5,000 + 7,500 = 12,500", false, false),
            ("3 * 4 = \\(12\\)", true, true),
            ("x = 112 or 1.12", false, false),
            ("", false, false),
        ] {
            assert_eq!(derived(text, "12").is_some(), derives, "{text}");
            assert_eq!(mentioned(text, "12"), mentions, "{text}");
        }
        assert_eq!(derived("5 + 7 = 12.", "12"), Some(10));
        assert_eq!(derived("x = \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"), Some(22));
        assert_eq!((derived("a =", ""), mentioned("a", "")), (None, false));
    }
}
