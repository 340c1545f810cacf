//! Messages to the text that a model was taught to answer, by its chat template.
//!
//! Templates are Jinja programs written for Python, so the helpers that transformers offers them are offered
//! here: `raise_exception`, `strftime_now`, `tojson`, Python's string methods, `{% generation %}`, and the
//! same whitespace rules. A model without a template gets the *plain format*: the begin-of-text token if the
//! tokenizer uses one, then each message followed by a newline. The embedded model is trained on it.
//!
//! A template comes from outside and is a program, so its length, its steps and its text are bounded, and it
//! runs on a thread of its own, whose large stack bears deep nesting and which takes a panic along. The engine
//! leaves these without a bound: a namespace that holds itself ends the process when it is written; one step may
//! fill the memory (`'{:>9999999999}'.format(1)`, a `join` of one long text many times) or never end (a list
//! doubled sixty times with `+`); and comparing long texts takes long. So read the templates of strangers first.

mod date;
mod json;
mod methods;

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value, ValueKind, merge_maps};
use minijinja::{Environment, Error, ErrorKind, context};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::file;
use super::tokenizer::{MAX_CONFIG, Tokenizer};

/// The longest template in bytes; published ones stay under 20 kB.
const MAX_TEMPLATE: usize = 64 << 10;

/// The most signs of arithmetic in a template (those in `{%-` and in text count, too): in a chain of them the
/// compiler's work grows with the square of its length.
const MAX_SIGNS: usize = 8192;

/// Steps that one rendering may take. The engine counts 64 bytes of text as a step, too, so nearly all memory
/// that a template asks for is bounded as well.
const FUEL: u64 = 1_000_000;

/// The longest rendered text in bytes, far more than any model reads.
const MAX_TEXT: usize = 8 << 20;

/// Stack for the parser and the renderer, whose recursion follows the nesting of the template and its values.
/// Only what is used takes memory.
const STACK: usize = 256 << 20;

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks: `system`, `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A user's message.
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: "user".into(), content: content.into() }
    }

    /// A message that tells the model how to behave.
    pub fn system(content: impl Into<String>) -> Self {
        Self { role: "system".into(), content: content.into() }
    }
}

/// What can be wrong with a chat template.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file has no usable template where it should.
    #[error("{path}: chat_template: expected {expected}, got {got}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What would be right.
        expected: &'static str,
        /// What is there.
        got: String,
    },
    /// The template is too long.
    #[error("the chat template: expected at most {limit} {what}, got {got}")]
    TooLong {
        /// What there is too much of.
        what: &'static str,
        /// The most of it.
        limit: usize,
        /// How much there is.
        got: usize,
    },
    /// The template is not Jinja that this program understands.
    #[error("the chat template does not parse: {0}")]
    Syntax(String),
    /// An option that the template would ignore.
    #[error("the chat template reads no option {name:?}: expected {known}")]
    Option {
        /// The option.
        name: String,
        /// What it reads.
        known: String,
    },
    /// The template refused the messages or failed on them.
    #[error("the chat template refused the messages: {0}")]
    Render(String),
}

/// Renders messages the way one model expects them.
#[derive(Clone)]
pub struct ChatTemplate {
    /// `None` is the plain format.
    program: Option<(String, Environment<'static>)>,
    /// What `bos_token` and `eos_token` stand for in a template.
    bos: String,
    eos: String,
    /// What the plain format begins with.
    leading: String,
    /// Further variables.
    options: Map<String, Json>,
}

impl ChatTemplate {
    /// Reads a model folder's template: `chat_template.jinja`, or `chat_template` in `tokenizer_config.json`;
    /// without either, the plain format.
    pub fn load(dir: &Path, tokenizer: &Tokenizer) -> Result<Self, TemplateError> {
        let path = dir.join("chat_template.jinja");
        if path.exists() {
            return Self::new(&read(&path, MAX_TEMPLATE as u64)?, tokenizer);
        }
        let path = dir.join("tokenizer_config.json");
        if !path.exists() {
            return Ok(Self::plain(tokenizer));
        }
        let form = |expected, got: String| TemplateError::Form { path: path.clone(), expected, got };
        let config: Json = serde_json::from_str(&read(&path, MAX_CONFIG)?)
            .map_err(|e| form("a JSON object", e.to_string()))?;
        match &config["chat_template"] {
            Json::Null => Ok(Self::plain(tokenizer)),
            Json::String(source) => Self::new(source, tokenizer),
            Json::Array(named) => {
                let default = named.iter().find(|entry| entry["name"] == "default");
                let source = default.and_then(|entry| entry["template"].as_str());
                let names = || named.iter().map(|entry| entry["name"].to_string()).collect::<Vec<_>>();
                let source = source.ok_or_else(|| {
                    form("a template named \"default\"", format!("[{}]", names().join(", ")))
                })?;
                Self::new(source, tokenizer)
            }
            other => Err(form("a string or a list of named templates", other.to_string())),
        }
    }

    /// A template from its text.
    pub fn new(source: &str, tokenizer: &Tokenizer) -> Result<Self, TemplateError> {
        let signs = source.bytes().filter(|byte| b"+-*/%~".contains(byte)).count();
        for (what, limit, got) in
            [("bytes", MAX_TEMPLATE, source.len()), ("signs of + - * / % ~", MAX_SIGNS, signs)]
        {
            if got > limit {
                return Err(TemplateError::TooLong { what, limit, got });
            }
        }
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL));
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|e| TemplateError::Syntax(e.to_string()))?);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_unknown_method_callback(methods::call);
        environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_function("strftime_now", date::strftime_now);
        environment.add_filter("tojson", json::tojson);
        // In Python texts and mappings are sequences, too.
        environment.add_test("sequence", |value: &Value| {
            matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map)
        });
        // For debugging only, and their recursion is too deep for any stack.
        environment.remove_filter("pprint");
        environment.remove_global("debug");
        apart(|| {
            environment.add_template_owned("chat", without_generation(source)).map_err(|e| e.to_string())
        })
        .map_err(TemplateError::Syntax)?;
        Ok(Self { program: Some((source.into(), environment)), ..Self::plain(tokenizer) })
    }

    /// The plain format.
    pub fn plain(tokenizer: &Tokenizer) -> Self {
        // A template writes the begin-of-text token itself if it wants it; the plain format does as the
        // tokenizer does.
        let bos = tokenizer.bos().and_then(|id| tokenizer.token(id)).unwrap_or_default();
        let eos = tokenizer.token(tokenizer.end()[0]).unwrap_or_default();
        Self {
            program: None,
            bos,
            eos,
            leading: tokenizer.leading_token().unwrap_or_default(),
            options: Map::new(),
        }
    }

    /// The template's text; `None` for the plain format.
    pub fn source(&self) -> Option<&str> {
        self.program.as_ref().map(|(source, _)| source.as_str())
    }

    /// Sets variables that the template reads besides the messages, like `enable_thinking` of Qwen 3. One that it
    /// does not read is an error, for it would change nothing.
    pub fn set_options(&mut self, options: Map<String, Json>) -> Result<(), TemplateError> {
        let mut known = if options.is_empty() { Vec::new() } else { self.variables() };
        known.sort();
        if let Some(name) = options.keys().find(|name| !known.contains(name)) {
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            return Err(TemplateError::Option { name: name.clone(), known });
        }
        self.options = options;
        Ok(())
    }

    /// The variables that the template takes from outside and that are not given anyway.
    fn variables(&self) -> Vec<String> {
        const GIVEN: [&str; 2] = ["messages", "add_generation_prompt"];
        let Some((_, environment)) = &self.program else { return Vec::new() };
        let read = || {
            let chat = environment.get_template("chat").map_err(|e| e.to_string())?;
            Ok(chat.undeclared_variables(false))
        };
        let known = |name: &String| {
            GIVEN.contains(&name.as_str()) || environment.globals().any(|(global, _)| global == name)
        };
        apart(read).unwrap_or_default().into_iter().filter(|name| !known(name)).collect()
    }

    /// The text of a conversation; `add_generation_prompt` opens the assistant's turn.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, TemplateError> {
        let Some((_, environment)) = &self.program else {
            let turns = messages.iter().map(|message| format!("{}\n", message.content));
            return Ok(std::iter::once(self.leading.clone()).chain(turns).collect());
        };
        let messages: Vec<Value> = messages
            .iter()
            .map(|message| context!(role => message.role.as_str(), content => message.content.as_str()))
            .collect();
        // As in transformers, `tools` and `documents` are there, if only as nothing.
        // The last of equal names counts.
        let usual = context!(
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
            tools => Value::from(()),
            documents => Value::from(()),
        );
        let options = Value::from(Serde(&self.options));
        let variables = merge_maps([usual, options, context!(messages, add_generation_prompt)]);
        let refused = |e: Error| match e.kind() {
            ErrorKind::OutOfFuel => format!("expected at most {FUEL} steps, got more"),
            _ => e.to_string(),
        };
        let text = apart(|| {
            environment.get_template("chat").and_then(|chat| chat.render(variables)).map_err(refused)
        })
        .map_err(TemplateError::Render)?;
        if text.len() > MAX_TEXT {
            let reason = format!("expected a text of at most {MAX_TEXT} bytes, got {}", text.len());
            return Err(TemplateError::Render(reason));
        }
        Ok(text)
    }

    /// Writes `chat_template.jinja`; the plain format leaves no file.
    pub fn save(&self, dir: &Path) -> Result<(), TemplateError> {
        let Some(source) = self.source() else { return Ok(()) };
        let path = dir.join("chat_template.jinja");
        std::fs::write(&path, source).map_err(|source| TemplateError::File { path, source })
    }
}

fn read(path: &Path, limit: u64) -> Result<String, TemplateError> {
    let text = |bytes| String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e));
    file::read(path, limit).and_then(text).map_err(|source| TemplateError::File { path: path.into(), source })
}

/// Runs a step of the template engine on a thread of its own (the module says why).
fn apart<T: Send>(step: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("chat template".into()).stack_size(STACK);
        let thread = thread.spawn_scoped(scope, step).map_err(|e| format!("no thread for it: {e}"))?;
        thread.join().unwrap_or_else(|_| Err("the template engine panicked on it".into()))
    })
}

/// `{% generation %}` marks the assistant's words for training masks; the text is the same without it. As in
/// transformers, what is set inside is unknown outside.
fn without_generation(source: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(source.len()), source);
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        let tag = tag.find("%}").map_or(tag, |end| &tag[..end + 2]);
        let word = tag.trim_matches(['{', '%', '}']).trim_matches(['-', '+']).trim();
        let (taken, instead) = match word {
            "generation" | "endgeneration" => (tag.len(), tag.replace("generation", "with")),
            _ => (2, "{%".into()),
        };
        text += before;
        text += &instead;
        rest = &rest[start + taken..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHATML: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
        {{ '<|im_start|>system\nBe brief<|im_end|>\n' }}{% endif %}\
        {{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}\
        {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

    fn render(source: &str) -> Result<String, TemplateError> {
        let template = ChatTemplate::new(source, &Tokenizer::characters())?;
        template.render(&[Message::user(" 1 < 2 & 'so' ")], true)
    }

    #[test]
    fn a_chat_is_rendered() {
        let template = ChatTemplate::new(CHATML, &Tokenizer::characters()).unwrap();
        let text = template.render(&[Message::user("Hi")], true).unwrap();
        let expected =
            "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
        assert_eq!(text, expected);
        let text = template.render(&[Message::system("S"), Message::user("Hi")], false).unwrap();
        assert_eq!(text, "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
    }

    #[test]
    fn the_plain_format_is_the_problem_and_a_newline() {
        let template = ChatTemplate::plain(&Tokenizer::characters());
        assert_eq!(template.render(&[Message::user("3 7 12 = 45")], true).unwrap(), "3 7 12 = 45\n");
        assert_eq!(template.source(), None);
    }

    #[test]
    fn python_helpers_work() {
        let content = "messages[0].content";
        let with = |expression: &str| render(&format!("{{{{ {content}{expression} }}}}")).unwrap();
        assert_eq!(with(".strip().upper()"), "1 < 2 & 'SO'");
        assert_eq!(with(".split('<')[0]"), " 1 ");
        assert_eq!(with(" | tojson"), "\" 1 < 2 & 'so' \"");
        assert_eq!(render("{{ {'a': [1, 2.5, none]} | tojson }}").unwrap(), r#"{"a": [1, 2.5, null]}"#);
        assert_eq!(render("{{ [1] | tojson(indent=2) }}").unwrap(), "[\n  1\n]");
        assert_eq!(render("{{ eos_token }}{{ bos_token }}").unwrap(), "<|end|>");
        for (open, close) in
            [("{% generation %}", "{% endgeneration %}"), ("{%-generation-%}", "{%-  endgeneration\n-%}")]
        {
            let source = format!("{{{{ '{{% \"' }}}}{open}{{% set a = 1 %}}x{close}{{{{ a is defined }}}}");
            assert_eq!(render(&source).unwrap(), "{% \"xFalse");
        }
        assert_eq!(render("{{ tools is none and documents is none }}").unwrap(), "True");
        assert_eq!(render("{% if strftime_now is defined %}yes{% endif %}").unwrap(), "yes");
    }

    #[test]
    fn whitespace_follows_the_rules_of_transformers() {
        let source = "  {% if true %}\na\n  {%- endif %}\nb\n";
        assert_eq!(render(source).unwrap(), "ab");
    }

    #[test]
    fn options_are_variables_that_the_template_reads() {
        let source = "{% set a = 1 %}{{ a }}{% if enable_thinking is defined and enable_thinking is false %}no{% endif %}\
            {{ range(2) | list | length }}{{ bos_token }}{{ messages[0].role }}";
        let mut template = ChatTemplate::new(source, &Tokenizer::characters()).unwrap();
        let option = |name: &str, value: Json| Map::from_iter([(name.to_owned(), value)]);
        template.set_options(option("enable_thinking", false.into())).unwrap();
        assert_eq!(template.render(&[Message::user("")], true).unwrap(), "1no2user");
        template.set_options(option("bos_token", "B".into())).unwrap();
        assert_eq!(template.render(&[Message::user("")], true).unwrap(), "12Buser");
        let error = template.set_options(option("enable_thinkin", false.into())).unwrap_err().to_string();
        assert_eq!(
            error,
            "the chat template reads no option \"enable_thinkin\": expected bos_token, enable_thinking"
        );
        let mut plain = ChatTemplate::plain(&Tokenizer::characters());
        let error = plain.set_options(option("a", Json::Null)).unwrap_err().to_string();
        assert_eq!(error, "the chat template reads no option \"a\": expected none");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let error = render("{{ raise_exception('roles must alternate') }}").unwrap_err().to_string();
        assert!(error.contains("roles must alternate"), "{error}");
        let error = render("{% if %}").unwrap_err().to_string();
        assert!(error.starts_with("the chat template does not parse: "), "{error}");
    }

    #[test]
    fn hostile_templates_are_errors() {
        let nested = |rounds: usize, use_: &str| {
            format!(
                "{{% set ns = namespace(x=[]) %}}{{% for i in range({rounds}) %}}{{% set ns.x = [ns.x, ns.x] %}}\
                 {{% endfor %}}{use_}"
            )
        };
        for (source, expected) in [
            (
                "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}".into(),
                "the chat template refused the messages: expected at most 1000000 steps, got more",
            ),
            ("{{ 'a' * 10000000000 }}".into(), "expected at most 1000000 steps"),
            ("{{ 'a\nb' | indent(100000000000) }}".into(), "expected at most 1000000 steps"),
            ("{{ [1] | batch(100000000000, 'x') | list }}".into(), "expected at most 1000000 steps"),
            ("{{ '%1000000000000d' | format(1) }}".into(), "refused the messages: "),
            ("{{ 'a' * 20000000 }}".into(), "expected a text of at most 8388608 bytes, got 20000000"),
            (nested(30, "{{ ns.x | tojson }}"), "expected at most 1000000 steps"),
            (nested(40, "{{ ns.x | tojson }}"), "tojson: nested deeper than 32"),
            ("{{ [1] | tojson(separators=('x' * 9, ':')) }}".into(), "expected two short separators"),
            ("{% for i in [1] %}{{ loop.cycle() }}{% endfor %}".into(), "the template engine panicked on it"),
            (
                format!("{{{{ {}x }}}}", "-".repeat(8193)),
                "expected at most 8192 signs of + - * / % ~, got 8193",
            ),
            ("x".repeat(65_537), "the chat template: expected at most 65536 bytes, got 65537"),
        ] {
            let error = render(&source).unwrap_err().to_string();
            assert!(error.contains(expected), "{source:.60}: {error}");
        }
        let chain = |link: &str, n: usize| drop(render(&format!("{{{{ {}x }}}}", link.repeat(n))));
        // Refused or not: they end, and the stack bears them.
        chain("-", 8192);
        chain("x+", 8192);
        chain("not ", 16_000);
        chain("x or ", 13_000);
        for use_ in ["x", "{{ ns.x }}", "{{ ns.x == ns.x }}", "{{ ns.x | length }}"] {
            drop(render(&nested(90_000, use_).replace("[ns.x, ns.x]", "[ns.x]")));
        }
    }

    #[test]
    fn a_long_conversation_is_no_hostile_one() {
        // Looks back over all messages for each of them, as templates with tools do.
        let source = "{% for message in messages %}{% set text = message.content | trim %}\
            {% for other in messages[::-1] %}{% if other.role == 'user' and not other.content.startswith('<t>') %}\
            {% break %}{% endif %}{% endfor %}{{ message.role ~ ': ' ~ text.split('</think>')[-1] }}{% endfor %}";
        let messages = vec![Message::user("word ".repeat(1_000)); 100];
        let template = ChatTemplate::new(source, &Tokenizer::characters()).unwrap();
        assert!(template.render(&messages, true).unwrap().len() > 490_000);
    }

    #[test]
    fn templates_are_found_in_a_folder() {
        let dir = std::env::temp_dir().join(format!("parallel-r1-template-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let tokenizer = Tokenizer::characters();
        let load = || ChatTemplate::load(&dir, &tokenizer);
        let config = |text: &str| std::fs::write(dir.join("tokenizer_config.json"), text).unwrap();
        assert_eq!(load().unwrap().source(), None);
        config(r#"{"chat_template": "one"}"#);
        assert_eq!(load().unwrap().source(), Some("one"));
        config(r#"{"chat_template": [{"name": "default", "template": "two"}]}"#);
        assert_eq!(load().unwrap().source(), Some("two"));
        config(r#"{"chat_template": [{"name": "tools", "template": "two"}]}"#);
        let error = load().err().unwrap().to_string();
        assert!(error.contains("expected a template named \"default\", got [\"tools\"]"), "{error}");
        ChatTemplate::new("three", &tokenizer).unwrap().save(&dir).unwrap();
        assert_eq!(load().unwrap().source(), Some("three"));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
