//! Labels: "Answer: x", "the answer is x", "#### x", `<answer>x</answer>`.

use super::boxed::is_placeholder;
use super::statement::{first_clause, first_line, trim, value, without_hedges};
use super::{Candidate, Kind, has_digit, is_prose};

/// Labels beyond this many, counted from the end, are not looked at.
const MAX_LABELS: usize = 64;
/// More words than these are a remark, not an answer.
const MAX_WORDS: usize = 6;

/// The last statements of a text.
#[derive(Default)]
pub(super) struct Labels<'a> {
    /// Behind `####`.
    pub(super) hashed: Option<Candidate<'a>>,
    /// With a value behind the label.
    pub(super) valued: Option<Candidate<'a>>,
    /// With words behind the label.
    pub(super) words: Option<Candidate<'a>>,
    /// What the last label denies: "the answer is not 3".
    pub(super) denied: Option<&'a str>,
}

/// Looks for labels from the end.
pub(super) fn last(text: &str) -> Labels<'_> {
    let mut labels = Labels { hashed: hashed(text), ..Labels::default() };
    for (after, colon) in statements(text).take(MAX_LABELS) {
        let Some((found, valued)) = stated(after, colon) else {
            labels.denied = labels.denied.or_else(|| denied(after));
            continue;
        };
        if valued {
            labels.valued = Some(found);
            break;
        }
        labels.words = labels.words.or(Some(found));
    }
    labels
}

/// The rest of the line after the last `####`, as GSM8K marks its answers.
fn hashed(text: &str) -> Option<Candidate<'_>> {
    let (_, after) = text.rsplit_once("####")?;
    let line = trim(first_line(after));
    // A Markdown heading has words: "#### Step 2", "#### Final remarks".
    let heading = line.starts_with("Step") || is_prose(line) && !has_digit(line);
    (!line.is_empty() && !heading).then(|| labelled(value(line)))
}

fn labelled(found: Candidate<'_>) -> Candidate<'_> {
    Candidate { kind: Kind::Labelled, ..found }
}

/// What follows each label, from the last to the first, and whether a colon or a heading announces it.
fn statements(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let bytes = text.as_bytes();
    (0..bytes.len()).rev().filter_map(move |i| {
        let word = match bytes[i] | 0x20 {
            b'a' => ["answer", "ans"].into_iter().find(|word| starts_with(&bytes[i..], word)),
            b'o' | b'c' => {
                let found = ["option", "choice"].into_iter().find(|word| starts_with(&bytes[i..], word));
                found
                    .filter(|_| ["correct ", "right "].iter().any(|adjective| text[..i].ends_with(adjective)))
            }
            _ => None,
        }?;
        let inside = i > 0 && (bytes[i - 1].is_ascii_alphanumeric() || bytes[i - 1] == b'/');
        let after = &text[i + word.len()..];
        if inside || is_checked(&text[..i]) || after.starts_with(|c: char| c.is_alphanumeric() && c != 's') {
            return None;
        }
        if word == "answer" && i > 0 && bytes[i - 1] == b'<' {
            return after.strip_prefix('>').map(|content| (content, true));
        }
        let after = after.strip_prefix('s').unwrap_or(after);
        after_label(after, is_heading(&text[..i])).filter(|_| word != "ans" || after.starts_with([':', '.']))
    })
}

fn starts_with(bytes: &[u8], word: &str) -> bool {
    bytes.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
}

/// "We can check our answer: 7 * 13 = 91".
fn is_checked(before: &str) -> bool {
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(24))..];
    let sentence = near.rsplit(['.', '\n']).next().unwrap_or(near).to_ascii_lowercase();
    ["check", "verify", "confirm"].iter().any(|word| sentence.contains(word))
}

/// Whether the label stands on a line of its own: "**Final Answer**", "## Answer".
fn is_heading(before: &str) -> bool {
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(24))..];
    let line = near.rsplit('\n').next().unwrap_or(near);
    let words = line.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    (near.len() > line.len() || near.len() == before.len())
        && ["", "final", "the final", "my"].contains(&words.as_str())
        || words.ends_with("final")
}

/// Reads the link between the word "answer" and what it announces; returns the rest.
fn after_label(rest: &str, heading: bool) -> Option<(&str, bool)> {
    let rest = rest.trim_start_matches([' ', '*', '_', '`', '"', '\'', ')', ']', '.']);
    for colon in [":", "：", "=>", "=", "→", "$\\Rightarrow$"] {
        if let Some(content) = rest.strip_prefix(colon) {
            return Some((content, true));
        }
    }
    if heading && rest.starts_with(['\n', '\r']) {
        return Some((rest, true));
    }
    if let Some(content) = after_verb(rest) {
        return Some((content, false));
    }
    // "the answer to the second question is 5", "the answer, in dollars, is 5"
    if !["to ", "for ", "of ", "in ", ", ", "therefore", "then"].iter().any(|word| rest.starts_with(word)) {
        return None;
    }
    let near = &rest[..rest.floor_char_boundary(100)];
    let clause = near.split(['.', '\n', '?']).next()?;
    let at = [" is", " are", " equals"].iter().filter_map(|verb| clause.find(verb)).min()?;
    let colon = clause.find(':').filter(|&colon| colon < at);
    match colon {
        Some(colon) => Some((&rest[colon + 1..], true)),
        None => after_verb(&rest[at + 1..]).map(|content| (content, false)),
    }
}

/// The rest behind "is", "should be", "turns out to be" and the like.
fn after_verb(rest: &str) -> Option<&str> {
    const VERBS: [&str; 13] = [
        "is",
        "are",
        "was",
        "equals",
        "would be",
        "should be",
        "must be",
        "will be",
        "can be",
        "comes out to",
        "turns out to be",
        "has to be",
        "becomes",
    ];
    VERBS.iter().find_map(|verb| {
        let after = rest.strip_prefix(verb)?;
        let ends = !after.starts_with(|c: char| c.is_alphanumeric() || c == '\'' || c == '’');
        ends.then(|| after.trim_start_matches(['*', '_']))
    })
}

/// The answer in what follows a label, if it is one, and whether it has a value.
fn stated(rest: &str, colon: bool) -> Option<(Candidate<'_>, bool)> {
    let minus = starts_with_minus(rest);
    let mark = |c: char| c.is_whitespace() || "*_`:=~—}".contains(c) || c == '-' && !minus;
    let rest = rest.trim_start_matches(mark);
    let line = trim(first_clause(first_line(rest)));
    let line = affirmed(line)?;
    let asked = line.ends_with('?') && line.len() > 1;
    if line.is_empty() || asked || is_placeholder(line) || line.contains("\\boxed{}") {
        return None;
    }
    if !colon && is_remark(without_hedges(line)) {
        return None;
    }
    let found = labelled(value(line));
    let letter = found.text.trim_matches(['(', ')']).chars().count() == 1;
    let valued = letter
        || found.span.len() > found.text.len()
        || found.text.contains(|c: char| c.is_numeric() || "\\π∞√$^".contains(c));
    if valued {
        return Some((found, true));
    }
    let words = line.split_whitespace().count();
    (words <= MAX_WORDS).then_some((found, colon && words <= 3))
}

/// Whether a minus sign of the value comes first, behind marks.
fn starts_with_minus(rest: &str) -> bool {
    let start = rest.trim_start_matches(|c: char| c.is_whitespace() || "*_`:".contains(c));
    let behind = start.strip_prefix('-').unwrap_or_default();
    behind.starts_with(|c: char| c.is_alphanumeric() || "\\$(.".contains(c))
}

/// The line, if it denies or asks.
fn denied(rest: &str) -> Option<&str> {
    let line = first_line(rest);
    (affirmed(trim(line)).is_none() || line.trim_end().ends_with('?')).then_some(line)
}

/// "not 3 but 4" states 4; "not 3" states nothing.
fn affirmed(line: &str) -> Option<&str> {
    let denied = line.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("not "));
    match line.find(" but ") {
        _ if !denied => Some(line),
        at => at.map(|at| line[at + 5..].trim_start_matches("rather ").trim_start_matches("actually ")),
    }
}

/// "the answer is correct", "the answer is rounded to 2 places": words about the answer.
fn is_remark(line: &str) -> bool {
    const WORDS: [&str; 38] = [
        "correct",
        "right",
        "wrong",
        "incorrect",
        "clear",
        "obvious",
        "in",
        "within",
        "obtained",
        "found",
        "given",
        "as",
        "that",
        "whatever",
        "what",
        "which",
        "here",
        "there",
        "valid",
        "reasonable",
        "consistent",
        "unique",
        "helpful",
        "not",
        "rounded",
        "required",
        "expected",
        "supposed",
        "written",
        "expressed",
        "always",
        "never",
        "to",
        "of",
        "known",
        "unknown",
        "greater",
        "less",
    ];
    let first = line.split([' ', ',', ':', ';', '!']).next().unwrap_or(line).to_ascii_lowercase();
    WORDS.contains(&first.as_str()) || line.starts_with("the same")
}
