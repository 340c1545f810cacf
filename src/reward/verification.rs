//! Is the answer derived a second time?

use super::places::{Kind, derived, places};
use crate::prompt::tags::Outline;

/// `verification`: 1 if a path or a summary derives an answer that an earlier place (the trunk, another path, an
/// earlier summary) has derived, else 0. To derive is to have the answer as the right side of an equation.
///
/// After the second thinking pattern of arXiv 2509.07980, "multi-perspective verification". `answers` are the ways in
/// which the answer may be written; the paths of one block don't see each other, so two that agree were worked out
/// twice.
pub fn verification(text: &str, outline: &Outline, answers: &[&str]) -> f32 {
    let derives = |text: &str| answers.iter().any(|answer| derived(text, answer).is_some());
    let places = places(text, outline);
    let mut deriving = places.iter().filter(|place| derives(&text[place.range.clone()]));
    let again = deriving.next().is_some() && deriving.any(|place| place.kind != Kind::Trunk);
    f32::from(again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tags::outline;

    #[test]
    fn by_hand() {
        let block = |first: &str, second: &str, summary: &str| {
            format!(
                "<Parallel><Path>{first}</Path><Path>{second}</Path></Parallel>\n<Summary>{summary}</Summary>"
            )
        };
        for (text, expected) in [
            (String::new(), 0.0),
            ("5 + 7 = 12, and 7 + 5 = 12.\nAnswer: 12".to_owned(), 0.0), // one stream
            (block("5 + 7 = 12", "I think 12", "12") + "Answer: 12", 0.0), // said, not derived
            (block("5 + 7 = 12", "7 + 5 = 12", "12") + "Answer: 12", 1.0),
            (block("5 + 7 = 12", "7 + 5 = 13", "12") + "Answer: 12", 0.0),
            ("5 + 7 = 12.\n".to_owned() + &block("7 + 5 = 12", "try 13", "Right.") + "Answer: 12", 1.0),
            (block("10 + 2 = 12", "try 13", "Check: 24 / 2 = 12.") + "Answer: 12", 1.0),
            (block("no", "no", "no") + "5 + 7 = 12, 7 + 5 = 12", 0.0),
        ] {
            assert_eq!(verification(&text, &outline(&text), &["12"]), expected, "{text}");
        }
        let halves = block("1 - 0.5 = 0.5", "2 / 4 = \\frac{1}{2}", "a half");
        assert_eq!(verification(&halves, &outline(&halves), &["0.5", "\\frac{1}{2}"]), 1.0);
        assert_eq!(verification(&halves, &outline(&halves), &[]), 0.0);
    }
}
