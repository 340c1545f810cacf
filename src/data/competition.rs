//! Competition problems as collections for reinforcement learning publish them (DAPO and others):
//! `{prompt: [{role, content}, …], reward_model: {ground_truth}}`.
//!
//! AMC and AIME rows are plain `{problem, answer}`, and need nothing of their own.

use serde_json::Value;

use super::table::{Row, shown};
use super::{Result, messages};

/// The last user message of the prompt, as it stands: the instruction that some collections wrap
/// around a problem is part of their text.
pub(super) fn statement(row: &Row) -> Result<Option<&str>> {
    match row.get("prompt") {
        Some(Value::Array(_)) => messages::last(row, "prompt", "user"),
        _ => row.text("prompt"),
    }
}

/// The gold answer that the reward is given for.
pub(super) fn ground_truth(row: &Row) -> Result<Option<String>> {
    let Some(reward) = row.get("reward_model") else { return Ok(None) };
    match &reward["ground_truth"] {
        Value::String(text) if !text.trim().is_empty() => Ok(Some(text.clone())),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Null => Err(row.missing(&["reward_model.ground_truth"])),
        other => Err(row.wrong("reward_model.ground_truth", "text or a number", &shown(other))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_problem_is_what_the_user_says() {
        let row = Row::from_json(json!({
            "prompt": [{"role": "system", "content": "Think."}, {"role": "user", "content": "1 + 1?\n\nNow."}],
            "reward_model": {"ground_truth": 2, "style": "rule"},
        }));
        assert_eq!(statement(&row).unwrap(), Some("1 + 1?\n\nNow."));
        assert_eq!(ground_truth(&row).unwrap().as_deref(), Some("2"));
        let plain = Row::from_json(json!({"prompt": "1 + 1?"}));
        assert_eq!(statement(&plain).unwrap(), Some("1 + 1?"));
        assert_eq!(ground_truth(&plain).unwrap(), None);
    }

    #[test]
    fn broken_rows_are_named() {
        let statement =
            |prompt| statement(&Row::from_json(json!({"prompt": prompt}))).unwrap_err().to_string();
        assert!(
            statement(json!([])).contains("field `prompt`: expected a message whose role is `user`, got []")
        );
        assert!(statement(json!(["x"])).contains("expected a message whose role is `user`"));
        assert!(
            statement(json!([{"role": "user"}]))
                .contains("field `prompt[].content`: expected text, got null")
        );
        let truth =
            |reward| ground_truth(&Row::from_json(json!({"reward_model": reward}))).unwrap_err().to_string();
        assert!(truth(json!({})).contains("expected the field `reward_model.ground_truth`"));
        assert!(truth(json!("rule")).contains("expected the field `reward_model.ground_truth`"));
        assert!(truth(json!({"ground_truth": [1]})).contains("expected text or a number, got [1]"));
    }
}
