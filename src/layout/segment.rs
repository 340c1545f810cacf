//! Segments, the graph they form, and their order.
//!
//! A segment is a run of tokens with a start position and the segments it continues from. A token sees
//! the tokens before it in its own segment, and everything in its segment's ancestors.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The index of a segment in its [`Layout`].
pub type SegmentId = usize;

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// What the model was asked.
    Prompt,
    /// The start of a response, up to its first `<Parallel>`.
    Trunk,
    /// A path, from `<Path>` to its end or to a nested `<Parallel>`.
    Path,
    /// What follows the paths of a block, from `</Parallel>` on.
    Join,
}

/// A run of tokens that continues other segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// What it is for.
    pub role: Role,
    /// What it continues: nothing (a prompt), one segment, or all the last segments of a block's paths.
    pub parents: Vec<SegmentId>,
    /// The position of its first token.
    pub start: u32,
    /// How many tokens it has.
    pub len: usize,
}

/// The segments of one trace or of several: parents before children, the tokens of each directly after
/// those of the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    segments: Vec<Segment>,
}

impl Layout {
    /// Adds a segment of `len` tokens, which starts where the longest of its parents ends.
    ///
    /// # Panics
    /// If a parent doesn't exist.
    pub fn push(&mut self, role: Role, parents: &[SegmentId], len: usize) -> SegmentId {
        self.push_rewound(role, parents, len, 0)
    }

    /// As [`Layout::push`], but starting `rewind` positions further back, at position 0 at the earliest: see
    /// [`Controls::path_rewind`](crate::prompt::Controls::path_rewind).
    ///
    /// # Panics
    /// If a parent doesn't exist.
    pub fn push_rewound(&mut self, role: Role, parents: &[SegmentId], len: usize, rewind: u32) -> SegmentId {
        let start = self.join_position(parents).saturating_sub(rewind);
        self.segments.push(Segment { role, parents: parents.to_vec(), start, len });
        self.segments.len() - 1
    }

    /// Appends `n` tokens to a segment that nothing continues yet (its children would move).
    ///
    /// # Panics
    /// If the segment doesn't exist.
    pub fn grow(&mut self, id: SegmentId, n: usize) {
        debug_assert!(
            self.segments.iter().all(|segment| !segment.parents.contains(&id)),
            "segment {id} has children and can't grow"
        );
        self.segments[id].len += n;
    }

    /// All segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.len).sum()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tokens of each segment.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        let mut next = 0;
        let range = |segment: &Segment| {
            let start = next;
            next += segment.len;
            start..next
        };
        self.segments.iter().map(range).collect()
    }

    /// Everything a segment continues, directly or not: ascending, each once, without itself.
    pub fn ancestors(&self, id: SegmentId) -> Vec<SegmentId> {
        let mut reached = vec![false; id + 1];
        reached[id] = true;
        // Parents stand before their children, so one pass from the back reaches them all.
        for at in (0..=id).rev() {
            if reached[at] {
                self.segments[at].parents.iter().for_each(|&parent| reached[parent] = true);
            }
        }
        (0..id).filter(|&at| reached[at]).collect()
    }

    /// The order in which the segments stand in the text. A layout that grew in time has the segments of
    /// a nested block after its uncles; in the text a path stands whole.
    pub fn text_order(&self) -> Vec<SegmentId> {
        let mut children = vec![Vec::new(); self.segments.len()];
        let mut missing: Vec<usize> = self.segments.iter().map(|s| s.parents.len()).collect();
        for (id, segment) in self.segments.iter().enumerate() {
            segment.parents.iter().for_each(|&parent| children[parent].push(id));
        }
        let mut stack: Vec<SegmentId> =
            (0..self.segments.len()).rev().filter(|&id| missing[id] == 0).collect();
        let mut order = Vec::with_capacity(self.segments.len());
        while let Some(id) = stack.pop() {
            order.push(id);
            // The last of its parents brings a join on.
            for &child in children[id].iter().rev() {
                missing[child] -= 1;
                if missing[child] == 0 {
                    stack.push(child);
                }
            }
        }
        order
    }

    /// The same graph with its segments in another order, parents still before children.
    ///
    /// # Panics
    /// If `order` isn't such an order of all segments.
    pub fn reordered(&self, order: &[SegmentId]) -> Layout {
        assert_eq!(order.len(), self.segments.len(), "an order names every segment once");
        let mut new_id = vec![None; order.len()];
        let mut segments = Vec::with_capacity(order.len());
        for (new, &old) in order.iter().enumerate() {
            let renamed = |&parent: &SegmentId| new_id[parent].expect("parents before children");
            let parents = self.segments[old].parents.iter().map(renamed).collect();
            segments.push(Segment { parents, ..self.segments[old].clone() });
            assert!(new_id[old].replace(new).is_none(), "an order names every segment once");
        }
        Layout { segments }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Structure, oracle, parse};
    use super::*;

    /// An order in which an engine might create the segments: a fork creates all its paths at once, a
    /// join appears when all its parents are done, and who is done next is up to `choices`.
    fn time_order(layout: &Layout, choices: &[usize]) -> Vec<SegmentId> {
        let (mut order, mut active, mut done) = (vec![0], vec![0], Vec::new());
        let mut choices = choices.iter().cycle();
        while !active.is_empty() {
            done.push(active.remove(choices.next().unwrap() % active.len()));
            for (id, segment) in layout.segments().iter().enumerate() {
                let ready = segment.parents.iter().all(|parent| done.contains(parent));
                if ready && !order.contains(&id) {
                    order.push(id);
                    active.push(id);
                }
            }
        }
        order
    }

    proptest! {
        #[test]
        fn text_order_undoes_time_order(
            response in oracle::response(),
            choices in prop::collection::vec(0..100_usize, 1..20),
        ) {
            let layout = parse(&[1, 2], &response, &oracle::controls(), Structure::PathWindow).unwrap().layout;
            let in_time = layout.reordered(&time_order(&layout, &choices));
            prop_assert_eq!(in_time.critical_path(), layout.critical_path());
            prop_assert_eq!(in_time.reordered(&in_time.text_order()), layout);
        }
    }

    #[test]
    fn a_nested_block_moves_before_its_uncle() {
        let mut layout = Layout::default();
        let prompt = layout.push(Role::Prompt, &[], 1);
        let trunk = layout.push(Role::Trunk, &[prompt], 1);
        let first = layout.push(Role::Path, &[trunk], 1);
        let uncle = layout.push(Role::Path, &[trunk], 9);
        let nested = [layout.push(Role::Path, &[first], 1), layout.push(Role::Path, &[first], 2)];
        let inner = layout.push(Role::Join, &nested, 1);
        let outer = layout.push(Role::Join, &[inner, uncle], 1);
        assert_eq!(layout.text_order(), [prompt, trunk, first, nested[0], nested[1], inner, uncle, outer]);
        assert_eq!(layout.ancestors(inner), [prompt, trunk, first, nested[0], nested[1]]);
        assert_eq!(layout.ancestors(outer), (0..outer).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "parents before children")]
    fn an_order_keeps_parents_first() {
        let mut layout = Layout::default();
        let prompt = layout.push(Role::Prompt, &[], 1);
        layout.push(Role::Trunk, &[prompt], 1);
        layout.reordered(&[1, 0]);
    }

    #[test]
    fn survives_json() {
        let mut layout = Layout::default();
        let prompt = layout.push(Role::Prompt, &[], 3);
        layout.push(Role::Trunk, &[prompt], 2);
        let json = serde_json::to_string(&layout).unwrap();
        assert!(json.contains(r#""role":"trunk","parents":[0],"start":3,"len":2"#), "{json}");
        assert_eq!(serde_json::from_str::<Layout>(&json).unwrap(), layout);
    }
}
