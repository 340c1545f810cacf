//! Multiple choice as MMLU and its successors publish it: `question`, a list of `choices` or `options`, and the right one
//! in `answer`, as its index from 0 or as its letter.

use serde_json::Value;

use super::Result;
use super::table::{Row, shown};

/// More than any letter can name.
const MOST: usize = 26;

/// The question with its lettered choices, and the letter of the right one. `None` for a row without choices.
pub(super) fn choices(row: &Row) -> Result<Option<(String, String)>> {
    let found =
        ["choices", "options"].into_iter().find_map(|field| Some((field, row.get(field)?.as_array()?)));
    let (Some((field, list)), Some(question)) = (found, row.text("question")?) else { return Ok(None) };
    let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    let Some(texts) = texts.filter(|texts| (2..=MOST).contains(&texts.len())) else {
        return Err(row.wrong(field, "2 to 26 texts", &shown(&list.clone().into())));
    };
    let letters = || ('A'..='Z').take(texts.len());
    let lines: String = letters().zip(&texts).map(|(letter, text)| format!("\n{letter}. {text}")).collect();
    let right = match row.get("answer") {
        None => return Err(row.missing(&["answer"])),
        Some(Value::Number(index)) => index.as_u64().and_then(|index| letters().nth(index as usize)),
        Some(Value::String(letter)) => letters().find(|known| letter.trim() == known.to_string()),
        Some(_) => None,
    };
    let Some(right) = right else {
        let got = row.get("answer").map(shown).unwrap_or_default();
        let expected = format!("an index from 0 to {} or a letter from A on", texts.len() - 1);
        return Err(row.wrong("answer", &expected, &got));
    };
    Ok(Some((
        format!("{question}\n{lines}\n\nAnswer with the letter of the right choice."),
        right.to_string(),
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(row: Value) -> std::result::Result<Option<(String, String)>, String> {
        choices(&Row::from_json(row)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_right_choice_is_a_letter() {
        let text =
            "Which?\n\nA. one\nB. two\nC. three\n\nAnswer with the letter of the right choice.".to_owned();
        for (answer, letter) in [(json!(2), "C"), (json!("B"), "B"), (json!(" A "), "A")] {
            let row = json!({"question": "Which?", "choices": ["one", "two", "three"], "answer": answer});
            assert_eq!(read(row), Ok(Some((text.clone(), letter.into()))));
        }
        let options = json!({"question": "Which?", "options": ["one", "two", "three"], "answer": "C", "answer_index": 2});
        assert_eq!(read(options), Ok(Some((text, "C".into()))));
    }

    #[test]
    fn other_rows_have_no_choices() {
        assert_eq!(read(json!({"question": "1 + 1?", "answer": "2"})), Ok(None));
        assert_eq!(read(json!({"problem": "1 + 1?", "choices": ["1", "2"], "answer": "2"})), Ok(None));
    }

    #[test]
    fn broken_rows_are_named() {
        let row = |choices: Value, answer: Value| {
            read(json!({"question": "?", "choices": choices, "answer": answer}))
        };
        let two = json!(["a", "b"]);
        for answer in [json!(2), json!(-1), json!("C"), json!("a"), json!(1.5), json!([1])] {
            let error = row(two.clone(), answer).unwrap_err();
            assert!(error.contains("field `answer`: expected an index from 0 to 1 or a letter"), "{error}");
        }
        assert!(row(two, Value::Null).unwrap_err().contains("expected the field `answer`"));
        for choices in [json!([]), json!(["a"]), json!(["a", 1]), json!(vec!["a"; 27])] {
            assert!(row(choices, json!(0)).unwrap_err().contains("field `choices`: expected 2 to 26 texts"));
        }
    }
}
