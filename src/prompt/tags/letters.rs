//! Responses in letters, for the tests of this folder.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Controls, Fault, Grammar};

/// A letter for each token, in the order of the ids: the tags in order, two end-of-text
/// tokens, a newline, a word.
pub(super) const LETTERS: &str = "PQABSZEFnt";

pub(super) fn controls() -> Controls {
    let tags = Some([0, 1, 2, 3, 4, 5]);
    Controls { tags, end: vec![6, 7], newline: vec![8], path_rewind: 0 }
}

pub(super) fn ids(letters: &str) -> Vec<u32> {
    letters.chars().map(|letter| LETTERS.find(letter).unwrap() as u32).collect()
}

pub(super) fn run(letters: &str) -> Result<Grammar, Fault> {
    let mut grammar = Grammar::new(&controls());
    ids(letters).into_iter().try_for_each(|id| grammar.push(id))?;
    grammar.well_formed_end().map(|()| grammar)
}

pub(super) fn well_formed() -> impl Strategy<Value = String> {
    let text = "[tn]{0,3}".prop_recursive(3, 24, 4, |text| {
        let path = (text.clone(), "n{0,2}").prop_map(|(text, gap)| format!("A{text}B{gap}"));
        let block = ("n{0,2}", vec(path, 1..=5), "n{0,2}", "[tn]{0,3}")
            .prop_map(|(gap, paths, join, summary)| format!("P{gap}{}Q{join}S{summary}Z", paths.concat()));
        vec(prop_oneof![text, block], 1..4).prop_map(|parts| parts.concat())
    });
    (text, "[EF]?").prop_map(|(text, end)| text + &end)
}

/// Mostly one edit away from well formed.
pub(super) fn any_response() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0..3_usize, "[PQABSZEFnt]{0,2}");
    let edited = (well_formed(), edit).prop_map(|(mut text, (at, removed, inserted))| {
        let at = at.index(text.len() + 1);
        text.replace_range(at..(at + removed).min(text.len()), &inserted);
        text
    });
    prop_oneof![1 => well_formed(), 4 => edited, 1 => "[PQABSZEFnt]{0,10}"]
}
