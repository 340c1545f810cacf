//! The tokens of a demonstration -> segments, by the grammar alone.
//!
//! The result is what the engine would have recorded, had it sampled this response: the same segments,
//! the same forced tokens, the same legal sets.

use super::Structure;
use super::segment::{Layout, Role, SegmentId};
use crate::prompt::tags::{AllowedSet, Control, Controls, Fault, FaultKind, Grammar, Tag};

/// A prompt and its response, laid out; the lists have one entry per token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The prompt's tokens, then the response's.
    pub tokens: Vec<u32>,
    /// Their segments.
    pub layout: Layout,
    /// Which tokens are actions: of the response, and not forced.
    pub sampled: Vec<bool>,
    /// The set from which each action is chosen; for other tokens it says nothing.
    pub allowed: Vec<AllowedSet>,
}

/// Lays out a whole response. Tags in the prompt are inert.
///
/// # Errors
/// Where the response breaks the grammar or stops with something open, and, for
/// [`Structure::PathWindow`], where white space between tags differs from what the engine forces (see
/// [`crate::prompt::tags::normalise`]).
pub fn parse(
    prompt: &[u32],
    response: &[u32],
    controls: &Controls,
    structure: Structure,
) -> Result<Parsed, Fault> {
    let mut allowed = vec![AllowedSet::ALL; prompt.len()];
    allowed.extend(legal_sets(response, controls)?);
    let mut sampled = vec![false; prompt.len()];
    let mut layout = Layout::default();
    let root = layout.push(Role::Prompt, &[], prompt.len());
    let trunk = layout.push(Role::Trunk, &[root], 0);
    match structure {
        Structure::Causal => {
            layout.grow(trunk, response.len());
            sampled.resize(allowed.len(), true);
        }
        Structure::PathWindow => {
            check_spacing(response, &allowed[prompt.len()..], controls)?;
            fork_and_join(&mut layout, trunk, response, controls);
            // Where text is illegal only one continuation is left to the engine, so it is forced.
            sampled.extend(allowed[prompt.len()..].iter().map(|set| set.text()));
        }
    }
    Ok(Parsed { tokens: [prompt, response].concat(), layout, sampled, allowed })
}

/// The legal set at each token of a well-formed response.
fn legal_sets(response: &[u32], controls: &Controls) -> Result<Vec<AllowedSet>, Fault> {
    let mut grammar = Grammar::new(controls);
    let mut sets = Vec::with_capacity(response.len());
    for &id in response {
        sets.push(grammar.allowed());
        grammar.push(id)?;
    }
    grammar.well_formed_end()?;
    Ok(sets)
}

/// Demands exactly the forced pieces between tags.
fn check_spacing(response: &[u32], allowed: &[AllowedSet], controls: &Controls) -> Result<(), Fault> {
    let join = controls.forced_join().unwrap_or_default();
    let mut at = 0;
    while at < response.len() {
        let rest = &response[at..];
        let control = controls.which(rest[0]);
        let expected = match control {
            Some(Control::Tag(Tag::EndParallel)) => &join[..],
            None if !allowed[at].text() => &[],
            _ => &rest[..1],
        };
        let same = rest.iter().zip(expected).take_while(|(a, b)| a == b).count();
        if same < expected.len() || same == 0 {
            return Err(Fault { kind: FaultKind::Spacing, token: at + same });
        }
        at += same;
    }
    Ok(())
}

/// Builds the segments of a well-formed response, from its trunk on.
fn fork_and_join(layout: &mut Layout, trunk: SegmentId, response: &[u32], controls: &Controls) {
    struct Block {
        fork: SegmentId,
        tails: Vec<SegmentId>,
    }
    const OPEN: &str = "the grammar was checked, so a block is open here";
    let mut blocks: Vec<Block> = Vec::new();
    let mut current = trunk;
    for &id in response {
        let tag = match controls.which(id) {
            Some(Control::Tag(tag)) => Some(tag),
            _ => None,
        };
        match tag {
            Some(Tag::Path) => {
                let fork = blocks.last().expect(OPEN).fork;
                current = layout.push_rewound(Role::Path, &[fork], 0, controls.path_rewind);
            }
            Some(Tag::EndParallel) => {
                current = layout.push(Role::Join, &blocks.pop().expect(OPEN).tails, 0);
            }
            _ => {}
        }
        layout.grow(current, 1);
        match tag {
            Some(Tag::Parallel) => blocks.push(Block { fork: current, tails: Vec::new() }),
            Some(Tag::EndPath) => blocks.last_mut().expect(OPEN).tails.push(current),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{oracle, targets};
    use super::*;

    fn structures() -> impl Strategy<Value = Structure> {
        prop_oneof![Just(Structure::PathWindow), Just(Structure::Causal)]
    }

    fn accepted(response: &[u32]) -> bool {
        let mut grammar = Grammar::new(&oracle::controls());
        response.iter().all(|&id| grammar.push(id).is_ok()) && grammar.well_formed_end().is_ok()
    }

    proptest! {
        #[test]
        fn agrees_with_the_oracle(
            prompt in prop::collection::vec(prop_oneof![0..12_u32, 100..106_u32], 1..4),
            response in oracle::response(),
            structure in structures(),
            path_rewind in 0..5_u32,
        ) {
            let controls = Controls { path_rewind, ..oracle::controls() };
            let parsed = parse(&prompt, &response, &controls, structure).unwrap();
            let expected = oracle::expected(prompt.len(), &response, structure, path_rewind);
            let visibility = parsed.layout.visibility();
            for (i, row) in expected.sees.iter().enumerate() {
                for (j, &sees) in row.iter().enumerate() {
                    prop_assert_eq!(visibility.sees(i, j), sees, "does {} see {}?", i, j);
                }
            }
            let rows: Vec<usize> = visibility.blocks.iter().flat_map(|block| block.queries.clone()).collect();
            prop_assert_eq!(rows, (0..parsed.tokens.len()).collect::<Vec<_>>());
            prop_assert_eq!(parsed.layout.positions(), &expected.positions[..]);
            prop_assert_eq!(parsed.layout.predictors(), expected.predictors);
            prop_assert_eq!(&parsed.sampled, &expected.sampled);
            prop_assert_eq!(parsed.layout.critical_path(), expected.longest_chain - prompt.len());
            prop_assert_eq!(parsed.tokens, [prompt, response].concat());
        }

        #[test]
        fn every_action_is_legal_and_predicted(response in oracle::response(), structure in structures()) {
            let controls = oracle::controls();
            let parsed = parse(&[1], &response, &controls, structure).unwrap();
            prop_assert_eq!(parsed.allowed.len(), parsed.tokens.len());
            let pairs = targets(&parsed.layout, &parsed.sampled).unwrap();
            prop_assert_eq!(pairs.len(), parsed.sampled.iter().filter(|&&sampled| sampled).count());
            for pair in pairs {
                prop_assert!(parsed.allowed[pair.token].permits(parsed.tokens[pair.token], &controls));
            }
        }

        /// The engine walks each segment with a grammar forked from its parent's.
        #[test]
        fn a_forked_grammar_allows_the_same(response in oracle::response()) {
            let parsed = parse(&[1], &response, &oracle::controls(), Structure::PathWindow).unwrap();
            let mut grammars = vec![Grammar::new(&oracle::controls())];
            let segments = parsed.layout.segments().iter().zip(parsed.layout.ranges());
            for (segment, range) in segments.skip(1) {
                for parent in &segment.parents {
                    prop_assert_eq!(grammars[*parent].allowed(), grammars[segment.parents[0]].allowed());
                }
                let mut grammar = grammars[segment.parents[0]].clone();
                for token in range {
                    prop_assert!(!parsed.sampled[token] || grammar.allowed() == parsed.allowed[token]);
                    prop_assert!(grammar.push(parsed.tokens[token]).is_ok());
                }
                grammars.push(grammar);
            }
        }

        #[test]
        fn path_window_demands_the_forced_spacing(response in oracle::loose_response()) {
            let parsed = parse(&[1], &response, &oracle::controls(), Structure::PathWindow);
            prop_assert!(parse(&[1], &response, &oracle::controls(), Structure::Causal).is_ok());
            if oracle::respaced(&response) == response {
                prop_assert!(parsed.is_ok());
            } else {
                prop_assert_eq!(parsed.unwrap_err().kind, FaultKind::Spacing);
            }
        }

        #[test]
        fn a_broken_response_is_refused(response in oracle::broken_response(), structure in structures()) {
            match parse(&[1], &response, &oracle::controls(), structure) {
                Ok(_) => prop_assert!(accepted(&response)),
                Err(Fault { kind: FaultKind::Spacing, .. }) => {
                    prop_assert_ne!(oracle::respaced(&response), response);
                }
                Err(fault) => {
                    prop_assert!(!accepted(&response));
                    prop_assert!(fault.token <= response.len());
                }
            }
        }
    }

    #[test]
    fn without_tags_everything_is_one_chain() {
        let controls = Controls { tags: None, ..oracle::controls() };
        let parsed = parse(&[1], &[2, 100, 102, 3, 120], &controls, Structure::PathWindow).unwrap();
        assert_eq!(parsed.layout.segments().len(), 2);
        assert_eq!(parsed.sampled, [false, true, true, true, true, true]);
        assert_eq!(parsed.layout.predictors()[1..], [0, 1, 2, 3, 4].map(Some));
    }

    #[test]
    fn nothing_follows_the_end() {
        let fault = parse(&[], &[1, 120, 2], &oracle::controls(), Structure::Causal).unwrap_err();
        assert_eq!(fault, Fault { kind: FaultKind::AfterEnd, token: 2 });
    }

    #[test]
    fn a_missing_newline_is_named_and_located() {
        // <Parallel> <Path> </Path> </Parallel> <Summary> </Summary>
        let response = [100, 102, 103, 101, 104, 105];
        let fault = parse(&[1], &response, &oracle::controls(), Structure::PathWindow).unwrap_err();
        assert_eq!(fault, Fault { kind: FaultKind::Spacing, token: 4 });
    }
}
