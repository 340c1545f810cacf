//! `--chat-option`: variables for a model's chat template, shared by `generate` and `eval`.

use parallel_r1::model::Pretrained;
use serde_json::Value;

use crate::failure::Failure;

/// What the chat template is told besides the messages.
#[derive(clap::Args)]
pub(crate) struct ChatOptions {
    /// Set a variable that the model's chat template reads, like `enable_thinking=false`; can be repeated
    ///
    /// The value is JSON, or a plain word.
    #[arg(long = "chat-option", value_name = "KEY=VALUE", value_parser = parse)]
    options: Vec<(String, Value)>,
}

fn parse(argument: &str) -> Result<(String, Value), String> {
    match argument.split_once('=') {
        Some((key, value)) if !key.is_empty() => {
            Ok((key.into(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
        }
        _ => Err("expected KEY=VALUE".into()),
    }
}

impl ChatOptions {
    /// Sets them in a model's template.
    pub(crate) fn apply(self, model: &mut Pretrained) -> anyhow::Result<()> {
        let set = model.template.set_options(self.options.into_iter().collect());
        set.map_err(|error| {
            Failure::misuse(format!("--chat-option: {error}"), "leave it out, or name another")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_json_or_words() {
        assert_eq!(parse("enable_thinking=false"), Ok(("enable_thinking".into(), json!(false))));
        assert_eq!(parse("date_string=03 Feb 2025"), Ok(("date_string".into(), json!("03 Feb 2025"))));
        assert_eq!(parse("tools=[{\"a\": 1}]"), Ok(("tools".into(), json!([{"a": 1}]))));
        assert_eq!(parse("a=b=c"), Ok(("a".into(), json!("b=c"))));
        assert!(parse("enable_thinking").is_err() && parse("=1").is_err());
    }
}
