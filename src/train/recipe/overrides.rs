//! `--set a.b=c`: changes to a recipe before it is read.

use super::super::{Result, TrainError};

/// No recipe is deeper, and reading tables recurses.
const MAX_DEPTH: usize = 16;

/// Puts `a.b=c` into a table.
pub(super) fn apply(table: &mut toml::Table, argument: &str) -> Result<()> {
    let wrong = |reason: String| TrainError::Override { argument: argument.into(), reason };
    let Some((path, value)) = argument.split_once('=') else {
        return Err(wrong("expected key=value".into()));
    };
    let value = parse_value(value.trim());
    let mut keys: Vec<&str> = path.trim().split('.').collect();
    if keys.len() > MAX_DEPTH {
        return Err(wrong(format!("expected a key of at most {MAX_DEPTH} parts, got {}", keys.len())));
    }
    let Some(last) = keys.pop().filter(|k| !k.is_empty()) else {
        return Err(wrong("expected a key before =".into()));
    };
    let mut place = toml::Value::Table(std::mem::take(table));
    let mut at = &mut place;
    for key in keys {
        at = enter(at, key).map_err(&wrong)?;
    }
    let slot = enter(at, last).map_err(&wrong)?;
    *slot = value;
    if let toml::Value::Table(changed) = place {
        *table = changed;
    }
    Ok(())
}

fn enter<'a>(at: &'a mut toml::Value, key: &str) -> std::result::Result<&'a mut toml::Value, String> {
    match at {
        toml::Value::Table(table) => {
            Ok(table.entry(key).or_insert_with(|| toml::Value::Table(toml::Table::new())))
        }
        toml::Value::Array(list) => {
            let count = list.len();
            let index: usize =
                key.parse().map_err(|_| format!("expected an index below {count}, got {key:?}"))?;
            list.get_mut(index).ok_or(format!("expected an index below {count}, got {index}"))
        }
        other => Err(format!("{key:?} lies below a value of type {}", other.type_str())),
    }
}

fn parse_value(text: &str) -> toml::Value {
    let wrapped = format!("v = {text}").parse::<toml::Table>().ok().and_then(|mut t| t.remove("v"));
    wrapped.unwrap_or_else(|| toml::Value::String(text.into()))
}
