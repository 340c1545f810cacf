//! The grammar of a response, as one small automaton, and the names of what can be wrong.

use std::sync::Arc;

use thiserror::Error;

use super::{AllowedSet, Control, Controls, Tag};

/// The grammar of a response, one token at a time, the same for both structures. A refused token leaves
/// it as it was.
#[derive(Clone, Debug)]
pub struct Grammar {
    controls: Arc<Controls>,
    automaton: Automaton,
    pushed: usize,
}

impl Grammar {
    /// At the start of a response.
    pub fn new(controls: &Controls) -> Self {
        Grammar { controls: Arc::new(controls.clone()), automaton: Automaton::default(), pushed: 0 }
    }

    /// Takes the next token.
    pub fn push(&mut self, id: u32) -> Result<(), Fault> {
        let step = self.automaton.step(self.controls.symbol(id));
        step.map_err(|kind| self.fault(kind))?;
        self.pushed += 1;
        Ok(())
    }

    /// What the next token may be.
    pub fn allowed(&self) -> AllowedSet {
        match self.controls.tags {
            Some(_) => self.automaton.allowed(),
            None => self.automaton.allowed().without(Control::Tag(Tag::Parallel)),
        }
    }

    /// Blocks opened so far, nested ones too.
    pub fn blocks(&self) -> usize {
        self.automaton.blocks
    }

    /// Paths that are open.
    pub fn depth(&self) -> usize {
        let open = self.automaton.open.iter();
        open.filter(|&&frame| frame == Frame::Path).count()
    }

    /// Whether a summary is open.
    pub fn in_summary(&self) -> bool {
        self.automaton.open.last() == Some(&Frame::Summary)
    }

    /// Whether end-of-text was taken.
    pub fn finished(&self) -> bool {
        self.automaton.finished
    }

    /// Whether the response may stop here; otherwise what is still open.
    pub fn well_formed_end(&self) -> Result<(), Fault> {
        self.automaton.stop().map_err(|kind| self.fault(kind))
    }

    fn fault(&self, kind: FaultKind) -> Fault {
        Fault { kind, token: self.pushed }
    }
}

/// What is wrong with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum FaultKind {
    /// A path is open where none may be.
    #[error("unclosed path: expected </Path>")]
    UnclosedPath,
    /// A block is open where none may be.
    #[error("unclosed block: expected <Path> or </Parallel>")]
    UnclosedBlock,
    /// A summary is open where none may be.
    #[error("unclosed summary: expected </Summary>")]
    UnclosedSummary,
    /// A closed block isn't followed by its summary.
    #[error("missing summary: expected <Summary> after </Parallel>")]
    MissingSummary,
    /// A block closes without a path.
    #[error("empty block: expected <Path> after <Parallel>")]
    EmptyBlock,
    /// `<Path>` stands outside a block.
    #[error("path outside a block")]
    PathOutsideBlock,
    /// Text stands inside a block, outside its paths.
    #[error("text inside a block, outside its paths")]
    TextInBlock,
    /// Text stands between `</Parallel>` and `<Summary>`.
    #[error("text between </Parallel> and <Summary>")]
    TextBeforeSummary,
    /// A tag stands where it opens or closes nothing.
    #[error("stray {}", .0.text())]
    StrayTag(Tag),
    /// Something follows end-of-text.
    #[error("text after the end")]
    AfterEnd,
    /// Tags stand right, but with other white space between them than path_window forces.
    #[error("white space between tags that path_window would not write")]
    Spacing,
}

/// A fault in a stream of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{kind} (token {token} of the response)")]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The offending token, counted from the start of the response; its length for a missing token.
    pub token: usize,
}

/// What the grammar reads: a token or a piece of text.
#[derive(Clone, Copy)]
pub(super) enum Symbol {
    Text,
    /// A newline token; white space in text.
    Space,
    Control(Control),
}

/// Something that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A block before its first path.
    Opened,
    /// A block after (or around) a path.
    Block,
    Path,
    /// A block after `</Parallel>`.
    Closed,
    Summary,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Automaton {
    open: Vec<Frame>,
    blocks: usize,
    finished: bool,
}

impl Automaton {
    /// The one definition of what may follow.
    pub(super) fn allowed(&self) -> AllowedSet {
        const fn set(tags: &[Tag], text: AllowedSet) -> AllowedSet {
            let (mut set, mut i) = (text, 0);
            while i < tags.len() {
                set = set.with(Control::Tag(tags[i]));
                i += 1;
            }
            set
        }
        const TEXT: AllowedSet = AllowedSet::TEXT_ONLY;
        const GAP: AllowedSet = AllowedSet::NONE;
        if self.finished {
            return AllowedSet::NONE;
        }
        match self.open.last() {
            None => set(&[Tag::Parallel], TEXT).with(Control::End),
            Some(Frame::Path) => set(&[Tag::Parallel, Tag::EndPath], TEXT),
            Some(Frame::Opened) => set(&[Tag::Path], GAP),
            Some(Frame::Block) => set(&[Tag::Path, Tag::EndParallel], GAP),
            Some(Frame::Closed) => set(&[Tag::Summary], GAP),
            Some(Frame::Summary) => set(&[Tag::EndSummary], TEXT),
        }
    }

    pub(super) fn step(&mut self, symbol: Symbol) -> Result<(), FaultKind> {
        if !self.allowed().admits(symbol) {
            return Err(self.fault(symbol));
        }
        match symbol {
            Symbol::Control(Control::Tag(tag)) => self.advance(tag),
            Symbol::Control(Control::End) => self.finished = true,
            Symbol::Text | Symbol::Space => {}
        }
        Ok(())
    }

    /// Takes a legal tag.
    fn advance(&mut self, tag: Tag) {
        if tag != Tag::Parallel {
            self.open.pop();
        }
        match tag {
            Tag::Parallel => {
                self.blocks += 1;
                self.open.push(Frame::Opened);
            }
            Tag::Path => self.open.extend([Frame::Block, Frame::Path]),
            Tag::EndParallel => self.open.push(Frame::Closed),
            Tag::Summary => self.open.push(Frame::Summary),
            Tag::EndPath | Tag::EndSummary => {}
        }
    }

    pub(super) fn stop(&self) -> Result<(), FaultKind> {
        self.unclosed().next().map_or(Ok(()), Err)
    }

    /// What is wrong with stopping here, from the innermost.
    pub(super) fn unclosed(&self) -> impl Iterator<Item = FaultKind> {
        self.open.iter().rev().map(|frame| match frame {
            Frame::Path => FaultKind::UnclosedPath,
            Frame::Opened | Frame::Block => FaultKind::UnclosedBlock,
            Frame::Closed => FaultKind::MissingSummary,
            Frame::Summary => FaultKind::UnclosedSummary,
        })
    }

    /// What is open, from the outermost.
    pub(super) fn open(&self) -> &[Frame] {
        &self.open
    }

    /// After a refused tag: goes to where a person would read on. Whether the tag is still to be taken.
    pub(super) fn recover(&mut self, tag: Tag) -> bool {
        match (self.open.last(), tag) {
            (Some(Frame::Path), Tag::Path | Tag::EndParallel)
            | (Some(Frame::Summary | Frame::Block | Frame::Closed), Tag::Parallel)
            | (Some(Frame::Closed), Tag::Path | Tag::EndPath | Tag::EndParallel) => {
                self.open.pop();
                true
            }
            (Some(Frame::Closed), Tag::EndSummary) => {
                self.open.pop();
                false
            }
            (Some(Frame::Opened | Frame::Block), Tag::Summary) => {
                self.advance(Tag::EndParallel);
                true
            }
            (Some(Frame::Opened), Tag::EndParallel) => {
                self.advance(tag);
                false
            }
            // Opened where it may not be; so its end is no second fault.
            (None | Some(Frame::Summary), Tag::Path) => {
                self.open.push(Frame::Path);
                false
            }
            (None | Some(Frame::Path), Tag::Summary) => {
                self.open.push(Frame::Summary);
                false
            }
            _ => false,
        }
    }

    /// Names what is wrong with an illegal symbol.
    fn fault(&self, symbol: Symbol) -> FaultKind {
        if self.finished {
            return FaultKind::AfterEnd;
        }
        match (self.open.last(), symbol) {
            (Some(Frame::Closed), Symbol::Text) => FaultKind::TextBeforeSummary,
            (_, Symbol::Text | Symbol::Space) => FaultKind::TextInBlock,
            (_, Symbol::Control(Control::End)) => {
                self.stop().expect_err("end-of-text is illegal only where something is open")
            }
            (top, Symbol::Control(Control::Tag(tag))) => match (top, tag) {
                (Some(Frame::Closed), _) => FaultKind::MissingSummary,
                (Some(Frame::Opened), Tag::EndParallel | Tag::Summary) => FaultKind::EmptyBlock,
                (Some(Frame::Path), Tag::Path | Tag::EndParallel) => FaultKind::UnclosedPath,
                (Some(Frame::Block), Tag::Summary | Tag::Parallel) => FaultKind::UnclosedBlock,
                (Some(Frame::Summary), Tag::Parallel) => FaultKind::UnclosedSummary,
                (_, Tag::Path) => FaultKind::PathOutsideBlock,
                _ => FaultKind::StrayTag(tag),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::letters::{LETTERS, any_response, controls, ids, run, well_formed};
    use super::*;

    /// The slow and obvious judge: innermost blocks become `b` until none is left.
    fn accepts(letters: &str) -> bool {
        let mut text = letters.to_owned();
        while let Some((at, end)) =
            (0..text.len()).find_map(|at| Some((at, text.len() - after_block(&text[at..])?.len())))
        {
            text.replace_range(at..end, "b");
        }
        let body = text.strip_suffix(['E', 'F']).unwrap_or(&text);
        body.chars().all(|letter| "tnb".contains(letter))
    }

    fn after_block(text: &str) -> Option<&str> {
        let newlines = |text: &'static str| move |letter: char| text.contains(letter);
        let mut rest = text.strip_prefix('P')?.trim_start_matches('n');
        loop {
            rest = rest.strip_prefix('A')?.trim_start_matches(newlines("tnb"));
            rest = rest.strip_prefix('B')?.trim_start_matches('n');
            if !rest.starts_with('A') {
                break;
            }
        }
        rest = rest.strip_prefix('Q')?.trim_start_matches('n');
        rest.strip_prefix('S')?.trim_start_matches(newlines("tn")).strip_prefix('Z')
    }

    proptest! {
        #[test]
        fn accepts_what_the_oracle_accepts(letters in any_response()) {
            prop_assert_eq!(run(&letters).is_ok(), accepts(&letters), "{:?}", run(&letters).err());
        }

        #[test]
        fn allowed_agrees_with_push(letters in any_response()) {
            let controls = controls();
            let mut grammar = Grammar::new(&controls);
            for (at, id) in ids(&letters).into_iter().enumerate() {
                for candidate in 0..10 {
                    let pushed = grammar.clone().push(candidate);
                    prop_assert_eq!(grammar.allowed().permits(candidate, &controls), pushed.is_ok());
                    prop_assert!(pushed.is_ok() || pushed.unwrap_err().token == at);
                }
                let before = format!("{grammar:?}");
                if grammar.push(id).is_err() {
                    prop_assert_eq!(format!("{grammar:?}"), before);
                    break;
                }
            }
        }

        #[test]
        fn what_was_accepted_can_be_completed(letters in any_response()) {
            let mut grammar = Grammar::new(&controls());
            let mut taken: String =
                letters.chars().take_while(|letter| grammar.push(ids(&letter.to_string())[0]).is_ok()).collect();
            while grammar.well_formed_end().is_err() {
                // The first of these that is legal leads out; a block may need a path first.
                let closing = [Tag::EndPath, Tag::EndParallel, Tag::EndSummary, Tag::Summary, Tag::Path];
                let tag = closing.into_iter().find(|&tag| grammar.allowed().contains(Control::Tag(tag))).unwrap();
                prop_assert!(taken.len() < 10 * letters.len(), "{taken} doesn't end");
                grammar.push(tag as u32).unwrap();
                taken.push_str(&LETTERS[tag as usize..=tag as usize]);
            }
            prop_assert!(accepts(&taken));
        }

        #[test]
        fn counts_as_it_goes(letters in well_formed()) {
            let mut grammar = Grammar::new(&controls());
            let count = |text: &str, letter| text.matches(letter).count();
            for (at, id) in ids(&letters).into_iter().enumerate() {
                grammar.push(id).unwrap();
                let text = &letters[..=at];
                prop_assert_eq!(grammar.blocks(), count(text, 'P'));
                prop_assert_eq!(grammar.depth(), count(text, 'A') - count(text, 'B'));
                prop_assert_eq!(grammar.in_summary(), count(text, 'S') > count(text, 'Z'));
                prop_assert_eq!(grammar.finished(), text.ends_with(['E', 'F']));
            }
        }
    }

    #[test]
    fn every_short_response_is_judged_as_by_the_oracle() {
        let mut responses = vec![String::new()];
        for _ in 0..5 {
            let longer =
                responses.iter().flat_map(|text| "PQABSZEt".chars().map(move |c| format!("{text}{c}")));
            responses = longer.collect();
            assert!(responses.iter().all(|text| run(text).is_ok() == accepts(text)));
        }
    }

    #[test]
    fn names_and_locates_each_fault() {
        use FaultKind::*;
        for (letters, kind, token) in [
            ("tPAt", UnclosedPath, 4),
            ("PAtE", UnclosedPath, 3),
            ("PAAB", UnclosedPath, 2),
            ("PAtQ", UnclosedPath, 3),
            ("P", UnclosedBlock, 1),
            ("PABE", UnclosedBlock, 3),
            ("PABQSt", UnclosedSummary, 6),
            ("PABQSE", UnclosedSummary, 5),
            ("PABQ", MissingSummary, 4),
            ("PABQnPABQSZ", MissingSummary, 5),
            ("PQSZ", EmptyBlock, 1),
            ("tAB", PathOutsideBlock, 1),
            ("PtABQSZ", TextInBlock, 1),
            ("PABntQSZ", TextInBlock, 4),
            ("PABQtSZ", TextBeforeSummary, 4),
            ("tZ", StrayTag(Tag::EndSummary), 1),
            ("SZ", StrayTag(Tag::Summary), 0),
            ("PPAB", StrayTag(Tag::Parallel), 1),
            ("PABPAB", UnclosedBlock, 3),
            ("PABSZ", UnclosedBlock, 3),
            ("PSZ", EmptyBlock, 1),
            ("PABQSPABQSZZ", UnclosedSummary, 5),
            ("Et", AfterEnd, 1),
        ] {
            assert_eq!(run(letters).unwrap_err(), Fault { kind, token }, "{letters}");
        }
        assert_eq!(run("tZ").unwrap_err().to_string(), "stray </Summary> (token 1 of the response)");
    }

    #[test]
    fn what_is_legal_where() {
        let set = |tags: &[Tag]| tags.iter().fold(AllowedSet::NONE, |set, &tag| set.with(Control::Tag(tag)));
        let text = |tags: &[Tag]| AllowedSet::from_bits(set(tags).bits() | AllowedSet::TEXT_ONLY.bits());
        let mut grammar = Grammar::new(&controls());
        let mut after = |letters: &str| {
            ids(letters).into_iter().for_each(|id| grammar.push(id).unwrap());
            grammar.allowed()
        };
        assert_eq!(after("t"), text(&[Tag::Parallel]).with(Control::End));
        assert_eq!(after("P"), set(&[Tag::Path]));
        assert_eq!(after("A"), text(&[Tag::Parallel, Tag::EndPath]));
        assert_eq!(after("B"), set(&[Tag::Path, Tag::EndParallel]));
        assert_eq!(after("Q"), set(&[Tag::Summary]));
        assert_eq!(after("S"), text(&[Tag::EndSummary]));
        assert_eq!(after("Z"), text(&[Tag::Parallel]).with(Control::End));
        assert_eq!(after("E"), AllowedSet::NONE);
    }

    #[test]
    fn without_tags_only_the_end_steers() {
        let controls = Controls { tags: None, ..controls() };
        let mut grammar = Grammar::new(&controls);
        assert_eq!(grammar.allowed(), AllowedSet::TEXT_ONLY.with(Control::End));
        ids("PZAtE").into_iter().for_each(|id| grammar.push(id).unwrap());
        assert!(grammar.finished());
        assert_eq!((controls.tag(Tag::Path), controls.forced_join()), (None, None));
    }
}
