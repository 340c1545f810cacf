//! Who sees whom, without a table of all pairs: one block of rows per segment, which sees its ancestors
//! whole and itself causally.

use std::ops::Range;

use super::segment::Layout;

/// Rows that share their context: row `i`, counted from `queries.start`, sees every key in `context` and
/// the keys `own..=own + i`, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryBlock {
    /// The rows.
    pub queries: Range<usize>,
    /// Keys that all rows see: ascending, apart, none empty.
    pub context: Vec<Range<usize>>,
    /// The key of the first row.
    pub own: usize,
}

/// Who sees whom. The blocks cover all rows once, ascending; every row sees at least itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visibility {
    /// The blocks of rows.
    pub blocks: Vec<QueryBlock>,
}

impl Visibility {
    /// Whether a row sees a key: for tests and pictures, too slow for work.
    pub fn sees(&self, row: usize, key: usize) -> bool {
        self.blocks.iter().filter(|block| block.queries.contains(&row)).any(|block| {
            let last = block.own + row - block.queries.start;
            (block.own..=last).contains(&key) || block.context.iter().any(|keys| keys.contains(&key))
        })
    }
}

impl Layout {
    /// Who sees whom when keys and rows are this layout's tokens.
    pub fn visibility(&self) -> Visibility {
        let ranges = self.ranges();
        let block = |(id, queries): (usize, &Range<usize>)| QueryBlock {
            context: merged(self.ancestors(id).into_iter().map(|id| ranges[id].clone())),
            own: queries.start,
            queries: queries.clone(),
        };
        let rows = ranges.iter().enumerate().filter(|(_, range)| !range.is_empty());
        Visibility { blocks: rows.map(block).collect() }
    }
}

/// Ascending ranges with the empty ones left out and neighbours made one.
fn merged(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges.filter(|range| !range.is_empty()) {
        match merged.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::super::segment::Role;
    use super::*;

    #[test]
    fn a_block_per_segment_with_its_ancestors_merged() {
        let mut layout = Layout::default();
        let prompt = layout.push(Role::Prompt, &[], 2);
        let trunk = layout.push(Role::Trunk, &[prompt], 1);
        let paths = [3, 0, 1].map(|len| layout.push(Role::Path, &[trunk], len));
        layout.push(Role::Join, &paths, 2);
        // Rows with the one range that they see besides themselves.
        let expected = [(0..2, 0..0), (2..3, 0..2), (3..6, 0..3), (6..7, 0..3), (7..9, 0..7)];
        let block = |(queries, context): (Range<usize>, Range<usize>)| QueryBlock {
            own: queries.start,
            queries,
            context: Some(context).filter(|context| !context.is_empty()).into_iter().collect(),
        };
        assert_eq!(layout.visibility().blocks, expected.map(block));
    }

    #[test]
    fn a_later_sibling_sees_around_the_earlier_one() {
        let mut layout = Layout::default();
        let prompt = layout.push(Role::Prompt, &[], 1);
        layout.push(Role::Trunk, &[prompt], 2);
        let second = layout.push(Role::Trunk, &[prompt], 2);
        layout.push(Role::Path, &[second], 1);
        assert_eq!(layout.visibility().blocks[3].context, [0..1, 3..5]);
        assert!(layout.visibility().sees(5, 4) && !layout.visibility().sees(5, 1));
    }

    #[test]
    fn no_token_no_block() {
        assert_eq!(Layout::default().visibility(), Visibility::default());
    }
}
