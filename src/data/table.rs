//! Rows out of files, one at a time: JSON lines and Parquet, both as JSON objects.
//!
//! A row knows where it stands, so that whatever is wrong with it can be named with file and line.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::reader::SerializedFileReader;
use parquet::record::{Field, Row as ParquetRow, reader::RowIter};
use serde_json::{Map, Value};

use super::{DataError, Result};

/// A longer line is no row but another kind of file (or one without line ends), and reading it
/// would fill the memory.
const LONGEST_LINE: u64 = 16 << 20;

/// Where a row stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    file: Arc<Path>,
    unit: &'static str,
    number: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} {}", self.file.display(), self.unit, self.number)
    }
}

/// One row of a file.
#[derive(Clone, Debug)]
pub struct Row {
    /// Where it stands.
    pub place: Place,
    /// What it says.
    pub fields: Map<String, Value>,
}

impl Row {
    #[cfg(test)]
    pub(crate) fn from_json(value: Value) -> Self {
        let Value::Object(fields) = value else { panic!("a row is an object") };
        Row { place: Place { file: Path::new("rows.jsonl").into(), unit: "line", number: 7 }, fields }
    }

    /// A field, if the row has it and it isn't null. Data sets write `ID` and `Answer`, too: where
    /// no name fits exactly, one that differs in its capitals does.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let loosely = || self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        let value = self.fields.get(name).or_else(|| loosely().map(|(_, value)| value));
        value.filter(|value| !value.is_null())
    }

    /// A field's text, if the row has the field; something else than a text there is an error.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, "text", &shown(other))),
        }
    }

    /// The same for fields in which data sets write a number as well; whole numbers lose a `.0`.
    pub fn text_or_number(&self, name: &str) -> Result<Option<String>> {
        match self.get(name) {
            Some(Value::Number(number)) => {
                let text = number.to_string();
                Ok(Some(text.strip_suffix(".0").unwrap_or(&text).to_owned()))
            }
            _ => Ok(self.text(name)?.map(str::to_owned)),
        }
    }

    /// The error for a field that the row needs and doesn't have.
    /// Several names: one of these fields would do.
    pub(super) fn missing(&self, names: &[&str]) -> DataError {
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let found = self.fields.keys().cloned().collect::<Vec<_>>().join(", ");
        DataError::Missing { place: self.place.clone(), fields: quoted.join(" or "), found }
    }

    /// The error for a field that holds something else than expected.
    pub(super) fn wrong(&self, field: &str, expected: &str, got: &str) -> DataError {
        let (field, expected, got) = (field.into(), expected.into(), got.into());
        DataError::Wrong { place: self.place.clone(), field, expected, got }
    }

    /// The file's name without folder and extension.
    pub(super) fn stem(&self) -> String {
        self.place.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The number of the line or row, from 1.
    pub(super) fn number(&self) -> usize {
        self.place.number
    }
}

/// The beginning of a value, for an error message.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// The rows of a file, read as they are asked for. A file without rows gives one error.
pub struct Rows {
    file: Arc<Path>,
    kind: Kind,
    number: usize,
    found: bool,
}

enum Kind {
    Lines(BufReader<File>),
    Parquet(RowIter<'static>),
}

impl Rows {
    /// Opens a file; its extension says what it is.
    pub fn open(path: &Path) -> Result<Self> {
        let open = || File::open(path).map_err(|cause| DataError::Open { file: path.into(), cause });
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let kind = match extension.as_str() {
            "jsonl" => Kind::Lines(BufReader::new(open()?)),
            "parquet" => {
                let file = open()?;
                let reader = guarded(|| SerializedFileReader::new(file))
                    .map_err(|cause| DataError::Parquet { place: path.display().to_string(), cause })?;
                Kind::Parquet(reader.into_iter())
            }
            _ => return Err(DataError::Extension { file: path.into() }),
        };
        Ok(Self { file: path.into(), kind, number: 0, found: false })
    }

    fn place(&self) -> Place {
        let unit = match self.kind {
            Kind::Lines(_) => "line",
            Kind::Parquet(_) => "row",
        };
        Place { file: self.file.clone(), unit, number: self.number }
    }

    /// The next row's fields, or none at the end of the file.
    fn read(&mut self) -> Result<Option<Map<String, Value>>> {
        loop {
            self.number += 1;
            let place = self.place();
            match &mut self.kind {
                Kind::Parquet(rows) => {
                    let row = guarded(|| rows.next().transpose())
                        .map_err(|cause| DataError::Parquet { place: place.to_string(), cause })?;
                    return Ok(row.map(object));
                }
                Kind::Lines(reader) => match line(reader, &place)? {
                    None => return Ok(None),
                    Some(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                    Some(line) => return parse(&line, &place).map(Some),
                },
            }
        }
    }
}

impl Iterator for Rows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        let fields = self.read();
        let empty = !self.found;
        self.found = true;
        match fields {
            Ok(None) if empty => Some(Err(DataError::Empty { file: PathBuf::from(self.file.as_ref()) })),
            fields => {
                let place = self.place();
                fields.transpose().map(|fields| Ok(Row { place, fields: fields? }))
            }
        }
    }
}

fn line(reader: &mut impl BufRead, place: &Place) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
    let read = read.map_err(|cause| DataError::Read { place: place.clone(), cause })?;
    if read as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
        return Err(DataError::LongLine { place: place.clone(), limit: LONGEST_LINE });
    }
    Ok((read > 0).then_some(line))
}

fn parse(line: &[u8], place: &Place) -> Result<Map<String, Value>> {
    // Files written on Windows may begin with a byte order mark.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let got = match serde_json::from_slice(line) {
        Ok(Value::Object(fields)) => return Ok(fields),
        Ok(other) => shown(&other),
        Err(error) => {
            // serde_json counts lines, too, but sees only this one.
            let text = error.to_string();
            let reason = text.split(" at line ").next().unwrap_or(&text);
            format!("{reason} at column {}", error.column())
        }
    };
    Err(DataError::Json { place: place.clone(), got })
}

/// The `parquet` crate panics on some damaged files, as where a column starts before the file does.
fn guarded<T>(step: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let panicked = |_| Err(ParquetError::General("the file is damaged: the reader panicked on it".into()));
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(panicked)
}

fn object(row: ParquetRow) -> Map<String, Value> {
    row.into_columns().into_iter().map(|(name, field)| (name, value(&field))).collect()
}

/// A Parquet field as JSON. Dates and the like become text: no row shape asks for them.
fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(x) => (*x).into(),
        Field::Byte(x) => (*x).into(),
        Field::Short(x) => (*x).into(),
        Field::Int(x) => (*x).into(),
        Field::Long(x) => (*x).into(),
        Field::UByte(x) => (*x).into(),
        Field::UShort(x) => (*x).into(),
        Field::UInt(x) => (*x).into(),
        Field::ULong(x) => (*x).into(),
        Field::Float(x) => (*x).into(),
        Field::Double(x) => (*x).into(),
        Field::Str(text) => text.as_str().into(),
        // Some writers don't mark their texts as such.
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into(),
        Field::Group(row) => {
            row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
        }
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        Field::MapInternal(map) => {
            map.entries().iter().map(|(key, field)| (key_text(key), value(field))).collect()
        }
        other => other.to_string().into(),
    }
}

fn key_text(key: &Field) -> String {
    match value(key) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use parquet::basic::{Compression, ZstdLevel};
    use parquet::column::writer::ColumnWriter;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use serde_json::json;

    use super::*;

    /// All rows of a file with this content, or its first error without the folder's name.
    fn read(name: &str, content: &[u8]) -> Result<Vec<Row>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let rows = Rows::open(&path).and_then(Iterator::collect);
        rows.map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
    }

    #[test]
    fn lines_become_rows_with_their_numbers() {
        let content = "\u{feff}{\"a\": 1}\r\n\n  \n{\"a\": \"é\\n\\n\\\\frac\", \"B\": null}";
        let rows = read("x.jsonl", content.as_bytes()).unwrap();
        let places: Vec<usize> = rows.iter().map(Row::number).collect();
        assert_eq!(places, [1, 4]);
        assert_eq!(rows[0].text_or_number("A").unwrap().as_deref(), Some("1"));
        assert_eq!(rows[1].text("a").unwrap(), Some("é\n\n\\frac"));
        assert!(rows[1].get("B").is_none(), "null is no value");
        assert_eq!(rows[1].stem(), "x");
    }

    #[test]
    fn what_is_no_row_is_named_with_its_line() {
        let error = |content: &[u8]| read("x.jsonl", content).unwrap_err();
        assert_eq!(error(b"{}\n[1]\n"), "x.jsonl, line 2: expected one JSON object, got [1]");
        let broken = error(b"{\"a\": 1}\n\n{\"a\": \n");
        assert!(broken.starts_with("x.jsonl, line 3: expected one JSON object, got EOF"), "{broken}");
        assert!(
            error(b"{\"a\": \"\xff\"}").contains("line 1: expected one JSON object, got invalid unicode")
        );
        for empty in ["", "\n \n"] {
            assert_eq!(error(empty.as_bytes()), "x.jsonl: the file holds no rows, expected at least one");
        }
        let long = vec![b' '; LONGEST_LINE as usize + 1];
        assert!(error(&long).starts_with("x.jsonl, line 1: expected a line of at most 16777216 bytes"));
    }

    #[test]
    fn what_is_no_table_is_named() {
        let extension = read("x.json", b"[]").unwrap_err();
        assert!(extension.starts_with("x.json: expected a name that ends in `.jsonl` or `.parquet`"));
        assert_eq!(read("x.parquet", b"no").unwrap_err(), "x.parquet: cannot be read as Parquet");
        let absent = Rows::open(Path::new("absent.jsonl")).err().unwrap();
        assert_eq!(absent.to_string(), "absent.jsonl: cannot be opened");
    }

    #[test]
    fn fields_of_another_kind_are_named() {
        let row = Row::from_json(json!({"a": [1], "b": " ", "c": 2.5, "d": 70.0}));
        let error = |name| row.text(name).unwrap_err().to_string();
        assert_eq!(error("a"), "rows.jsonl, line 7: field `a`: expected text, got [1]");
        assert_eq!(error("b"), "rows.jsonl, line 7: field `b`: expected text, got \" \"");
        assert_eq!(row.text_or_number("c").unwrap().as_deref(), Some("2.5"));
        assert_eq!(row.text_or_number("d").unwrap().as_deref(), Some("70"));
        assert_eq!(
            row.missing(&["x", "y"]).to_string(),
            "rows.jsonl, line 7: expected the field `x` or `y`, got only: a, b, c, d"
        );
    }

    #[test]
    fn parquet_rows_are_json_objects_too() {
        for compression in [Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())] {
            let rows =
                read("x.parquet", &parquet(compression, &["1 + 1?", "Ist √2 > 1?\n\nBeweis!"])).unwrap();
            assert_eq!(rows[1].place.to_string().rsplit('/').next(), Some("x.parquet, row 2"));
            let fields: Vec<Value> = rows.into_iter().map(|row| row.fields.into()).collect();
            let expected = |text: &str, level: Value| json!({"level": level, "prompt": [{"role": "system", "content": "-"}, {"role": "user", "content": text}]});
            assert_eq!(
                fields,
                [expected("1 + 1?", json!(3)), expected("Ist √2 > 1?\n\nBeweis!", json!(null))]
            );
        }
        let empty = read("x.parquet", &parquet(Compression::SNAPPY, &[])).unwrap_err();
        assert_eq!(empty, "x.parquet: the file holds no rows, expected at least one");
    }

    #[test]
    fn a_column_before_the_file_is_an_error() {
        let mut file = parquet(Compression::SNAPPY, &["1 + 1?"]);
        // In the footer: field 11 of a column (two after field 9, an i64), its dictionary's offset 4 as a zigzag number.
        let end = file.len() - 8;
        let footer = end - u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
        let offset = file[footer..].windows(2).position(|bytes| bytes == [0x26, 0x08]).unwrap();
        file[footer + offset + 1] = 0x07;
        assert_eq!(read("x.parquet", &file).unwrap_err(), "x.parquet, row 1: cannot be read as Parquet");
    }

    /// A file of chat prompts: each a system message `-` and the given one. Only the first row has a
    /// level.
    fn parquet(compression: Compression, prompts: &[&str]) -> Vec<u8> {
        let schema = "message rows {
            OPTIONAL INT64 level;
            REQUIRED group prompt (LIST) { REPEATED group list { REQUIRED group element {
                REQUIRED BYTE_ARRAY role (UTF8); REQUIRED BYTE_ARRAY content (UTF8); } } }
        }";
        let properties = WriterProperties::builder().set_compression(compression).build();
        let mut file = SerializedFileWriter::new(
            Vec::new(),
            Arc::new(parse_message_type(schema).unwrap()),
            Arc::new(properties),
        )
        .unwrap();
        let n = prompts.len();
        let mut rows = file.next_row_group().unwrap();
        let mut texts = [["system", "user"].repeat(n), prompts.iter().flat_map(|p| ["-", p]).collect()]
            .map(|texts: Vec<&str>| texts.into_iter().map(Into::into).collect::<Vec<_>>())
            .into_iter();
        while let Some(mut column) = rows.next_column().unwrap() {
            match column.untyped() {
                ColumnWriter::Int64ColumnWriter(level) => {
                    let present: Vec<i16> = (0..n).map(|row| i16::from(row == 0)).collect();
                    level.write_batch(&[3][..n.min(1)], Some(&present), None).unwrap();
                }
                ColumnWriter::ByteArrayColumnWriter(text) => {
                    let (present, same_row) = (vec![1; 2 * n], [0, 1].repeat(n));
                    text.write_batch(&texts.next().unwrap(), Some(&present), Some(&same_row)).unwrap();
                }
                _ => unreachable!("the schema has no other columns"),
            }
            column.close().unwrap();
        }
        rows.close().unwrap();
        file.into_inner().unwrap()
    }
}
