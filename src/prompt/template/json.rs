//! `tojson` as transformers defines it: Python's `json.dumps`, with nothing escaped for HTML.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
use serde::Serialize;
use serde_json::Value as Json;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// The deepest value that is written.
const MAX_DEPTH: usize = 32;

/// The longest separator in bytes: it is written once an item, for which nobody pays.
const MAX_SEPARATOR: usize = 8;

/// The filter, with the options that transformers gives it.
pub(super) fn tojson(state: &State, value: &Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let ascii: Option<bool> = options.get("ensure_ascii")?;
    let sorted: Option<bool> = options.get("sort_keys")?;
    options.assert_all_used()?;
    let mut json = to_json(state, value, MAX_DEPTH)?;
    if sorted.unwrap_or(false) {
        json.sort_all_objects();
    }
    let usual = || vec![if indent.is_some() { "," } else { ", " }.into(), ": ".into()];
    let text = match (indent, separators.unwrap_or_else(usual).as_slice()) {
        (None, [comma, colon]) if comma.len().max(colon.len()) <= MAX_SEPARATOR => {
            written(&json, Separators { comma, colon })?
        }
        (Some(width), [comma, colon]) if comma == "," && colon == ": " => {
            written(&json, PrettyFormatter::with_indent(" ".repeat(width.min(8)).as_bytes()))?
        }
        _ => return Err(invalid("tojson: expected two short separators, with an indent (',', ': ')")),
    };
    Ok(if ascii.unwrap_or(false) { escaped(&text) } else { text })
}

fn invalid(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason.into())
}

fn written(json: &Json, style: impl Formatter) -> Result<String, Error> {
    let mut text = Vec::new();
    json.serialize(&mut Serializer::with_formatter(&mut text, style)).map_err(|e| invalid(e.to_string()))?;
    String::from_utf8(text).map_err(|e| invalid(e.to_string()))
}

/// Other characters than ASCII stand only in strings, so all can be escaped in one go.
fn escaped(text: &str) -> String {
    let mut units = [0; 2];
    let mut ascii = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_ascii() {
            true => ascii.push(letter),
            false => {
                ascii.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")))
            }
        }
    }
    ascii
}

/// The engine charges a template for the result alone, so what leads to it (a value may hold another twice) is
/// paid for here.
fn to_json(state: &State, value: &Value, depth: usize) -> Result<Json, Error> {
    let too_deep = || invalid(format!("tojson: nested deeper than {MAX_DEPTH}"));
    let inner = |value: &Value| to_json(state, value, depth.checked_sub(1).ok_or_else(too_deep)?);
    state.consume_fuel(1 + value.as_str().map_or(0, str::len) as u64 / 64)?;
    let wrong = || invalid(format!("no JSON for a {}", value.kind()));
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => Json::Null,
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::Number => match value.as_i64() {
            Some(number) if value.is_integer() => number.into(),
            _ => f64::try_from(value.clone())?.into(),
        },
        ValueKind::String => value.as_str().ok_or_else(wrong)?.into(),
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter()?.map(|item| inner(&item)).collect::<Result<Vec<_>, _>>()?.into()
        }
        ValueKind::Map => {
            let entry = |key: Value| Ok((key.to_string(), inner(&value.get_item(&key)?)?));
            Json::Object(value.try_iter()?.map(entry).collect::<Result<_, Error>>()?)
        }
        _ => return Err(wrong()),
    })
}

/// What stands between the items of a list or object, and between a key and its value.
struct Separators<'a> {
    comma: &'a str,
    colon: &'a str,
}

impl Formatter for Separators<'_> {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { out.write_all(self.comma.as_bytes()) }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.begin_array_value(out, first)
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        out.write_all(self.colon.as_bytes())
    }
}
