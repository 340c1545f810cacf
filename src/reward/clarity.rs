//! Can a person follow it?

use std::collections::HashSet;

use super::places::places;
use super::text::{numbers, words};
use crate::prompt::tags::{Block, Outline};

/// A sentence or line of more words is no separate step.
const LONGEST_STEP: usize = 40;
/// Repetition is counted in runs of so many words.
const RUN: usize = 4;

/// `clarity`: the mean of three shares from 0 to 1, of those that the response has anything for (0 of an empty one):
/// - steps: lines and sentences of at most 40 words, of all lines and sentences;
/// - named: paths whose last number stands in their block's summary, of all paths with a number;
/// - fresh: different runs of four words, of all runs, each place (path, summary, stretch of the trunk) by itself, so
///   that a path may say what another one says.
///
/// After the reasoning-clarity rewards that summaries of the method ask for (steps separated, a summary that names what
/// each path found, no repetition). All three are form: nothing here knows whether the reasoning is sound.
pub fn clarity(text: &str, outline: &Outline) -> f32 {
    let places = places(text, outline);
    let parts = || places.iter().map(|place| &text[place.range.clone()]);
    let shares = [steps(parts()), named(text, outline), fresh(parts())];
    let (sum, count) = shares.into_iter().flatten().fold((0.0, 0u8), |(sum, n), share| (sum + share, n + 1));
    sum / f32::from(count.max(1))
}

fn steps<'a>(parts: impl Iterator<Item = &'a str>) -> Option<f32> {
    let sentences = parts.flat_map(|part| part.lines()).flat_map(|line| line.split(". "));
    let lengths = sentences.map(|sentence| words(sentence).count()).filter(|&words| words > 0);
    let (short, all) =
        lengths.fold((0, 0), |(short, all), words| (short + usize::from(words <= LONGEST_STEP), all + 1));
    share(short, all)
}

fn named(text: &str, outline: &Outline) -> Option<f32> {
    let of_block = |block: &Block| {
        let stated = block.summary.clone().map_or(vec![], |summary| numbers(&text[summary]));
        let found: Vec<f64> =
            block.paths.iter().filter_map(|path| numbers(&text[path.clone()]).pop()).collect();
        (found.iter().filter(|number| stated.contains(number)).count(), found.len())
    };
    let (named, all) =
        outline.blocks.iter().map(of_block).fold((0, 0), |(a, b), (named, all)| (a + named, b + all));
    share(named, all)
}

fn fresh<'a>(parts: impl Iterator<Item = &'a str>) -> Option<f32> {
    let of_part = |part: &'a str| {
        let words: Vec<String> = words(part).map(str::to_lowercase).collect();
        let runs: HashSet<&[String]> = words.windows(RUN).collect();
        (runs.len(), words.windows(RUN).count())
    };
    let (different, all) = parts.map(of_part).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    share(different, all)
}

fn share(part: usize, all: usize) -> Option<f32> {
    (all > 0).then(|| part as f32 / all as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tags::outline;

    #[test]
    fn by_hand() {
        let block =
            "<Parallel><Path>it gives 12</Path><Path>it gives 13</Path></Parallel>\n<Summary>12</Summary>";
        let long = "word ".repeat(41);
        for (text, expected) in [
            ("", 0.0),
            ("a b c", 1.0), // one step, too short to repeat itself
            // Words a b c d . e f g h a b c d: 10 runs, of which `a b c d` comes twice.
            ("a b c d. e f g h\na b c d", (1.0 + 9.0 / 10.0) / 2.0),
            (&long, (0.0 + 1.0 / 38.0) / 2.0),
            (block, (1.0 + 0.5) / 2.0), // 12 is named, 13 is not
        ] {
            let got = clarity(text, &outline(text));
            assert!((got - expected).abs() < 1e-6, "{text}: {got}, expected {expected}");
        }
    }
}
