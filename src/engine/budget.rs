//! What a branch may still spend, so that every block is closed and answered in time.
//!
//! A block costs `<Parallel>`, its paths and the tags that join them; after it, the tokens that
//! close what is open around it and `reserve_tokens` for summary and answer must be left. What that
//! leaves is shared equally by the paths, and what a path doesn't use goes back to the trunk.
//! Shares are fixed at the fork, so they don't depend on which path is decoded first.

use super::params::SamplingParams;

/// What a branch may still spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    /// Tokens, forced ones too.
    pub(super) tokens: usize,
    /// Blocks that it may open.
    pub(super) blocks: usize,
    /// The position that it must stay below.
    pub(super) ceiling: usize,
}

impl Budget {
    /// Tokens that may follow when the next one stands at `position`.
    pub(super) fn left(&self, position: usize) -> usize {
        self.tokens.min(self.ceiling.saturating_sub(position))
    }
}

/// The settings that budgets follow from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Paths of a block.
    pub(super) paths: usize,
    /// Shortest path that a block is opened for.
    pub(super) min_path: usize,
    /// Longest path.
    pub(super) max_path: usize,
    /// Tokens kept for summary and answer.
    pub(super) reserve: usize,
    /// Tokens that close a block and open its summary.
    pub(super) join: usize,
    /// Blocks within each other.
    pub(super) nesting: usize,
}

impl Rules {
    /// The rules that settings ask for, where `join` tokens are forced at a join.
    pub(super) fn new(params: &SamplingParams, join: usize) -> Self {
        Self {
            paths: params.num_paths,
            min_path: params.min_path_tokens,
            max_path: params.max_path_tokens.unwrap_or(usize::MAX),
            reserve: params.reserve_tokens,
            join,
            nesting: params.max_nesting,
        }
    }

    /// Whether `<Parallel>` may stand at `position`, inside `depth` paths, where `closing` tokens
    /// must remain for what is open.
    pub(super) fn may_open(&self, budget: Budget, position: usize, closing: usize, depth: usize) -> bool {
        let after = Budget { tokens: budget.tokens.saturating_sub(1), ..budget };
        budget.blocks > 0 && depth < self.nesting && self.share(after, position + 1, closing) >= self.min_path
    }

    /// Tokens of each path of a block whose first path token stands at `position`.
    fn share(&self, budget: Budget, position: usize, closing: usize) -> usize {
        let kept = self.kept(closing);
        let tokens = budget.tokens.saturating_sub(kept) / self.paths;
        let positions = budget.ceiling.saturating_sub(position + kept);
        tokens.min(positions).min(self.max_path)
    }

    /// Tokens that must remain after the paths of a block.
    fn kept(&self, closing: usize) -> usize {
        closing + self.reserve + self.join
    }

    /// The budget of each path of the block that the branch has just opened.
    pub(super) fn fork(&self, budget: Budget, position: usize, closing: usize) -> Budget {
        Budget {
            tokens: self.share(budget, position, closing),
            blocks: budget.blocks / self.paths,
            ceiling: budget.ceiling.saturating_sub(self.kept(closing)),
        }
    }

    /// What the trunk has after a block, before the joining tags: `before` is what it had at the
    /// fork, `share` what each path got and `left` what each path has left.
    pub(super) fn join(&self, before: Budget, share: Budget, left: impl Iterator<Item = Budget>) -> Budget {
        left.fold(before, |sum, path| Budget {
            tokens: sum.tokens + path.tokens - share.tokens,
            blocks: sum.blocks + path.blocks - share.blocks,
            ..sum
        })
    }

    /// The most segments a response has. (A path may end at once; `min_path` only has to fit.)
    pub(super) fn most_segments(&self, tokens: usize, blocks: usize) -> usize {
        let block = 1 + self.paths * 2 + self.join;
        1 + blocks.min(tokens / block) * (self.paths + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: Rules =
        Rules { paths: 3, min_path: 5, max_path: usize::MAX, reserve: 10, join: 3, nesting: 1 };

    #[test]
    fn a_block_opens_only_where_paths_summary_and_answer_fit() {
        let enough = Budget { tokens: 1 + 15 + 3 + 10, blocks: 1, ceiling: 1000 };
        assert!(RULES.may_open(enough, 0, 0, 0));
        assert!(!RULES.may_open(Budget { tokens: enough.tokens - 1, ..enough }, 0, 0, 0));
        assert!(!RULES.may_open(Budget { blocks: 0, ..enough }, 0, 0, 0));
        assert!(!RULES.may_open(enough, 0, 0, 1), "nesting");
        assert!(!RULES.may_open(enough, 0, 1, 0), "an open path needs its tag");
        let low = Budget { ceiling: 100 + 1 + 5 + 3 + 10, ..enough };
        assert!(RULES.may_open(low, 100, 0, 0));
        assert!(!RULES.may_open(low, 101, 0, 0), "positions count once for all paths");
    }

    #[test]
    fn shares_are_capped_and_unspent_tokens_return() {
        let budget = Budget { tokens: 100, blocks: 4, ceiling: 1000 };
        let share = RULES.fork(budget, 7, 0);
        assert_eq!(share, Budget { tokens: 29, blocks: 1, ceiling: 987 });
        assert_eq!(Rules { max_path: 20, ..RULES }.fork(budget, 7, 0).tokens, 20);
        let left = [0, 9, 4].map(|tokens| Budget { tokens, blocks: 0, ..share });
        let after = RULES.join(budget, share, left.into_iter());
        assert_eq!(after, Budget { tokens: 100 - 87 + 13, blocks: 1, ceiling: 1000 });
    }

    proptest! {
        #[test]
        fn what_is_reserved_is_left_after_the_longest_paths(
            tokens in 60usize..400, ceiling in 250usize..600, position in 0usize..150,
            paths in 1usize..6, max_path in 5usize..100, reserve in 1usize..50, closing in 0usize..3,
        ) {
            let rules = Rules { paths, max_path, reserve, ..RULES };
            let budget = Budget { tokens, blocks: 2, ceiling };
            prop_assume!(rules.may_open(budget, position, closing, 0));
            let opened = Budget { tokens: tokens - 1, blocks: 1, ..budget };
            let share = rules.fork(opened, position + 1, closing);
            prop_assert!(share.tokens >= rules.min_path);
            prop_assert!(share.left(position + 1) == share.tokens);
            let spent = (0..paths).map(|_| Budget { tokens: 0, ..share });
            let after = rules.join(opened, share, spent);
            let end = position + 1 + share.tokens;
            prop_assert!(after.left(end) >= rules.join + reserve + closing);
        }
    }
}
