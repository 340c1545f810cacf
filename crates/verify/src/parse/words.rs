//! Answers in words.

/// Words in one spelling: lower case, single spaces, no layout and no punctuation at the ends.
/// `None` if there is no letter or digit.
pub(super) fn text(source: &str) -> Option<String> {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
                let (name, after) = rest.split_at(letters);
                if is_font(name) {
                    rest = after;
                } else if letters == 0 {
                    rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
                    out.push(' ');
                } else {
                    out.push('\\');
                }
            }
            '{' | '}' | '$' | '~' | '"' | '`' | '*' | '“' | '”' => out.push(' '),
            c if c.is_whitespace() => out.push(' '),
            c => out.extend(c.to_lowercase()),
        }
    }
    let words: Vec<&str> = out.split_whitespace().collect();
    let text = words.join(" ");
    let text = text
        .trim_matches(|c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '\'') || c.is_whitespace());
    let text = text.strip_prefix("the ").unwrap_or(text);
    text.chars().any(char::is_alphanumeric).then(|| text.to_owned())
}

fn is_font(name: &str) -> bool {
    matches!(
        name,
        "text"
            | "mbox"
            | "textbf"
            | "textit"
            | "textrm"
            | "textnormal"
            | "mathrm"
            | "mathbf"
            | "rm"
            | "bf"
            | "operatorname"
    )
}

/// Is the whole text words and nothing else? Its letters are then no product of variables.
pub(super) fn is_prose(source: &str) -> bool {
    let mut words = 0;
    // "Softball, Kickball" is a list.
    let names = source.contains(',') && source.split(',').all(|item| item.split_whitespace().count() <= 2);
    if names || source.contains('\\') {
        return false;
    }
    for word in source.split_whitespace() {
        let bare = word.trim_matches(|c: char| c.is_ascii_punctuation());
        let letters = bare.chars().count();
        if letters == 0 || !bare.chars().all(|c| c.is_alphabetic() || c == '-' || c == '\'') {
            return false;
        }
        words += usize::from(letters > 1 && !matches!(bare, "and" | "or"));
    }
    words > 1
}
