//! The grammar over text: judges answers and prepares demonstrations for the tokenizer.

use thiserror::Error;

use super::grammar::{Automaton, FaultKind, Symbol};
use super::{AllowedSet, Control, Tag};

/// The blocks of a well-formed text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextShape {
    /// How many blocks there are, nested ones too.
    pub blocks: usize,
    /// How many paths each has, in the order in which the blocks open.
    pub paths: Vec<usize>,
    /// Where the first block starts, in bytes.
    pub first_block: Option<usize>,
}

/// A stretch of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text without tags, never empty.
    Text(String),
    /// A tag.
    Tag(Tag),
}

/// A fault in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{kind} (byte {byte} of the text)")]
pub struct TextFault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Where the offending piece starts; the length of the text for a missing piece.
    pub byte: usize,
}

/// Checks a text against the grammar and counts its blocks and paths.
pub fn check_text(text: &str) -> Result<TextShape, TextFault> {
    let mut shape = TextShape::default();
    let mut open = Vec::new();
    walk(text, |byte, stretch, _| match stretch {
        Stretch::Tag(Tag::Parallel) => {
            open.push(shape.paths.len());
            shape.paths.push(0);
            shape.first_block.get_or_insert(byte);
        }
        Stretch::Tag(Tag::Path) => {
            let block = *open.last().expect("the grammar lets a path stand only in a block");
            shape.paths[block] += 1;
        }
        Stretch::Tag(Tag::EndParallel) => drop(open.pop()),
        _ => {}
    })?;
    shape.blocks = shape.paths.len();
    Ok(shape)
}

/// Splits a well-formed text at its tags, with the white space between tags that [`super::Controls::forced_join`]
/// and the forced `<Path>` have: one newline before `<Summary>`, none elsewhere in a block outside its
/// paths.
pub fn normalise(text: &str) -> Result<Vec<Piece>, TextFault> {
    let mut pieces = Vec::new();
    walk(text, |_, stretch, allowed| match stretch {
        Stretch::Text(text) if allowed.text() => pieces.push(Piece::Text(text.to_owned())),
        Stretch::Text(_) => {}
        Stretch::Tag(tag) => {
            if tag == Tag::Summary {
                pieces.push(Piece::Text("\n".to_owned()));
            }
            pieces.push(Piece::Tag(tag));
        }
    })?;
    Ok(pieces)
}

/// A stretch of a text, borrowed from it.
#[derive(Clone, Copy)]
pub(super) enum Stretch<'a> {
    Text(&'a str),
    Tag(Tag),
}

impl Stretch<'_> {
    pub(super) fn symbol(self) -> Symbol {
        match self {
            Stretch::Tag(tag) => Symbol::Control(Control::Tag(tag)),
            Stretch::Text(text) if text.trim().is_empty() => Symbol::Space,
            Stretch::Text(_) => Symbol::Text,
        }
    }
}

/// Reads a text by the grammar, in one pass, and shows each stretch with its place and the set that was
/// legal there.
fn walk<'a>(text: &'a str, mut see: impl FnMut(usize, Stretch<'a>, AllowedSet)) -> Result<(), TextFault> {
    let mut automaton = Automaton::default();
    for (byte, stretch) in stretches(text) {
        let allowed = automaton.allowed();
        automaton.step(stretch.symbol()).map_err(|kind| TextFault { kind, byte })?;
        see(byte, stretch, allowed);
    }
    automaton.stop().map_err(|kind| TextFault { kind, byte: text.len() })
}

/// A text as tags and what stands between them, each with its place.
pub(super) fn stretches(text: &str) -> impl Iterator<Item = (usize, Stretch<'_>)> {
    let tag_at = |at: usize| Tag::ALL.into_iter().find(|tag| text[at..].starts_with(tag.text()));
    let mut tags = text.match_indices('<').filter_map(move |(at, _)| Some((at, tag_at(at)?))).peekable();
    let mut done = 0;
    std::iter::from_fn(move || {
        let (at, tag) = tags.peek().map_or((text.len(), None), |&(at, tag)| (at, Some(tag)));
        let start = done;
        if start < at {
            done = at;
            return Some((start, Stretch::Text(&text[start..at])));
        }
        tags.next();
        done += tag?.text().len();
        Some((at, Stretch::Tag(tag?)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::Fault;
    use super::super::letters::{LETTERS, any_response, run, well_formed};
    use super::*;

    fn prose(letters: &str) -> String {
        let word = |letter| match LETTERS.find(letter).unwrap() {
            tag @ 0..6 => Tag::ALL[tag].text(),
            6 | 7 => "",
            8 => " \n",
            _ => "1 < 2",
        };
        letters.chars().map(word).collect()
    }

    fn joined(pieces: &[Piece]) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Tag(tag) => tag.text().to_owned(),
        };
        pieces.iter().map(text).collect()
    }

    proptest! {
        #[test]
        fn text_is_judged_as_its_tokens(letters in any_response()) {
            let letters = letters.replace(['E', 'F'], "");
            let kind = |fault: Fault| fault.kind;
            let of_text = check_text(&prose(&letters));
            prop_assert_eq!(of_text.as_ref().map(|shape| shape.blocks).map_err(|fault| fault.kind),
                run(&letters).map(|grammar| grammar.blocks()).map_err(kind));
            if let Ok(shape) = of_text {
                prop_assert_eq!(shape.paths.iter().sum::<usize>(), letters.matches('A').count());
                prop_assert_eq!(shape.first_block, prose(&letters).find("<Parallel>"));
            }
        }

        #[test]
        fn normalised_text_has_the_forced_pieces(letters in well_formed()) {
            let text = prose(letters.trim_end_matches(['E', 'F']));
            let pieces = normalise(&text).unwrap();
            let joined = joined(&pieces);
            prop_assert_eq!(normalise(&joined).unwrap(), pieces);
            prop_assert_eq!(check_text(&joined).unwrap().paths, check_text(&text).unwrap().paths);
            prop_assert_eq!(joined.matches("</Parallel>\n<Summary>").count(), joined.matches("<Summary>").count());
            prop_assert_eq!(joined.split_whitespace().collect::<String>(), text.split_whitespace().collect::<String>());
        }

        #[test]
        fn any_text_is_judged(parts in vec(prop_oneof![".{0,8}", "</?(Parallel|Path|Summary)>?"], 0..12)) {
            let text = parts.concat();
            match check_text(&text) {
                Ok(shape) => prop_assert_eq!(shape.blocks, text.matches("<Parallel>").count()),
                Err(fault) => prop_assert!(text.is_char_boundary(fault.byte)),
            }
            prop_assert_eq!(normalise(&text).is_ok(), check_text(&text).is_ok());
        }
    }

    #[test]
    fn names_the_place() {
        let fault = check_text("Hm <Path>").unwrap_err();
        assert_eq!(fault.to_string(), "path outside a block (byte 3 of the text)");
    }

    #[test]
    fn only_space_between_tags_changes() {
        let text = "x <Parallel>\n <Path>a\n</Path></Parallel><Summary> b</Summary>";
        let expected = "x <Parallel><Path>a\n</Path></Parallel>\n<Summary> b</Summary>";
        assert_eq!(joined(&normalise(text).unwrap()), expected);
    }

    /// What is known of 341 published demonstrations.
    #[test]
    fn real_demonstrations() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/parallel_gsm8k_sft.jsonl");
        let Ok(rows) = std::fs::read_to_string(path) else {
            eprintln!("SKIPPED real_demonstrations: {path} is not there");
            return;
        };
        let (mut with_block, mut faults, mut paths) = (0, Vec::new(), [0; 5]);
        for row in rows.lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let (id, text) = (row["id"].as_str().unwrap(), row["solution"].as_str().unwrap());
            with_block += usize::from(text.contains("<Parallel>"));
            match check_text(text) {
                Ok(shape) => {
                    shape.paths.into_iter().for_each(|count| paths[count] += 1);
                    normalise(text).unwrap();
                }
                Err(fault) => faults.push((id.rsplit('-').next().unwrap().to_owned(), fault.kind)),
            }
        }
        faults.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!((rows.lines().count(), with_block), (341, 338));
        let expected = [
            ("127", FaultKind::TextInBlock),
            ("178", FaultKind::TextBeforeSummary),
            ("475", FaultKind::UnclosedSummary),
        ];
        assert_eq!(faults, expected.map(|(id, kind)| (id.to_owned(), kind)));
        assert_eq!(paths, [0, 0, 423, 11, 1], "blocks by number of paths, of the rows without a fault");
    }
}
