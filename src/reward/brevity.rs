//! What is said after the answer is settled.

use std::ops::Range;

use super::places::{Kind, derived, mentioned, places};
use crate::prompt::tags::{Outline, Tag};

/// `brevity`: 1 - unneeded / all, in characters. The answer is settled where the trunk first derives it (as the right
/// side of an equation) or where a summary first states it. All that follows is unneeded, except the line that states
/// the answer last. An answer that is settled nowhere else is settled by that line.
///
/// After the early termination that summaries of the method ask for: stop once the answer is known. `answers` are the
/// ways in which the answer may be written. Against `verification` it pulls the other way: together they ask for one
/// check, and an end.
pub fn brevity(text: &str, outline: &Outline, answers: &[&str]) -> f32 {
    let all = text.chars().count();
    let Some(last) = last_line(text, answers) else { return 1.0 };
    let settled = settled(text, outline, answers).unwrap_or(last.end).min(last.end);
    let between = unneeded(text.get(settled..last.start).unwrap_or_default());
    let after = unneeded(&text[last.end..]);
    1.0 - (between + after) as f32 / all.max(1) as f32
}

/// The characters of what follows a settled answer, without the tag that ends its summary.
fn unneeded(text: &str) -> usize {
    text.trim().trim_start_matches(Tag::EndSummary.text()).trim().chars().count()
}

/// The line that states the answer last.
fn last_line(text: &str, answers: &[&str]) -> Option<Range<usize>> {
    let states = |line: &&str| answers.iter().any(|answer| mentioned(line, answer));
    let line = text.lines().rfind(states)?;
    let start = line.as_ptr() as usize - text.as_ptr() as usize;
    Some(start..start + line.len())
}

/// Behind the place that settles the answer.
fn settled(text: &str, outline: &Outline, answers: &[&str]) -> Option<usize> {
    places(text, outline).into_iter().find_map(|place| {
        let part = &text[place.range.clone()];
        match place.kind {
            Kind::Path => None,
            Kind::Trunk => {
                let first = answers.iter().filter_map(|answer| derived(part, answer)).min()?;
                let line = part[first..].find('\n').map_or(part.len(), |end| first + end);
                Some(place.range.start + line)
            }
            Kind::Summary => answers.iter().any(|answer| mentioned(part, answer)).then_some(place.range.end),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tags::outline;

    const BLOCK: &str = "<Parallel><Path>5+7=12</Path><Path>no</Path></Parallel>\n<Summary>12</Summary>";

    #[test]
    fn by_hand() {
        let block = |rest: &str| format!("{BLOCK}{rest}");
        for (text, unneeded) in [
            ("Answer: 12".to_owned(), 0),
            ("5 + 7 = 12\nAnswer: 12".to_owned(), 0),
            ("5 + 7 = 12\nLet me see.\nAnswer: 12".to_owned(), "Let me see.".len()),
            ("5 + 7 = 12\nAnswer: 12\nGoodbye".to_owned(), "Goodbye".len()),
            ("5 + 7 = 12 and 6 + 6 = 12\nAnswer: 12".to_owned(), 0), // on one line
            (block("\nAnswer: 12"), 0),
            (block("\nWait.\nAnswer: 12"), "Wait.".len()),
            ("Nobody knows.".to_owned(), 0),
            (String::new(), 0),
        ] {
            let expected = 1.0 - unneeded as f32 / text.len().max(1) as f32;
            let got = brevity(&text, &outline(&text), &["12"]);
            assert!((got - expected).abs() < 1e-6, "{text}: {got}, expected {expected}");
        }
    }
}
