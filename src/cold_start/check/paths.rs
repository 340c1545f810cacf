//! Faults of paths: each has to stand alone, since the paths of a block don't see each other.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Answer, CheckOptions, Fault, FaultKind};
use crate::prompt::tags::Outline;
use crate::reward::bleu;

/// `path 2`, `Approach #1`.
static NUMBERED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(path|branch|thread|approach|method)\s*(?:#|no\.)?\s*(\d{1,2}|one|two|three|four|five|six)\b",
    )
});

/// `the second path`, `the other paths`.
static ORDINAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:the|in|from)\s+(first|second|third|fourth|fifth|sixth|other|previous|preceding|earlier|parallel)\s+(?:reasoning\s+|solution\s+)?(path|branch|thread|approach|method)s?\b",
    )
});

/// What can only mean text that stands elsewhere.
static ABOVE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\bsame as above\b"));

const CARDINALS: [&str; 6] = ["one", "two", "three", "four", "five", "six"];
const ORDINALS: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant that the tests compile")
}

pub(super) fn faults(answer: &Answer, outline: &Outline, options: &CheckOptions) -> Vec<Fault> {
    let asked = answer.problem.problem.to_lowercase();
    let of_block = |paths: &Vec<Range<usize>>| {
        let mut faults = repeated(answer.response, paths, options);
        for (own, range) in paths.iter().enumerate() {
            let path = &answer.response[range.clone()];
            if path.trim().is_empty() {
                faults.push(Fault::new(FaultKind::EmptyPath, answer.response, range.start));
            }
            let found = references(path, own, paths.len(), &asked);
            faults.extend(found.map(|(kind, at)| Fault::new(kind, answer.response, range.start + at)));
        }
        faults
    };
    outline.blocks.iter().flat_map(|block| of_block(&block.paths)).collect()
}

/// Where path `own` of `count` names another, unless the problem itself speaks of such things.
fn references<'a>(
    path: &'a str,
    own: usize,
    count: usize,
    asked: &'a str,
) -> impl Iterator<Item = (FaultKind, usize)> + 'a {
    let numbered = NUMBERED.captures_iter(path).filter_map(move |found| {
        let other = number(&found[2]).is_some_and(|index| index != own && index < count);
        let told = asked.contains(&found[1].to_lowercase());
        (other && !told).then_some((FaultKind::PathReference, found.get(0)?.start()))
    });
    let ordinal = ORDINAL.captures_iter(path).filter_map(move |found| {
        let ordinal = found[1].to_lowercase();
        let itself = ORDINALS.iter().position(|&name| name == ordinal) == Some(own);
        let told = asked.contains(&found[2].to_lowercase());
        (!itself && !told).then_some((FaultKind::LooseReference, found.get(0)?.start()))
    });
    let above = ABOVE.find_iter(path).map(|found| (FaultKind::LooseReference, found.start()));
    numbered.chain(ordinal).chain(above)
}

/// The index that a numeral means, from 0.
fn number(text: &str) -> Option<usize> {
    let lower = text.to_lowercase();
    let word = CARDINALS.iter().position(|&name| name == lower);
    word.or_else(|| text.parse::<usize>().ok()?.checked_sub(1))
}

/// Paths that say what an earlier one says.
fn repeated(response: &str, paths: &[Range<usize>], options: &CheckOptions) -> Vec<Fault> {
    let text = |i: usize| response[paths[i].clone()].trim();
    let alike = |i: usize| (0..i).map(|j| bleu(text(j), text(i))).fold(0.0, f64::max);
    let fault = |i: usize| {
        let kind = match alike(i) {
            alike if alike >= options.duplicate_bleu => FaultKind::NearDuplicatePaths,
            alike if alike >= options.similar_bleu => FaultKind::SimilarPaths,
            _ => return None,
        };
        Some(Fault::new(kind, response, paths[i].start))
    };
    (1..paths.len()).filter_map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kinds, problem, with_block};
    use super::super::{Answer, CheckOptions, inspect};
    use super::FaultKind::{self, *};

    fn of_paths(first: &str, second: &str) -> Vec<FaultKind> {
        let summary = "</Parallel>\n<Summary>Both give 12 apples.</Summary>";
        kinds(&with_block(&format!("<Path>{first}</Path><Path>{second}</Path>{summary}")))
    }

    #[test]
    fn paths_stand_alone() {
        let sum = "Adding 5 and 7 gives 12.";
        for (second, expected) in [
            ("As in path 1, the sum is 12.", vec![PathReference]),
            ("Like Path one says: 12.", vec![PathReference]),
            ("See approach #1; then 12.", vec![PathReference]),
            ("Path 2: counting on from 7 gives 12.", vec![]),
            ("Path 9 of the map has 12.", vec![]),
            ("Second path: counting on gives 12.", vec![]),
            ("It is better to stick with the first path, so 12.", vec![LooseReference]),
            ("Same as above, 12.", vec![LooseReference]),
            ("", vec![EmptyPath]),
            (" \n", vec![EmptyPath]),
            (sum, vec![NearDuplicatePaths]),
            (" adding 5 and 7 gives 12.\n", vec![NearDuplicatePaths]),
        ] {
            assert_eq!(of_paths(sum, second), expected, "{second}");
        }
        assert_eq!(of_paths("As path 2 shows, it is 12.", sum), [PathReference]);
        let long =
            "Start with the 5 apples that she has, then add the 7 apples that she buys, which makes 12";
        assert_eq!(of_paths(&format!("{long} apples."), &format!("{long} fruits.")), [NearDuplicatePaths]);
        assert_eq!(of_paths(&format!("{long} apples."), "Put the 5 apples beside the 7 apples: 12."), []);
    }

    #[test]
    fn a_problem_may_be_about_paths() {
        let problem = problem("The garden has path 1 of 5 m and path 2 of 7 m. How long are both?", "12");
        let block = "<Path>Path 2 has 7 m, so 12 m.</Path><Path>Together: 5 + 7 = 12 m.</Path></Parallel>\n\
            <Summary>Both give 12 m.</Summary>";
        let response = with_block(block);
        assert_eq!(inspect(&Answer::new(&problem, &response), &CheckOptions::default()).faults, []);
    }
}
