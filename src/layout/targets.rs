//! What predicts what. A target is a pair (predictor, token), not a shift by one: one hidden state may
//! predict the first tokens of several siblings, and nothing predicts a forced token.

use thiserror::Error;

use super::segment::{Layout, Role, SegmentId};

/// An action and the token whose hidden state predicts it, as indices of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Whose hidden state predicts it.
    pub predictor: usize,
    /// What is predicted.
    pub token: usize,
}

/// Why a trace has no targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Nothing comes before an action, or too much.
    #[error("token {token} is marked as sampled, but no one token predicts it")]
    NoPredictor {
        /// The action.
        token: usize,
    },
    /// The marks aren't one per token.
    #[error("`sampled` has {got} entries, expected one for each of {expected} tokens")]
    Length {
        /// The tokens of the layout.
        expected: usize,
        /// The marks given.
        got: usize,
    },
}

impl Layout {
    /// For each token the one whose hidden state predicts it: the one before it in its segment, else the
    /// last of its only parent. Nothing predicts the first token of a prompt or of a join.
    pub fn predictors(&self) -> Vec<Option<usize>> {
        // The last token of each segment; an empty one hands on what it would itself be predicted by.
        let mut last: Vec<Option<usize>> = Vec::with_capacity(self.segments().len());
        let mut predictors = Vec::with_capacity(self.len());
        for (id, range) in self.ranges().into_iter().enumerate() {
            let mut before = self.only_parent(id).and_then(|parent| last[parent]);
            for token in range {
                predictors.push(before);
                before = Some(token);
            }
            last.push(before);
        }
        predictors
    }

    fn only_parent(&self, id: SegmentId) -> Option<SegmentId> {
        let segment = &self.segments()[id];
        match segment.parents[..] {
            [parent] if segment.role != Role::Join => Some(parent),
            _ => None,
        }
    }
}

/// The pairs to train on: every action with its predictor, in the order of the tokens.
pub fn targets(layout: &Layout, sampled: &[bool]) -> Result<Vec<Target>, TargetError> {
    if sampled.len() != layout.len() {
        return Err(TargetError::Length { expected: layout.len(), got: sampled.len() });
    }
    let actions = layout.predictors().into_iter().zip(sampled).enumerate();
    actions
        .filter(|(_, (_, sampled))| **sampled)
        .map(|(token, (predictor, _))| {
            let predictor = predictor.ok_or(TargetError::NoPredictor { token })?;
            Ok(Target { predictor, token })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// prompt 0 1 · trunk 2 3 · paths 4 5 | 6 · join 7 8
    fn forked() -> Layout {
        let mut layout = Layout::default();
        let prompt = layout.push(Role::Prompt, &[], 2);
        let trunk = layout.push(Role::Trunk, &[prompt], 2);
        let paths = [layout.push(Role::Path, &[trunk], 2), layout.push(Role::Path, &[trunk], 1)];
        layout.push(Role::Join, &paths, 2);
        layout
    }

    #[test]
    fn siblings_have_one_predictor_and_a_join_none() {
        let expected = [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(3), None, Some(7)];
        assert_eq!(forked().predictors(), expected);
    }

    #[test]
    fn a_join_of_one_path_is_forced_too() {
        let mut layout = Layout::default();
        let prompt = layout.push(Role::Prompt, &[], 1);
        let path = layout.push(Role::Path, &[prompt], 1);
        layout.push(Role::Join, &[path], 1);
        assert_eq!(layout.predictors(), [None, Some(0), None]);
    }

    #[test]
    fn empty_segments_are_looked_through() {
        let mut layout = Layout::default();
        let prompt = layout.push(Role::Prompt, &[], 1);
        let trunk = layout.push(Role::Trunk, &[prompt], 0);
        layout.push(Role::Path, &[trunk], 1);
        assert_eq!(layout.predictors(), [None, Some(0)]);
    }

    #[test]
    fn only_actions_are_targets() {
        let sampled = [false, false, true, true, false, true, false, false, true];
        let pairs = targets(&forked(), &sampled).unwrap();
        let expected = [(1, 2), (2, 3), (4, 5), (7, 8)];
        assert_eq!(pairs, expected.map(|(predictor, token)| Target { predictor, token }));
    }

    #[test]
    fn an_action_without_predictor_is_an_error() {
        let mut sampled = [false; 9];
        sampled[7] = true;
        assert_eq!(targets(&forked(), &sampled), Err(TargetError::NoPredictor { token: 7 }));
        assert_eq!(targets(&forked(), &[true]), Err(TargetError::Length { expected: 9, got: 1 }));
    }
}
