//! Values written without delimiters, between the words of a text: `42`, `-3 1/2`, `10 - 2√5`, `x = 4`.
//!
//! A value is taken as far as it reaches, so that "2√5" is not read as 2, nor "2^10" as 2 or 10.

/// An operand in brackets is at most this long.
const MAX_BRACKETS: usize = 256;
/// Brackets nested deeper are left to the words around them.
const MAX_NESTING: usize = 6;

/// A value at a place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value<'a> {
    pub(super) start: usize,
    pub(super) text: &'a str,
}

impl Value<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// The values of a text, in order.
pub(super) fn values(text: &str) -> Vec<Value<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let end = if starts_value(text, at) { expression(text, at, 0) } else { None };
        if let Some(end) = end
            && says_something(&text[at..end])
            && !continues(&text[end..])
            && !is_list_marker(text, at, end)
        {
            found.push(Value { start: at, text: &text[at..end] });
        }
        // A whole word is skipped, so that no value starts inside it.
        at = end.unwrap_or(at).max(at + word_length(&text[at..]));
    }
    found
}

/// The length of the letters and digits ahead, or of one other character.
fn word_length(rest: &str) -> usize {
    let word = rest.len() - rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').len();
    word.max(rest.chars().next().map_or(1, char::len_utf8))
}

/// Before a value: its sign, its currency.
const SIGNS: [char; 9] = ['-', '−', '+', '±', '$', '£', '€', '¥', '₹'];

/// Not inside a word, nor inside a run of signs, which is read from its start.
fn starts_value(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '^' | '\\') || SIGNS.contains(&c))
}

fn says_something(value: &str) -> bool {
    value.contains(|c: char| c.is_numeric() || c == 'π') || value.contains("\\pi") || value == "pi"
}

/// "2A", "3rd": the digits belong to a word.
fn continues(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '\\')
}

/// "3. Next, we" or "2) so" at the start of a line.
fn is_list_marker(text: &str, start: usize, end: usize) -> bool {
    let line_start = text[..start].trim_end_matches([' ', '*', '#']);
    let begins = line_start.is_empty() || line_start.ends_with('\n');
    let rest = &text[end..];
    begins && (rest.starts_with(". ") || rest.starts_with(") "))
}

/// The end of the expression that starts here.
fn expression(text: &str, start: usize, nesting: usize) -> Option<usize> {
    let mut at = operand(text, prefixed(text, start), nesting)?;
    loop {
        let rest = &text[at..];
        if let Some(next) = factor(text, at, nesting).or_else(|| grouped(rest).map(|n| at + n)) {
            at = next;
        } else if let Some(length) = operator(rest)
            && let Some(next) = operand(text, prefixed(text, at + length), nesting)
        {
            at = next;
        } else {
            return Some(at);
        }
    }
}

/// Skips a sign, a currency, or both.
fn prefixed(text: &str, at: usize) -> usize {
    let rest = text[at..].trim_start_matches("\\$");
    let bare = rest.trim_start_matches(SIGNS);
    // A dash between spaces is a dash.
    if bare.len() < text.len() - at && bare.starts_with(' ') { at } else { text.len() - bare.len() }
}

/// A number, a name, a function, a bracket or a command, with what is written behind it.
fn operand(text: &str, at: usize, nesting: usize) -> Option<usize> {
    if nesting > MAX_NESTING {
        return None;
    }
    let rest = &text[at..];
    let c = rest.chars().next()?;
    let end = match c {
        '0'..='9' => at + number(rest),
        '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => at + 1 + number(&rest[1..]),
        '√' | '∛' => operand(text, at + c.len_utf8(), nesting + 1)?,
        '(' | '[' | '|' => brackets(text, at, nesting)?,
        '\\' => command(text, at)?,
        'π' | '∞' | '½' | '⅓' | '⅔' | '¼' | '¾' | '⅕' | '⅙' | '⅛' => at + c.len_utf8(),
        _ if c.is_alphabetic() => name(text, at, nesting)?,
        _ => return None,
    };
    Some(end + postfix(&text[end..]))
}

/// Digits with separators and a decimal part; an exponent as in `1.5e-3`.
fn number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let mut end = 0;
    while digit(end) || matches!(bytes.get(end), Some(b'.' | b',' | b':')) && digit(end + 1) {
        end += 1;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        if digit(end + 1 + sign) {
            end += 1 + sign + bytes[end + 1 + sign..].iter().take_while(|b| b.is_ascii_digit()).count();
        }
    }
    end
}

/// ` 1/2` of a mixed number and ` 000` of a thousand, behind a number.
fn grouped(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix(' ')?;
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let (next, rest) = (after[digits..].chars().next(), &after[digits..]);
    let fraction = next == Some('/') && rest[1..].starts_with(|c: char| c.is_ascii_digit());
    let thousand = digits == 3 && !next.is_some_and(|c| c.is_alphanumeric());
    (digits > 0 && (fraction || thousand)).then_some(1 + digits)
}

/// What is multiplied without a sign: `2√5`, `3(x+1)`, `2x`, `9 π`.
fn factor(text: &str, at: usize, nesting: usize) -> Option<usize> {
    let rest = &text[at..];
    let spaced = rest.strip_prefix(' ').unwrap_or(rest);
    let constant = ["π", "√", "\\pi", "\\sqrt", "pi", "sqrt"].iter().any(|name| spaced.starts_with(name));
    let attached = rest.starts_with(|c: char| c.is_alphabetic() || matches!(c, '(' | '√' | 'π' | '\\'));
    match (constant, attached) {
        (true, _) => operand(text, text.len() - spaced.len(), nesting),
        (_, true) => operand(text, at, nesting),
        _ => None,
    }
}

/// The length of an operator with the spaces around it.
fn operator(rest: &str) -> Option<usize> {
    const OPERATORS: [&str; 22] = [
        "**", "<=", ">=", "!=", "==", "+", "-", "−", "*", "·", "×", "÷", "/", "^", "_", "=", "<", ">", "≤",
        "≥", "≈", "±",
    ];
    let spaced = rest.trim_start_matches(' ');
    let lead = rest.len() - spaced.len();
    let length = match OPERATORS.iter().find(|sign| spaced.starts_with(**sign)) {
        Some(sign) => sign.len(),
        None if lead > 0 && spaced.starts_with("x ") => 1,
        None => command_operator(spaced)?,
    };
    let after = &spaced[length..];
    let trail = after.len() - after.trim_start_matches(' ').len();
    // "5 -3" is no difference, and "5* " is Markdown.
    (lead.min(1) == trail.min(1) || spaced.starts_with('=')).then_some(lead + length + trail)
}

fn command_operator(rest: &str) -> Option<usize> {
    const OPERATORS: [&str; 9] =
        ["\\cdot", "\\times", "\\div", "\\pm", "\\leq", "\\geq", "\\le", "\\ge", "\\approx"];
    OPERATORS.iter().find(|name| rest.starts_with(**name)).map(|name| name.len())
}

fn brackets(text: &str, at: usize, nesting: usize) -> Option<usize> {
    let close: &[char] = if text[at..].starts_with('|') { &['|'] } else { &[')', ']'] };
    let limit = at + MAX_BRACKETS;
    let mut end = expression(text, at + 1, nesting + 1)?;
    loop {
        let rest = text[end..].trim_start_matches(' ');
        if end > limit {
            return None;
        }
        if rest.starts_with(close) {
            return Some(text.len() - rest.len() + 1);
        }
        let next = rest.strip_prefix([',', ';'])?.trim_start_matches(' ');
        end = expression(text, text.len() - next.len(), nesting + 1)?;
    }
}

/// `\frac{1}{2}`, `\sqrt[3]{2}`, `\pi`: a known command with its groups.
fn command(text: &str, at: usize) -> Option<usize> {
    const COMMANDS: [&str; 7] = ["frac", "dfrac", "tfrac", "cfrac", "sqrt", "pi", "infty"];
    let rest = &text[at + 1..];
    let after = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let name = &rest[..rest.len() - after.len()];
    let digits = name.ends_with("frac") || name == "sqrt";
    if !COMMANDS.contains(&name) {
        return None;
    }
    let mut end = text.len() - after.len();
    while let Some(length) = group(&text[end..]) {
        end += length;
    }
    if digits && end == text.len() - after.len() {
        // `\frac12`, `\sqrt2`
        end += after.bytes().take_while(u8::is_ascii_digit).count().min(if name == "sqrt" { 1 } else { 2 });
    }
    Some(end)
}

fn group(rest: &str) -> Option<usize> {
    let close = if rest.starts_with('{') { '}' } else { rest.starts_with('[').then_some(']')? };
    let open = rest.chars().next()?;
    let mut depth = 0usize;
    for (i, c) in rest[..rest.floor_char_boundary(MAX_BRACKETS)].char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return Some(i + 1);
            }
        }
    }
    None
}

/// A variable of one letter; a function with its argument.
fn name(text: &str, at: usize, nesting: usize) -> Option<usize> {
    const FUNCTIONS: [&str; 13] = [
        "sqrt", "sin", "cos", "tan", "log", "ln", "exp", "cbrt", "arcsin", "arccos", "arctan", "binom", "abs",
    ];
    let rest = &text[at..];
    let after = rest.trim_start_matches(|c: char| c.is_alphabetic());
    let word = &rest[..rest.len() - after.len()];
    let end = text.len() - after.len();
    if FUNCTIONS.contains(&word) {
        return operand(text, end, nesting + 1);
    }
    let short = word.chars().count() <= 1 || word == "pi" || is_unit(word);
    short.then_some(end)
}

/// Units of several letters that stand right behind a number.
fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 20] = [
        "cm", "mm", "km", "kg", "mg", "ml", "mL", "ft", "in", "yd", "mi", "lb", "lbs", "oz", "hr", "hrs",
        "min", "mph", "am", "pm",
    ];
    UNITS.contains(&word)
}

/// The length of the signs behind an operand. The mark of a sentence's end is no factorial.
fn postfix(rest: &str) -> usize {
    let signs = ['!', '%', '°', '²', '³', '⁴', '½', '¼', '¾', '⅓', '⅔', '€', '£', '¥', '\''];
    let percent = if rest.starts_with("\\%") { 2 } else { 0 };
    let after = rest[percent..].trim_start_matches(signs);
    let length = rest.len() - after.len();
    let next = after.trim_start_matches([' ', '*']).chars().next();
    let ends = next.is_none_or(|c| c == '\n' || c.is_uppercase());
    if ends { rest[..length].trim_end_matches('!').len() } else { length }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(text: &str) -> Option<&str> {
        values(text).pop().map(|value| value.text)
    }

    #[test]
    fn values_reach_as_far_as_they_go() {
        for (text, expected) in [
            ("There are 12 distinct ones.", "12"),
            ("the root is 10 - 2√5, so", "10 - 2√5"),
            ("it is 2^10.", "2^10"),
            ("we get x = 5 here", "x = 5"),
            ("Sum: 122 + 294 = 416", "122 + 294 = 416"),
            ("about 3 1/2 hours", "3 1/2"),
            ("some 1 000 people", "1 000"),
            ("not 10 which is 1,000.99€", "1,000.99€"),
            ("It costs $7.", "$7"),
            ("minus three, or -3.", "-3"),
            ("a total - 12 apples", "12"),
            ("Hence it is \\frac{3}{4}.", "\\frac{3}{4}"),
            ("Hence it is 3\\sqrt{2}.", "3\\sqrt{2}"),
            ("about 2 pi of it", "2 pi"),
            ("f(x) is 19.", "19"),
            ("area is 35cm wide", "35cm"),
            ("f(2) = 7 and more", "f(2) = 7"),
            ("the point (3, -1/2) there", "(3, -1/2)"),
            ("see (in part 2 or) more", "2"),
            ("at 12:30 sharp", "12:30"),
            ("it has 28% of it", "28%"),
            ("cost 1.5e-3 of it", "1.5e-3"),
            ("I found 5! And that was it!", "5"),
            ("there are 5! ways", "5!"),
        ] {
            assert_eq!(last(text), Some(expected), "{text}");
        }
        for text in ["AZYUK2A", "no value", "the 3rd", "First:\n2. Take nothing.", "2) Take all"] {
            assert_eq!(last(text), None, "{text}");
        }
    }

    #[test]
    fn hostile_runs_end() {
        for piece in ["(", "1+", "-", "√", "1/", "f(", "\\frac{", "sqrt", "1 000 ", "|1", "x", "x_", "[1,"]
        {
            values(&piece.repeat((1 << 16) / piece.len()));
        }
    }
}
