//! Texts without meaning: what they cost depends on their lengths alone.

use parallel_r1::layout::{Layout, Role};
use parallel_r1::prompt::AllowedSet;
use parallel_r1::train::batch::Sequence;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::case::Case;

/// `n` random ids below `vocab`; different for each `stream`.
pub(super) fn random(stream: usize, n: usize, vocab: usize) -> Vec<u32> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    rng.set_stream(stream as u64);
    (0..n).map(|_| rng.random_range(0..vocab as u32)).collect()
}

/// Prompt `i`; no two are the same.
pub(super) fn prompt(case: &Case, i: usize, vocab: usize) -> Vec<u32> {
    let mut tokens = random(i, case.prompt, vocab);
    tokens[0] = (i % vocab) as u32;
    tokens
}

/// Every response below its prompt, all of its tokens actions.
pub(super) fn sequences(case: &Case, vocab: usize) -> Vec<Sequence> {
    (0..case.responses()).map(|i| sequence(case, i, vocab)).collect()
}

fn sequence(case: &Case, i: usize, vocab: usize) -> Sequence {
    let mut layout = Layout::default();
    let root = layout.push(Role::Prompt, &[], case.prompt);
    layout.push(Role::Trunk, &[root], case.response);
    let mut tokens = prompt(case, i / case.group, vocab);
    tokens.extend(random(1_000_000 + i, case.response, vocab));
    let n = tokens.len();
    Sequence {
        tokens,
        layout,
        sampled: (0..n).map(|at| at >= case.prompt).collect(),
        allowed: vec![AllowedSet::ALL; n],
        temperatures: vec![1.0; n],
    }
}
