//! How much the paths of a block differ.

use super::bleu::bleu;
use super::text::words;
use crate::prompt::tags::Outline;

/// `likeness`, B: the mean BLEU of all pairs of paths that share a block, from 0 to 1; 0 where there is no pair.
///
/// arXiv 2509.07980, its rewards with path diversity: a negative weight asks for paths that differ.
pub fn likeness(text: &str, outline: &Outline) -> f32 {
    over_pairs(text, outline, bleu)
}

/// `first_word`: the share of pairs of paths that share a block and begin with different words; 0 where there is no
/// pair.
///
/// On text, a word stands for the first token (a run of letters, a run of digits, or a sign), so that the value does
/// not depend on the tokenizer.
pub fn first_word(text: &str, outline: &Outline) -> f32 {
    let first = |path: &str| words(path).next().map(str::to_lowercase);
    over_pairs(text, outline, |a, b| f64::from(first(a) != first(b)))
}

/// The mean over pairs of paths of the same block.
fn over_pairs(text: &str, outline: &Outline, value: impl Fn(&str, &str) -> f64) -> f32 {
    let (mut sum, mut pairs) = (0.0, 0u32);
    for block in &outline.blocks {
        for (i, a) in block.paths.iter().enumerate() {
            for b in &block.paths[i + 1..] {
                sum += value(&text[a.clone()], &text[b.clone()]);
                pairs += 1;
            }
        }
    }
    (sum / f64::from(pairs.max(1))) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tags::outline;

    fn both(paths: &[&[&str]]) -> (f32, f32) {
        let path = |path: &&str| format!("<Path>{path}</Path>");
        let block = |paths: &&[&str]| {
            let paths: String = paths.iter().map(path).collect();
            format!("<Parallel>{paths}</Parallel>\n<Summary>s</Summary>")
        };
        let text: String = paths.iter().map(block).collect();
        let outline = outline(&text);
        (likeness(&text, &outline), first_word(&text, &outline))
    }

    #[test]
    fn by_hand() {
        assert_eq!(both(&[]), (0.0, 0.0));
        assert_eq!(both(&[&["one path alone"]]), (0.0, 0.0));
        assert_eq!(both(&[&["a b c d", "a b c d"]]), (1.0, 0.0));
        // Of the pairs (same, same), (same, other), (same, other) one is alike; two begin differently.
        assert_eq!(both(&[&["a b c d", "A b c d", "u v w x"]]), (1.0 / 3.0, 2.0 / 3.0));
        // Of 4, 3, 2 and 1 runs 3, 2, 1 and 0 are in both, longer ones smoothed by one.
        let (alike, differ) = both(&[&["a b c d", "a b c e"]]);
        assert!((alike - (3.0f32 / 4.0 * 3.0 / 4.0 * 2.0 / 3.0 * 1.0 / 2.0).powf(0.25)).abs() < 1e-6);
        assert_eq!(differ, 0.0);
        // Pairs count, not blocks, and paths of different blocks are no pair.
        assert_eq!(both(&[&["a b c d", "a b c d"], &["a b c d", "u v w x"], &["p q r s"]]), (0.5, 0.5));
    }
}
