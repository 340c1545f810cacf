//! Several traces in one sequence. Traces of one prompt become siblings below it, so that a group of
//! responses is trained with its prompt computed once.

use std::collections::HashMap;

use super::segment::{Layout, SegmentId};

/// A trace to be packed; the first segment of its layout is the prompt.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Its tokens.
    pub tokens: &'a [u32],
    /// Their segments.
    pub layout: &'a Layout,
}

/// Several traces in one sequence.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    /// The tokens of all members, each prompt once.
    pub tokens: Vec<u32>,
    /// Their segments.
    pub layout: Layout,
    members: Vec<Place>,
}

/// Where the tokens of a member stand: its prompt in one piece, the rest in another.
#[derive(Clone, Copy, Debug)]
struct Place {
    prompt_len: usize,
    prompt: usize,
    rest: usize,
}

impl Packed {
    /// Where a member's token stands in the packed sequence.
    ///
    /// # Panics
    /// If there is no such member.
    pub fn index(&self, member: usize, token: usize) -> usize {
        let place = &self.members[member];
        match token.checked_sub(place.prompt_len) {
            None => place.prompt + token,
            Some(token) => place.rest + token,
        }
    }
}

/// Packs traces, in order; members with equal prompts share one prompt segment.
///
/// # Panics
/// If a member has no segment, or other than one token for each place in its layout.
pub fn pack(members: &[Member]) -> Packed {
    let mut packed = Packed::default();
    let mut prompts: HashMap<&[u32], (SegmentId, usize)> = HashMap::new();
    for member in members {
        assert_eq!(member.tokens.len(), member.layout.len(), "one token for each place");
        let [prompt, rest @ ..] = member.layout.segments() else {
            panic!("the first segment of a trace is its prompt");
        };
        let (prompt_tokens, rest_tokens) = member.tokens.split_at(prompt.len);
        let (root, prompt_at) = *prompts.entry(prompt_tokens).or_insert_with(|| {
            let at = packed.tokens.len();
            packed.tokens.extend(prompt_tokens);
            (packed.layout.push(prompt.role, &[], prompt.len), at)
        });
        let mut new_id = vec![root];
        for (id, segment) in rest.iter().enumerate() {
            let parents: Vec<_> = segment.parents.iter().map(|&parent| new_id[parent]).collect();
            let rewind = member.layout.rewind(id + 1);
            new_id.push(packed.layout.push_rewound(segment.role, &parents, segment.len, rewind));
        }
        let place = Place { prompt_len: prompt.len, prompt: prompt_at, rest: packed.tokens.len() };
        packed.members.push(place);
        packed.tokens.extend(rest_tokens);
    }
    packed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Parsed, Structure, oracle, parse};
    use super::*;
    use crate::prompt::Controls;

    fn traces() -> impl Strategy<Value = Vec<Parsed>> {
        let prompt = prop::sample::select(vec![vec![1, 2, 3], vec![1, 2], vec![4]]);
        let structure = prop::sample::select(vec![Structure::PathWindow, Structure::Causal]);
        let trace = (prompt, oracle::response(), structure, 0..4_u32);
        let trace = trace.prop_map(|(prompt, response, structure, path_rewind)| {
            let controls = Controls { path_rewind, ..oracle::controls() };
            parse(&prompt, &response, &controls, structure).unwrap()
        });
        prop::collection::vec(trace, 1..5)
    }

    fn packed(traces: &[Parsed]) -> Packed {
        let members: Vec<Member> =
            traces.iter().map(|trace| Member { tokens: &trace.tokens, layout: &trace.layout }).collect();
        pack(&members)
    }

    proptest! {
        #[test]
        fn members_stay_what_they_were(traces in traces()) {
            let packed = packed(&traces);
            let visibility = packed.layout.visibility();
            let (positions, predictors) = (packed.layout.positions(), packed.layout.predictors());
            for (member, trace) in traces.iter().enumerate() {
                let own = trace.layout.visibility();
                let index = |token| packed.index(member, token);
                let places: Vec<usize> = (0..trace.tokens.len()).map(index).collect();
                for (i, &row) in places.iter().enumerate() {
                    prop_assert_eq!(packed.tokens[row], trace.tokens[i]);
                    prop_assert_eq!(positions[row], trace.layout.positions()[i]);
                    prop_assert_eq!(predictors[row], trace.layout.predictors()[i].map(index));
                    for key in 0..packed.tokens.len() {
                        // What isn't the member's own is out of sight.
                        let sees = places.iter().position(|&place| place == key).is_some_and(|j| own.sees(i, j));
                        prop_assert_eq!(visibility.sees(row, key), sees);
                    }
                }
            }
            let longest = traces.iter().map(|trace| trace.layout.critical_path()).max();
            prop_assert_eq!(Some(packed.layout.critical_path()), longest);
        }

        #[test]
        fn each_prompt_stands_once(traces in traces()) {
            let packed = packed(&traces);
            let mut prompts: Vec<&[u32]> =
                traces.iter().map(|trace| &trace.tokens[..trace.layout.segments()[0].len]).collect();
            let responses: usize = traces.iter().zip(&prompts).map(|(trace, prompt)| trace.tokens.len() - prompt.len()).sum();
            prompts.sort();
            prompts.dedup();
            prop_assert_eq!(packed.tokens.len(), responses + prompts.concat().len());
            prop_assert_eq!(packed.layout.len(), packed.tokens.len());
        }
    }

    #[test]
    fn one_member_is_packed_as_itself() {
        let trace = parse(&[1, 2], &[3, 4], &oracle::controls(), Structure::Causal).unwrap();
        let packed = packed(std::slice::from_ref(&trace));
        assert_eq!((packed.tokens, packed.layout), (trace.tokens, trace.layout));
    }

    #[test]
    fn no_member_no_token() {
        assert!(pack(&[]).layout.is_empty());
    }
}
