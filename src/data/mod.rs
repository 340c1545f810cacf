//! Data: from rows and generators to [`Problem`]s and [`Demonstration`]s.
//!
//! Everything later in the flow sees only these two types, so a new data set is a new row shape
//! here and nothing else. Texts are passed on exactly as they stand in the file: cutting a problem
//! at a blank line or "cleaning" LaTeX has damaged more than one published training set.

use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub mod arithmetic;
pub mod benchmarks;
mod choices;
mod competition;
pub mod countdown;
mod error;
pub mod family;
mod gsm8k;
pub mod hub;
mod math;
mod messages;
mod table;
mod write;

pub use error::{DataError, Result};
pub use family::Split;
pub use table::{Place, Row, Rows};
pub use write::write_rows;

/// A task with a known answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Names the problem within its data set.
    pub id: String,
    /// The problem's text, as the data set has it.
    pub problem: String,
    /// The gold answer. Empty where a demonstration's row has none: imitation needs none.
    pub answer: String,
    /// Where the problem comes from.
    pub source: String,
    /// How hard it is, in the data set's own terms (`5` for MATH's `Level 5`, `4-hard` for
    /// Countdown), where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
}

/// A problem with a response that shows how to work on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demonstration {
    /// What was asked.
    pub problem: Problem,
    /// What the teacher wrote.
    pub response: String,
    /// Bytes of the response that are wrong on purpose: shown, not learned.
    #[serde(skip)]
    pub slips: Vec<Range<usize>>,
}

/// Reads the problems of a file. Rows may be normalised (`problem`, `answer` and where known `id`,
/// `source`, `level`) or as published with GSM8K (`question`, `answer`), MATH (`problem`,
/// `solution`), AMC and AIME (`problem`, `answer`), DAPO (`prompt`, `reward_model`) and MMLU (`question`,
/// `choices`, `answer`), or a chat (`messages`).
pub fn load_problems(path: &Path) -> Result<Vec<Problem>> {
    Rows::open(path)?.map(|row| problem(&row?)).collect()
}

/// Reads the demonstrations of a file. The response is in `response_field`, or else in the first of
/// `response`, `output`, `solution` that the row has, or the last thing that the assistant says in
/// its `messages`.
pub fn load_demonstrations(path: &Path, response_field: Option<&str>) -> Result<Vec<Demonstration>> {
    Rows::open(path)?.map(|row| demonstration(&row?, response_field)).collect()
}

/// The problem of a row, in any of the shapes that [`load_problems`] reads.
pub fn problem(row: &Row) -> Result<Problem> {
    if let Some((text, letter)) = choices::choices(row)? {
        return describe(row, &text, letter);
    }
    let text = statement(row)?;
    let answer = match answer(row)? {
        Some(answer) => answer,
        None => match row.text("solution")? {
            Some(solution) => {
                let got = table::shown(&solution.into());
                return Err(row.wrong("solution", r"an answer in \boxed{…}", &got));
            }
            None => return Err(row.missing(&["answer"])),
        },
    };
    describe(row, text, answer)
}

/// The demonstration of a row, as [`load_demonstrations`] reads it.
pub fn demonstration(row: &Row, response_field: Option<&str>) -> Result<Demonstration> {
    let fields = response_field.map_or(RESPONSES.to_vec(), |field| vec![field]);
    let response = fields.iter().find_map(|field| row.text(field).transpose());
    let said =
        || messages::last(row, "messages", "assistant").transpose().filter(|_| response_field.is_none());
    let response = response.or_else(said).ok_or_else(|| row.missing(&fields))??.to_owned();
    Ok(Demonstration { problem: asked(row)?, response, slips: vec![] })
}

/// Where a response may stand; the first that is there counts.
pub const RESPONSES: [&str; 3] = ["response", "output", "solution"];

/// The problem of a row that may have no answer.
pub fn asked(row: &Row) -> Result<Problem> {
    describe(row, statement(row)?, answer(row)?.unwrap_or_default())
}

/// The problem's text: `problem` (normalised rows, MATH, AMC, AIME), `question` (GSM8K), `messages`
/// (chats) or `prompt` (collections for reinforcement learning).
fn statement(row: &Row) -> Result<&str> {
    for field in ["problem", "question"] {
        if let Some(text) = row.text(field)? {
            return Ok(text);
        }
    }
    let asked = messages::last(row, "messages", "user")?;
    let asked = asked.map_or_else(|| competition::statement(row), |text| Ok(Some(text)))?;
    asked.ok_or_else(|| row.missing(&["problem", "question", "messages", "prompt"]))
}

/// The gold answer: `answer` (GSM8K: what follows its `####`), the reward's `ground_truth`, or what
/// the `solution` boxes.
fn answer(row: &Row) -> Result<Option<String>> {
    if let Some(answer) = row.text_or_number("answer")? {
        return match gsm8k::final_answer(&answer) {
            Some(number) => Ok(Some(number)),
            // A worked solution whose end is lost must not pass for an answer.
            None if row.get("question").is_some() && answer.contains('\n') => {
                let got = table::shown(&answer.into());
                Err(row.wrong("answer", "a final `#### n`", &got))
            }
            None => Ok(Some(answer)),
        };
    }
    if let Some(answer) = competition::ground_truth(row)? {
        return Ok(Some(answer));
    }
    Ok(row.text("solution")?.and_then(math::boxed).map(str::to_owned))
}

fn describe(row: &Row, text: &str, answer: String) -> Result<Problem> {
    let level = row.text_or_number("level")?;
    Ok(Problem {
        id: row.text_or_number("id")?.unwrap_or_else(|| format!("{}-{}", row.stem(), row.number())),
        problem: text.to_owned(),
        answer,
        source: source(row)?.unwrap_or_else(|| row.stem()),
        level: level.as_deref().map(math::level),
    })
}

/// Where a problem comes from: `source`, or verl's `data_source`.
fn source(row: &Row) -> Result<Option<String>> {
    Ok(row.text("source")?.or(row.text("data_source")?).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(row: Value) -> Result<Problem, String> {
        problem(&Row::from_json(row)).map_err(|error| error.to_string())
    }

    #[test]
    fn every_published_shape_is_read() {
        let made = |id: &str, problem: &str, answer: &str, level: Option<&str>| Problem {
            id: id.into(),
            problem: problem.into(),
            answer: answer.into(),
            source: "rows".into(),
            level: level.map(str::to_owned),
        };
        let text = "Seien $a,\\ b$\n\n\\[a^2 < 3\\] ☃";
        for (row, problem) in [
            (json!({"question": text, "answer": "…\n#### 1,200"}), made("rows-7", text, "1200", None)),
            (
                json!({"problem": text, "solution": r"$\boxed{\frac{1}{2}}$", "level": "Level 4", "type": "Algebra"}),
                made("rows-7", text, r"\frac{1}{2}", Some("4")),
            ),
            (json!({"ID": 3, "Problem": text, "Answer": 70.0}), made("3", text, "70", None)),
            (json!({"question": text, "answer": 70}), made("rows-7", text, "70", None)),
            (
                json!({"id": "x", "problem": text, "answer": r"\pi", "source": "rows", "level": 2,
                       "solution": r"\boxed{3}"}),
                made("x", text, r"\pi", Some("2")),
            ),
            (
                json!({"prompt": [{"role": "user", "content": text}], "reward_model": {"ground_truth": "9"}}),
                made("rows-7", text, "9", None),
            ),
        ] {
            assert_eq!(read(row), Ok(problem));
        }
    }

    #[test]
    fn rows_that_lack_something_name_it() {
        for (row, expected) in [
            (
                json!({"id": 1}),
                "rows.jsonl, line 7: expected the field `problem` or `question` or `messages` or `prompt`, got only: id",
            ),
            (json!({"problem": "?"}), "rows.jsonl, line 7: expected the field `answer`, got only: problem"),
            (
                json!({"problem": "?", "solution": "2"}),
                r#"rows.jsonl, line 7: field `solution`: expected an answer in \boxed{…}, got "2""#,
            ),
            (
                json!({"question": "?", "answer": "1\n2"}),
                r#"rows.jsonl, line 7: field `answer`: expected a final `#### n`, got "1\n2""#,
            ),
        ] {
            assert_eq!(read(row), Err(expected.into()));
        }
    }

    #[test]
    fn a_demonstration_needs_a_response_but_no_answer() {
        let read = |row, field| demonstration(&Row::from_json(row), field);
        let row = json!({"problem": "?", "solution": "S", "output": "O", "note": "N"});
        assert_eq!(read(row.clone(), None).unwrap().response, "O");
        assert_eq!(read(row.clone(), Some("note")).unwrap().response, "N");
        assert_eq!(read(row.clone(), None).unwrap().problem.answer, "");
        let absent = read(row, Some("text")).unwrap_err().to_string();
        assert!(absent.contains("expected the field `text`, got only: problem, solution, output, note"));
        let none = read(json!({"problem": "?"}), None).unwrap_err().to_string();
        assert!(none.contains("expected the field `response` or `output` or `solution`"), "{none}");
    }

    /// The real files beside the repository, where a machine has them.
    #[test]
    fn real_data_is_read_whole() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
        for (file, rows) in [
            ("gsm8k_train", 7473),
            ("gsm8k_test", 1319),
            ("math_train", 7500),
            ("math500", 500),
            ("amc23", 40),
            ("aime24", 30),
            ("aime25", 30),
            ("dapo_2k", 2000),
            ("parallel_gsm8k_sft", 341),
        ] {
            let path = folder.join(file).with_extension("jsonl");
            if !path.exists() {
                eprintln!("skipped: {} is absent", path.display());
                continue;
            }
            let problems = load_problems(&path).unwrap();
            assert_eq!(problems.len(), rows, "{file}");
            for row in Rows::open(&path).unwrap().map(Result::unwrap) {
                let solution = row.text("solution").unwrap().unwrap_or_default();
                let again = match file {
                    "math_train" => math::boxed(solution).map(str::to_owned),
                    "gsm8k_train" | "gsm8k_test" => gsm8k::final_answer(solution),
                    _ => continue,
                };
                let answer = row.text_or_number("answer").unwrap();
                if again.as_deref() == Some("") {
                    continue; // an empty box; the file at hand has been mended there
                }
                assert_eq!(again.as_deref(), answer.as_deref().map(str::trim), "{}", row.place);
            }
            if file == "parallel_gsm8k_sft" {
                let demonstrations = load_demonstrations(&path, None).unwrap();
                assert!(demonstrations.iter().any(|one| one.response.contains("<Parallel>")));
            }
        }
    }
}
