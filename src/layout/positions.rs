//! Where tokens stand. Siblings start at the same position, and a join starts after the longest of its
//! parents, so a position is the length of the longest chain of tokens before it; less what the paths before it
//! were moved back by, where a model is trained so.

use super::segment::{Layout, Role, SegmentId};

impl Layout {
    /// The position after a segment's last token.
    ///
    /// # Panics
    /// If the segment doesn't exist, or ends beyond `u32::MAX`.
    pub fn end(&self, id: SegmentId) -> u32 {
        let segment = &self.segments()[id];
        let len = u32::try_from(segment.len).expect("positions stay below the model's limit");
        segment.start + len
    }

    /// The position after the longest of `parents`; 0 without any.
    pub(super) fn join_position(&self, parents: &[SegmentId]) -> u32 {
        parents.iter().map(|&parent| self.end(parent)).max().unwrap_or(0)
    }

    /// By how many positions a segment starts before the end of the longest of its parents.
    pub(super) fn rewind(&self, id: SegmentId) -> u32 {
        let segment = &self.segments()[id];
        self.join_position(&segment.parents).saturating_sub(segment.start)
    }

    /// The position of every token.
    pub fn positions(&self) -> Vec<u32> {
        let run = |id: SegmentId| self.segments()[id].start..self.end(id);
        (0..self.segments().len()).flat_map(run).collect()
    }

    /// The longest chain of tokens outside the prompts: how many steps must follow one another.
    pub fn critical_path(&self) -> usize {
        let mut chains: Vec<usize> = Vec::with_capacity(self.segments().len());
        for segment in self.segments() {
            let before = segment.parents.iter().map(|&parent| chains[parent]).max().unwrap_or(0);
            let own = if segment.role == Role::Prompt { 0 } else { segment.len };
            chains.push(before + own);
        }
        chains.into_iter().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_overlap_and_the_join_follows_the_longest() {
        let mut layout = Layout::default();
        let prompt = layout.push(Role::Prompt, &[], 2);
        let trunk = layout.push(Role::Trunk, &[prompt], 1);
        let paths = [layout.push(Role::Path, &[trunk], 3), layout.push(Role::Path, &[trunk], 1)];
        let join = layout.push(Role::Join, &paths, 2);
        assert_eq!(layout.positions(), [0, 1, 2, 3, 4, 5, 3, 6, 7]);
        assert_eq!(layout.end(join), 8);
        assert_eq!(layout.critical_path(), 6);
    }

    #[test]
    fn paths_that_are_moved_back_stand_beside_their_own_tags() {
        let mut layout = Layout::default();
        let prompt = layout.push(Role::Prompt, &[], 2);
        let trunk = layout.push(Role::Trunk, &[prompt], 1);
        let paths = [3, 1].map(|len| layout.push_rewound(Role::Path, &[trunk], len, 2));
        layout.push(Role::Join, &paths, 2);
        assert_eq!(layout.positions(), [0, 1, 2, 1, 2, 3, 1, 4, 5]);
        assert_eq!(layout.critical_path(), 6, "steps, not positions");
        assert_eq!([0, 1, 2, 3, 4].map(|id| layout.rewind(id)), [0, 0, 2, 2, 0]);
        let far = layout.push_rewound(Role::Path, &[prompt], 1, 9);
        assert_eq!((layout.segments()[far].start, layout.rewind(far)), (0, 2));
    }

    #[test]
    fn prompts_are_no_part_of_the_critical_path() {
        let mut layout = Layout::default();
        assert_eq!(layout.critical_path(), 0);
        for (prompt, response) in [(50, 3), (2, 7)] {
            let prompt = layout.push(Role::Prompt, &[], prompt);
            layout.push(Role::Trunk, &[prompt], response);
        }
        assert_eq!(layout.critical_path(), 7);
    }
}
