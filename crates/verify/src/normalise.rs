//! One spelling for what LaTeX and plain text can write in many ways.
//!
//! [`clean`] rewrites token by token: layout commands vanish, synonyms and Unicode become one command,
//! `\frac12` gets its braces. It keeps single spaces (a mixed number needs them); [`text`] removes them
//! when nothing but equality of spelling is left to ask.

/// Longer answers are not read.
const MAX_BYTES: usize = 4096;
/// Deeper groups are not read.
const MAX_DEPTH: usize = 64;

/// The answer in one spelling; `None` beyond the bounds. May be empty.
pub(crate) fn clean(raw: &str) -> Option<String> {
    if raw.len() > MAX_BYTES {
        return None;
    }
    let tokens = tokenise(strip_delimiters(raw));
    let mut rewriter = Rewriter { tokens, at: 0, out: String::with_capacity(raw.len()) };
    rewriter.group(0)?;
    Some(tidy(&rewriter.out))
}

/// The spelling for comparison as text: no spaces, and no case where it is a plain word.
pub(crate) fn text(clean: &str) -> String {
    let tight: String = clean.chars().filter(|c| !matches!(c, ' ' | '$' | '"')).collect();
    // Short strings of letters are names of variables or points, where case matters.
    let word = tight.chars().count() > 2 && tight.chars().all(char::is_alphabetic);
    if word { tight.to_lowercase() } else { tight }
}

/// The value in `x = 5`, `x \in S`, `x \approx 11` or `20+22 = 42`; everything else is left alone, so
/// an equation such as `2x + z = 1` is not its right-hand side.
pub(crate) fn right_hand_side(text: &str) -> &str {
    for relation in ["\\in", "\\approx"] {
        if let Some((name, value)) = text.split_once(relation)
            && is_name(name)
            && !value.starts_with(char::is_alphabetic)
        {
            return value.trim();
        }
    }
    let Some((left, value)) = text.rsplit_once('=') else { return text };
    // Sums only: "7 = 11a + c" is an equation, not its right-hand side.
    let computed = |side: &str| {
        !side.is_empty() && side.chars().all(|c| c.is_ascii_digit() || " $%+-*/().,=^{}".contains(c))
    };
    let is_value = is_name(left) || computed(left) && computed(value);
    if is_value && !value.trim().is_empty() { value.trim() } else { text }
}

/// A variable: one letter or command, perhaps with a subscript or one argument, as in `a_3` or `f(x)`.
fn is_name(text: &str) -> bool {
    let text = text.trim();
    let rest = match text.strip_prefix('\\') {
        Some(command) => command.trim_start_matches(|c: char| c.is_ascii_alphabetic()),
        None => text.strip_prefix(|c: char| c.is_alphabetic()).unwrap_or(text),
    };
    let argument = rest.trim_matches(|c| "_{}()".contains(c));
    rest.len() < text.len()
        && text != "\\"
        && (rest.is_empty() || rest.starts_with(['_', '(']))
        && argument.chars().all(char::is_alphanumeric)
}

const DELIMITERS: [(&str, &str); 6] =
    [("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("`", "`")];

fn strip_delimiters(raw: &str) -> &str {
    let mut text = raw.trim();
    let pair = |text: &'_ str| {
        DELIMITERS.iter().find_map(|(open, close)| {
            let range = open.len()..text.len().checked_sub(close.len())?;
            let fits = text.starts_with(open) && text.ends_with(close);
            let inner = if fits { text.get(range.clone()) } else { None }?;
            (!inner.contains(open)).then_some(range)
        })
    };
    while let Some(inner) = pair(text) {
        text = text[inner].trim();
    }
    text
}

enum Token<'a> {
    /// A command by its name: letters, or one other character.
    Command(&'a str),
    Char(char),
}

fn tokenise(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '√' {
            // Over all digits that follow, other than `\sqrt15`, whose root is over the 1.
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            tokens.push(Token::Command("sqrt"));
            if digits > 0 {
                tokens.push(Token::Char('{'));
                tokens.extend(rest[..digits].chars().map(Token::Char));
                tokens.push(Token::Char('}'));
                rest = &rest[digits..];
            }
            continue;
        }
        if c != '\\' {
            tokens.push(Token::Char(c));
            continue;
        }
        let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let (name, after) = rest.split_at(if letters > 0 { letters } else { first });
        tokens.push(Token::Command(name));
        // Spaces after a command of letters only end its name.
        rest = if letters > 0 { after.trim_start() } else { after };
    }
    tokens
}

struct Rewriter<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    out: String,
}

impl Rewriter<'_> {
    /// Rewrites up to the brace that closes this group, or to the end. `None`: nested too deep.
    fn group(&mut self, depth: usize) -> Option<()> {
        while let Some(token) = self.tokens.get(self.at) {
            if matches!(token, Token::Char('}')) {
                self.at += 1;
                if depth > 0 {
                    return Some(());
                }
            } else {
                self.one(depth)?; // a stray brace at the top is dropped
            }
        }
        Some(())
    }

    fn one(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        match *token {
            Token::Char('{') => self.braced(depth)?,
            Token::Char(c) => self.character(c),
            Token::Command(name) => self.command(name, depth)?,
        }
        Some(())
    }

    /// A group whose opening brace has been read. `{,}` is a separator and `{}` nothing.
    fn braced(&mut self, depth: usize) -> Option<()> {
        let start = self.out.len();
        self.out.push('{');
        self.group(depth + 1)?;
        match &self.out[start..] {
            "{" => self.out.truncate(start),
            "{," => self.out.replace_range(start.., ","),
            _ => self.out.push('}'),
        }
        Some(())
    }

    fn command(&mut self, name: &str, depth: usize) -> Option<()> {
        match name {
            "frac" | "dfrac" | "tfrac" | "cfrac" => {
                self.out.push_str("\\frac");
                self.argument(depth)?;
                self.argument(depth)?;
            }
            "sqrt" => {
                self.out.push_str("\\sqrt");
                self.index();
                self.argument(depth)?;
            }
            "text" | "textbf" | "textit" | "textrm" | "mbox" | "mathrm" | "mathbf" | "mathit"
            | "operatorname" | "boxed" | "fbox" => self.unwrapped(depth)?,
            "left" | "right" | "big" | "Big" | "bigl" | "bigr" | "Bigl" | "Bigr" | "bigg" | "Bigg"
            | "displaystyle" | "limits" | "degree" => {}
            "!" => self.skip_spaces(),
            "," | ";" | ":" | " " | "quad" | "qquad" | "thinspace" | "\n" => self.out.push(' '),
            "%" | "$" | "#" | "&" | "_" => self.out.push_str(name),
            "pounds" => self.out.push('£'),
            "euro" => self.out.push('€'),
            _ => self.named(name),
        }
        Some(())
    }

    fn named(&mut self, name: &str) {
        self.out.push('\\');
        self.out.push_str(synonym(name));
        // "\pi r" must not become "\pir".
        if name.starts_with(|c: char| c.is_ascii_alphabetic())
            && matches!(self.tokens.get(self.at), Some(Token::Char(c)) if c.is_alphabetic())
        {
            self.out.push(' ');
        }
    }

    /// One argument, braced in the output whether it was in the input or not.
    fn argument(&mut self, depth: usize) -> Option<()> {
        self.skip_spaces();
        self.out.push('{');
        match self.tokens.get(self.at) {
            Some(Token::Char('{')) => {
                self.at += 1;
                self.group(depth + 1)?;
                let kept = self.out.trim_end().len();
                self.out.truncate(kept);
            }
            Some(Token::Char('}')) | None => {}
            Some(_) => self.one(depth + 1)?,
        }
        self.out.push('}');
        Some(())
    }

    /// The optional `[n]` of a root.
    fn index(&mut self) {
        if matches!(self.tokens.get(self.at), Some(Token::Char('['))) {
            while let Some(Token::Char(c)) = self.tokens.get(self.at) {
                self.at += 1;
                self.out.push(*c);
                if *c == ']' {
                    break;
                }
            }
        }
    }

    /// The content of a wrapper such as `\text{..}`, set off by spaces.
    fn unwrapped(&mut self, depth: usize) -> Option<()> {
        self.skip_spaces();
        self.out.push(' ');
        if matches!(self.tokens.get(self.at), Some(Token::Char('{'))) {
            self.at += 1;
            self.group(depth + 1)?;
        }
        self.out.push(' ');
        Some(())
    }

    fn skip_spaces(&mut self) {
        while matches!(self.tokens.get(self.at), Some(Token::Char(c)) if c.is_whitespace()) {
            self.at += 1;
        }
    }

    fn character(&mut self, c: char) {
        match c {
            '~' => self.out.push(' '),
            c if c.is_whitespace() => self.out.push(' '),
            c => match unicode(c) {
                Some(spelling) => self.out.push_str(spelling),
                None => self.out.push(c),
            },
        }
    }
}

fn synonym(name: &str) -> &str {
    match name {
        "le" | "leqslant" => "leq",
        "ge" | "geqslant" => "geq",
        "ne" => "neq",
        "times" | "ast" => "cdot",
        "lbrace" => "{",
        "rbrace" => "}",
        "varnothing" => "emptyset",
        "dots" | "cdots" => "ldots",
        other => other,
    }
}

fn unicode(c: char) -> Option<&'static str> {
    Some(match c {
        '−' | '–' => "-",
        '×' | '·' | '⋅' => "\\cdot",
        '÷' | '⁄' => "/",
        '½' => " \\frac{1}{2}",
        '⅓' => " \\frac{1}{3}",
        '⅔' => " \\frac{2}{3}",
        '¼' => " \\frac{1}{4}",
        '¾' => " \\frac{3}{4}",
        '°' => "",
        'π' => "\\pi",
        '∞' => "\\infty",
        '≤' => "\\leq",
        '≥' => "\\geq",
        '≠' => "\\neq",
        '≈' => "\\approx",
        '∪' => "\\cup",
        '∈' => "\\in",
        '²' => "^2",
        '³' => "^3",
        '’' => "'",
        '“' | '”' => "\"",
        _ => return None,
    })
}

/// The last touches, on the rewritten string.
fn tidy(text: &str) -> String {
    let mut text = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace("^{\\circ}", "")
        .replace("^\\circ", "")
        .replace(" ^", "^")
        .replace("\\lt", "<")
        .replace("\\gt", ">")
        .replace("<=", "\\leq")
        .replace(">=", "\\geq")
        .replace("!=", "\\neq");
    bare_single_scripts(&mut text);
    trim_ends(&text).to_owned()
}

/// `x^{2}` to `x^2`, `a_{n}` to `a_n`.
fn bare_single_scripts(text: &mut String) {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut i = 0;
    while i < chars.len() {
        out.push(chars[i]);
        if let [_, '{', c, '}', ..] = chars[i..]
            && matches!(chars[i], '^' | '_')
        {
            out.push(c);
            i += 3;
        }
        i += 1;
    }
    *text = out;
}

/// Drops closing punctuation and braces around the whole.
fn trim_ends(text: &str) -> &str {
    let mut text = text;
    loop {
        let before = text.len();
        text = text.trim().trim_end_matches(['.', ',', ';', ':']).trim();
        text = outer_braces(text).unwrap_or(text);
        text = strip_delimiters(text);
        if text.len() == before {
            return text;
        }
    }
}

fn outer_braces(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut depth = 0i32;
    for c in inner.chars() {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth < 0 {
            return None;
        }
    }
    (depth == 0 && !inner.ends_with('\\')).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_spelling() {
        for (raw, expected) in [
            ("$ \\dfrac 3{4} $", "\\frac{3}{4}"),
            ("\\frac12", "\\frac{1}{2}"),
            ("\\tfrac{1}2.", "\\frac{1}{2}"),
            ("\\left( 0 , 1 \\right]", "( 0 , 1 ]"),
            ("1{,}234", "1,234"),
            ("32,\\! 349", "32,349"),
            ("90^{\\circ}", "90"),
            ("90°", "90"),
            ("35\\text{ cm}", "35 cm"),
            ("\\boxed{x^{2}}", "x^2"),
            ("**$5$**", "5"),
            ("{{7}}", "7"),
            ("\\sqrt 2", "\\sqrt{2}"),
            ("\\sqrt[3]2", "\\sqrt[3]{2}"),
            ("2½", "2 \\frac{1}{2}"),
            ("10 - 2√15", "10 - 2\\sqrt{15}"),
            ("x\\le 3", "x\\leq3"),
            ("\\$5", "$5"),
            ("\\pi r", "\\pi r"),
            ("}", ""),
            ("\\", "\\"),
        ] {
            assert_eq!(clean(raw).as_deref(), Some(expected), "{raw}");
        }
    }

    #[test]
    fn values_of_assignments() {
        for (whole, expected) in [
            ("x = 5", "5"),
            ("a_3 = 2", "2"),
            ("f(x) = x+1", "x+1"),
            ("\\theta=7", "7"),
            ("20+22=42", "42"),
            ("x\\in[0,1]", "[0,1]"),
            ("x\\approx11", "11"),
            ("2x + z = 1", "2x + z = 1"),
            ("x=1 or x=2", "x=1 or x=2"),
            ("x \\infty", "x \\infty"),
            ("= 4", "= 4"),
            ("7 = 11a+c", "7 = 11a+c"),
        ] {
            assert_eq!(right_hand_side(whole), expected, "{whole}");
        }
    }

    #[test]
    fn bounds() {
        assert_eq!(clean(&"{".repeat(1000)), None);
        assert_eq!(clean(&"\\frac".repeat(500)), None);
        assert_eq!(clean(&"9".repeat(5000)), None);
    }

    proptest! {
        #[test]
        fn cleaning_ends_and_settles(raw in "(\\PC|[\\\\{}$^_., ]|frac|text){0,40}") {
            if let Some(once) = clean(&raw) {
                text(right_hand_side(&once));
            }
        }
    }
}
