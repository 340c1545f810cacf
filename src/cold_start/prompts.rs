//! What a teacher is asked, and how assembled demonstrations are worded: templates in files that users can edit.
//!
//! A template is Markdown with Jinja in it. A line `<!-- NAME -->` begins a section: `system`, `user` and `assistant`
//! are messages, and a file without sections is one user message. `assembly` is a whole demonstration.

use std::path::Path;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use super::generate::{GenerateError, Result};
use crate::data::Problem;
use crate::prompt::Message;

/// The longest template in bytes.
const LONGEST: u64 = 64 << 10;
/// Steps that a rendering may take.
const FUEL: u64 = 100_000;
const ROLES: [&str; 3] = ["system", "user", "assistant"];

/// The templates that are compiled in.
pub const BUILT_IN: [(&str, &str); 6] = [
    ("parallel", include_str!("../../recipes/cold-start/prompts/parallel.md")),
    ("strict", include_str!("../../recipes/cold-start/prompts/strict.md")),
    ("plain", include_str!("../../recipes/cold-start/prompts/plain.md")),
    ("bare", include_str!("../../recipes/cold-start/prompts/bare.md")),
    ("summary", include_str!("../../recipes/cold-start/prompts/summary.md")),
    ("assembly", include_str!("../../recipes/cold-start/prompts/assembly.md")),
];

/// What a template may refer to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Values<'a> {
    /// The problem's text.
    pub problem: &'a str,
    /// The gold answer; in an assembly the answer as the first solution states it.
    pub answer: &'a str,
    /// Where the problem comes from.
    pub source: &'a str,
    /// How hard it is, where known.
    pub level: Option<&'a str>,
    /// The chosen solutions; empty in a prompt for solutions.
    pub paths: &'a [&'a str],
    /// The teacher's summary of them, or nothing.
    pub summary: &'a str,
}

impl<'a> Values<'a> {
    /// Those of a problem.
    pub fn new(problem: &'a Problem) -> Self {
        let Problem { problem: text, answer, source, level, .. } = problem;
        Self { problem: text, answer, source, level: level.as_deref(), paths: &[], summary: "" }
    }
}

/// A template with its sections.
#[derive(Clone)]
pub struct Template {
    name: String,
    sections: Vec<String>,
    program: Environment<'static>,
}

impl Template {
    /// A built-in template, or one in a file.
    pub fn find(name: &str) -> Result<Self> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Self::parse(name, text);
        }
        let path = Path::new(name);
        let wrong = |reason: String| GenerateError::Prompt { name: name.into(), reason };
        let size = std::fs::metadata(path).map(|file| file.len()).map_err(|error| {
            let names = BUILT_IN.map(|(name, _)| name).join(", ");
            wrong(format!("neither a file ({error}) nor one of {names}"))
        })?;
        if size > LONGEST {
            return Err(wrong(format!("expected at most {LONGEST} bytes, got {size}")));
        }
        Self::parse(name, &std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?)
    }

    /// A template from its text.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let wrong = |reason: String| GenerateError::Prompt { name: name.into(), reason };
        let mut program = Environment::new();
        program.set_auto_escape_callback(|_| AutoEscape::None);
        // A slip in a name must not become an empty place in thousands of prompts.
        program.set_undefined_behavior(UndefinedBehavior::Strict);
        program.set_fuel(Some(FUEL));
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        program.set_syntax(syntax.map_err(|error| wrong(error.to_string()))?);
        let mut sections = Vec::new();
        for (section, text) in split(text) {
            let added = program.add_template_owned(sections.len().to_string(), text);
            added.map_err(|error| wrong(error.to_string()))?;
            sections.push(section);
        }
        Ok(Self { name: name.into(), sections, program })
    }

    /// The messages of a prompt.
    pub fn messages(&self, values: &Values) -> Result<Vec<Message>> {
        let message = |(i, role): (usize, &String)| {
            if !ROLES.contains(&role.as_str()) {
                return Err(self.wrong(format!("expected the sections {}, got {role}", ROLES.join(", "))));
            }
            Ok(Message { role: role.clone(), content: self.render(i, values)? })
        };
        let messages: Vec<Message> = self.sections.iter().enumerate().map(message).collect::<Result<_>>()?;
        match messages.last() {
            Some(last) if last.role == "user" => Ok(messages),
            _ => Err(self.wrong("expected a user message at the end".into())),
        }
    }

    /// The text of a template without sections.
    pub fn text(&self, values: &Values) -> Result<String> {
        match self.sections.as_slice() {
            [_] => self.render(0, values),
            other => Err(self.wrong(format!("expected one text, got {} sections", other.len()))),
        }
    }

    fn render(&self, section: usize, values: &Values) -> Result<String> {
        let template = self.program.get_template(&section.to_string());
        let text = template.and_then(|template| template.render(Serde(values)));
        text.map(|text| text.trim().to_owned()).map_err(|error| self.wrong(error.to_string()))
    }

    fn wrong(&self, reason: String) -> GenerateError {
        GenerateError::Prompt { name: self.name.clone(), reason }
    }
}

/// The sections of a text with their names.
fn split(text: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let marker =
            line.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")).map(str::trim);
        match marker.filter(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase())) {
            Some(name) => sections.push((name.into(), String::new())),
            None if sections.is_empty() && line.trim().is_empty() => {}
            None => {
                if sections.is_empty() {
                    sections.push(("user".into(), String::new()));
                }
                let last = sections.last_mut().expect("one was pushed if there was none");
                last.1 += line;
                last.1.push('\n');
            }
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tags::check_text;

    const TEXT: &str = "Seien $a,\\ b$\n\n\\[a^2 < 3\\] {{ no }} ☃";

    fn values() -> Values<'static> {
        Values { problem: TEXT, answer: "3", source: "x", level: None, paths: &["one", "two"], summary: "" }
    }

    #[test]
    fn every_built_in_prompt_ends_with_the_problem_as_it_is() {
        for name in ["parallel", "strict", "plain", "bare"] {
            let messages = Template::find(name).unwrap().messages(&values()).unwrap();
            assert!(messages.last().unwrap().content.ends_with(TEXT), "{name}");
        }
        assert_eq!(Template::find("bare").unwrap().messages(&values()).unwrap(), [Message::user(TEXT)]);
        let summary = &Template::find("summary").unwrap().messages(&values()).unwrap()[0].content;
        assert!(summary.contains("one") && summary.contains("two") && summary.contains(TEXT));
    }

    #[test]
    fn an_assembly_is_one_well_formed_block() {
        let assembly = Template::find("assembly").unwrap();
        let text = assembly.text(&values()).unwrap();
        assert_eq!(check_text(&text).unwrap().paths, [2]);
        assert!(text.contains("All 2 paths") && text.ends_with("Final Answer: 3"), "{text}");
        let text = assembly.text(&Values { summary: "Both say so.", ..values() }).unwrap();
        assert!(text.contains("<Summary>\nBoth say so.\n</Summary>"), "{text}");
        let task = Values {
            source: "countdown",
            paths: &["1+2=3 ok\nAnswer: 1+2=3", "x"],
            answer: "1+2=3",
            ..values()
        };
        let expected = "<Parallel><Path>1+2=3 ok\nResult: 1+2=3\n</Path><Path>x\n</Path></Parallel>\n\
                        <Summary>Answer: 1+2=3</Summary>";
        assert_eq!(assembly.text(&task).unwrap(), expected);
    }

    #[test]
    fn sections_are_messages() {
        let text = "\n<!-- system -->\nBe brief.\n\n<!-- user -->\n2 + 2?\n<!-- assistant -->\n4\n<!-- user -->\n{{ problem }}";
        let messages = Template::parse("t", text).unwrap().messages(&values()).unwrap();
        let roles: Vec<&str> = messages.iter().map(|message| message.role.as_str()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "user"]);
        assert_eq!((messages[0].content.as_str(), messages[3].content.as_str()), ("Be brief.", TEXT));
    }

    #[test]
    fn what_is_wrong_with_a_template_is_said() {
        let error = |text: &str| {
            let made = Template::parse("t", text).and_then(|t| t.messages(&values()).map(drop));
            made.unwrap_err().to_string()
        };
        assert!(error("{{ problm }}").starts_with("prompt t: undefined value"), "{}", error("{{ problm }}"));
        assert!(error("{% if %}").starts_with("prompt t: syntax error"), "{}", error("{% if %}"));
        assert_eq!(
            error("<!-- usr -->\n?"),
            "prompt t: expected the sections system, user, assistant, got usr"
        );
        assert_eq!(error("<!-- system -->\n?"), "prompt t: expected a user message at the end");
        let endless = "{% for i in range(9999) %}{% for i in range(9999) %}x{% endfor %}{% endfor %}";
        assert!(error(endless).contains("fuel"), "{}", error(endless));
        let absent = Template::find("no-such.md").err().unwrap().to_string();
        assert!(absent.contains("nor one of parallel, strict"), "{absent}");
    }
}
