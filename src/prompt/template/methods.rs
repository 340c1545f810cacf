//! Methods of Python's strings: those of the engine's Python layer, and a few that it lacks.

use minijinja::value::{Value, from_args};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat::unknown_method_callback;

/// What a template gets that calls a method.
pub(super) fn call(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let Some(text) = value.as_str() else { return unknown_method_callback(state, value, method, args) };
    match method {
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Ok(text.strip_prefix(prefix).unwrap_or(text).into())
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Ok(text.strip_suffix(suffix).unwrap_or(text).into())
        }
        "partition" => {
            let (separator,): (&str,) = from_args(args)?;
            let sides = text.split_once(not_empty(separator)?);
            Ok(list(sides.map_or([text, "", ""], |(before, after)| [before, separator, after])))
        }
        "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let sides = text.rsplit_once(not_empty(separator)?);
            Ok(list(sides.map_or(["", "", text], |(before, after)| [before, separator, after])))
        }
        "rsplit" => {
            let (separator, limit): (&str, Option<i64>) = from_args(args)?;
            rsplit(state, text, not_empty(separator)?, limit)
        }
        "title" => from_args::<()>(args).map(|()| title(text).into()),
        _ => unknown_method_callback(state, value, method, args),
    }
}

fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> Value {
    texts.into_iter().map(Value::from).collect::<Vec<_>>().into()
}

fn not_empty(separator: &str) -> Result<&str, Error> {
    let empty = || Error::new(ErrorKind::InvalidOperation, "empty separator");
    if separator.is_empty() { Err(empty()) } else { Ok(separator) }
}

fn rsplit(state: &State, text: &str, separator: &str, limit: Option<i64>) -> Result<Value, Error> {
    // No limit is a negative one.
    let most =
        limit.and_then(|limit| usize::try_from(limit).ok()).map_or(usize::MAX, |n| n.saturating_add(1));
    // The engine does not count the pieces, which take more memory than the text.
    state.consume_fuel(text.rsplitn(most, separator).count() as u64)?;
    let mut pieces: Vec<&str> = text.rsplitn(most, separator).collect();
    pieces.reverse();
    Ok(list(pieces))
}

/// A letter after anything but a letter with a case becomes a capital.
fn title(text: &str) -> String {
    let mut inside = false;
    let mut titled = String::with_capacity(text.len());
    for letter in text.chars() {
        match inside {
            true => titled.extend(letter.to_lowercase()),
            false => titled.extend(letter.to_uppercase()),
        }
        inside = letter.is_lowercase() || letter.is_uppercase();
    }
    titled
}

#[cfg(test)]
mod tests {
    use super::super::{ChatTemplate, Message, TemplateError};
    use crate::prompt::Tokenizer;

    fn with(expression: &str) -> Result<String, TemplateError> {
        let source = format!("{{{{ messages[0].content{expression} }}}}");
        let template = ChatTemplate::new(&source, &Tokenizer::characters())?;
        template.render(&[Message::user("a,b,,c's")], true)
    }

    #[test]
    fn they_do_as_in_python() {
        for (expression, expected) in [
            (".removeprefix('a,') ~ '|'", "b,,c's|"),
            (".removeprefix('b')", "a,b,,c's"),
            (".removesuffix(\"'s\")", "a,b,,c"),
            (".partition(',') | join('|')", "a|,|b,,c's"),
            (".partition(';') | join('|')", "a,b,,c's||"),
            (".rpartition(',') | join('|')", "a,b,|,|c's"),
            (".rpartition(';') | join('|')", "||a,b,,c's"),
            (".rsplit(',', 1) | join('|')", "a,b,|c's"),
            (".rsplit(',') | join('|')", "a|b||c's"),
            (".rsplit(',', -1) | length", "4"),
            (".rsplit(',', 0) | length", "1"),
            (".title()", "A,B,,C'S"),
            (".split(',')[-1]", "c's"),
        ] {
            assert_eq!(with(expression).unwrap(), expected, "{expression}");
        }
    }

    #[test]
    fn misuse_is_refused() {
        for (expression, reason) in [
            (".rsplit('')", "empty separator"),
            (".partition()", "missing argument"),
            (".title(1)", "too many arguments"),
            (".swapcase()", "has no method named swapcase"),
        ] {
            let error = with(expression).unwrap_err().to_string();
            assert!(error.contains(reason), "{expression}: {error}");
        }
        let long = "{{ ('ab' * 2000000).rsplit('a') | length }}";
        let error = ChatTemplate::new(long, &Tokenizer::characters()).unwrap().render(&[], true).unwrap_err();
        assert!(error.to_string().contains("expected at most 1000000 steps"), "{error}");
    }
}
