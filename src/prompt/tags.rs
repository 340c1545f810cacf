//! The six tags: which tokens steer structure, and the grammar of a response.
//!
//! One small automaton decides what may follow what. It is driven twice: token by token ([`Grammar`],
//! for sampling and for training) and over text ([`check_text`], [`normalise`], [`outline`], for judging
//! answers and for preparing demonstrations), so the two can't disagree.
//!
//! ```text
//! text  := (ordinary | block)*
//! block := <Parallel> nl* (<Path> text </Path> nl*)+ </Parallel> nl* <Summary> ordinary* </Summary>
//! ```
//!
//! How many blocks there may be, and how deep, is the engine's business: it takes `<Parallel>` out of
//! the set of legal tokens.

use serde::{Deserialize, Serialize};

// The paths are the default ones; they are spelled out for crates that mount this file by path.
#[path = "tags/grammar.rs"]
mod grammar;
#[cfg(test)]
#[path = "tags/letters.rs"]
mod letters;
#[path = "tags/outline.rs"]
mod outline;
#[path = "tags/text.rs"]
mod text;

use grammar::Symbol;
pub use grammar::{Fault, FaultKind, Grammar};
pub use outline::{Block, Outline, outline};
pub use text::{Piece, TextFault, TextShape, check_text, normalise};

/// One of the six tags, in the order of their ids in [`Controls::tags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// `<Parallel>`: the chain stops, paths begin.
    Parallel,
    /// `</Parallel>`: all paths are done.
    EndParallel,
    /// `<Path>`: one path begins.
    Path,
    /// `</Path>`: this path is done.
    EndPath,
    /// `<Summary>`: what the paths found is pooled.
    Summary,
    /// `</Summary>`: the chain resumes.
    EndSummary,
}

impl Tag {
    /// All tags, in order.
    pub const ALL: [Tag; 6] =
        [Tag::Parallel, Tag::EndParallel, Tag::Path, Tag::EndPath, Tag::Summary, Tag::EndSummary];

    /// The tag as written in text.
    pub fn text(self) -> &'static str {
        match self {
            Tag::Parallel => "<Parallel>",
            Tag::EndParallel => "</Parallel>",
            Tag::Path => "<Path>",
            Tag::EndPath => "</Path>",
            Tag::Summary => "<Summary>",
            Tag::EndSummary => "</Summary>",
        }
    }
}

/// A token that steers structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// One of the six tags.
    Tag(Tag),
    /// End-of-text.
    End,
}

impl Control {
    /// All controls, in the order of their bits in an [`AllowedSet`].
    pub const ALL: [Control; 7] = [
        Control::Tag(Tag::Parallel),
        Control::Tag(Tag::EndParallel),
        Control::Tag(Tag::Path),
        Control::Tag(Tag::EndPath),
        Control::Tag(Tag::Summary),
        Control::Tag(Tag::EndSummary),
        Control::End,
    ];

    const fn bit(self) -> u8 {
        match self {
            Control::Tag(tag) => 1 << tag as u8,
            Control::End => 1 << 6,
        }
    }
}

/// The ids of what steers structure, in one tokenizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Controls {
    /// Ids of the tags in the order of [`Tag::ALL`]; `None` for a tokenizer without the six tags.
    pub tags: Option<[u32; 6]>,
    /// The end-of-text ids; the first is the one that demonstrations end with.
    pub end: Vec<u32>,
    /// The ids of `"\n"` encoded as one piece.
    pub newline: Vec<u32>,
    /// By how many positions each path stands further back than its tags would put it. With the number of tokens
    /// from `<Parallel>` to the first word of a path, that word stands where it would stand without the tags: a base
    /// model that finds things by their distance works in paths as it does elsewhere. 0 is Multiverse's rule.
    pub path_rewind: u32,
}

impl Controls {
    /// The id of a tag, where the tokenizer has it.
    pub fn tag(&self, tag: Tag) -> Option<u32> {
        self.tags.map(|ids| ids[tag as usize])
    }

    /// What a token steers, or `None` for ordinary text.
    pub fn which(&self, id: u32) -> Option<Control> {
        let tag = self.tags.and_then(|ids| ids.iter().position(|&tag| tag == id));
        match tag {
            Some(index) => Some(Control::Tag(Tag::ALL[index])),
            None => self.end.contains(&id).then_some(Control::End),
        }
    }

    /// What is forced where paths join: `</Parallel>`, a newline, `<Summary>`.
    pub fn forced_join(&self) -> Option<Vec<u32>> {
        let (close, summary) = (self.tag(Tag::EndParallel)?, self.tag(Tag::Summary)?);
        let newline = self.newline.iter().copied();
        Some([close].into_iter().chain(newline).chain([summary]).collect())
    }

    fn symbol(&self, id: u32) -> Symbol {
        match self.which(id) {
            Some(control) => Symbol::Control(control),
            None if self.newline.contains(&id) => Symbol::Space,
            None => Symbol::Text,
        }
    }
}

/// Which tokens may be sampled at a point: a bit for each tag, one for end-of-text, one for ordinary
/// text. Without the text bit only the controls of the set and the newline are legal; in the empty set
/// nothing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AllowedSet(u8);

impl AllowedSet {
    const TEXT: u8 = 1 << 7;
    /// Nothing: what is left after end-of-text.
    pub const NONE: AllowedSet = AllowedSet(0);
    /// Everything, as for a model without structure.
    pub const ALL: AllowedSet = AllowedSet(0xff);
    /// Ordinary text and no control.
    pub const TEXT_ONLY: AllowedSet = AllowedSet(Self::TEXT);

    /// This set and one control more.
    #[must_use]
    pub const fn with(self, control: Control) -> Self {
        AllowedSet(self.0 | control.bit())
    }

    /// This set less one control.
    #[must_use]
    pub const fn without(self, control: Control) -> Self {
        AllowedSet(self.0 & !control.bit())
    }

    /// Whether a control may be sampled.
    pub const fn contains(self, control: Control) -> bool {
        self.0 & control.bit() != 0
    }

    /// Whether ordinary text may be sampled.
    pub const fn text(self) -> bool {
        self.0 & Self::TEXT != 0
    }

    /// The set as a byte: bits 0 to 5 the tags, bit 6 end-of-text, bit 7 ordinary text.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set that [`AllowedSet::bits`] gave.
    pub const fn from_bits(bits: u8) -> Self {
        AllowedSet(bits)
    }

    /// Whether a token may be sampled.
    pub fn permits(self, id: u32, controls: &Controls) -> bool {
        self.admits(controls.symbol(id))
    }

    /// Sets every forbidden entry of a row of logits to minus infinity.
    pub fn mask(self, logits: &mut [f32], controls: &Controls) {
        let steering = || controls.tags.iter().flatten().chain(&controls.end);
        if self.text() {
            for &id in steering().filter(|&&id| !self.permits(id, controls)) {
                if let Some(logit) = logits.get_mut(id as usize) {
                    *logit = f32::NEG_INFINITY;
                }
            }
            return;
        }
        let kept: Vec<(usize, f32)> = steering()
            .chain(&controls.newline)
            .filter(|&&id| self.permits(id, controls))
            .filter_map(|&id| Some((id as usize, *logits.get(id as usize)?)))
            .collect();
        logits.fill(f32::NEG_INFINITY);
        for (id, logit) in kept {
            logits[id] = logit;
        }
    }

    fn admits(self, symbol: Symbol) -> bool {
        match symbol {
            Symbol::Text => self.text(),
            Symbol::Space => self != Self::NONE,
            Symbol::Control(control) => self.contains(control),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::letters::controls;
    use super::*;

    proptest! {
        #[test]
        fn masks_what_it_does_not_permit(bits in any::<u8>(), tags in any::<bool>()) {
            let controls = Controls { tags: controls().tags.filter(|_| tags), ..controls() };
            let set = AllowedSet::from_bits(bits);
            let mut logits: Vec<f32> = (0..12).map(|id| id as f32).collect();
            set.mask(&mut logits, &controls);
            for (id, logit) in logits.into_iter().enumerate() {
                let expected = if set.permits(id as u32, &controls) { id as f32 } else { f32::NEG_INFINITY };
                prop_assert_eq!(logit, expected);
            }
            set.mask(&mut [0.0; 3], &controls);
        }
    }

    #[test]
    fn the_join_is_forced_in_one_go() {
        let controls = Controls { newline: vec![8, 9], ..controls() };
        assert_eq!(controls.forced_join(), Some(vec![1, 8, 9, 4]));
    }

    #[test]
    fn legal_sets_are_stored_as_numbers() {
        let set = AllowedSet::TEXT_ONLY.with(Control::End);
        assert_eq!(serde_json::to_string(&[set]).unwrap(), "[192]");
        assert_eq!(set.without(Control::End), AllowedSet::TEXT_ONLY);
        assert!(Control::ALL.into_iter().all(|control| AllowedSet::ALL.contains(control)));
    }
}
