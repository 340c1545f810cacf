//! A text with all its blocks and all its faults: after each fault the reading goes on where a person would.

use std::ops::Range;

use super::Tag;
use super::grammar::{Automaton, Frame};
use super::text::{Stretch, TextFault, stretches};

/// What a text has of blocks, broken ones too. Ranges are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// The blocks, in the order in which they open.
    pub blocks: Vec<Block>,
    /// Every fault, in the order of their places; none for a well-formed text.
    pub faults: Vec<TextFault>,
}

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// From `<Parallel>` to behind its summary, or to where it breaks off.
    pub range: Range<usize>,
    /// How many blocks it is in, itself included.
    pub nesting: usize,
    /// What stands in each path, without the tags.
    pub paths: Vec<Range<usize>>,
    /// What stands in the summary, without the tags.
    pub summary: Option<Range<usize>>,
}

/// Reads a text to its end, whatever is wrong with it. The first fault is that of [`super::check_text`].
pub fn outline(text: &str) -> Outline {
    let mut reader = Reader::default();
    for (byte, stretch) in stretches(text) {
        reader.read(byte, stretch);
    }
    let unclosed = reader.automaton.unclosed().map(|kind| TextFault { kind, byte: text.len() });
    reader.outline.faults.extend(unclosed);
    while !reader.open.is_empty() {
        reader.close(text.len());
    }
    reader.outline
}

/// Something open, with where it goes in the outline.
#[derive(Clone, Copy)]
enum Open {
    /// A block, by its index.
    Block(usize),
    /// A path that starts here, of a block if it stands in one.
    Path { start: usize, block: Option<usize> },
    /// A summary that starts here, of a block if it follows one.
    Summary { start: usize, block: Option<usize> },
}

impl Open {
    fn is(self, frame: Frame) -> bool {
        match self {
            Open::Block(_) => matches!(frame, Frame::Opened | Frame::Block | Frame::Closed),
            Open::Path { .. } => frame == Frame::Path,
            Open::Summary { .. } => frame == Frame::Summary,
        }
    }
}

#[derive(Default)]
struct Reader {
    automaton: Automaton,
    /// One entry for each frame of the automaton.
    open: Vec<Open>,
    outline: Outline,
}

impl Reader {
    fn read(&mut self, byte: usize, stretch: Stretch) {
        while let Err(kind) = self.automaton.step(stretch.symbol()) {
            if self.outline.faults.last() != Some(&TextFault { kind, byte }) {
                self.outline.faults.push(TextFault { kind, byte });
            }
            let Stretch::Tag(tag) = stretch else { return };
            let again = self.automaton.recover(tag);
            self.follow(byte, tag);
            if !again {
                return;
            }
        }
        if let Stretch::Tag(tag) = stretch {
            self.follow(byte, tag);
        }
    }

    /// Closes and opens what the automaton has closed and opened at the tag.
    fn follow(&mut self, byte: usize, tag: Tag) {
        let frames = self.automaton.open();
        let same = self.open.iter().zip(frames).take_while(|(open, frame)| open.is(**frame)).count();
        let new = frames[same..].to_vec();
        let mut closed = None;
        while self.open.len() > same {
            closed = self.close(byte).or(closed);
        }
        let start = byte + tag.text().len();
        for frame in new {
            let open = match frame {
                Frame::Path => Open::Path { start, block: self.innermost_block() },
                Frame::Summary => Open::Summary { start, block: closed },
                Frame::Opened | Frame::Block | Frame::Closed => self.block(byte),
            };
            self.open.push(open);
        }
        let ended = match tag {
            Tag::EndParallel => self.innermost_block(),
            Tag::EndSummary => closed,
            _ => None,
        };
        if let Some(block) = ended {
            self.outline.blocks[block].range.end = start;
        }
    }

    fn block(&mut self, byte: usize) -> Open {
        let around = self.open.iter().filter(|open| matches!(open, Open::Block(_))).count();
        let block = Block { range: byte..byte, nesting: around + 1, paths: Vec::new(), summary: None };
        self.outline.blocks.push(block);
        Open::Block(self.outline.blocks.len() - 1)
    }

    /// The block that what opens next would be a path of.
    fn innermost_block(&self) -> Option<usize> {
        match self.open.last() {
            Some(Open::Block(block)) => Some(*block),
            _ => None,
        }
    }

    /// Closes the innermost of what is open; the block it is or belongs to.
    fn close(&mut self, byte: usize) -> Option<usize> {
        let blocks = &mut self.outline.blocks;
        match self.open.pop()? {
            Open::Path { start, block } => {
                let block = block?;
                blocks[block].paths.push(start..byte);
                None
            }
            Open::Summary { start, block } => {
                let block = block?;
                blocks[block].summary = Some(start..byte);
                blocks[block].range.end = byte;
                Some(block)
            }
            Open::Block(block) => {
                let range = &mut blocks[block].range;
                if range.start == range.end {
                    range.end = byte;
                }
                Some(block)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::{FaultKind, check_text};
    use super::*;

    const GOOD: &str = "x<Parallel><Path>a</Path>\n<Path>b</Path></Parallel>\n<Summary>s</Summary>y";

    fn texts<'a>(text: &'a str, ranges: &[Range<usize>]) -> Vec<&'a str> {
        ranges.iter().map(|range| &text[range.clone()]).collect()
    }

    #[test]
    fn blocks_are_found_with_their_parts() {
        let outline = outline(GOOD);
        assert_eq!(outline.faults, []);
        let block = &outline.blocks[0];
        assert_eq!(&GOOD[block.range.clone()], &GOOD[1..GOOD.len() - 1]);
        assert_eq!(texts(GOOD, &block.paths), ["a", "b"]);
        assert_eq!(&GOOD[block.summary.clone().unwrap()], "s");
    }

    #[test]
    fn a_nested_block_belongs_to_its_path() {
        let text = format!("<Parallel><Path>{GOOD}</Path><Path>c</Path></Parallel><Summary>t</Summary>");
        let outline = outline(&text);
        let nesting: Vec<usize> = outline.blocks.iter().map(|block| block.nesting).collect();
        assert_eq!((nesting, outline.faults), (vec![1, 2], vec![]));
        assert_eq!(texts(&text, &outline.blocks[0].paths), [GOOD, "c"]);
    }

    /// Each damage has its own faults and no others, and the second block stays whole.
    #[test]
    fn one_damage_is_not_taken_for_several() {
        use FaultKind::*;
        for (from, to, faults) in [
            ("a</Path>", "a", vec![UnclosedPath]),
            ("b</Path>", "b", vec![UnclosedPath]),
            ("<Path>a", "a", vec![TextInBlock, StrayTag(Tag::EndPath)]),
            ("</Parallel>", "", vec![UnclosedBlock]),
            (
                "<Parallel>",
                "",
                vec![PathOutsideBlock, PathOutsideBlock, StrayTag(Tag::EndParallel), StrayTag(Tag::Summary)],
            ),
            ("</Summary>", "", vec![UnclosedSummary]),
            ("<Summary>", "", vec![TextBeforeSummary, MissingSummary]),
            ("<Summary>s</Summary>", "", vec![TextBeforeSummary, MissingSummary]),
            ("<Path>a</Path>\n<Path>b</Path>", "", vec![EmptyBlock]),
            ("</Parallel>", "</Parallel>t", vec![TextBeforeSummary]),
            ("\n<Path>", "t<Path>", vec![TextInBlock]),
            ("</Summary>", "</Summary></Path>", vec![StrayTag(Tag::EndPath)]),
            ("</Summary>", "</Summary><Path>c</Path>", vec![PathOutsideBlock]),
            ("x", "<Parallel>", vec![StrayTag(Tag::Parallel)]),
        ] {
            let text = format!("{}{GOOD}", GOOD.replacen(from, to, 1));
            let outline = outline(&text);
            let kinds: Vec<FaultKind> = outline.faults.iter().map(|fault| fault.kind).collect();
            assert_eq!(kinds, faults, "{text}");
            let last = outline.blocks.last().unwrap();
            assert_eq!(texts(&text, &last.paths), ["a", "b"], "{text}");
            assert!(last.summary.is_some(), "{text}");
        }
    }

    #[test]
    fn what_is_open_at_the_end_is_named_from_the_innermost() {
        let outline = outline("<Parallel><Path>a</Path><Path>b");
        let kinds: Vec<FaultKind> = outline.faults.iter().map(|fault| fault.kind).collect();
        assert_eq!(kinds, [FaultKind::UnclosedPath, FaultKind::UnclosedBlock]);
        assert_eq!(outline.blocks[0].paths.len(), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(parts in vec(prop_oneof![".{0,6}", "</?(Parallel|Path|Summary)>"], 0..16)) {
            let text = parts.concat();
            let outline = outline(&text);
            prop_assert_eq!(outline.faults.first().copied(), check_text(&text).err());
            prop_assert!(outline.faults.is_sorted_by_key(|fault| fault.byte));
            prop_assert!(outline.blocks.len() <= text.matches("<Parallel>").count());
            for block in &outline.blocks {
                prop_assert!(text.get(block.range.clone()).unwrap().starts_with("<Parallel>"));
                for part in block.paths.iter().chain(&block.summary) {
                    prop_assert!(text.get(part.clone()).is_some());
                    prop_assert!(block.range.start <= part.start && part.end <= block.range.end);
                }
            }
            if let Ok(shape) = check_text(&text) {
                let paths: Vec<usize> = outline.blocks.iter().map(|block| block.paths.len()).collect();
                prop_assert_eq!(paths, shape.paths);
            }
        }
    }
}
