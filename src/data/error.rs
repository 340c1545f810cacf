//! What can be wrong with data: each error names the place, what was expected and what is there.

use std::path::PathBuf;

use super::table::Place;

/// The result of everything that reads or makes data.
pub type Result<T, E = DataError> = std::result::Result<T, E>;

/// What can be wrong with data.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The file can't be opened.
    #[error("{}: cannot be opened", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        cause: std::io::Error,
    },
    /// The extension names no kind of table.
    #[error(
        "{}: expected a name that ends in `.jsonl` or `.parquet`; a JSON array becomes lines with \
         `jq -c '.[]'`",
        file.display()
    )]
    Extension {
        /// The file.
        file: PathBuf,
    },
    /// A file without rows.
    #[error("{}: the file holds no rows, expected at least one", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// Reading stopped.
    #[error("{place}: cannot be read")]
    Read {
        /// Where.
        place: Place,
        /// What the system says.
        #[source]
        cause: std::io::Error,
    },
    /// A line that is no row.
    #[error("{place}: expected a line of at most {limit} bytes, got a longer one; is it JSON lines?")]
    LongLine {
        /// Where.
        place: Place,
        /// The most bytes.
        limit: u64,
    },
    /// A line that isn't a JSON object.
    #[error("{place}: expected one JSON object, got {got}")]
    Json {
        /// Where.
        place: Place,
        /// What is there.
        got: String,
    },
    /// A file that isn't Parquet, or of a kind that can't be read.
    #[error("{place}: cannot be read as Parquet")]
    Parquet {
        /// Where.
        place: String,
        /// What the reader says.
        #[source]
        cause: parquet::errors::ParquetError,
    },
    /// A file can't be written.
    #[error("{}: cannot be written", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        cause: std::io::Error,
    },
    /// A field that has values of several kinds, which no column holds.
    #[error("{}: field `{field}`: expected one kind of value in all rows, got {one} and {other}", file.display())]
    Mixed {
        /// The file to be written.
        file: PathBuf,
        /// The field, with dots between names and `[]` for items.
        field: String,
        /// A kind.
        one: &'static str,
        /// Another.
        other: &'static str,
    },
    /// A row without a field that it needs.
    #[error("{place}: expected the field {fields}, got only: {found}")]
    Missing {
        /// Where.
        place: Place,
        /// The field, or those of which one would do, quoted.
        fields: String,
        /// The fields that are there.
        found: String,
    },
    /// A field that holds something else.
    #[error("{place}: field `{field}`: expected {expected}, got {got}")]
    Wrong {
        /// Where.
        place: Place,
        /// The field.
        field: String,
        /// What would be right.
        expected: String,
        /// What is there.
        got: String,
    },
    /// A generator was asked for more different problems than it has.
    #[error(
        "{generator}: expected {wanted} different problems, got {found}, which are (nearly) all it \
         has; ask for fewer or add a tier"
    )]
    Exhausted {
        /// The generator.
        generator: String,
        /// How many there are.
        found: usize,
        /// How many were asked for.
        wanted: usize,
    },
    /// A text that is no Countdown task.
    #[error("expected a Countdown task like `3 7 12 = 45`, got `{got}`")]
    Task {
        /// The text.
        got: String,
    },
    /// A text that is no sum of long arithmetic.
    #[error("expected a sum like `47*6+385+96`, got `{got}`")]
    Sum {
        /// The text.
        got: String,
    },
    /// A field of a recipe that makes no sense.
    #[error("field `{field}`: expected {expected}, got {got}")]
    Setting {
        /// The field.
        field: &'static str,
        /// What would be right.
        expected: &'static str,
        /// What is there.
        got: String,
    },
}
