//! Finds the answer in a whole response.
//!
//! ```text
//! explicit    \boxed{x}, #### x, "Final Answer: x", "the answer is x", <answer>x</answer>
//!             the last one in the text wins, because models correct themselves; text after it is only text
//! words       the same labels with words behind them, where nothing explicit has a value
//! terse       a whole response that is nothing but an answer
//! trailing    the last formula, bold value or bare number
//! ```
//! An instruction that shows what an answer looks like (`\boxed{}`, "in \boxed{answer}", "like \boxed{5}")
//! states none. Everything is a forward pass or looks a bounded distance ahead, so that a megabyte of
//! braces costs as much as a megabyte of prose.

mod boxed;
mod joined;
mod label;
mod math;
mod plain;
mod statement;

use std::borrow::Cow;

use statement::{trim, unmark};

/// Only this much of a response's end is read: answers stand there, and time stays bounded.
const MAX_BYTES: usize = 1 << 16;
/// A bare value stands within this distance of a response's end.
const MAX_TAIL: usize = 1 << 13;
/// A response without prose is taken as the answer itself up to this length.
const MAX_TERSE: usize = 1024;

/// A value with its unit has at most this many words.
const MAX_UNIT: usize = 12;

/// Where in a response an answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// In `\boxed{..}`.
    Boxed,
    /// Behind a label: "Answer: x", "the answer is x", "#### x".
    Labelled,
    /// It is the whole response.
    Whole,
    /// The last formula between delimiters.
    Formula,
    /// The last value in words: bold or a bare number.
    Plain,
}

/// An answer as a response states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Where it was found.
    pub kind: Kind,
    /// The part of the response.
    pub span: &'a str,
    /// What is to be read: the span without delimiters, joined boxes as one list.
    pub text: Cow<'a, str>,
}

/// Which kinds of text may hold an answer. All, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kinds {
    /// Formulas between delimiters, and boxes.
    pub latex: bool,
    /// Values written in plain text.
    pub plain: bool,
    /// Words and letters of a choice.
    pub words: bool,
}

impl Default for Kinds {
    fn default() -> Self {
        Kinds { latex: true, plain: true, words: true }
    }
}

impl Kinds {
    fn allow(self, candidate: &Candidate) -> bool {
        let valued = candidate.text.contains(|c: char| c.is_numeric() || "\\+=<>^π√".contains(c));
        let marked = matches!(candidate.kind, Kind::Boxed | Kind::Formula)
            || candidate.span.len() > candidate.text.len()
            || candidate.span.contains(['$', '\\']);
        let simple = !candidate.text.contains('\\');
        marked && self.latex
            || (!marked || simple) && if valued { self.plain } else { self.words || self.plain }
    }
}

/// The answer that a response states last, as written; `None` if it states none.
///
/// Of several boxes that form one answer (`\boxed{1} and \boxed{2}`), the whole run.
pub fn extract(response: &str) -> Option<&str> {
    extract_with(response, Kinds::default()).into_iter().next().map(|candidate| candidate.span)
}

/// The answers that a response may be said to state, the likeliest first.
pub fn extract_with(response: &str, kinds: Kinds) -> Vec<Candidate<'_>> {
    let text = &response[response.ceil_char_boundary(response.len().saturating_sub(MAX_BYTES))..];
    let (turn, whole) = (own_turn(text), text.trim());
    let mut found = candidates(turn);
    if found.is_empty() && turn.len() < whole.len() {
        found = candidates(whole);
    }
    found.retain(|candidate| kinds.allow(candidate));
    found
}

/// What a gold text means: its own extracted answer if it is a worked solution, else itself.
pub(crate) fn gold(text: &str) -> Cow<'_, str> {
    let worked = ["\\boxed", "\\fbox", "####", "$", "\\(", "\\["].iter().any(|mark| text.contains(mark));
    if !worked || text.len() > MAX_BYTES {
        return Cow::Borrowed(text);
    }
    let found = candidates(text.trim()).into_iter().next();
    match boxed::unclosed(text) {
        // A gold of which the box was cut off.
        Some(content) if found.as_ref().is_none_or(|found| found.kind != Kind::Boxed) => {
            undoubled(content.into())
        }
        _ => found.map_or(Cow::Borrowed(text), |found| found.text),
    }
}

/// The text as it was before its backslashes were doubled, as by a program that escaped it once more:
/// `\\frac{1}{2}`. No command has a single one then.
fn undoubled(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains("\\\\") {
        return text;
    }
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('\\') {
        let after = rest[at..].trim_start_matches('\\');
        if (rest.len() - at - after.len()) % 2 == 1 {
            return text;
        }
        rest = after;
    }
    let command =
        text.split("\\\\").skip(1).any(|after| after.starts_with(|c: char| c.is_ascii_alphabetic()));
    if command { Cow::Owned(text.replace("\\\\", "\\")) } else { text }
}

/// The response proper: behind the model's thoughts, before the next turn of a chat.
fn own_turn(text: &str) -> &str {
    const ENDS: [&str; 5] = ["<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|eot_id|>", "</s>"];
    let text = match text.rsplit_once("</think>") {
        Some((_, after)) if !after.trim().is_empty() => after,
        _ => text,
    };
    let text = text.trim_start();
    let end = ENDS.iter().filter_map(|mark| text.find(mark)).filter(|&at| at > 0).min();
    text[..end.unwrap_or(text.len())].trim()
}

fn candidates(text: &str) -> Vec<Candidate<'_>> {
    let (boxed, example) = boxed::last(text).map_or((None, None), |(found, example)| {
        if example { (None, Some(found)) } else { (Some(found), None) }
    });
    let labels = label::last(text);
    let mut found: Vec<Candidate> = [boxed, labels.hashed, labels.valued].into_iter().flatten().collect();
    // All are parts of `text`: what ends last was said last; of a label and the box behind it, the box.
    found.sort_by_key(|found| std::cmp::Reverse((found.span.as_ptr() as usize, found.kind == Kind::Boxed)));
    found.extend(labels.words);
    if found.is_empty() {
        found.extend(terse(text).or_else(|| trailing(text, labels.denied)).or_else(|| endless(text)));
        found.extend(example);
    }
    for candidate in &mut found {
        candidate.text = undoubled(std::mem::take(&mut candidate.text));
    }
    found
}

/// The whole response, if it is nothing but an answer.
fn terse(text: &str) -> Option<Candidate<'_>> {
    let whole = trim(text);
    if whole.is_empty() || whole.len() > MAX_TERSE || whole.contains("**") {
        return None;
    }
    let text = unmark(whole);
    let single = !whole.contains('\n') || whole.len() > text.len();
    let answer = single && statement::is_bare(whole) || reads_as_value(&text);
    answer.then_some(Candidate { kind: Kind::Whole, span: whole, text })
}

/// A long text that has no words: nothing that could be read, but not nothing either.
fn endless(text: &str) -> Option<Candidate<'_>> {
    let wordless = text.len() > MAX_TERSE && !is_prose(text);
    wordless.then_some(Candidate { kind: Kind::Whole, span: text, text: text.into() })
}

/// The last value in a text, but not in what it denies.
fn trailing<'a>(text: &'a str, denied: Option<&'a str>) -> Option<Candidate<'a>> {
    let start = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
    let found = last_value(text)?;
    match denied.map(|line| start(line)..start(line) + line.len()) {
        Some(line) if line.contains(&start(found.span)) => last_value(&text[..line.start]),
        _ => Some(found),
    }
}

/// A formula rather than the number at its end, a number rather than a name.
fn last_value(text: &str) -> Option<Candidate<'_>> {
    let end = |found: &Candidate| (found.text.len() > 1 || has_digit(&found.text), statement::end(found));
    let number = plain::values(tail(text)).pop().map(|value| Candidate {
        kind: Kind::Plain,
        span: value.text,
        text: value.text.into(),
    });
    let bold = statement::last_bold(text);
    let formula = statement::last_formulas(text);
    [number, bold, formula].into_iter().flatten().max_by_key(end)
}

/// The end of a text where a bare value may still be its answer, from the start of a word.
fn tail(text: &str) -> &str {
    let near = &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_TAIL))..];
    let inside = near.len() < text.len();
    near.split_once(char::is_whitespace).filter(|_| inside).map_or(near, |(_, rest)| rest)
}

/// Whether the text reads as a value, perhaps with words behind it that are its unit.
fn reads_as_value(text: &str) -> bool {
    use crate::answer::Answer;
    let starts = !text.starts_with(|c: char| c.is_alphabetic() || c == '*');
    let short = text.split_whitespace().take(MAX_UNIT + 1).count() <= MAX_UNIT;
    starts && short && matches!(crate::parse::answer(text), Ok(Answer::Value(_) | Answer::Time(..)))
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

/// The text without what `\text{..}` and its like say, which may be words of a formula.
fn words_only(text: &str) -> String {
    let mut rest = text;
    let mut out = String::with_capacity(text.len());
    while let Some(at) = ["\\text", "\\mbox", "\\mathrm"].iter().filter_map(|name| rest.find(name)).min() {
        out.push_str(&rest[..at]);
        rest = rest[at..].split_once('}').map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// Two words, commands and their like not counted; "and" and "or" join values.
fn is_prose(text: &str) -> bool {
    let is_word = |word: &&str| {
        let bare = word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '\\');
        let long = bare.chars().count() > 1;
        long && bare != "and" && bare != "or" && bare.chars().all(|c| c.is_alphabetic() || c == '\'')
    };
    text.split_whitespace().filter(is_word).nth(1).is_some()
}

#[cfg(test)]
mod tests;
