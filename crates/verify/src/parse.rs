//! Text to [`Answer`]: LaTeX and plain text, within bounds.
//!
//! ```text
//! text ── clean ends ──> tokens ── structure (lists, sets, relations) ── expr (numbers, sums) ──> Answer
//! ```
//! What is no mathematics is [`Answer::Text`]. Where one spelling has two readings, such as `1,22`, the
//! answer has both. Time is linear in the text; nothing is computed here, but numbers that could not be
//! computed later, such as `9^{9^{9^9}}`, are refused at once.

mod apply;
mod cursor;
mod expr;
mod matrix;
mod names;
mod number;
mod size;
mod spelling;
mod structure;
mod symbol;
mod time;
mod token;
mod unicode;
mod unit;
mod value;
mod words;

use crate::answer::{Answer, Expr};
pub(crate) use size::{MAX_BITS, MAX_FACTORIAL};
use structure::Structure;
use token::{Kind, Token};

/// Longer answers are not read.
const MAX_BYTES: usize = 8192;

/// Why a text is no readable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// There is nothing in it.
    #[error("empty")]
    Empty,
    /// Longer, deeper or with more digits than is read.
    #[error("too large: {what} beyond {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// It is neither mathematics nor words.
    #[error("cannot be read: {0}")]
    Malformed(String),
}

/// Why a part can't be read in the way it was tried.
#[derive(Debug)]
enum Fault {
    /// Try another reading.
    Unexpected,
    /// No reading will do.
    Fatal(ParseError),
}

impl From<ParseError> for Fault {
    fn from(error: ParseError) -> Fault {
        Fault::Fatal(error)
    }
}

/// Reads an answer (not a whole response): perhaps between `$`, in `\boxed`, with a final dot.
///
/// # Errors
/// If there is nothing, or more than the bounds allow.
pub fn answer(text: &str) -> Result<Answer, ParseError> {
    if text.len() > MAX_BYTES {
        return Err(ParseError::TooLarge { what: "length", limit: MAX_BYTES });
    }
    let text = unicode::fold(text);
    let text = clean_ends(&text);
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    if text.len() < 19
        && let Ok(small) = text.parse::<i64>()
    {
        return Ok(Answer::value(Expr::integer(small)));
    }
    let answer = read(text)?;
    size::check(&answer)?;
    Ok(answer)
}

fn read(text: &str) -> Result<Answer, ParseError> {
    if words::is_prose(text) {
        return words_of(text);
    }
    if let Some(inner) = only_text(text) {
        return answer(inner);
    }
    let tokens = token::tokens(text)?;
    let tokens = join_groups(tokens, text);
    let mut readings = Vec::new();
    for reading in comma_readings(&tokens) {
        let tokens = reading.apply(&tokens, text);
        match (Structure { source: text }).answer(&tokens) {
            Ok(answer) => readings.push(answer),
            Err(Fault::Unexpected) => {}
            Err(Fault::Fatal(error)) => return Err(error),
        }
    }
    readings.dedup();
    if readings.len() > 1 && readings.iter().any(|reading| !matches!(reading, Answer::Text(_))) {
        readings.retain(|reading| !matches!(reading, Answer::Text(_)));
    }
    match readings.len() {
        0 => words_of(text),
        1 => Ok(with_word(readings.remove(0), text)),
        _ => Ok(Answer::Either(readings)),
    }
}

fn words_of(text: &str) -> Result<Answer, ParseError> {
    words::text(text).map(Answer::Text).ok_or_else(|| ParseError::Malformed(text.chars().take(40).collect()))
}

/// A lone word of few letters may be a word or a product: `odd`, `abc`.
fn with_word(answer: Answer, text: &str) -> Answer {
    let letters = text.chars().count();
    if !(3..=4).contains(&letters)
        || !text.chars().all(char::is_alphabetic)
        || matches!(answer, Answer::Text(_))
    {
        return answer;
    }
    let Some(word) = words::text(text) else { return answer };
    let variables = text.chars().all(|c| "abcdkmnpqrstuvwxyz".contains(c));
    let word = Answer::Text(word);
    Answer::Either(if variables { vec![answer, word] } else { vec![word, answer] })
}

/// The content of one `\text{..}` that is everything.
fn only_text(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('\\')?;
    let name = ["textbf", "textnormal", "textit", "textrm", "text", "mbox", "mathbf", "mathrm"];
    let rest = name.iter().find_map(|name| rest.strip_prefix(name))?.trim_start();
    let inner = rest.strip_prefix('{')?.strip_suffix('}')?;
    (!inner.contains(['{', '}', '\\'])).then_some(inner)
}

const DELIMITERS: [(&str, &str); 11] = [
    ("$$", "$$"),
    ("$", "$"),
    ("\\(", "\\)"),
    ("\\[", "\\]"),
    ("**", "**"),
    ("*", "*"),
    ("'", "'"),
    ("`", "`"),
    ("\\boxed{", "}"),
    ("\\fbox{", "}"),
    ("\"", "\""),
];

/// Without spaces, delimiters of mathematics and final punctuation.
fn clean_ends(text: &str) -> &str {
    let mut text = text.trim();
    loop {
        let before = text.len();
        // 0.333... ends in dots that say something.
        if !text.ends_with("...") {
            let spaced =
                ["\\,", "\\;", "\\:", "\\!", "\\ "].iter().find_map(|space| text.strip_suffix(space));
            text = spaced.unwrap_or(text.trim_end_matches(['.', ',', ';', '。', '，'])).trim();
        }
        for (open, close) in DELIMITERS {
            let inner = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
            if let Some(inner) = inner.filter(|inner| is_one(inner, open)) {
                text = inner.trim();
            }
        }
        if text.len() == before {
            return text;
        }
    }
}

/// Do the delimiters around this belong to each other?
fn is_one(inner: &str, open: &str) -> bool {
    if !open.ends_with('{') {
        return !inner.contains(open) && !inner.ends_with('\\');
    }
    let mut depth = 0i32;
    inner.bytes().all(|b| {
        depth += i32::from(b == b'{') - i32::from(b == b'}');
        depth >= 0
    })
}

/// How a comma between digits is read.
#[derive(Clone, Copy, PartialEq)]
enum Comma {
    /// `1,234` is one number.
    Thousands,
    /// `1,22` is a decimal.
    Decimal,
    /// It separates.
    List,
}

/// The readings that the commas between digits allow.
fn comma_readings(tokens: &[Token<'_>]) -> Vec<Comma> {
    let commas: Vec<usize> = commas(tokens).collect();
    let Some(&first) = commas.first() else { return vec![Comma::List] };
    let digits = |at: usize| match tokens[at].kind {
        Kind::Digits(digits) => digits,
        _ => "",
    };
    let leading = digits(first - 1);
    let thousands =
        commas.iter().all(|&at| digits(at + 1).len() == 3) && leading.len() <= 3 && !leading.starts_with('0');
    let points = tokens.iter().filter(|t| matches!(t.kind, Kind::Mark(',' | '.'))).count();
    if thousands {
        vec![Comma::Thousands, Comma::List]
    } else if commas.len() == 1 && points == 1 {
        vec![Comma::List, Comma::Decimal]
    } else {
        vec![Comma::List]
    }
}

/// Commas right between digits and outside brackets.
fn commas<'t>(tokens: &'t [Token<'_>]) -> impl Iterator<Item = usize> + 't {
    let mut depth = 0;
    let digits = |at: usize| matches!(tokens.get(at), Some(Token { kind: Kind::Digits(_), .. }));
    (0..tokens.len()).filter(move |&at| {
        depth += match tokens[at].kind {
            Kind::Mark('{') => 0, // `{,}` and `{1,2,3}`
            Kind::Mark('}') => 0,
            kind => cursor::step(kind),
        };
        depth == 0
            && tokens[at].kind == Kind::Mark(',')
            && at > 0
            && digits(at - 1)
            && digits(at + 1)
            && !tokens[at].spaced
            && !tokens[at + 1].spaced
    })
}

impl Comma {
    fn apply<'a>(self, tokens: &[Token<'a>], text: &'a str) -> Vec<Token<'a>> {
        let mut out = tokens.to_vec();
        let at: Vec<usize> = if self == Comma::List { Vec::new() } else { commas(tokens).collect() };
        for at in at.into_iter().rev() {
            if self == Comma::Decimal {
                out[at].kind = Kind::Mark('.');
            } else {
                merge(&mut out, at - 1, at + 1, text);
            }
        }
        out
    }
}

/// Makes one numeral of the tokens from one to another.
fn merge<'a>(tokens: &mut Vec<Token<'a>>, from: usize, to: usize, text: &'a str) {
    let (start, end) = (tokens[from].start, tokens[to].end);
    tokens[from] = Token { kind: Kind::Grouped(&text[start..end]), spaced: tokens[from].spaced, start, end };
    tokens.drain(from + 1..=to);
}

/// Joins groups of three digits that only space, or a comma set tight, separates: `1 000`, `1{,}000`,
/// `1,\!000`.
fn join_groups<'a>(tokens: Vec<Token<'a>>, text: &'a str) -> Vec<Token<'a>> {
    let mut out: Vec<Token<'a>> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        let joins = match (token.kind, out.len().checked_sub(1).map(|last| out[last].kind)) {
            (Kind::Digits(group), Some(Kind::Digits(_) | Kind::Grouped(_))) if group.len() == 3 => {
                let fraction = out.len() > 1
                    && matches!(
                        out[out.len() - 2].kind,
                        Kind::Mark('.' | '_' | '^') | Kind::Command("frac" | "sqrt")
                    );
                !fraction
                    && begins_groups(&out[out.len() - 1])
                    && rest.peek().is_none_or(|next| next.kind != Kind::Mark('/'))
            }
            _ => false,
        };
        out.push(token);
        if joins {
            let at = out.len() - 2;
            merge(&mut out, at, at + 1, text);
            continue;
        }
        join_tight_comma(&mut out, text);
    }
    out
}

fn begins_groups(token: &Token<'_>) -> bool {
    match token.kind {
        Kind::Digits(digits) => digits.len() <= 3 && !digits.starts_with('0'),
        _ => true,
    }
}

/// `1{,}000` and `1,\!000` at the end of the tokens.
fn join_tight_comma<'a>(out: &mut Vec<Token<'a>>, text: &'a str) {
    let Some(Token { kind: Kind::Digits(group), end, .. }) = out.last().copied() else { return };
    if group.len() != 3 {
        return;
    }
    let number =
        out.iter().rposition(|t| matches!(t.kind, Kind::Digits(_) | Kind::Grouped(_)) && t.end < end);
    let Some(number) = number.filter(|&at| begins_groups(&out[at])) else { return };
    let gap = &text[out[number].end..end - group.len()];
    let tight: String = gap.chars().filter(|c| !c.is_whitespace()).collect();
    if matches!(tight.as_str(), "{,}" | ",\\!" | ",\\!\\!" | "{,\\!}" | "\\!,\\!" | "{\\,}" | "\\,") {
        let last = out.len() - 1;
        merge(out, number, last, text);
    }
}
