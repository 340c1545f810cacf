//! What kind of value each field has, found by looking at all rows.

use std::path::Path;

use serde_json::{Map, Value};

use super::super::{DataError, Result};

/// The kind of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// Null so far.
    Unknown,
    Bool,
    Int,
    Double,
    Text,
    List(Box<Kind>),
    Object(Vec<(String, Kind)>),
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Kind::Unknown => "null",
            Kind::Bool => "true or false",
            Kind::Int | Kind::Double => "a number",
            Kind::Text => "text",
            Kind::List(_) => "a list",
            Kind::Object(_) => "an object",
        }
    }
}

/// Two kinds that no column holds, and the field where they meet, from the innermost name.
struct Clash {
    field: Vec<String>,
    one: &'static str,
    other: &'static str,
}

/// The fields of all rows, in the order of their first appearance.
pub(super) fn infer(
    file: &Path,
    rows: impl Iterator<Item = Result<Map<String, Value>>>,
) -> Result<Vec<(String, Kind)>> {
    let mut fields = Vec::new();
    for row in rows {
        merge(&mut fields, &row?).map_err(|clash| {
            let names: String = clash.field.iter().rev().map(String::as_str).collect();
            let field = names.trim_start_matches('.').to_owned();
            DataError::Mixed { file: file.into(), field, one: clash.one, other: clash.other }
        })?;
    }
    Ok(fields)
}

fn merge(fields: &mut Vec<(String, Kind)>, row: &Map<String, Value>) -> Result<(), Clash> {
    for (name, value) in row {
        let at = fields.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            fields.push((name.clone(), Kind::Unknown));
            fields.len() - 1
        });
        widen(&mut fields[at].1, value).map_err(|mut clash| {
            clash.field.push(format!(".{name}"));
            clash
        })?;
    }
    Ok(())
}

fn widen(kind: &mut Kind, value: &Value) -> Result<(), Clash> {
    let found = match value {
        Value::Null => return Ok(()),
        Value::Bool(_) => Kind::Bool,
        Value::Number(number) if number.is_i64() => Kind::Int,
        Value::Number(_) => Kind::Double,
        Value::String(_) => Kind::Text,
        Value::Array(_) => Kind::List(Box::new(Kind::Unknown)),
        Value::Object(_) => Kind::Object(Vec::new()),
    };
    if *kind == Kind::Unknown {
        *kind = found;
    } else if !matches!((&*kind, &found), (Kind::List(_), Kind::List(_)) | (Kind::Object(_), Kind::Object(_)))
    {
        *kind = match (&*kind, found) {
            (one, other) if *one == other => return Ok(()),
            (Kind::Int | Kind::Double, Kind::Int | Kind::Double) => Kind::Double,
            (one @ (Kind::List(_) | Kind::Object(_)), other)
            | (one, other @ (Kind::List(_) | Kind::Object(_))) => {
                return Err(Clash { field: Vec::new(), one: one.name(), other: other.name() });
            }
            _ => Kind::Text,
        };
    }
    match (kind, value) {
        (Kind::List(item), Value::Array(items)) => items.iter().try_for_each(|value| {
            widen(item, value).map_err(|mut clash| {
                clash.field.push("[]".to_owned());
                clash
            })
        }),
        (Kind::Object(fields), Value::Object(row)) => merge(fields, row),
        _ => Ok(()),
    }
}
