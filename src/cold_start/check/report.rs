//! What a whole set is: counts, rows by kind of fault, and examples.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::stream::in_order;
use super::{Answer, CheckOptions, Fault, FaultKind, Inspection, inspect, mend};
use crate::data::{Demonstration, RESPONSES, Result, Row, Rows, asked, demonstration};

/// Examples kept of each kind.
const EXAMPLES: usize = 3;

/// What the check of a set says. It grows with the faults alone, by a row id each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How many rows there are.
    pub rows: usize,
    /// How many have at least one block.
    pub with_block: usize,
    /// How many have tags that follow the grammar, or none.
    pub well_formed: usize,
    /// How many end in the gold answer.
    pub correct: usize,
    /// How many have a gold answer that can be read.
    pub judged: usize,
    /// The ids of the rows with faults, by kind.
    pub faults: BTreeMap<FaultKind, Vec<String>>,
    /// The ids of the rows with warnings, by kind.
    pub warnings: BTreeMap<FaultKind, Vec<String>>,
    /// How many rows have so many blocks.
    pub blocks_per_response: BTreeMap<usize, usize>,
    /// How many blocks have so many paths.
    pub paths_per_block: BTreeMap<usize, usize>,
    /// The first rows of each kind, with the place and the text there.
    pub examples: BTreeMap<FaultKind, Examples>,
}

/// The first rows with a kind of fault.
pub type Examples = Vec<(String, Fault)>;

impl Report {
    /// Counts one row.
    pub fn add(&mut self, id: &str, inspection: &Inspection) {
        self.rows += 1;
        self.with_block += usize::from(inspection.blocks() > 0);
        self.well_formed += usize::from(inspection.well_formed());
        self.correct += usize::from(inspection.correct == Some(true));
        self.judged += usize::from(inspection.correct.is_some());
        *self.blocks_per_response.entry(inspection.blocks()).or_default() += 1;
        for &paths in &inspection.paths {
            *self.paths_per_block.entry(paths).or_default() += 1;
        }
        let mut seen = Vec::new();
        for fault in &inspection.faults {
            if !seen.contains(&fault.kind) {
                seen.push(fault.kind);
                self.note(id, fault);
            }
        }
    }

    fn note(&mut self, id: &str, fault: &Fault) {
        let rows = if fault.kind.is_warning() { &mut self.warnings } else { &mut self.faults };
        rows.entry(fault.kind).or_default().push(id.to_owned());
        let examples = self.examples.entry(fault.kind).or_default();
        if examples.len() < EXAMPLES {
            examples.push((id.to_owned(), fault.clone()));
        }
    }
}

/// Checks a file, on all cores.
pub fn check_file(path: &Path, response_field: Option<&str>, options: &CheckOptions) -> Result<Report> {
    let mut report = Report::default();
    let check = |row: Row| {
        let Demonstration { problem, response, .. } = read(&row, response_field)?;
        let prompt = prompt(&row);
        let answer = Answer { prompt: prompt.as_deref(), ..Answer::new(&problem, &response) };
        Ok((inspect(&answer, options), problem.id))
    };
    in_order(Rows::open(path)?, check, |(inspection, id)| report.add(&id, &inspection))?;
    Ok(report)
}

/// The rows of a file that have no fault once repaired, one after the other, with what was repaired. A row whose gold
/// answer can't be read stays; warnings don't count.
pub fn clean_rows<'a>(
    path: &Path,
    response_field: Option<&'a str>,
    options: &'a CheckOptions,
) -> Result<impl Iterator<Item = Result<Map<String, Value>>> + use<'a>> {
    Ok(Rows::open(path)?
        .filter_map(move |row| row.and_then(|row| clean(row, response_field, options)).transpose()))
}

fn clean(
    mut row: Row,
    response_field: Option<&str>,
    options: &CheckOptions,
) -> Result<Option<Map<String, Value>>> {
    let Demonstration { problem, response, .. } = read(&row, response_field)?;
    let prompt = prompt(&row);
    let mended = mend(&Answer { prompt: prompt.as_deref(), ..Answer::new(&problem, &response) }, options);
    if mended.inspection.faults.iter().any(|fault| !fault.kind.is_warning()) {
        return Ok(None);
    }
    if mended.repairs.is_empty() {
        return Ok(Some(row.fields));
    }
    set_response(&mut row, response_field, mended.response);
    let repairs =
        mended.repairs.iter().map(|repair| serde_json::json!({"kind": repair.kind, "at": repair.at}));
    row.fields.insert("repairs".to_owned(), repairs.collect());
    Ok(Some(row.fields))
}

/// A row as [`demonstration`] reads it, except that a blank response is a fault to be named, not an error.
fn read(row: &Row, response_field: Option<&str>) -> Result<Demonstration> {
    let fields = response_field.map_or(RESPONSES.to_vec(), |field| vec![field]);
    let first = fields.into_iter().find_map(|field| row.get(field)).and_then(Value::as_str);
    match first.filter(|text| text.trim().is_empty()) {
        Some(blank) => Ok(Demonstration { problem: asked(row)?, response: blank.to_owned(), slips: vec![] }),
        None => demonstration(row, response_field),
    }
}

/// Writes a repaired response where it was read.
fn set_response(row: &mut Row, response_field: Option<&str>, response: String) {
    let named = response_field.or_else(|| RESPONSES.into_iter().find(|field| row.get(field).is_some()));
    let Some(field) = named else {
        let messages = row.fields.get_mut("messages").and_then(Value::as_array_mut);
        if let Some(last) = messages.and_then(|all| all.iter_mut().rfind(|one| one["role"] == "assistant")) {
            last["content"] = response.into();
        }
        return;
    };
    let same = |name: &&String| name.eq_ignore_ascii_case(field);
    let exact = row.fields.keys().find(|name| *name == field).or_else(|| row.fields.keys().find(same));
    let name = exact.cloned().unwrap_or_else(|| field.to_owned());
    row.fields.insert(name, response.into());
}

/// The whole prompt that a row records, instruction and all.
fn prompt(row: &Row) -> Option<String> {
    match row.get("prompt")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(messages) => {
            let texts: Vec<&str> =
                messages.iter().filter_map(|message| message["content"].as_str()).collect();
            Some(texts.join("\n"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::problem;
    use super::super::{Answer, CheckOptions, inspect};
    use super::*;

    #[test]
    fn a_row_counts_once_for_each_kind() {
        let (problem, mut report) = (problem("How many?", "3"), Report::default());
        for (id, response) in [
            ("a", "Answer: 3"),
            ("b", "</Path></Path> Answer: 4"),
            ("c", "<Parallel><Path>3</Path></Parallel><Summary>It is 3.</Summary>Answer: 3"),
        ] {
            report.add(id, &inspect(&Answer::new(&problem, response), &CheckOptions::default()));
        }
        let json = serde_json::to_value(&report).unwrap();
        let faults = serde_json::json!({"stray_tag": ["b"], "too_few_paths": ["c"], "wrong_answer": ["b"]});
        assert_eq!(json["faults"], faults);
        assert_eq!((report.rows, report.with_block, report.well_formed, report.correct), (3, 1, 2, 2));
        assert_eq!(json["blocks_per_response"], serde_json::json!({"0": 2, "1": 1}));
        assert_eq!(json["paths_per_block"], serde_json::json!({"1": 1}));
        assert_eq!(json["examples"]["wrong_answer"][0][1]["text"], "4");
    }

    #[test]
    fn clean_rows_are_repaired_or_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let good = "<Parallel><Path>Two and one.</Path><Path>It is 3.</Path></Parallel>\n<Summary>It is 3.</Summary>Answer: 3";
        let rows = [
            serde_json::json!({"id": "a", "problem": "?", "answer": "3", "response": good, "n": 1}),
            serde_json::json!({"id": "b", "problem": "?", "answer": "3", "response": good.replace("><", ">\n<")}),
            serde_json::json!({"id": "c", "problem": "?", "answer": "4", "response": good}),
            serde_json::json!({"id": "d", "answer": "3", "messages": [
                {"role": "user", "content": "?"}, {"role": "assistant", "content": good.replacen("</Path>", "", 1)}]}),
            serde_json::json!({"id": "e", "problem": "?", "answer": "3", "response": " "}),
        ];
        std::fs::write(&path, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
        let options = CheckOptions::default();
        let report = check_file(&path, None, &options).unwrap();
        assert_eq!((report.rows, &report.faults[&FaultKind::TooShort][..]), (5, &["e".to_owned()][..]));
        let clean: Vec<Value> =
            clean_rows(&path, None, &options).unwrap().map(|row| row.unwrap().into()).collect();
        assert_eq!(clean.len(), 3);
        assert_eq!(clean[0], rows[0]);
        assert_eq!(
            (&clean[1]["response"], &clean[1]["repairs"][0]["kind"]),
            (&good.into(), &"spacing".into())
        );
        assert_eq!(clean[2]["messages"][1]["content"], good);
    }

    /// What is known of 341 published demonstrations.
    #[test]
    fn real_demonstrations() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/parallel_gsm8k_sft.jsonl"));
        if !path.exists() {
            eprintln!("SKIPPED real_demonstrations: {} is not there", path.display());
            return;
        }
        let report = check_file(path, None, &CheckOptions::default()).unwrap();
        assert_eq!(
            (report.rows, report.with_block, report.well_formed, report.correct),
            (341, 338, 338, 341)
        );
        let ids = |id: &str| vec![format!("pgsm8k-sft-{id}")];
        let expected = [
            (FaultKind::UnclosedSummary, ids("475")),
            (FaultKind::TextInBlock, ids("127")),
            (FaultKind::TextBeforeSummary, ids("178")),
        ];
        assert_eq!(report.faults, expected.into());
        assert_eq!(report.blocks_per_response, [(0, 3), (1, 261), (2, 59), (3, 12), (4, 6)].into());
        assert_eq!(report.paths_per_block, [(2, 427), (3, 11), (4, 1)].into());
        let loose = &report.warnings[&FaultKind::LooseReference];
        assert!(loose.contains(&"pgsm8k-sft-242".to_owned()), "{loose:?}");
    }
}
