//! What the blocks of a response look like: how many, where, how wide, and how much their paths differ.

use super::stats::mean;
use crate::prompt::tags::{Block, outline};
use crate::reward::{bleu, words};

/// Paths of a block that are compared with each other: all pairs of very many would take long and say no more.
const MOST_PATHS: usize = 8;

/// The blocks of one response.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shape {
    /// How many there are, nested and broken ones too.
    pub blocks: usize,
    /// Paths of all of them.
    pub paths: usize,
    /// Where the blocks start, from 0 (the first token of the response) to 1 (behind its last), on average; `None` without
    /// a block.
    pub position: Option<f64>,
    /// How alike two paths of a block are: BLEU from 0 to 1, over all pairs; `None` without a pair.
    pub path_bleu: Option<f64>,
    /// The share of these pairs whose first words differ, case aside.
    pub first_words_differ: Option<f64>,
}

impl Shape {
    /// The shape of a response, from its text and from its tokens, of which `parallel` opens a block.
    pub fn of(text: &str, tokens: &[u32], parallel: Option<u32>) -> Self {
        let outline = outline(text);
        let pairs: Vec<(&str, &str)> = outline.blocks.iter().flat_map(|block| pairs(text, block)).collect();
        let differ = |&(a, b): &(&str, &str)| f64::from(first_word(a) != first_word(b));
        Self {
            blocks: outline.blocks.len(),
            paths: outline.blocks.iter().map(|block| block.paths.len()).sum(),
            position: position(tokens, parallel),
            path_bleu: mean(&pairs.iter().map(|(a, b)| bleu(a, b)).collect::<Vec<_>>()),
            first_words_differ: mean(&pairs.iter().map(differ).collect::<Vec<_>>()),
        }
    }
}

/// All pairs of a block's paths.
fn pairs<'a>(text: &'a str, block: &Block) -> Vec<(&'a str, &'a str)> {
    let paths: Vec<&str> = block.paths.iter().take(MOST_PATHS).map(|path| &text[path.clone()]).collect();
    let before = |i: usize| paths[..i].iter().copied().zip(std::iter::repeat(paths[i]));
    (0..paths.len()).flat_map(before).collect()
}

fn first_word(path: &str) -> Option<String> {
    words(path).next().map(str::to_lowercase)
}

/// The mean place of the tokens that open a block.
fn position(tokens: &[u32], parallel: Option<u32>) -> Option<f64> {
    let parallel = parallel?;
    let opened = tokens.iter().enumerate().filter(|(_, token)| **token == parallel);
    mean(&opened.map(|(at, _)| at as f64 / tokens.len() as f64).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_by_hand() {
        let text = "x<Parallel><Path>a b c d</Path><Path>A b c d</Path><Path>e f g h</Path></Parallel>\n<Summary>s</Summary>";
        // Two blocks, at 1 and 5 of 8 tokens; the second one is cut off.
        let shape = Shape::of(&format!("{text}<Parallel><Path>y"), &[7, 9, 7, 7, 7, 9, 7, 7], Some(9));
        assert_eq!((shape.blocks, shape.paths), (2, 4));
        assert_eq!(shape.position, Some((1.0 / 8.0 + 5.0 / 8.0) / 2.0));
        // Of three pairs one is equal but for its case, two have nothing in common.
        assert!((shape.path_bleu.unwrap() - 1.0 / 3.0).abs() < 1e-6, "{shape:?}");
        assert_eq!(shape.first_words_differ, Some(2.0 / 3.0));
    }

    #[test]
    fn a_response_without_blocks_has_no_places_and_no_pairs() {
        assert_eq!(Shape::of("Answer: 4", &[1, 2, 3], Some(9)), Shape::default());
        assert_eq!(Shape::of("<Path>", &[1], None), Shape::default());
        let single = Shape::of("<Parallel><Path>a</Path></Parallel>", &[9, 1], Some(9));
        assert_eq!((single.paths, single.position, single.path_bleu), (1, Some(0.0), None));
    }

    #[test]
    fn many_paths_are_bounded() {
        let text = format!("<Parallel>{}</Parallel>", "<Path>same words here</Path>".repeat(1000));
        assert_eq!(Shape::of(&text, &[], None).path_bleu, Some(1.0));
    }
}
