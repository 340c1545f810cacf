//! Characters to tokens: LaTeX commands, Unicode and ASCII spellings of one thing become one token, and
//! what is layout vanishes.

use super::ParseError;
use super::spelling::{greek, is_layout, mark_of, synonym, vulgar};

/// Deeper brackets are not read.
const MAX_NESTING: usize = 64;

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    /// There is space before it.
    pub(super) spaced: bool,
    /// Byte offsets in the source.
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind<'a> {
    /// A run of ASCII digits.
    Digits(&'a str),
    /// Digits in groups, with their separators: `1,234`.
    Grouped(&'a str),
    /// A run of letters.
    Word(&'a str),
    /// What stands in `\text{..}`.
    Text(&'a str),
    /// A command by its name.
    Command(&'a str),
    /// A Unicode fraction such as ½.
    Vulgar(u8, u8),
    /// `√`, whose operand is a whole number or atom, without braces.
    Root,
    /// "and", "or" between answers.
    And,
    Or,
    /// `\begin{..}`, `\end{..}`, `\\`.
    Begin(&'a str),
    End,
    Row,
    /// One character: operators, brackets and signs. `\{` is '⦃', `\le` is '≤' and so on.
    Mark(char),
}

use Kind::{And, Begin, Command, Digits, End, Mark, Or, Root, Row, Text, Vulgar, Word};

pub(super) fn opens(mark: char) -> bool {
    matches!(mark, '(' | '[' | '{' | '⦃' | '⟨' | '⌊' | '⌈')
}

pub(super) fn closes(mark: char) -> bool {
    matches!(mark, ')' | ']' | '}' | '⦄' | '⟩' | '⌋' | '⌉')
}

/// Splits a text into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, ParseError> {
    let mut reader =
        Reader { text, at: 0, spaced: false, environments: 0, out: Vec::with_capacity(text.len().min(64)) };
    while reader.at < text.len() {
        reader.step();
    }
    nesting(&reader.out)?;
    Ok(reader.out)
}

fn nesting(tokens: &[Token<'_>]) -> Result<(), ParseError> {
    let mut depth = 0usize;
    for token in tokens {
        match token.kind {
            Mark(c) if opens(c) => depth += 1,
            Begin(_) => depth += 1,
            Mark(c) if closes(c) => depth = depth.saturating_sub(1),
            End => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(ParseError::TooLarge { what: "nesting", limit: MAX_NESTING });
        }
    }
    Ok(())
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    spaced: bool,
    /// Open environments.
    environments: usize,
    out: Vec<Token<'a>>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn push(&mut self, kind: Kind<'a>, len: usize) {
        let (start, end) = (self.at, self.at + len);
        self.out.push(Token { kind, spaced: self.spaced, start, end });
        self.at = end;
        self.spaced = false;
    }

    fn skip(&mut self, len: usize) {
        self.at += len;
        self.spaced = true;
    }

    fn step(&mut self) {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return };
        match first {
            '0'..='9' => {
                let len = rest.bytes().take_while(u8::is_ascii_digit).count();
                self.push(Digits(&rest[..len]), len);
            }
            '\\' => self.command(),
            c if c.is_whitespace() || c == '~' || c == '\u{200b}' => self.skip(c.len_utf8()),
            c if c.is_alphabetic() && greek(c).is_none() => self.word(),
            c => self.mark(c),
        }
    }

    fn word(&mut self) {
        let rest = self.rest();
        let plain = |c: char| c.is_alphabetic() && greek(c).is_none();
        let len = rest.find(|c: char| !plain(c)).unwrap_or(rest.len());
        let word = &rest[..len];
        // "1orW(x)": nothing else can follow a value so closely.
        let after_value =
            self.out.last().is_some_and(|t| matches!(t.kind, Digits(_) | Mark(')' | ']' | '}')));
        for (name, kind) in [("and", And), ("or", Or)] {
            if word.eq_ignore_ascii_case(name)
                || after_value && word.starts_with(name) && word.len() == name.len() + 1
            {
                return self.push(kind, name.len());
            }
        }
        match word {
            "ℝ" => self.push(Command("reals"), len),
            "ℤ" => self.push(Command("integers"), len),
            "ℕ" => self.push(Command("naturals"), len),
            "ℚ" => self.push(Command("rationals"), len),
            "ℂ" => self.push(Command("complexes"), len),
            _ => self.push(Word(word), len),
        }
    }

    fn mark(&mut self, c: char) {
        let rest = self.rest();
        for (spelling, mark) in [
            ("<=", '≤'),
            (">=", '≥'),
            ("=<", '≤'),
            ("!=", '≠'),
            ("/=", '≠'),
            ("==", '='),
            ("**", '^'),
            ("+-", '±'),
            ("+/-", '±'),
        ] {
            let sign_of_number = spelling == "+-"; // 3 +-2 is a sum
            if rest.starts_with(spelling) && !sign_of_number {
                return self.push(Mark(mark), spelling.len());
            }
        }
        let len = c.len_utf8();
        if let Some(name) = greek(c) {
            return self.push(Command(name), len);
        }
        if let Some((top, bottom)) = vulgar(c) {
            return self.push(Vulgar(top, bottom), len);
        }
        let mark = match c {
            '−' | '–' | '—' | '－' => '-',
            '×' | '·' | '∗' | '⋅' | '•' | '✕' => '*',
            '÷' | '∕' | '⁄' => '/',
            '⩽' | '≦' => '≤',
            '⩾' | '≧' => '≥',
            '≃' | '≅' => '≈',
            '≡' => '=',
            '＝' => '=',
            '，' | '、' => ',',
            '；' => ';',
            '：' | '∶' => ':',
            '（' => '(',
            '）' => ')',
            'º' | '˚' => '°',
            '′' | '’' => '\'',
            '∞' | '±' | '∓' | '∪' | '∩' | '∈' | '∉' => c,
            '∖' => '∖',
            '∅' => return self.push(Command("emptyset"), len),
            '√' => return self.push(Root, len),
            '…' => return self.push(Command("dots"), len),
            c => c,
        };
        self.push(Mark(mark), len);
    }

    fn command(&mut self) {
        let rest = self.rest();
        let letters = rest[1..].bytes().take_while(u8::is_ascii_alphabetic).count();
        // Escaped once too often: `\\\\frac` outside a matrix.
        if self.environments == 0
            && rest[1..].starts_with('\\')
            && rest[2..].starts_with(|c: char| c.is_ascii_alphabetic())
        {
            self.at += 1;
            return;
        }
        if letters == 0 {
            self.escaped(&rest[1..]);
            return;
        }
        let name = &rest[1..=letters];
        let len = letters + 1;
        match name {
            "text" | "mbox" | "textbf" | "textnormal" | "textit" | "textrm" | "mathrm" | "rm"
            | "operatorname" | "textsf" | "hbox" | "bf" => self.text(name, len),
            "mathbb" | "Bbb" | "mathbf" => self.double_struck(len),
            "begin" | "end" => self.environment(name == "begin", len),
            "hspace" | "vspace" | "color" | "textcolor" | "phantom" | "hphantom" | "vphantom" | "label"
            | "tag" => {
                let argument = argument(&rest[len..]);
                self.skip(len + argument);
            }
            "left" | "right" => {
                // `\left.` and `\right.` are invisible.
                let after = &rest[len..];
                let dot = after.trim_start().starts_with('.');
                self.skip(len + if dot { after.len() - after.trim_start().len() + 1 } else { 0 });
            }
            _ if is_layout(name) => self.skip(len),
            _ => match mark_of(name) {
                Some(mark) => self.push(Mark(mark), len),
                None => self.push(Command(synonym(name)), len),
            },
        }
    }

    fn escaped(&mut self, after: &'a str) {
        let Some(c) = after.chars().next() else { return self.push(Mark('\\'), 1) };
        let len = 1 + c.len_utf8();
        match c {
            ',' | ';' | ':' | '!' | ' ' | '>' | '/' | '-' | '(' | ')' | '[' | ']' => self.skip(len),
            '{' => self.push(Mark('⦃'), len),
            '}' => self.push(Mark('⦄'), len),
            '|' => self.push(Mark('|'), len),
            '\\' => self.push(Row, len),
            '%' | '$' | '&' | '_' | '#' => self.push(Mark(c), len),
            c if c.is_whitespace() => self.skip(len),
            c => self.push(Mark(c), len),
        }
    }

    /// `\text{..}`: letters that stand for values are read as such, connectives as connectives.
    fn text(&mut self, name: &str, len: usize) {
        let rest = self.rest();
        let after = rest[len..].trim_start();
        let open = rest.len() - after.len();
        if !after.starts_with('{') {
            self.skip(len); // `\bf 5`
            return;
        }
        let width = argument(after);
        let content = after[1..width.max(1)].strip_suffix('}').unwrap_or(&after[1..width]);
        let trimmed = content.trim_matches(|c: char| c.is_whitespace() || c == '~');
        let inner = trimmed.trim_matches(|c: char| c.is_whitespace() || c == ',' || c == '\\');
        let total = open + width;
        let letters = trimmed.chars().all(char::is_alphabetic);
        match inner {
            "" => self.skip(total),
            "and" | "AND" => self.push(And, total),
            "or" | "OR" => self.push(Or, total),
            _ if super::names::function(trimmed).is_some() && !self.after_number() => {
                self.push(Command(trimmed), total)
            }
            _ if self.after_number() && super::unit::is_known(trimmed) => self.push(Text(trimmed), total),
            _ if letters && trimmed.chars().count() > 1
                || letters && super::unit::is_single(trimmed) && name != "textbf" && self.after_number() =>
            {
                self.push(Text(trimmed), total)
            }
            _ if trimmed.chars().any(|c| c.is_alphabetic()) && trimmed.len() > 3 => {
                self.push(Text(trimmed), total)
            }
            // `\text{A}`, `\textbf{(C)}`, `\mathrm{e}`: as if it stood there bare.
            _ => {
                self.at += open + 1;
                self.spaced = true;
                let end = self.at + content.len(); // a cut-off group has no brace at its end
                let whole = self.text;
                self.text = &whole[..end];
                while self.at < end {
                    self.step();
                }
                self.text = whole;
                self.at = (end + 1).min(whole.len());
            }
        }
    }

    fn after_number(&self) -> bool {
        matches!(
            self.out.last().map(|t| t.kind),
            Some(Digits(_) | Mark('}' | ')') | Command("pi") | Vulgar(..))
        )
    }

    fn double_struck(&mut self, len: usize) {
        let rest = &self.rest()[len..];
        let after = rest.trim_start();
        let letter = after.trim_start_matches('{').chars().next();
        let width = rest.len() - after.len() + argument(after).max(1).min(after.len());
        let bold = self.rest().starts_with("\\mathbf");
        let name = match letter {
            Some('R') => "reals",
            Some('Z') => "integers",
            Some('N') => "naturals",
            Some('Q') => "rationals",
            Some('C') => "complexes",
            _ => return self.skip(len),
        };
        if bold && !after.starts_with("{R}") {
            return self.skip(len);
        }
        self.push(Command(name), len + width);
    }

    fn environment(&mut self, begin: bool, len: usize) {
        let after = &self.rest()[len..];
        let width = argument(after);
        let name = after.get(1..width.saturating_sub(1)).unwrap_or("");
        self.environments = if begin { self.environments + 1 } else { self.environments.saturating_sub(1) };
        if !begin {
            self.push(End, len + width);
            return;
        }
        let columns = if name == "array" { argument(&after[width..]) } else { 0 };
        self.push(Begin(name), len + width + columns);
    }
}

/// The length of a `{..}` at the start of a text, 0 if there is none.
fn argument(text: &str) -> usize {
    if !text.starts_with('{') {
        return 0;
    }
    let mut depth = 0usize;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return i + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}
