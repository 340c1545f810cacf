//! Tokenizers against Python's `tokenizers`: families in small, on 2,000 texts of every kind
//! (`tests/reference/tokenizer_families.py` made the numbers).

use std::path::{Path, PathBuf};

use candle_core::Device;
use parallel_r1::layout::{Structure, parse};
use parallel_r1::model::Pretrained;
use parallel_r1::prompt::Tokenizer;
use serde::Deserialize;

const FAMILIES: [&str; 8] = ["gpt2", "smollm", "llama3", "tekken", "qwen2", "qwen35", "llama2", "llama2-new"];

/// What Python gives: for each line four hexadecimal digits or one flag.
#[derive(Deserialize)]
struct Expected {
    made_by: serde_json::Value,
    /// The ids of "a" as a text of its own, with what is put before every text.
    alone: Vec<u32>,
    /// Fingerprints of the lines' ids as prompts.
    prompts: String,
    /// Fingerprints of the lines' ids as pieces of a response.
    pieces: String,
    /// Whether a line comes back from its ids.
    restored: String,
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tokenizers")
}

fn lines() -> Vec<String> {
    let lines: Vec<String> =
        serde_json::from_str(&std::fs::read_to_string(golden().join("lines.json")).unwrap()).unwrap();
    assert_eq!(lines.len(), 2_000);
    lines
}

fn from_gguf(file: &Path) -> Tokenizer {
    Pretrained::open(&file.to_string_lossy(), &Device::Cpu).unwrap().tokenizer
}

/// FNV-1a over the ids as little-endian 32-bit numbers, its halves folded into 16 bits.
fn fingerprint(ids: &[u32]) -> String {
    let bytes = ids.iter().flat_map(|id| id.to_le_bytes());
    let hash = bytes.fold(0x811C_9DC5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{:04x}", hash >> 16 ^ hash & 0xffff)
}

/// Names the first lines whose ids differ from Python's.
fn compare(what: &str, encode: impl Fn(&str) -> Vec<u32>, fingerprints: &str, lines: &[String]) {
    assert_eq!(fingerprints.len(), 4 * lines.len(), "{what}");
    let differs =
        |(at, line): &(usize, &String)| fingerprint(&encode(line)) != fingerprints[4 * at..4 * at + 4];
    let wrong: Vec<_> = lines.iter().enumerate().filter(differs).collect();
    let shown: String =
        wrong.iter().take(8).map(|(at, line)| format!("\n{at}: {line:?} is {:?}", encode(line))).collect();
    assert!(wrong.is_empty(), "{what}: {} of {} lines differ from Python:{shown}", wrong.len(), lines.len());
}

fn check(what: &str, folder: &Path, tokenizer: &Tokenizer) {
    let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: Expected = serde_json::from_str(&text).unwrap();
    let (lines, what) = (lines(), format!("{what} (made by {})", expected.made_by));
    compare(
        &format!("{what}, prompts"),
        |line| tokenizer.encode_prompt(line).unwrap(),
        &expected.prompts,
        &lines,
    );
    compare(
        &format!("{what}, pieces"),
        |line| tokenizer.encode_piece(line).unwrap(),
        &expected.pieces,
        &lines,
    );
    let leading = tokenizer.leading_token().map(|token| tokenizer.id(&token).unwrap());
    assert_eq!(leading, expected.alone.first().copied().filter(|id| Some(*id) == tokenizer.bos()), "{what}");
    for (line, _) in lines.iter().zip(expected.restored.chars()).filter(|(_, restored)| *restored == '1') {
        assert_eq!(&tokenizer.decode(&tokenizer.encode_piece(line).unwrap()).unwrap(), line, "{what}");
    }
}

#[test]
fn folders_give_the_ids_that_python_gives() {
    for family in FAMILIES {
        let folder = golden().join(family);
        check(family, &folder, &Tokenizer::load(&folder).unwrap());
    }
}

#[test]
fn gguf_files_give_the_ids_of_the_folders_they_were_converted_from() {
    // A file does not say which of Llama 2's two rules for the leading space its folder had.
    for family in FAMILIES.into_iter().filter(|family| *family != "llama2-new") {
        let folder = golden().join(family);
        check(&format!("{family}.gguf"), &folder, &from_gguf(&folder.join("model.gguf")));
    }
}

#[test]
fn tags_become_the_next_six_tokens_of_every_family() {
    let lines = lines();
    for family in FAMILIES {
        let mut tokenizer = Tokenizer::load(&golden().join(family)).unwrap();
        let size = tokenizer.vocab_size() as u32;
        assert_eq!(tokenizer.add_tags().unwrap(), (size..size + 6).collect::<Vec<_>>(), "{family}");
        assert!(tokenizer.add_tags().unwrap().is_empty(), "{family}");

        let folder = tempfile::tempdir().unwrap();
        tokenizer.save(folder.path()).unwrap();
        let saved = Tokenizer::load(folder.path()).unwrap();
        for line in lines.iter().step_by(9).map(|line| format!("{line}<Path>{line}")) {
            let ids = tokenizer.encode_prompt(&line).unwrap();
            assert!(ids.contains(&(size + 2)), "{family}: {line:?}");
            assert_eq!(saved.encode_prompt(&line).unwrap(), ids, "{family}: {line:?}");
        }
    }
}

#[test]
fn a_prompt_may_speak_of_tags() {
    for family in FAMILIES {
        let mut tokenizer = Tokenizer::load(&golden().join(family)).unwrap();
        tokenizer.add_tags().unwrap();
        let prompt = tokenizer.encode_prompt("What does </Path> mean after <Parallel>?").unwrap();
        let response = tokenizer.encode_response("It ends a path.").unwrap();
        let controls = tokenizer.controls().unwrap();
        let parsed = parse(&prompt, &response, &controls, Structure::PathWindow).unwrap();
        assert_eq!(parsed.layout.segments().len(), 2, "{family}");
        assert_eq!(parsed.sampled.iter().filter(|sampled| **sampled).count(), response.len(), "{family}");
    }
}

#[test]
fn tags_take_the_spare_rows_of_a_padded_vocabulary() {
    let file = golden().join("qwen2/model.gguf");
    let model = Pretrained::open(&file.to_string_lossy(), &Device::Cpu).unwrap();
    let (rows, size) = (model.decoder.config().vocab_size, model.tokenizer.vocab_size());
    assert_eq!(rows, size + 9);
    let model = model.with_tags(0).unwrap();
    assert_eq!((model.decoder.config().vocab_size, model.tokenizer.vocab_size()), (rows, size + 6));
}
