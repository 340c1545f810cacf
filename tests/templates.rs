//! Chat templates against transformers: constructs of published ones, on conversations of every kind
//! (`tests/reference/chat_templates.py` made the texts).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parallel_r1::prompt::{ChatTemplate, Message, Tokenizer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct Inputs {
    made_by: Value,
    tokens: Map<String, Value>,
    conversations: BTreeMap<String, Vec<Message>>,
    options: BTreeMap<String, Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
struct Case {
    conversation: String,
    options: String,
    opened: bool,
    #[serde(flatten)]
    result: Expected,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Expected {
    Text(String),
    Refused(String),
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/templates")
}

fn read<T: DeserializeOwned>(file: &Path) -> T {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn today() -> String {
    let template = ChatTemplate::new("{{ strftime_now('%d %b %Y') }}", &Tokenizer::characters()).unwrap();
    template.render(&[], false).unwrap()
}

/// Sets those options that the template reads.
fn set(template: &mut ChatTemplate, options: &Map<String, Value>) {
    let mut kept = Map::new();
    for (name, value) in options {
        let one = Map::from_iter([(name.clone(), value.clone())]);
        if template.set_options(one.clone()).is_ok() {
            kept.extend(one);
        }
    }
    template.set_options(kept).unwrap();
}

#[test]
fn templates_render_as_transformers_renders_them() {
    let inputs: Inputs = read(&golden().join("inputs.json"));
    let (mut compared, mut wrong) = (0, Vec::new());
    let files = std::fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|file| file.extension().is_some_and(|kind| kind == "jinja")) {
        let source = std::fs::read_to_string(&file).unwrap();
        let mut template = ChatTemplate::new(&source, &Tokenizer::characters()).unwrap();
        for case in read::<Vec<Case>>(&file.with_extension("json")) {
            let mut options = inputs.tokens.clone();
            options.extend(inputs.options[&case.options].clone());
            set(&mut template, &options);
            // The day may end between two renderings.
            let before = today();
            let ours = template.render(&inputs.conversations[&case.conversation], case.opened);
            let ours = ours.map_err(|error| error.to_string());
            let equal = match (&ours, &case.result) {
                (Ok(text), Expected::Text(theirs)) => {
                    [before, today()].iter().any(|day| *text == theirs.replace("DATE", day))
                }
                (Err(error), Expected::Refused(reason)) => error.contains(reason),
                _ => false,
            };
            compared += 1;
            if !equal {
                wrong.push(format!("{}: {case:?}\nours: {ours:?}", file.display()));
            }
        }
    }
    let (first, made_by) = (wrong.first(), &inputs.made_by);
    assert!(wrong.is_empty(), "{} of {compared} differ (made by {made_by}): {}", wrong.len(), first.unwrap());
    assert!(compared > 250, "{compared}");
}

#[test]
fn a_prompt_has_the_begin_of_text_that_its_template_writes_and_no_other() {
    // Llama 3's tokenizer puts the token before every text of its own accord.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tokenizers/llama3");
    let tokenizer = Tokenizer::load(&folder).unwrap();
    let begins = |template: &ChatTemplate| {
        let ids = tokenizer.encode_prompt(&template.render(&[Message::user("a")], true).unwrap()).unwrap();
        ids.iter().take_while(|id| Some(**id) == tokenizer.bos()).count()
    };
    assert!(tokenizer.leading_token().is_some());
    let template = |source| ChatTemplate::new(source, &tokenizer).unwrap();
    assert_eq!(begins(&template("{{ bos_token }}{{ messages[0].content }}")), 1);
    // As transformers' apply_chat_template, which adds no special tokens to what a template wrote.
    assert_eq!(begins(&template("{{ messages[0].content }}")), 0);
    assert_eq!(begins(&ChatTemplate::plain(&tokenizer)), 1);
}
