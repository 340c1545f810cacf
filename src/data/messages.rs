//! Chats as trainers read them: a list of `{role, content}`.

use serde_json::Value;

use super::Result;
use super::table::{Row, shown};

/// What a role says last in a list of messages, as it stands. None without the field; a list without that role is an
/// error.
pub(super) fn last<'a>(row: &'a Row, field: &str, role: &str) -> Result<Option<&'a str>> {
    let messages = match row.get(field) {
        None => return Ok(None),
        Some(Value::Array(messages)) => messages,
        Some(other) => return Err(row.wrong(field, "a list of messages", &shown(other))),
    };
    let said = messages.iter().rfind(|message| message["role"] == role);
    match said.map(|message| &message["content"]) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
        Some(other) => Err(row.wrong(&format!("{field}[].content"), "text", &shown(other))),
        None => {
            let got = shown(&Value::Array(messages.clone()));
            Err(row.wrong(field, &format!("a message whose role is `{role}`"), &got))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_word_of_a_role_counts() {
        let row = Row::from_json(json!({"messages": [
            {"role": "system", "content": "Think."}, {"role": "user", "content": "1 + 1?"},
            {"role": "assistant", "content": "2"}, {"role": "user", "content": "Sure?\n\nWhy?"},
        ]}));
        assert_eq!(last(&row, "messages", "user").unwrap(), Some("Sure?\n\nWhy?"));
        assert_eq!(last(&row, "messages", "assistant").unwrap(), Some("2"));
        assert_eq!(last(&row, "prompt", "user").unwrap(), None);
        let error = last(&row, "messages", "tool").unwrap_err().to_string();
        assert!(error.contains("field `messages`: expected a message whose role is `tool`"), "{error}");
        let text = Row::from_json(json!({"messages": "x"}));
        let error = last(&text, "messages", "user").unwrap_err().to_string();
        assert!(error.contains("expected a list of messages, got \"x\""), "{error}");
    }
}
