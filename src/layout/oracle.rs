//! Random responses for the tests of this module, and what they should become, decided slowly and
//! obviously: by walking the tags, and with a table of all pairs.

use proptest::collection::vec;
use proptest::prelude::*;

use super::Structure;
use crate::prompt::tags::{Controls, Tag};

const NEWLINE: [u32; 2] = [10, 11];
const END: u32 = 120;

/// A tokenizer with words 0..10, a newline of two tokens, the tags at 100, and end-of-text.
pub(super) fn controls() -> Controls {
    let tags = Some([100, 101, 102, 103, 104, 105]);
    Controls { tags, end: vec![END, END + 1], newline: NEWLINE.to_vec(), path_rewind: 0 }
}

fn id(tag: Tag) -> u32 {
    100 + tag as u32
}

/// A well-formed response as the engine writes it.
pub(super) fn response() -> impl Strategy<Value = Vec<u32>> {
    whole(|| Just(Vec::new()).boxed(), || Just(NEWLINE.to_vec()).boxed())
}

/// A well-formed response with any newlines between its tags.
pub(super) fn loose_response() -> impl Strategy<Value = Vec<u32>> {
    let newlines = || vec(prop::sample::select(NEWLINE.to_vec()), 0..3).boxed();
    prop_oneof![whole(newlines, newlines), response()]
}

/// A response with a few tokens changed, left out, put in or cut off: most are broken.
pub(super) fn broken_response() -> impl Strategy<Value = Vec<u32>> {
    let token = prop_oneof![0..10_u32, 10..12_u32, 100..106_u32, 120..122_u32];
    let edit = (0..4_u8, any::<prop::sample::Index>(), token);
    (loose_response(), vec(edit, 1..3)).prop_map(|(mut response, edits)| {
        for (kind, at, token) in edits {
            let at = at.index(response.len() + 1);
            match kind {
                0 => response.truncate(at),
                1 => response.insert(at, token),
                _ if at == response.len() => {}
                2 => response[at] = token,
                _ => drop(response.remove(at)),
            }
        }
        response
    })
}

/// `gap` is what stands between the tags of a block, `join` what stands before its summary.
fn whole(
    gap: impl Fn() -> BoxedStrategy<Vec<u32>>,
    join: impl Fn() -> BoxedStrategy<Vec<u32>>,
) -> impl Strategy<Value = Vec<u32>> {
    let words = || vec(0..12_u32, 0..4);
    let text = words().prop_recursive(3, 24, 5, move |text| {
        let path = (text.clone(), gap())
            .prop_map(|(text, gap)| [vec![id(Tag::Path)], text, vec![id(Tag::EndPath)], gap].concat());
        let block = (gap(), vec(path, 1..=5), join(), words()).prop_map(|(gap, paths, join, summary)| {
            let [open, close] = [Tag::Parallel, Tag::EndParallel].map(|tag| vec![id(tag)]);
            let [begin, end] = [Tag::Summary, Tag::EndSummary].map(|tag| vec![id(tag)]);
            [open, gap, paths.concat(), close, join, begin, summary, end].concat()
        });
        vec(prop_oneof![words().boxed(), block.boxed(), text.boxed()], 1..4).prop_map(|parts| parts.concat())
    });
    (text, any::<bool>()).prop_map(|(mut text, ends)| {
        text.extend(ends.then_some(END));
        text
    })
}

/// The same response with only the newlines that the engine would write.
pub(super) fn respaced(response: &[u32]) -> Vec<u32> {
    let (mut out, mut in_gap) = (Vec::new(), false);
    for &token in response {
        if in_gap && NEWLINE.contains(&token) {
            continue;
        }
        if token == id(Tag::Summary) {
            out.extend(NEWLINE);
        }
        out.push(token);
        in_gap = [Tag::Parallel, Tag::EndPath, Tag::EndParallel].map(id).contains(&token);
    }
    out
}

/// What a response should become; indices count from the prompt's first token.
pub(super) struct Expected {
    /// `sees[i][j]`: token i sees token j.
    pub(super) sees: Vec<Vec<bool>>,
    pub(super) positions: Vec<u32>,
    /// Tokens that follow one another, at most.
    pub(super) longest_chain: usize,
    pub(super) predictors: Vec<Option<usize>>,
    pub(super) sampled: Vec<bool>,
}

/// Decides everything from the definitions: two tokens of different paths of one block don't see each
/// other; a token stands one after the one that it continues, `<Path>` so much further back, and a join one after
/// the furthest `</Path>` of its block.
pub(super) fn expected(prompt: usize, response: &[u32], structure: Structure, path_rewind: u32) -> Expected {
    let windows = structure == Structure::PathWindow;
    let mut paths = vec![Vec::new(); prompt];
    paths.extend(open_paths(response));
    let n = paths.len();
    let apart = |i: usize, j: usize| {
        paths[i].iter().any(|(block, path)| paths[j].iter().any(|(b, p)| b == block && p != path))
    };
    let sees: Vec<Vec<bool>> =
        (0..n).map(|i| (0..n).map(|j| j <= i && !(windows && apart(i, j))).collect()).collect();
    let token = |i: usize| i.checked_sub(prompt).map(|i| response[i]);
    let joins = |i| windows && token(i) == Some(id(Tag::EndParallel));
    let opens = |j: usize, depth| token(j) == Some(id(Tag::Parallel)) && paths[j].len() == depth;
    let ends = |j: usize, depth| token(j) == Some(id(Tag::EndPath)) && paths[j].len() == depth + 1;
    let (mut positions, mut chains): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
    for i in 0..n {
        let (depth, before) = (paths[i].len(), (0..i).rev());
        let continues: Vec<usize> = match joins(i) {
            true => before.take_while(|&j| !opens(j, depth)).filter(|&j| ends(j, depth)).collect(),
            false => before.filter(|&j| sees[i][j]).take(1).collect(),
        };
        let back = if windows && token(i) == Some(id(Tag::Path)) { path_rewind } else { 0 };
        let furthest = continues.iter().map(|&j| positions[j] + 1).max().unwrap_or(0);
        positions.push(furthest.saturating_sub(back));
        chains.push(continues.iter().map(|&j| chains[j] + 1).max().unwrap_or(1));
    }
    let forced = |i| {
        let since = (0..=i).rev().find(|&j| joins(j) || token(j) == Some(id(Tag::Summary)));
        windows
            && (token(i) == Some(id(Tag::Path))
                || token(i) == Some(id(Tag::Summary))
                || since.is_some_and(joins))
    };
    Expected {
        predictors: (0..n).map(|i| (0..i).rev().find(|&j| sees[i][j] && !joins(i))).collect(),
        sampled: (0..n).map(|i| i >= prompt && !forced(i)).collect(),
        sees,
        positions,
        longest_chain: chains.into_iter().max().unwrap_or(0),
    }
}

/// For each token the paths that it stands in, as (number of the block, number of the path).
fn open_paths(response: &[u32]) -> Vec<Vec<(usize, usize)>> {
    let (mut blocks, mut inside, mut opened) = (Vec::new(), Vec::new(), 0);
    let mut places = Vec::new();
    for &token in response {
        if token == id(Tag::Parallel) {
            opened += 1;
            blocks.push((opened, 0));
        } else if token == id(Tag::Path) {
            blocks.last_mut().unwrap().1 += 1;
            inside.push(*blocks.last().unwrap());
        } else if token == id(Tag::EndParallel) {
            blocks.pop();
        }
        places.push(inside.clone());
        if token == id(Tag::EndPath) {
            inside.pop();
        }
    }
    places
}
