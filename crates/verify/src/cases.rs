//! Rows of cases, as files hold them: `{"gold", "pred", "expect"?, "opts"?}`, one JSON object a line.
//!
//! `opts` are the settings that a row assumes, in the words of Math-Verify's tests. Those that this crate
//! has are honoured; [`Case::foreign`] names the others.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Kinds, Options, Report, Verdict, verify_with};

/// A gold answer, a response, and perhaps what a judge should say.
#[derive(Clone, Debug)]
pub struct Case {
    /// The gold answer.
    pub gold: String,
    /// The response.
    pub pred: String,
    /// Whether the response should be accepted, if that is known.
    pub expect: Option<bool>,
    /// The settings that the row assumes.
    pub options: Options,
    /// Settings of the row that have no counterpart here.
    pub foreign: Vec<String>,
}

#[derive(Deserialize)]
struct Row {
    gold: String,
    pred: String,
    expect: Option<bool>,
    opts: Option<Map<String, Value>>,
}

impl Case {
    /// Reads a row.
    ///
    /// # Errors
    /// If the line is no JSON object with the texts `gold` and `pred`.
    pub fn parse(line: &str) -> Result<Case, serde_json::Error> {
        let row: Row = serde_json::from_str(line)?;
        let (mut options, mut foreign) = (Options::default(), Vec::new());
        for (name, value) in row.opts.unwrap_or_default() {
            if set(&mut options, &name, &value).is_none() {
                foreign.push(format!("{name} = {value}"));
            }
        }
        Ok(Case { gold: row.gold, pred: row.pred, expect: row.expect, options, foreign })
    }

    /// Judges the row.
    pub fn judge(&self) -> Report {
        verify_with(&self.gold, &self.pred, &self.options)
    }

    /// Whether the verdict is the expected one. What is undecided is not accepted, and neither is an
    /// answer to a gold that can't be read. `None` without an expectation.
    pub fn agrees(&self, verdict: Verdict) -> Option<bool> {
        self.expect.map(|expect| expect == (verdict == Verdict::Correct))
    }
}

/// Sets one option; `None` if it has no counterpart.
fn set(options: &mut Options, name: &str, value: &Value) -> Option<()> {
    match name {
        "precision" => options.compare.precision = value.as_u64()?.try_into().ok()?,
        "strict" => options.compare.strict = value.as_bool()?,
        "allow_set_relation_comp" => options.compare.relation_for_set = value.as_bool()?,
        "match_types" => options.kinds = kinds(value.as_array()?)?,
        _ => return None,
    }
    Some(())
}

fn kinds(names: &[Value]) -> Option<Kinds> {
    let mut kinds = Kinds { latex: false, plain: false, words: false };
    for name in names {
        match name.as_str()? {
            "latex" => kinds.latex = true,
            "expr" => kinds.plain = true,
            "string" => kinds.words = true,
            _ => return None,
        }
    }
    Some(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_options() {
        let line = r#"{"gold": "$1$", "pred": "1", "expect": true, "group": "g",
            "opts": {"match_types": ["latex", "expr"], "precision": 2, "strict": false, "timeout": 3}}"#;
        let case = Case::parse(line).unwrap();
        assert_eq!(case.options.kinds, Kinds { latex: true, plain: true, words: false });
        assert_eq!((case.options.compare.precision, case.options.compare.strict), (2, false));
        assert_eq!(case.foreign, ["timeout = 3"]);
        assert_eq!(case.agrees(case.judge().verdict), Some(true));
    }

    #[test]
    fn rows_may_be_bare() {
        let case = Case::parse(r#"{"gold": "1", "pred": "2"}"#).unwrap();
        assert_eq!(case.options, Options::default());
        assert_eq!(case.agrees(Verdict::Incorrect), None);
        for line in ["", "[]", r#"{"gold": "1"}"#, r#"{"gold": 1, "pred": "1"}"#] {
            assert!(Case::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn undecided_is_not_accepted() {
        let case = Case::parse(r#"{"gold": "1", "pred": "2", "expect": false}"#).unwrap();
        assert_eq!(case.agrees(Verdict::Undecided), Some(true));
        assert_eq!(case.agrees(Verdict::Correct), Some(false));
    }
}
