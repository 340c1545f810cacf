//! Finds the answer in a whole response.
//!
//! Explicit statements come first: `\boxed{..}`, `#### x`, "Answer: x", "the answer is x". Of these the
//! last one in the text wins, because models correct themselves, whatever text follows it. Without one,
//! the last formula, bold value or bare number is taken. Everything is one forward pass or looks a
//! bounded distance ahead, so that a megabyte of braces costs as much as a megabyte of prose.

use crate::number;

/// Only this much of a response's end is read: answers stand there, and time stays bounded.
const MAX_BYTES: usize = 1 << 16;
/// A formula between delimiters is at most this long.
const MAX_FORMULA: usize = 2048;
/// A short response without prose is taken as the answer itself up to this length.
const MAX_BARE: usize = 256;

/// The answer that a response states last, as written; `None` if it states none.
pub fn extract(response: &str) -> Option<&str> {
    let text = &response[response.ceil_char_boundary(response.len().saturating_sub(MAX_BYTES))..];
    [boxed(text), hashed(text), labelled(text)]
        .into_iter()
        .flatten()
        .max_by_key(|answer| answer.as_ptr() as usize) // all are slices of `text`: the last one
        .or_else(|| unmarked(text))
}

/// The content of the last `\boxed{..}` or `\fbox{..}` that is closed and says something.
fn boxed(text: &str) -> Option<&str> {
    let mut open: Vec<Option<usize>> = Vec::new(); // per open brace: where a box's content starts
    let mut last = None;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            '\\' => {
                escaped = !escaped;
                continue;
            }
            '{' if !escaped => {
                let before = text[..i].trim_end();
                let is_box = before.ends_with("\\boxed") || before.ends_with("\\fbox");
                open.push(is_box.then_some(i + 1));
            }
            '}' if !escaped => {
                if let Some(Some(start)) = open.pop()
                    && !is_placeholder(&text[start..i])
                {
                    last = Some(&text[start..i]);
                }
            }
            _ => {}
        }
        escaped = false;
    }
    last.map(str::trim)
}

/// What an instruction or a template writes where an answer would stand.
fn is_placeholder(content: &str) -> bool {
    let content = content.trim().trim_matches(['.', '…', '<', '>', '[', ']', '{', '}']);
    let content = content.strip_prefix("\\text{").unwrap_or(content).trim();
    let words = ["", "answer", "your answer", "final answer", "the answer", "\\dots", "\\ldots"];
    words.iter().any(|word| content.eq_ignore_ascii_case(word))
}

/// The rest of the line after the last `####`, as GSM8K marks its answers.
fn hashed(text: &str) -> Option<&str> {
    let (_, after) = text.rsplit_once("####")?;
    let line = trim(first_line(after));
    // A Markdown heading has words: "#### Step 2", "#### Final remarks".
    let heading = line.starts_with("Step") || is_prose(line) && !has_digit(line);
    (!line.is_empty() && !heading).then(|| core(line))
}

/// The last "answer: x", "answer is x" and the like.
fn labelled(text: &str) -> Option<&str> {
    const WORD: &[u8] = b"answer";
    let bytes = text.as_bytes();
    (0..bytes.len().saturating_sub(WORD.len() - 1)).rev().find_map(|i| {
        let word = &bytes[i..i + WORD.len()];
        let inside_word = i > 0 && bytes[i - 1].is_ascii_alphanumeric();
        if !word.eq_ignore_ascii_case(WORD) || inside_word {
            return None;
        }
        let after = &text[i + WORD.len()..];
        let heading = ends_with_word(&text[..i], "final");
        stated(after_label(after.strip_prefix('s').unwrap_or(after), heading)?)
    })
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let text = text.trim_end();
    let start = text.len().saturating_sub(word.len());
    text.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(word))
}

/// Reads the link between the word "answer" and what it announces; returns the rest.
fn after_label(rest: &str, heading: bool) -> Option<&str> {
    let rest = rest.trim_start_matches([' ', '*', '_', '`', '"', '\'', ')', ']']);
    if let Some(content) = rest.strip_prefix([':', '=', '：']) {
        return Some(content);
    }
    if heading && rest.starts_with(['\n', '\r']) {
        return Some(rest);
    }
    let link = |text: &'_ str| {
        let word = text.split([' ', ':', '\n']).next()?;
        ["is", "are", "would"].contains(&word.trim_end_matches(['*', '_'])).then_some(word.len())
    };
    if let Some(len) = link(rest) {
        return Some(rest[len..].trim_start_matches(" be "));
    }
    // "the answer to the second question is 5"
    if !["to ", "for ", "of "].iter().any(|word| rest.starts_with(word)) {
        return None;
    }
    let near = &rest[..rest.floor_char_boundary(80)];
    let clause = near.split(['.', ',', '\n', '?']).next()?;
    let at = clause.find(" is ").or_else(|| clause.find(" is:"))?;
    Some(&rest[at + 3..])
}

/// The answer in what follows a label, if it is one.
fn stated(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "*_`:".contains(c));
    for (open, close) in [("\\[", "\\]"), ("$$", "$$")] {
        if let Some((formula, _)) = rest.strip_prefix(open).and_then(|r| r.split_once(close)) {
            return Some(formula.trim()).filter(|formula| !formula.is_empty());
        }
    }
    let line = trim(first_clause(first_line(rest)));
    let denied = line.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("not "));
    (!denied && !is_placeholder(line)).then(|| core(line))
}

/// The line up to its end, or to a tag or special token that the text may carry.
fn first_line(text: &str) -> &str {
    let line = text.trim_start().split(['\n', '\r']).next().unwrap_or_default();
    let tags = ["</", "<|", "<Parallel>", "<Path>", "<Summary>"];
    let end = tags.iter().filter_map(|tag| line.find(tag)).min().unwrap_or(line.len());
    &line[..end]
}

/// Drops a second sentence and reasons given for the answer.
fn first_clause(line: &str) -> &str {
    const ENDS: [&str; 13] = [
        ". ",
        "! ",
        "? ",
        ".\"",
        ".)",
        " because ",
        ", because",
        " since ",
        ", since",
        ", as ",
        ", which",
        ", so ",
        ", not ",
    ];
    let end = ENDS.iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
    &line[..end]
}

fn trim(text: &str) -> &str {
    let text = text.trim_matches(|c: char| c.is_whitespace() || "*_`\"".contains(c));
    text.trim_end_matches(['.', ',', ';', '。']).trim_end_matches(['*', '`']).trim_end()
}

/// The answer within a statement: its only formula, its bold part, its only number between words.
fn core(statement: &str) -> &str {
    if let Some((start, end)) = statement.split_once("**").map(|(a, b)| (a.trim(), b.trim())) {
        let bold = end.split("**").next().unwrap_or(end);
        return core(if start.is_empty() || has_digit(bold) && !has_digit(start) { bold } else { start });
    }
    if let [formula] = formulas(statement)[..] {
        let around = statement.len() - formula.len();
        let outside = statement.replacen(formula, "", 1);
        if around <= 4 || !has_digit(&outside) {
            return formula.trim();
        }
    }
    if is_prose(statement)
        && crate::key(statement).parse::<f64>().is_err()
        && let [number] = numbers(statement)[..]
    {
        return number;
    }
    statement
}

/// Without any marked answer: the whole of a terse response, or the last value in it.
fn unmarked(text: &str) -> Option<&str> {
    let whole = text.trim();
    let formulas = formulas(text);
    let bold = whole.contains("**");
    if formulas.is_empty() && !bold && is_terse(whole) {
        return Some(trim(whole)).filter(|answer| !answer.is_empty());
    }
    let formula = formulas.into_iter().rfind(|formula| formula.trim().len() > 1 || has_digit(formula));
    let bold = bold_parts(text).rfind(|part| has_digit(part));
    let number = numbers(text).pop();
    // All are slices of `text`; the one that ends last was said last, a formula
    // rather than the number at its end.
    let end = |part: &&str| part.as_ptr() as usize + part.len();
    [number, bold.map(core), formula].into_iter().flatten().max_by_key(end).map(trim)
}

fn bold_parts(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split("**").collect::<Vec<_>>().into_iter().enumerate().filter(|(i, _)| i % 2 == 1).map(|(_, s)| s)
}

fn is_terse(text: &str) -> bool {
    text.len() <= MAX_BARE && !text.contains('\n') && !is_prose(text)
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
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

/// What stands between math delimiters, in order. A `$` that opens a price opens no formula.
fn formulas(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = text[at..].find(['$', '\\']) {
        at += step;
        let rest = &text[at..];
        let pair = [("$$", "$$"), ("$", "$"), ("\\[", "\\]"), ("\\(", "\\)")]
            .into_iter()
            .find(|(open, _)| rest.starts_with(open));
        let Some((open, close)) = pair else {
            // Skip the backslash and what it escapes.
            at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
            continue;
        };
        match closed(&rest[open.len()..], open, close) {
            Some(formula) => {
                found.push(formula);
                at += open.len() + formula.len() + close.len();
            }
            None => at += open.len(),
        }
    }
    found
}

fn closed<'a>(rest: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let mut near = &rest[..rest.floor_char_boundary(MAX_FORMULA)];
    if open != close {
        // Formulas don't nest; this also keeps a run of openings linear.
        near = near.split(open).next().unwrap_or(near);
    }
    let mut from = 0;
    let end = loop {
        let at = from + near[from..].find(close)?;
        if !(close == "$" && near[..at].ends_with('\\')) {
            break at;
        }
        from = at + 1;
    };
    let formula = &near[..end];
    let paragraph = !formula.contains("\n\n");
    let price =
        close == "$" && formula.starts_with(|c: char| c.is_ascii_digit()) && is_prose(&without_text(formula));
    (paragraph && !price && !formula.trim().is_empty()).then_some(formula)
}

/// Cuts the formula where `\text{..}` may bring in words that are no prose.
fn without_text(formula: &str) -> String {
    formula.split("\\text").next().unwrap_or_default().to_owned()
}

/// The bare numbers and `\frac`s of a text that stand by themselves (not the 2 in "A2").
fn numbers(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut i = 0;
    while i < bytes.len() {
        let end = match bytes[i] {
            b'0'..=b'9' => number_end(bytes, i),
            b'.' if bytes.get(i + 1).is_some_and(u8::is_ascii_digit) => number_end(bytes, i),
            b'\\' => fraction_end(text, i).unwrap_or(i + 1),
            _ => {
                i += 1;
                continue;
            }
        };
        if end > i + 1 || bytes[i] != b'\\' {
            let start = signed_start(text, i);
            let word_end = end + text[end..].bytes().take_while(u8::is_ascii_alphabetic).count();
            let whole = &text[start..word_end];
            let alone = !text[..i].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '^'));
            if alone && (word_end == end || number::parse(whole).is_some()) {
                found.push(whole);
            }
            i = word_end.max(end);
        } else {
            i = end;
        }
    }
    found
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let mut end = start;
    while digit(end) || matches!(bytes.get(end), Some(b'.' | b',' | b'/')) && digit(end + 1) {
        end += 1;
    }
    end + usize::from(bytes.get(end) == Some(&b'%'))
}

fn fraction_end(text: &str, start: usize) -> Option<usize> {
    let commands = ["\\frac", "\\dfrac", "\\tfrac", "\\cfrac"];
    let command = commands.iter().find(|command| text[start..].starts_with(**command))?;
    let mut at = start + command.len();
    for _ in 0..2 {
        let inner = text[at..].strip_prefix('{')?;
        let near = &inner[..inner.floor_char_boundary(64)];
        at += near.find('}')? + 2;
    }
    Some(at)
}

/// Takes in the sign and the currency before a number; "5-3" has no sign.
fn signed_start(text: &str, start: usize) -> usize {
    let money = text[..start].trim_end_matches('$').len();
    let before = &text[..money];
    match before.strip_suffix(['-', '−']) {
        Some(rest) if !rest.ends_with(|c: char| c.is_alphanumeric() || ")}".contains(c)) => rest.len(),
        _ => money,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn statements() {
        for (response, expected) in [
            ("so \\boxed{\\frac{1}{2}} and done", "\\frac{1}{2}"),
            ("\\boxed{1} but no, \\boxed{2}. That was it: 3 tries.", "2"),
            ("\\fbox{7}", "7"),
            ("{ open \\boxed{5}", "5"),
            ("Put it in \\boxed{}. Well: \\boxed{9}. Use \\boxed{answer}.", "9"),
            ("5*5=25\n#### 25", "25"),
            ("#### 25 apples in each box", "25 apples in each box"),
            ("#### Step 2\nThe answer is 3", "3"),
            ("Final Answer: 42", "42"),
            ("**Final Answer:** 42", "42"),
            ("**Final Answer**\n\n42\n", "42"),
            ("✅ Final Answer: **73**", "73"),
            ("**Answer:** 10 - 2√5", "10 - 2√5"),
            ("The answer is 5. It took 3 steps.", "5"),
            ("The answer is 5, because 2+3=5.", "5"),
            ("Thus the answer is: $x = 4$.", "x = 4"),
            ("the answer to the second question is 8.", "8"),
            ("Answer: `$13$`", "13"),
            ("Answer: $18", "$18"),
            ("Answer: She makes $18 every day.", "$18"),
            ("The answer is\n\\[ 9 \\]\nas wanted", "9"),
            ("The answer is 3. Wait, that is wrong. The answer is 4.", "4"),
            ("The answer is not 3. Answer: 4. The answer is not 5.", "4"),
            ("Final Answer: the answer is $\\boxed{6}$", "6"),
            ("<Summary>The answer is 6</Summary>", "6"),
            ("Answer: 12+3=15,15*3=45", "12+3=15,15*3=45"),
            ("x ok\nAnswer: (12+3)*3<|endoftext|>", "(12+3)*3"),
            ("Answer: none", "none"),
        ] {
            assert_eq!(extract(response), Some(expected), "{response}");
        }
    }

    #[test]
    fn without_a_statement_the_last_value_counts() {
        for (response, expected) in [
            ("-10/9", "-10/9"),
            ("\\frac{10}{9}", "\\frac{10}{9}"),
            ("Evelyn", "Evelyn"),
            ("(3,2)", "(3,2)"),
            ("We get $a=1$ and then $b = 2$.", "b = 2"),
            ("We use $n$. In total there are 42 apples.", "42"),
            ("There are 42 apples, where $n$ is free.", "42"),
            ("It costs $5 and the other one $7.", "$7"),
            ("That makes **18** in all, which is it.", "18"),
            ("the number is not 10 which is 1,000.99€", "1,000.99"),
            ("Hence the value is \\frac{3}{4}.", "\\frac{3}{4}"),
            ("It is minus three, or -3.", "-3"),
            ("Answer \\[ 9 \\]", "9"),
        ] {
            assert_eq!(extract(response), Some(expected), "{response}");
        }
        for response in ["", "  \n", "I do not know the answer to this."] {
            assert_eq!(extract(response), None, "{response}");
        }
    }

    #[test]
    fn long_hostile_input_is_bounded() {
        for piece in ["{", "}", "\\boxed{", "$", "\\(", "answer is ", "answer to ", "**", "1,", "\\frac{"] {
            extract(&piece.repeat((1 << 20) / piece.len()));
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "(\\PC|[{}$\\\\*#:.,é−]|answer|answer is|\\\\boxed|\\\\frac|\\\\\\(|[0-9]|\n){0,40}") {
            if let Some(answer) = extract(&text) {
                prop_assert!(text.contains(answer));
            }
        }
    }
}
