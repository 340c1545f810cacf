//! Repairs of what has only one reading. Everything else stays, and is named as a fault.

use std::sync::LazyLock;

use regex::Regex;

use super::{Repair, RepairKind};
use crate::prompt::tags::{FaultKind, Piece, Tag, normalise, outline};

/// A tag in other letters, with spaces or with a number: `< path >`, `<Path 1>`.
static SPELLING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)<[ \t]*(/?)[ \t]*(parallel|path|summary)[ \t_#:-]*[0-9]{0,2}[ \t]*>")
        .expect("the pattern is a constant that the tests compile")
});

/// More missing tags than this are no slip.
const MOST_CLOSED: usize = 64;

/// The text with its repairs, in the order in which they were made.
pub(super) fn repair(text: &str) -> (String, Vec<Repair>) {
    let mut repairs = Vec::new();
    let text = unfenced(text, &mut repairs);
    let text = spelled(&text, &mut repairs);
    let text = closed(text, &mut repairs);
    let text = spaced(text, &mut repairs);
    (text, repairs)
}

/// Without a code fence around the whole.
fn unfenced(text: &str, repairs: &mut Vec<Repair>) -> String {
    let inside = || {
        let body = text.trim().strip_prefix("```")?.strip_suffix("```")?;
        let (language, inside) = body.split_once('\n')?;
        let plain = language.trim().chars().all(char::is_alphanumeric) && !inside.contains("```");
        plain.then(|| inside.trim_end())
    };
    match inside() {
        None => text.to_owned(),
        Some(inside) => {
            repairs.push(Repair { kind: RepairKind::Fence, at: 0 });
            inside.to_owned()
        }
    }
}

fn spelled(text: &str, repairs: &mut Vec<Repair>) -> String {
    let tag = |found: &regex::Captures| {
        let wanted = format!("<{}{}>", &found[1], found[2].to_lowercase());
        Tag::ALL.into_iter().map(Tag::text).find(|tag| tag.to_lowercase() == wanted).unwrap_or_default()
    };
    let (mut mended, mut done) = (String::with_capacity(text.len()), 0);
    for found in SPELLING.captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        let tag = tag(&found);
        if tag != whole.as_str() {
            repairs.push(Repair { kind: RepairKind::Spelling, at: whole.start() });
        }
        mended.push_str(&text[done..whole.start()]);
        mended.push_str(tag);
        done = whole.end();
    }
    mended + &text[done..]
}

/// With the `</Path>` that the next tag implies, and the `</Parallel>` that a summary after paths implies.
fn closed(mut text: String, repairs: &mut Vec<Repair>) -> String {
    for _ in 0..MOST_CLOSED {
        let missing = outline(&text).faults.into_iter().find_map(|fault| {
            let next = text.get(fault.byte..)?;
            match fault.kind {
                FaultKind::UnclosedPath if !next.is_empty() => Some((fault.byte, Tag::EndPath)),
                FaultKind::UnclosedBlock if next.starts_with(Tag::Summary.text()) => {
                    Some((fault.byte, Tag::EndParallel))
                }
                _ => None,
            }
        });
        let Some((byte, tag)) = missing else { break };
        let at = text[..byte].trim_end().len();
        let kind = if tag == Tag::EndPath { RepairKind::ClosedPath } else { RepairKind::ClosedBlock };
        repairs.push(Repair { kind, at });
        text.insert_str(at, tag.text());
    }
    text
}

/// With the white space between tags that the engine writes; a text with faults stays.
fn spaced(text: String, repairs: &mut Vec<Repair>) -> String {
    let Ok(pieces) = normalise(&text) else { return text };
    let mut mended = String::with_capacity(text.len());
    for piece in pieces {
        match piece {
            Piece::Text(text) => mended.push_str(&text),
            Piece::Tag(tag) => mended.push_str(tag.text()),
        }
    }
    if mended != text {
        let at = mended.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
        repairs.push(Repair { kind: RepairKind::Spacing, at });
    }
    mended
}

#[cfg(test)]
mod tests {
    use super::RepairKind::*;
    use super::*;

    const GOOD: &str = "x<Parallel><Path>a</Path><Path>b</Path></Parallel>\n<Summary>s</Summary>y";

    #[test]
    fn what_has_one_reading_is_repaired() {
        for (from, to, kinds) in [
            ("", "", vec![]),
            ("><", ">\n <", vec![Spacing]),
            ("\n<S", "\n\n<S", vec![Spacing]),
            ("<Path>", "< path 1>", vec![Spelling, Spelling]),
            ("</Summary>", "</ SUMMARY >", vec![Spelling]),
            ("a</Path>", "a", vec![ClosedPath]),
            ("</Path>", "", vec![ClosedPath, ClosedPath]),
            ("</Parallel>", "", vec![ClosedBlock]),
        ] {
            let (mended, repairs) = repair(&GOOD.replace(from, to));
            assert_eq!(mended, GOOD, "{to}");
            assert_eq!(repairs.into_iter().map(|repair| repair.kind).collect::<Vec<_>>(), kinds, "{to}");
        }
        assert_eq!(repair(&format!("```xml\n{GOOD}\n```")).0, GOOD);
    }

    #[test]
    fn what_has_several_readings_stays() {
        for (from, to) in [
            ("</Summary>", ""),
            ("<Summary>", ""),
            ("<Parallel>", ""),
            ("<Path>a", "a"),
            ("b</Path></Parallel>\n<Summary>s</Summary>y", "b"),
            ("b</Path></Parallel>", "b"),
            ("</Path><", "</Path> and <"),
            ("x", "```\nx\n```\n"),
        ] {
            let text = GOOD.replace(from, to);
            assert_eq!(repair(&text), (text.clone(), vec![]), "{text}");
        }
    }
}
