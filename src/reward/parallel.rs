//! Rewards for using parallel blocks, and whether the blocks' paths found anything.

use parallel_r1_verify::countdown::{Task, check};

use super::accuracy::{Judged, accuracy};

/// How a Countdown path marks a line that it claims to reach the target.
const CLAIM: &str = " ok";

/// `accuracy_x_parallel`: +1 if the answer is right *and* a well-formed block was used, else -1.
///
/// arXiv 2509.07980, RL on easy problems, where the form is to be learned.
pub fn accuracy_x_parallel(correct: bool, judged: &Judged) -> f32 {
    accuracy(correct && uses_blocks(judged))
}

/// `tiered`: right without a block +1, right with well-formed blocks `bonus`, else -1.
///
/// arXiv 2509.07980, the part of S2 that keeps blocks alive (b = 1.2; variants 1 and 2). So a right
/// answer with broken blocks earns -1, less than one without any.
pub fn tiered(correct: bool, judged: &Judged, bonus: f32) -> f32 {
    if correct && uses_blocks(judged) { bonus } else { accuracy(correct && judged.blocks == 0) }
}

pub(super) fn uses_blocks(judged: &Judged) -> bool {
    judged.blocks >= 1 && judged.well_formed
}

/// Whether any Countdown path has a line that claims to reach the target and does.
///
/// For the metrics "some path right" and "summary right given some path right", which tell a search that
/// fails from a summary that does.
pub fn some_path_right<S: AsRef<str>>(task: &Task, paths: impl IntoIterator<Item = S>) -> bool {
    let claims_rightly =
        |line: &str| line.trim_end().strip_suffix(CLAIM).is_some_and(|steps| check(task, steps));
    paths.into_iter().any(|path| path.as_ref().lines().any(claims_rightly))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every case of (correct, blocks, well formed) with both rewards by hand.
    const CASES: [(bool, usize, bool, f32, f32); 10] = [
        (true, 0, true, -1.0, 1.0),
        (true, 0, false, -1.0, 1.0), // a stray tag, no block: the formula asks for form only with blocks
        (true, 1, true, 1.0, 1.2),
        (true, 1, false, -1.0, -1.0),
        (true, 3, true, 1.0, 1.2),
        (true, 3, false, -1.0, -1.0),
        (false, 0, true, -1.0, -1.0),
        (false, 0, false, -1.0, -1.0),
        (false, 1, true, -1.0, -1.0),
        (false, 1, false, -1.0, -1.0),
    ];

    #[test]
    fn by_hand() {
        for (correct, blocks, well_formed, required, tier) in CASES {
            let judged = Judged { correct: Some(correct), blocks, well_formed };
            assert_eq!(accuracy_x_parallel(correct, &judged), required, "{judged:?}");
            assert_eq!(tiered(correct, &judged, 1.2), tier, "{judged:?}");
        }
    }

    #[test]
    fn a_path_is_right_when_it_says_so_and_is() {
        let task = Task::parse("3 5 12 = 45").unwrap();
        let right = "12+5=17,17*3=51 no\n12-3=9,9*5=45 ok\n";
        for (paths, expected) in [
            (vec![], false),
            (vec!["", "12+5=17 no"], false),
            (vec!["12+5=17 no", right], true),
            (vec!["12-3=9,9*5=45 no"], false), // found, not noticed
            (vec!["12-3=9,9*5=45"], false),
            (vec!["12+3=15,15*3=45 ok"], false), // claimed, but 3 is there once
            (vec!["<Path>x\n12-3=9,9*5=45 ok"], true),
        ] {
            assert_eq!(some_path_right(&task, &paths), expected, "{paths:?}");
        }
    }
}
