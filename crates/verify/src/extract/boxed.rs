//! `\boxed{..}`: the content of boxes, nested braces and all.

use std::ops::Range;

use super::joined::{joint, list};
use super::{Candidate, Kind};

/// A box in the text.
struct Box {
    /// From the command to the closing brace.
    outer: Range<usize>,
    inner: Range<usize>,
}

/// The last box that says something, with those that it forms one answer with; and, apart, whether it
/// only stands in an example of what an answer looks like.
pub(super) fn last(text: &str) -> Option<(Candidate<'_>, bool)> {
    let boxes = boxes(text);
    let shown = |b: &Box| is_example(&text[..b.outer.start]);
    let Some(end) = boxes.iter().rposition(|b| !shown(b)) else {
        return boxes.last().map(|b| (candidate(text, std::slice::from_ref(b)), true));
    };
    let joins = |i: &usize| joint(&text[boxes[*i].outer.end..boxes[i + 1].outer.start]).is_some();
    let start = (0..end).rev().take_while(joins).last().unwrap_or(end);
    Some((candidate(text, &boxes[start..=end]), false))
}

fn candidate<'a>(text: &'a str, run: &[Box]) -> Candidate<'a> {
    let contents: Vec<&str> = run.iter().map(|b| text[b.inner.clone()].trim()).collect();
    let span = match run {
        [one] => text[one.inner.clone()].trim(),
        _ => &text[run[0].outer.start..run[run.len() - 1].outer.end],
    };
    Candidate { kind: Kind::Boxed, span, text: list(&contents) }
}

/// All closed boxes with a content, outermost only, in order.
fn boxes(text: &str) -> Vec<Box> {
    let mut open: Vec<(usize, Option<usize>)> = Vec::new(); // per open brace: its place, a box's start
    let mut found: Vec<Box> = Vec::new();
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            '\\' => {
                escaped = !escaped;
                continue;
            }
            '{' if !escaped => open.push((i, command_start(&text[..i]))),
            '}' if !escaped => {
                if let Some((at, Some(start))) = open.pop()
                    && !is_placeholder(&text[at + 1..i])
                {
                    let inside = found.iter().rev().take_while(|b| b.outer.start > start).count();
                    let only_a_box = inside == 1 && {
                        let content = &found[found.len() - 1];
                        text[at + 1..content.outer.start].trim().is_empty()
                            && text[content.outer.end..i].trim().is_empty()
                    };
                    let inner = match found.last() {
                        Some(content) if only_a_box => content.inner.clone(),
                        _ => at + 1..i,
                    };
                    found.truncate(found.len() - inside);
                    found.push(Box { outer: start..i + 1, inner });
                }
            }
            '0'..='9' if !escaped => {
                // `\boxed 5` and `\boxed5`: the number behind the command.
                if let Some(start) = command_start(&text[..i]) {
                    let number = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
                    let rest = text[i..].trim_start_matches(number);
                    let end = i + text[i..text.len() - rest.len()].trim_end_matches(['.', ',']).len();
                    found.push(Box { outer: start..end, inner: i..end });
                }
            }
            _ => {}
        }
        escaped = false;
    }
    found
}

/// Where `\boxed` starts that ends the text; also `\\boxed`, as in text that was escaped twice.
fn command_start(before: &str) -> Option<usize> {
    let before = before.trim_end_matches([' ', '\n']);
    let name = ["\\boxed", "\\fbox", "\\framebox"].iter().find_map(|name| before.strip_suffix(name))?;
    Some(name.trim_end_matches('\\').len())
}

/// What an instruction or a template writes where an answer would stand.
pub(super) fn is_placeholder(content: &str) -> bool {
    let content = content.trim().trim_matches(|c: char| c.is_whitespace() || "._…<>[]{}()?*\"".contains(c));
    let content = content.strip_prefix("\\text{").unwrap_or(content).trim();
    let named = content.len() <= 40
        && content.to_ascii_lowercase().contains("answer")
        && content.chars().all(|c| c.is_alphabetic() || " _-".contains(c));
    named || ["", "\\dots", "\\ldots", "\\cdots", "\\cdot", "\\square"].contains(&content)
}

/// Whether the text leads to an example: "in the form of, for example, `\boxed{7}`".
fn is_example(before: &str) -> bool {
    let near = before[before.floor_char_boundary(before.len().saturating_sub(32))..].to_ascii_lowercase();
    let near = near.trim_end_matches(|c: char| c.is_whitespace() || "$`\"'(:,\\".contains(c));
    ["e.g", "e.g.", "for example", "for instance", "such as", "like", "like this", "in the form"]
        .iter()
        .any(|lead| near.strip_suffix(lead).is_some_and(|rest| !rest.ends_with(char::is_alphanumeric)))
}

/// The content of a last box that is never closed, as a cut-off text ends.
pub(super) fn unclosed(text: &str) -> Option<&str> {
    let at = ["\\boxed{", "\\fbox{"].iter().filter_map(|name| Some(text.rfind(name)? + name.len())).max()?;
    let content = text[at..].split('\n').next()?.trim().trim_end_matches(['$', '.']).trim_end();
    (!is_placeholder(content)).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        last(text).filter(|(_, example)| !example).map(|(found, _)| found.text.into_owned())
    }

    #[test]
    fn boxes_have_contents() {
        for (text, expected) in [
            (r"so \boxed{\frac{1}{2}} and done", r"\frac{1}{2}"),
            (r"\boxed{1} but no, \boxed{2}.", "2"),
            (r"\fbox{7}", "7"),
            (r"\boxed {7}", "7"),
            (r"$\boxed 42$", "42"),
            (r"\boxed7.", "7"),
            (r"{ open \boxed{5}", "5"),
            (r"\boxed{\boxed{5}}", "5"),
            (r"\boxed{\text{a } \{1, 2\}}", r"\text{a } \{1, 2\}"),
            (r"\\boxed{\\frac{1}{3}}", r"\\frac{1}{3}"),
            (r"\boxed{}. Well: \boxed{9}. Use \boxed{answer}.", "9"),
            (r"\boxed{9}, written like \boxed{3}", "9"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            r"Put it in \boxed{}.",
            r"in \boxed{\text{your answer}}",
            r"use \boxed",
            r"as in, e.g., $\boxed{5}$",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn joined_boxes_are_one_answer() {
        for (text, expected) in [
            (r"\boxed{1} and \boxed{2}", "1, 2"),
            (r"\(\boxed{1}\) and \(\boxed{-2}\).", "1, -2"),
            (r"\boxed{a=1}, \boxed{b=2} \text{ or } \boxed{b=3}", "a=1, b=2, b=3"),
            (r"\boxed{4} \boxed{4}", "4"),
            (r"\boxed{1} no, wait, \boxed{2}", "2"),
            ("\\boxed{1}\n\\boxed{2}", "2"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_cut_off_box_has_a_content() {
        assert_eq!(unclosed(r"so \boxed{x = 1 \text{ and"), Some(r"x = 1 \text{ and"));
        assert_eq!(unclosed("no box"), None);
    }
}
