//! Separate solutions of one problem made into one demonstration: those that differ most, as the paths of one block.

use std::collections::HashSet;

/// How many characters a window has by which texts are compared.
const WINDOW: usize = 5;

/// Chooses at most `most` texts that differ: first the one that is least like the others, then always the one that is
/// least like those chosen, until the rest is too like them. Likeness goes from 0 to 1 (the same); `too_like` is the
/// least that keeps a text out. Returns their indices in ascending order.
pub fn choose(texts: &[&str], most: usize, too_like: f64) -> Vec<usize> {
    let windows: Vec<HashSet<&str>> = texts.iter().map(|text| windows(text)).collect();
    let like = |a: usize, b: usize| likeness(&windows[a], &windows[b]);
    let all = 0..texts.len();
    let total = |a: usize| all.clone().map(|b| like(a, b)).sum::<f64>();
    let first = all.clone().min_by(|&a, &b| total(a).total_cmp(&total(b)));
    let mut chosen: Vec<usize> = first.into_iter().take(most).collect();
    while chosen.len() < most {
        let nearest = |a: usize| chosen.iter().map(|&b| like(a, b)).fold(0.0, f64::max);
        let rest = all.clone().filter(|a| !chosen.contains(a)).map(|a| (nearest(a), a));
        match rest.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((nearest, next)) if nearest < too_like => chosen.push(next),
            _ => break,
        }
    }
    chosen.sort_unstable();
    chosen
}

/// All stretches of [`WINDOW`] characters.
fn windows(text: &str) -> HashSet<&str> {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let width = WINDOW.min(starts.len() - 1);
    starts.windows(width + 1).map(|ends| &text[ends[0]..ends[width]]).collect()
}

/// The share of windows that both have of those that either has.
fn likeness(a: &HashSet<&str>, b: &HashSet<&str>) -> f64 {
    let both = a.intersection(b).count();
    both as f64 / (a.len() + b.len() - both).max(1) as f64
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn those_that_differ_are_chosen() {
        let texts = [
            "Add the numbers one by one to get 12.",
            "Add the numbers one by one to get 12!",
            "By the formula n(n+1)/2 the sum is 12.",
            "Add the numbers one by one to get 12.",
            "☃ Ein Bild zeigt zwölf Felder.",
        ];
        assert_eq!(choose(&texts, 3, 0.8), [0, 2, 4]);
        assert!(choose(&texts, 2, 0.8).contains(&4), "nothing is less like the others");
        assert_eq!(choose(&texts, 9, 0.8), [0, 2, 4], "the rest says the same");
        assert_eq!(choose(&texts, 9, 1.0), [0, 1, 2, 4], "only equal ones say the same");
        assert_eq!(choose(&[], 3, 0.8), [0; 0]);
        assert_eq!(choose(&["", ""], 3, 0.8), [0]);
    }

    proptest! {
        #[test]
        fn the_choice_is_within_its_bounds(texts in vec(".{0,12}", 0..8), most in 0..5usize) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let chosen = choose(&texts, most, 0.9);
            prop_assert!(chosen.len() <= most.min(texts.len()) && chosen.is_sorted());
            prop_assert!(chosen.iter().all(|&at| at < texts.len()));
            prop_assert_eq!(chosen.is_empty(), texts.is_empty() || most == 0);
            let distinct: HashSet<&str> = chosen.iter().map(|&at| texts[at]).collect();
            prop_assert_eq!(distinct.len(), chosen.len());
        }
    }
}
