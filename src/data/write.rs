//! Rows into files: JSON lines, and Parquet by the schema that the rows turn out to have.
//!
//! A file appears under its name when it is whole.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{DataError, Result};

mod parquet;
mod schema;

/// Writes rows; the file's extension says how. Gives the number of rows.
///
/// The rows are asked for once for JSON lines and twice for Parquet, whose schema comes first; so none are kept.
pub fn write_rows<I>(path: &Path, rows: impl Fn() -> Result<I>) -> Result<usize>
where
    I: Iterator<Item = Result<Map<String, Value>>>,
{
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let partial = partial(path);
    let failed = |cause| DataError::Write { file: path.into(), cause };
    let create = || File::create(&partial).map(BufWriter::new).map_err(failed);
    let written = match extension.as_str() {
        "jsonl" => lines(create()?, rows()?, failed),
        "parquet" => {
            let schema = schema::infer(path, rows()?)?;
            parquet::write(path, create()?, &schema, rows()?)
        }
        _ => return Err(DataError::Extension { file: path.into() }),
    };
    match written {
        Ok(count) => fs::rename(&partial, path).map_err(failed).map(|()| count),
        Err(error) => {
            // What is left of it is of no use; the first error is the one to tell.
            let _ = fs::remove_file(&partial);
            Err(error)
        }
    }
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

fn lines(
    mut file: impl Write,
    rows: impl Iterator<Item = Result<Map<String, Value>>>,
    failed: impl Fn(std::io::Error) -> DataError,
) -> Result<usize> {
    let mut count = 0;
    for row in rows {
        serde_json::to_writer(&mut file, &row?).map_err(|error| failed(error.into()))?;
        file.write_all(b"\n").map_err(&failed)?;
        count += 1;
    }
    file.flush().map_err(failed)?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::Rows;
    use super::*;

    fn written(name: &str, rows: &[Value]) -> Result<Vec<Value>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let source = || Ok(rows.iter().map(|row| Ok(row.as_object().unwrap().clone())));
        let count = write_rows(&path, source).map_err(|error| {
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing half written stays");
            error.to_string().replace(&format!("{}/", folder.path().display()), "")
        })?;
        assert_eq!((count, fs::read_dir(&folder).unwrap().count()), (rows.len(), 1));
        Ok(Rows::open(&path).unwrap().map(|row| row.unwrap().fields.into()).collect())
    }

    #[test]
    fn rows_come_back_as_they_went() {
        let rows = [
            json!({"id": "a", "n": 1, "x": 0.5, "ok": true, "messages": [{"role": "user", "content": "\\frac\n\n☃"}]}),
            json!({"id": "b", "n": -7, "x": 2.0, "ok": false, "messages": []}),
            json!({"id": "", "n": i64::MAX, "x": -1e300, "ok": true, "messages": [
                {"role": "user", "content": "?"}, {"role": "assistant", "content": "𝒳"}]}),
        ];
        assert_eq!(written("x.jsonl", &rows).unwrap(), rows);
        assert_eq!(written("x.parquet", &rows).unwrap(), rows);
    }

    #[test]
    fn what_a_row_lacks_is_null_in_parquet() {
        let rows =
            [json!({"a": 1}), json!({"b": {"c": [[1, null], null, []], "d": null}}), json!({"a": null})];
        let expected = [
            json!({"a": 1, "b": null}),
            json!({"a": null, "b": {"c": [[1, null], null, []], "d": null}}),
            json!({"a": null, "b": null}),
        ];
        assert_eq!(written("x.parquet", &rows).unwrap(), expected);
    }

    #[test]
    fn mixed_scalars_become_text_and_other_mixtures_an_error() {
        let rows = [json!({"answer": 5}), json!({"answer": "x"}), json!({"answer": 1.5})];
        let expected = [json!({"answer": "5"}), json!({"answer": "x"}), json!({"answer": "1.5"})];
        assert_eq!(written("x.parquet", &rows).unwrap(), expected);
        let rows = [json!({"a": [{"b": 1}]}), json!({"a": [{"b": [1]}]})];
        let error = written("x.parquet", &rows).unwrap_err();
        assert_eq!(
            error,
            "x.parquet: field `a[].b`: expected one kind of value in all rows, got a number and a list"
        );
        assert!(written("x.csv", &rows).unwrap_err().contains("expected a name that ends in"));
    }

    /// Any value whose kind is the same in all rows: `depth` levels of lists and objects.
    fn value(depth: u32) -> BoxedStrategy<Value> {
        let leaf = prop_oneof![Just(Value::Null), ".{0,6}".prop_map(Value::from)];
        if depth == 0 {
            return leaf.boxed();
        }
        let inner = value(depth - 1);
        let list = proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
        let object =
            (proptest::option::of(list), leaf).prop_map(|(list, text)| json!({"list": list, "text": text}));
        prop_oneof![Just(Value::Null), object].boxed()
    }

    proptest! {
        #[test]
        fn nested_rows_come_back(values in proptest::collection::vec(value(3), 1..12)) {
            let rows: Vec<Value> = values.into_iter().map(|value| json!({"id": "x", "value": value})).collect();
            let lines = written("x.jsonl", &rows).unwrap();
            prop_assert_eq!(&lines, &rows);
            let columns = written("x.parquet", &rows).unwrap();
            // A field that is null everywhere has no kind of its own below.
            prop_assert_eq!(columns.iter().map(bare).collect::<Vec<_>>(), rows.iter().map(bare).collect::<Vec<_>>());
        }
    }

    /// Without null fields.
    fn bare(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(_, value)| !value.is_null());
                kept.map(|(name, value)| (name.clone(), bare(value))).collect()
            }
            Value::Array(items) => items.iter().map(bare).collect(),
            other => other.clone(),
        }
    }
}
