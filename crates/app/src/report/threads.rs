//! A response as threads: text that runs into blocks, whose paths are threads themselves, and their summaries.

use std::ops::Range;

use parallel_r1::prompt::tags::{Block, outline};
use serde::Serialize;

/// A piece of a thread.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Piece {
    /// Text without tags.
    Text {
        /// The text.
        text: String,
    },
    /// A block.
    Block {
        /// Its paths.
        paths: Vec<Path>,
        /// What its summary says; `None` of a block that breaks off before.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<Vec<Piece>>,
    },
}

/// A path of a block.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Path {
    /// Whether it found the answer, where that can be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) right: Option<bool>,
    /// What it says.
    pub(super) pieces: Vec<Piece>,
}

/// The threads of a response, and the faults of its tags. `right` judges a path's text.
pub(super) fn threads(text: &str, right: &dyn Fn(&str) -> Option<bool>) -> (Vec<Piece>, Vec<String>) {
    let outline = outline(text);
    let faults = outline.faults.iter().map(ToString::to_string).collect();
    (pieces(text, 0..text.len(), &outline.blocks, 1, right), faults)
}

/// What stands in a range. `blocks` are those of the response, of which those that nest `depth` deep and lie in the range
/// are drawn here.
fn pieces(
    text: &str,
    range: Range<usize>,
    blocks: &[Block],
    depth: usize,
    right: &dyn Fn(&str) -> Option<bool>,
) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut at = range.start;
    let here = |block: &&Block| {
        block.nesting == depth && range.start <= block.range.start && block.range.end <= range.end
    };
    for block in blocks.iter().filter(here) {
        found.extend(plain(&text[at..block.range.start.max(at)]));
        let inside = |range: &Range<usize>| pieces(text, range.clone(), blocks, depth + 1, right);
        let path = |range: &Range<usize>| Path { right: right(&text[range.clone()]), pieces: inside(range) };
        found.push(Piece::Block {
            paths: block.paths.iter().map(path).collect(),
            summary: block.summary.as_ref().map(inside),
        });
        at = at.max(block.range.end);
    }
    found.extend(plain(&text[at..range.end]));
    found
}

/// Text for people: without the line ends that tags leave around it.
fn plain(text: &str) -> Option<Piece> {
    let text = text.trim_matches('\n');
    (!text.is_empty()).then(|| Piece::Text { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text { text: text.to_owned() }
    }

    fn drawn(response: &str) -> (Vec<Piece>, Vec<String>) {
        threads(response, &|path| path.contains('?').then_some(path.contains('!')))
    }

    #[test]
    fn a_block_stands_between_texts() {
        let (pieces, faults) = drawn(
            "So\n<Parallel><Path>a</Path><Path>b?!</Path></Parallel>\n<Summary>c</Summary>\n\nAnswer: 4",
        );
        let path = |right, words: &str| Path { right, pieces: vec![text(words)] };
        let block = Piece::Block {
            paths: vec![path(None, "a"), path(Some(true), "b?!")],
            summary: Some(vec![text("c")]),
        };
        assert_eq!((pieces, faults.len()), (vec![text("So"), block, text("Answer: 4")], 0));
    }

    #[test]
    fn a_nested_block_is_drawn_in_its_path() {
        let inner = "<Parallel><Path>x</Path></Parallel>\n<Summary>y</Summary>";
        let (pieces, _) =
            drawn(&format!("<Parallel><Path>1{inner}2</Path></Parallel>\n<Summary>z</Summary>"));
        let Piece::Block { paths, .. } = &pieces[0] else { panic!("{pieces:?}") };
        assert_eq!(paths[0].pieces.len(), 3);
        assert!(matches!(&paths[0].pieces[1], Piece::Block { paths, .. } if paths.len() == 1));
        assert_eq!(pieces.len(), 1);
    }

    #[test]
    fn broken_tags_are_drawn_as_far_as_they_go() {
        let (pieces, faults) = drawn("a<Parallel><Path>b</Path><Path>c");
        let Piece::Block { paths, summary } = &pieces[1] else { panic!("{pieces:?}") };
        assert_eq!((paths.len(), summary), (2, &None));
        assert!(!faults.is_empty());
        assert_eq!(drawn("plain"), (vec![text("plain")], vec![]));
        assert_eq!(drawn(""), (vec![], vec![]));
    }
}
