//! Rows from one shape to another, with nothing lost: this project's, and what TRL and verl read.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::data::{Demonstration, Problem, RESPONSES, Result, Row, Rows, asked, demonstration, write_rows};

/// The shape of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// As it is.
    Keep,
    /// `{id, problem, answer, source, level, response}`.
    Rows,
    /// `{id, messages: [user, assistant], answer, source, level}`: a chat, as TRL's SFTTrainer and verl's multi-turn SFT
    /// read it.
    Messages,
    /// `{id, data_source, prompt: [user], reward_model: {style, ground_truth}}`: problems for reinforcement learning
    /// with verl.
    Verl,
}

/// How rows are converted.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertOptions {
    /// The shape to write.
    pub form: Form,
    /// The field of the response, where it isn't the first of `response`, `output`, `solution`.
    pub response_field: Option<String>,
    /// A system message before the problem, in forms that have messages.
    pub system: Option<String>,
}

/// Converts a file; the names' extensions say whether it is JSON lines or Parquet. Gives the number of rows.
pub fn convert(from: &Path, to: &Path, options: &ConvertOptions) -> Result<usize> {
    write_rows(to, || Ok(Rows::open(from)?.map(|row| converted(&row?, options))))
}

/// The fields of a row in another shape; those that the shape has no place for stay behind them. Fields that are null
/// are left out: a table in Parquet has them for every row.
pub fn converted(row: &Row, options: &ConvertOptions) -> Result<Map<String, Value>> {
    let mut fields = match options.form {
        Form::Keep => row.fields.clone(),
        Form::Rows => with_rest(plain(row, options)?, row, options),
        Form::Messages => with_rest(messages(row, options)?, row, options),
        Form::Verl => with_rest(verl(row, options)?, row, options),
    };
    fields.values_mut().for_each(without_nulls);
    fields.retain(|_, value| !value.is_null());
    Ok(fields)
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(without_nulls);
            fields.retain(|_, value| !value.is_null());
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// The problem, and the response where the row has one.
fn parts(row: &Row, options: &ConvertOptions) -> Result<(Problem, Option<String>)> {
    let named = options.response_field.is_some() || RESPONSES.iter().any(|field| row.get(field).is_some());
    if named || row.get("messages").is_some() {
        let Demonstration { problem, response, .. } = demonstration(row, options.response_field.as_deref())?;
        return Ok((problem, Some(response)));
    }
    Ok((asked(row)?, None))
}

fn plain(row: &Row, options: &ConvertOptions) -> Result<Map<String, Value>> {
    let (problem, response) = parts(row, options)?;
    Ok(object(json!({
        "id": problem.id, "problem": problem.problem, "answer": problem.answer, "source": problem.source,
        "level": problem.level, "response": response, "solution": worked(row, &problem),
    })))
}

fn messages(row: &Row, options: &ConvertOptions) -> Result<Map<String, Value>> {
    let response = demonstration(row, options.response_field.as_deref())?.response;
    let problem = asked(row)?;
    let mut chat = prompt(&problem, options);
    chat.push(message("assistant", &response));
    Ok(object(json!({
        "id": problem.id, "messages": chat, "answer": problem.answer, "source": problem.source,
        "level": problem.level, "solution": worked(row, &problem),
    })))
}

fn verl(row: &Row, options: &ConvertOptions) -> Result<Map<String, Value>> {
    let (problem, response) = parts(row, options)?;
    Ok(object(json!({
        "id": problem.id, "data_source": problem.source, "prompt": prompt(&problem, options), "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": problem.answer}, "level": problem.level,
        "response": response, "solution": worked(row, &problem),
    })))
}

fn prompt(problem: &Problem, options: &ConvertOptions) -> Vec<Value> {
    let system = options.system.iter().map(|text| message("system", text));
    system.chain([message("user", &problem.problem)]).collect()
}

fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// GSM8K's worked solution, which stands in `answer` together with the final answer.
fn worked(row: &Row, problem: &Problem) -> Option<String> {
    let text = row.text("answer").ok()??;
    (text != problem.answer && row.get("solution").is_none()).then(|| text.to_owned())
}

/// Fields that every shape says in its own way.
const SAID: [&str; 9] =
    ["id", "problem", "question", "answer", "source", "data_source", "level", "messages", "reward_model"];
/// Where a row's own `prompt` stands in shapes in which trainers read another thing under that name.
const ORIGINAL_PROMPT: &str = "original_prompt";

/// A row in its new shape, and then what else it had.
fn with_rest(mut fields: Map<String, Value>, row: &Row, options: &ConvertOptions) -> Map<String, Value> {
    let named = options.response_field.as_deref();
    let response = named.or_else(|| RESPONSES.into_iter().find(|field| row.get(field).is_some()));
    let prompt_is_problem = ["problem", "question", "messages"].iter().all(|field| row.get(field).is_none());
    for (name, value) in &row.fields {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let said = SAID.into_iter().chain(response).any(is)
            || (is("prompt") && prompt_is_problem)
            || (is("ability") && (row.get("reward_model").is_some() || options.form == Form::Verl));
        let name = match options.form {
            Form::Rows if is(ORIGINAL_PROMPT) => "prompt",
            Form::Messages | Form::Verl if is("prompt") => ORIGINAL_PROMPT,
            _ => name,
        };
        if !said && fields.get(name).is_none_or(Value::is_null) {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn options(form: Form) -> ConvertOptions {
        ConvertOptions { form, response_field: None, system: None }
    }

    /// Rows written to a file, converted through these forms and file types, and read again.
    fn through(rows: &[Value], steps: &[(&str, Form)]) -> Vec<Value> {
        let folder = tempfile::tempdir().unwrap();
        let mut from = folder.path().join("rows.jsonl");
        fs::write(&from, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
        for (i, (extension, form)) in steps.iter().enumerate() {
            let to = folder.path().join(format!("{i}.{extension}"));
            assert_eq!(convert(&from, &to, &options(*form)).unwrap(), rows.len());
            from = to;
        }
        Rows::open(&from).unwrap().map(|row| row.unwrap().fields.into()).collect()
    }

    const TEXT: &str = "Let $a,\\ b$\n\n\\[a^2 < 3\\] \u{a0}☃ 𝒳";

    #[test]
    fn there_and_back_nothing_changes() {
        let rows = [
            json!({"id": "a", "problem": TEXT, "answer": "\\frac{1}{2}", "source": "s", "response": "<Parallel>\n", "repairs": [{"kind": "spacing", "at": 3}]}),
            json!({"id": "b", "problem": "1 + 1?", "answer": "2", "source": "s", "level": "5", "response": TEXT, "cost": 0.5}),
        ];
        for form in [Form::Keep, Form::Messages, Form::Rows] {
            for extension in ["jsonl", "parquet"] {
                let back = through(&rows, &[(extension, form), ("parquet", form), ("jsonl", Form::Rows)]);
                assert_eq!(back, rows, "{form:?} {extension}");
            }
        }
        let verl = through(&rows, &[("parquet", Form::Verl), ("jsonl", Form::Verl), ("jsonl", Form::Rows)]);
        assert_eq!(verl, rows);
    }

    #[test]
    fn published_rows_keep_what_they_say() {
        let gsm8k = json!({"question": TEXT, "answer": "1 + 1 = 2\n#### 2"});
        let expected = json!({"id": "rows-1", "problem": TEXT, "answer": "2", "source": "rows", "solution": "1 + 1 = 2\n#### 2"});
        assert_eq!(through(&[gsm8k], &[("jsonl", Form::Rows)]), [expected]);
        let math = json!({"problem": TEXT, "solution": "\\boxed{3}", "level": "Level 4", "type": "Algebra"});
        let expected = json!({"id": "rows-1", "messages": [{"role": "user", "content": TEXT}, {"role": "assistant", "content": "\\boxed{3}"}],
            "answer": "3", "source": "rows", "level": "4", "type": "Algebra"});
        assert_eq!(through(&[math], &[("parquet", Form::Messages), ("jsonl", Form::Keep)]), [expected]);
        let verl = json!({"prompt": [{"role": "user", "content": TEXT}], "reward_model": {"ground_truth": "9", "style": "rule"},
            "data_source": "dapo", "extra_info": {"index": 7}});
        let expected = json!({"id": "rows-1", "problem": TEXT, "answer": "9", "source": "dapo", "extra_info": {"index": 7}});
        assert_eq!(through(&[verl], &[("jsonl", Form::Rows)]), [expected]);
    }

    /// `prompt` means something else to trainers than to this project, where it is what a teacher was asked.
    #[test]
    fn a_prompt_of_its_own_is_put_aside_and_comes_back() {
        let row = json!({"id": "a", "problem": "?", "answer": "2", "source": "s", "response": "!", "prompt": "Think. ?"});
        for form in [Form::Messages, Form::Verl] {
            let there = through(std::slice::from_ref(&row), &[("jsonl", form)]);
            assert_eq!(there[0]["original_prompt"], "Think. ?");
            assert!(there[0].get("prompt").is_none_or(Value::is_array));
            let back = through(std::slice::from_ref(&row), &[("jsonl", form), ("jsonl", Form::Rows)]);
            assert_eq!(back[0], row);
        }
    }

    #[test]
    fn a_system_message_comes_first() {
        let options = ConvertOptions { system: Some("Think.".into()), ..options(Form::Messages) };
        let row = Row::from_json(json!({"problem": "?", "response": "!"}));
        let fields = converted(&row, &options).unwrap();
        assert_eq!(fields["messages"][0], json!({"role": "system", "content": "Think."}));
        assert_eq!(fields["messages"][2]["content"], "!");
        let no_response = Row::from_json(json!({"problem": "?"}));
        let error = converted(&no_response, &options).unwrap_err().to_string();
        assert!(error.contains("expected the field `response`"), "{error}");
    }

    /// Published rows, where a machine has them: nothing of their text changes on any way.
    #[test]
    fn real_rows_come_back() {
        let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
        for name in ["gsm8k_test", "math500", "amc23", "aime24", "aime25", "dapo_2k", "parallel_gsm8k_sft"] {
            let from = shared.join(name).with_extension("jsonl");
            if !from.exists() {
                eprintln!("SKIPPED real_rows_come_back: {} is not there", from.display());
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            let step = |from: &Path, to: &str, form| convert(from, &path(to), &options(form)).unwrap();
            let rows = |file: &Path| -> Vec<Map<String, Value>> {
                Rows::open(file)
                    .unwrap()
                    .map(|row| converted(&row.unwrap(), &options(Form::Keep)).unwrap())
                    .collect()
            };
            step(&from, "a.parquet", Form::Keep);
            step(&path("a.parquet"), "b.jsonl", Form::Keep);
            assert!(rows(&path("b.jsonl")) == rows(&from), "{name}");
            step(&from, "c.jsonl", Form::Rows);
            step(&path("c.jsonl"), "d.parquet", Form::Verl);
            step(&path("d.parquet"), "e.jsonl", Form::Rows);
            assert!(rows(&path("e.jsonl")) == rows(&path("c.jsonl")), "{name}");
            let problems = |file: &Path| crate::data::load_problems(file).unwrap();
            assert!(problems(&path("e.jsonl")) == problems(&from), "{name}");
        }
    }
}
