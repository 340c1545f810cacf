//! Rows as Parquet columns: each value with its definition and repetition level (Dremel, Melnik et al. 2010).
//!
//! Every field may be null, and lists have the three levels that readers agree on.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::{Map, Value};

use super::super::{DataError, Result};
use super::schema::Kind;

/// A row group is written when it has so many rows, or about so many bytes of text.
const GROUP_ROWS: usize = 16_384;
const GROUP_BYTES: usize = 32 << 20;

/// Writes rows whose fields have these kinds; gives their number.
pub(super) fn write(
    path: &Path,
    file: impl Write + Send,
    fields: &[(String, Kind)],
    rows: impl Iterator<Item = Result<Map<String, Value>>>,
) -> Result<usize> {
    let failed = |cause| DataError::Parquet { place: path.display().to_string(), cause };
    let schema = group("rows", fields, None).map_err(failed)?;
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut file = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(failed)?;
    let leaves = leaves(fields);
    let (mut group, mut bytes, mut count) = (Vec::new(), 0, 0);
    for row in rows {
        let row = row?;
        bytes += row.values().map(size).sum::<usize>();
        group.push(row);
        count += 1;
        if group.len() == GROUP_ROWS || bytes > GROUP_BYTES {
            write_group(&mut file, &leaves, &group).map_err(failed)?;
            (bytes, _) = (0, group.clear());
        }
    }
    if !group.is_empty() {
        write_group(&mut file, &leaves, &group).map_err(failed)?;
    }
    file.close().map_err(failed)?;
    Ok(count)
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(fields) => fields.values().map(size).sum(),
        _ => 8,
    }
}

fn group(
    name: &str,
    fields: &[(String, Kind)],
    repetition: Option<Repetition>,
) -> Result<Type, ParquetError> {
    let fields = fields.iter().map(|(name, kind)| column(name, kind).map(Arc::new));
    let builder = Type::group_type_builder(name).with_fields(fields.collect::<Result<_, _>>()?);
    match repetition {
        Some(repetition) => builder.with_repetition(repetition).build(),
        None => builder.build(),
    }
}

fn column(name: &str, kind: &Kind) -> Result<Type, ParquetError> {
    let leaf = |physical, logical| {
        let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        builder.with_logical_type(logical).build()
    };
    match kind {
        Kind::Bool => leaf(Physical::BOOLEAN, None),
        Kind::Int => leaf(Physical::INT64, None),
        Kind::Double => leaf(Physical::DOUBLE, None),
        Kind::List(item) => {
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(column("element", item)?)])
                .build()?;
            Type::group_type_builder(name)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(Some(LogicalType::List))
                .with_fields(vec![Arc::new(list)])
                .build()
        }
        Kind::Object(fields) if !fields.is_empty() => group(name, fields, Some(Repetition::OPTIONAL)),
        // Parquet has no groups without fields, nor columns without a type.
        Kind::Text | Kind::Unknown | Kind::Object(_) => leaf(Physical::BYTE_ARRAY, Some(LogicalType::String)),
    }
}

/// A step from a value to a part of it.
#[derive(Clone)]
enum Step {
    Field(String),
    Items,
}

/// A column: how its values are reached from the row. Its kind is in the schema.
type Leaf = Vec<Step>;

fn leaves(fields: &[(String, Kind)]) -> Vec<Leaf> {
    let mut found = Vec::new();
    collect(fields, &[], &mut found);
    found
}

fn collect(fields: &[(String, Kind)], above: &[Step], found: &mut Vec<Leaf>) {
    for (name, kind) in fields {
        let mut steps = [above, &[Step::Field(name.clone())]].concat();
        let mut kind = kind;
        while let Kind::List(item) = kind {
            steps.push(Step::Items);
            kind = item;
        }
        match kind {
            Kind::Object(fields) if !fields.is_empty() => collect(fields, &steps, found),
            _ => found.push(steps),
        }
    }
}

/// The values of a column in a group of rows, with their levels.
#[derive(Default)]
struct Shredded<'a> {
    definition: Vec<i16>,
    repetition: Vec<i16>,
    values: Vec<&'a Value>,
}

impl<'a> Shredded<'a> {
    fn push(&mut self, definition: i16, repetition: i16) {
        self.definition.push(definition);
        self.repetition.push(repetition);
    }

    /// A value that is there, at levels that count it; `lists` are around it.
    fn add(&mut self, value: &'a Value, steps: &[Step], definition: i16, repetition: i16, lists: i16) {
        match (steps.split_first(), value) {
            (None, _) => {
                self.push(definition, repetition);
                self.values.push(value);
            }
            (Some((Step::Field(name), rest)), Value::Object(fields)) => {
                self.field(fields, name, rest, definition, repetition, lists);
            }
            (Some((Step::Items, rest)), Value::Array(items)) if !items.is_empty() => {
                for (i, item) in items.iter().enumerate() {
                    let repetition = if i == 0 { repetition } else { lists + 1 };
                    match item {
                        Value::Null => self.push(definition + 1, repetition),
                        item => self.add(item, rest, definition + 2, repetition, lists + 1),
                    }
                }
            }
            _ => self.push(definition, repetition),
        }
    }

    fn field(
        &mut self,
        fields: &'a Map<String, Value>,
        name: &str,
        rest: &[Step],
        definition: i16,
        repetition: i16,
        lists: i16,
    ) {
        match fields.get(name) {
            None | Some(Value::Null) => self.push(definition, repetition),
            Some(value) => self.add(value, rest, definition + 1, repetition, lists),
        }
    }
}

fn shred<'a>(rows: &'a [Map<String, Value>], leaf: &[Step]) -> Shredded<'a> {
    let mut column = Shredded::default();
    if let Some((Step::Field(name), rest)) = leaf.split_first() {
        rows.iter().for_each(|row| column.field(row, name, rest, 0, 0, 0));
    }
    column
}

fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    leaves: &[Leaf],
    rows: &[Map<String, Value>],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for leaf in leaves {
        let Some(mut column) = group.next_column()? else { break };
        let Shredded { definition, repetition, values } = shred(rows, leaf);
        let repeated = leaf.iter().any(|step| matches!(step, Step::Items));
        let (definition, repetition) = (Some(&definition[..]), repeated.then_some(&repetition[..]));
        match column.untyped() {
            ColumnWriter::BoolColumnWriter(writer) => {
                let values: Vec<bool> = values.iter().filter_map(|value| value.as_bool()).collect();
                writer.write_batch(&values, definition, repetition)?
            }
            ColumnWriter::Int64ColumnWriter(writer) => {
                let values: Vec<i64> = values.iter().filter_map(|value| value.as_i64()).collect();
                writer.write_batch(&values, definition, repetition)?
            }
            ColumnWriter::DoubleColumnWriter(writer) => {
                let values: Vec<f64> = values.iter().filter_map(|value| value.as_f64()).collect();
                writer.write_batch(&values, definition, repetition)?
            }
            ColumnWriter::ByteArrayColumnWriter(writer) => {
                let values: Vec<ByteArray> = values.iter().map(|value| text(value)).collect();
                writer.write_batch(&values, definition, repetition)?
            }
            _ => return Err(ParquetError::General("a column of a type that no schema here has".into())),
        };
        column.close()?;
    }
    group.close()?;
    Ok(())
}

/// A text as it is; anything else in a column of texts as JSON.
fn text(value: &Value) -> ByteArray {
    match value {
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into_bytes().into(),
    }
}
