//! Text to token ids and back, by a Hugging Face `tokenizer.json`.
//!
//! A prompt and a response are encoded differently. A prompt is rendered by a chat template whose special
//! tokens must become their ids. A response is encoded piece by piece: its text means nothing but text (a
//! written `<|im_end|>` does not end it), a piece in the middle of a response gets no space in front, and
//! structure comes only from the ids of the six tags. So two views of one vocabulary are kept: `whole` as the
//! file says, `piece` without special tokens and without the leading space that some tokenizers add.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::{AddedToken, Tokenizer as HfTokenizer};

use super::tags::{Controls, Piece, Tag, TextFault, normalise};

mod folder;

pub(super) use folder::MAX_CONFIG;
pub use folder::MAX_PATH_REWIND;

/// Tokens after which an unfinished character is shown as it is: none has more than four bytes, and a token
/// may end one and begin another.
const MAX_PENDING: usize = 16;

/// What can be wrong with a tokenizer or its files.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is not what its name says.
    #[error("{path}: {reason}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        reason: String,
    },
    /// A special token that the vocabulary does not have.
    #[error("{path}: {key}: expected a token of the vocabulary, got {token:?}")]
    UnknownToken {
        /// The file that names the token.
        path: PathBuf,
        /// The key in the file.
        key: &'static str,
        /// The token.
        token: String,
    },
    /// No file names the token that ends a text.
    #[error(
        "{0}: no end-of-text token: expected eos_token in tokenizer_config.json or eos_token_id in generation_config.json"
    )]
    NoEnd(PathBuf),
    /// Structured text for a tokenizer without tags.
    #[error("the tokenizer has no {0} token: add the six tags to the model first")]
    NoTags(&'static str),
    /// A vocabulary whose ids are not 0, 1, 2, ..., so that a new token would take the place of another.
    #[error("the vocabulary has gaps: a new token would take the id {id} of {token:?}")]
    Taken {
        /// The id.
        id: u32,
        /// Whose it is.
        token: String,
    },
    /// A response whose tags do not nest.
    #[error(transparent)]
    Structure(#[from] TextFault),
    /// The tokenizer itself failed.
    #[error("tokenizer: {0}")]
    Inner(String),
}

impl TokenizerError {
    fn inner(error: tokenizers::Error) -> Self {
        Self::Inner(error.to_string())
    }
}

/// A vocabulary with its rules, the ids that begin and end a text, and what else its folder said about it.
#[derive(Clone)]
pub struct Tokenizer {
    whole: HfTokenizer,
    piece: HfTokenizer,
    bos: Option<u32>,
    end: Vec<u32>,
    leading_space: bool,
    hidden: HashSet<u32>,
    rows: usize,
    config: Map<String, Value>,
    generation: Map<String, Value>,
}

impl Tokenizer {
    /// Wraps a tokenizer built elsewhere. The first of `end` is the one that training writes.
    pub fn new(whole: HfTokenizer, bos: Option<u32>, end: Vec<u32>) -> Result<Self, TokenizerError> {
        Self::assemble(whole, bos, end, Map::new(), Map::new(), Path::new("tokenizer"))
    }

    /// The tokenizer of the embedded task: each printable ASCII character and the newline is a token, so are
    /// the few words that a Countdown trace repeats. It does not contain the tags.
    pub fn characters() -> Self {
        let ordinary = (' '..='~').map(String::from);
        let tokens = ["<|end|>", "<unk>", "\n"].map(String::from).into_iter().chain(ordinary);
        let vocab = tokens.zip(0..).collect::<Vocab>();
        let model = BPE::builder()
            .vocab_and_merges(vocab, Vec::new())
            .unk_token("<unk>".into())
            .build()
            .expect("a vocabulary without merges has nothing to contradict");
        let mut whole = HfTokenizer::new(model);
        whole.with_decoder(Some(tokenizers::decoders::fuse::Fuse::new()));
        let special = ["<|end|>", "<unk>"].map(|token| AddedToken::from(token, true));
        // "Answer: " and "Result: " include their space, or " no" would be found in "Answer: none" first.
        let words = ["Answer: ", "Result: ", " ok", " no", "none"]
            .map(|token| AddedToken::from(token, false).normalized(false));
        whole.add_tokens(special.into_iter().chain(words)).expect("literal tokens, distinct and not empty");
        Self::new(whole, None, vec![0]).expect("a tokenizer without a normaliser encodes anything")
    }

    fn assemble(
        mut whole: HfTokenizer,
        bos: Option<u32>,
        mut end: Vec<u32>,
        config: Map<String, Value>,
        generation: Map<String, Value>,
        dir: &Path,
    ) -> Result<Self, TokenizerError> {
        // Files may carry the limits of somebody's last call; a prompt must never be cut or padded in
        // silence.
        whole.with_truncation(None).map_err(TokenizerError::inner)?.with_padding(None);
        let mut seen = HashSet::new();
        end.retain(|id| seen.insert(*id));
        if end.is_empty() {
            return Err(TokenizerError::NoEnd(dir.into()));
        }
        let piece = guarded(|| piece_view(&whole))?;
        let tags = Tag::ALL.map(|tag| whole.token_to_id(tag.text()));
        let hidden = whole
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(id, token)| token.special && !tags.contains(&Some(*id)))
            .map(|(id, _)| id)
            .chain(end.iter().copied())
            .collect();
        let rows = whole.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1);
        let leading_space = encode(&whole, "a", false)? != encode(&piece, "a", false)?;
        Ok(Self { whole, piece, bos, end, leading_space, hidden, rows, config, generation })
    }

    /// Encodes text that stands alone, with the leading space if this tokenizer puts one there. Special
    /// tokens in it are plain text.
    pub fn encode_text(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        if self.leading_space && !text.starts_with(' ') {
            return encode(&self.piece, &format!(" {text}"), false);
        }
        self.encode_piece(text)
    }

    /// Encodes text in the middle of a response: nothing is put in front, and special tokens in it are plain
    /// text.
    pub fn encode_piece(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        encode(&self.piece, text, false)
    }

    /// Encodes what a chat template rendered. The template writes all special tokens, the first one too (the
    /// plain format as well, see [`Tokenizer::leading_token`]), so none is added here.
    pub fn encode_prompt(&self, rendered: &str) -> Result<Vec<u32>, TokenizerError> {
        encode(&self.whole, rendered, false)
    }

    /// Encodes a response to learn from: the tags by their ids, the text between them piece by piece,
    /// end-of-text last.
    pub fn encode_response(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let mut ids = Vec::new();
        for piece in normalise(text)? {
            match piece {
                Piece::Text(text) => ids.extend(self.encode_piece(&text)?),
                Piece::Tag(tag) => {
                    ids.push(self.id(tag.text()).ok_or(TokenizerError::NoTags(tag.text()))?);
                }
            }
        }
        ids.push(self.end[0]);
        Ok(ids)
    }

    /// The text of some ids: the tags are shown, end-of-text and other special tokens are not.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        let shown: Vec<u32> = ids.iter().copied().filter(|id| !self.hidden.contains(id)).collect();
        guarded(|| self.piece.decode(&shown, false).map_err(TokenizerError::inner))
    }

    /// Decodes one id at a time.
    pub fn decode_stream(&self) -> DecodeStream<'_> {
        DecodeStream { tokenizer: self, pending: Vec::new() }
    }

    /// The id of a token, by its exact text.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.whole.token_to_id(token)
    }

    /// The text of a single token as the vocabulary writes it, special ones too.
    pub fn token(&self, id: u32) -> Option<String> {
        self.whole.id_to_token(id)
    }

    /// Rows that an embedding table needs: the largest id plus one.
    pub fn vocab_size(&self) -> usize {
        self.rows
    }

    /// Id of the token that begins a text, if there is one.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// Ids that end a text; the first is the one that training writes. Never empty.
    pub fn end(&self) -> &[u32] {
        &self.end
    }

    /// The begin-of-text token, if this tokenizer puts it before every text.
    pub fn leading_token(&self) -> Option<String> {
        let bos = self.bos?;
        let adds_it = encode(&self.whole, "a", true).is_ok_and(|ids| ids.first() == Some(&bos));
        adds_it.then(|| self.token(bos)).flatten()
    }

    /// Whether all six tags are tokens.
    pub fn has_tags(&self) -> bool {
        Tag::ALL.iter().all(|tag| self.id(tag.text()).is_some())
    }

    /// Makes each of the six tags one token and returns the ids that are new. A second call changes nothing.
    pub fn add_tags(&mut self) -> Result<Vec<u32>, TokenizerError> {
        let missing: Vec<Tag> = Tag::ALL.into_iter().filter(|tag| self.id(tag.text()).is_none()).collect();
        // Not special: programs that hide special tokens would hide the structure of every answer.
        let tokens = Tag::ALL.map(|tag| AddedToken::from(tag.text(), false).normalized(false));
        let mut whole = self.whole.clone();
        whole.add_tokens(tokens).map_err(TokenizerError::inner)?;
        let new: Vec<u32> = missing.into_iter().filter_map(|tag| whole.token_to_id(tag.text())).collect();
        if let Some((id, token)) = new.iter().find_map(|id| Some((*id, self.token(*id)?))) {
            return Err(TokenizerError::Taken { id, token });
        }
        let (end, config, generation) = (self.end.clone(), self.config.clone(), self.generation.clone());
        *self = Self::assemble(whole, self.bos, end, config, generation, Path::new("tokenizer"))?;
        Ok(new)
    }

    /// The ids that steer structure.
    pub fn controls(&self) -> Result<Controls, TokenizerError> {
        let ids: Vec<u32> = Tag::ALL.iter().filter_map(|tag| self.id(tag.text())).collect();
        let newline = self.encode_piece("\n")?;
        if newline.is_empty() || self.decode(&newline)? != "\n" {
            return Err(TokenizerError::Inner("the vocabulary cannot write a newline".into()));
        }
        Ok(Controls {
            tags: ids.try_into().ok(),
            end: self.end.clone(),
            newline,
            path_rewind: self.path_rewind(),
        })
    }
}

/// Decodes a stream of ids to text that never ends inside a character.
pub struct DecodeStream<'a> {
    tokenizer: &'a Tokenizer,
    pending: Vec<u32>,
}

impl DecodeStream<'_> {
    /// Takes the next id and returns the text that is now complete, often all of it, sometimes none.
    pub fn push(&mut self, id: u32) -> Result<String, TokenizerError> {
        self.pending.push(id);
        let text = self.tokenizer.decode(&self.pending)?;
        if text.ends_with(char::REPLACEMENT_CHARACTER) && self.pending.len() < MAX_PENDING {
            return Ok(String::new());
        }
        self.pending.clear();
        Ok(text)
    }

    /// Returns what is left, a broken character included.
    pub fn flush(&mut self) -> Result<String, TokenizerError> {
        self.tokenizer.decode(&std::mem::take(&mut self.pending))
    }
}

fn encode(tokenizer: &HfTokenizer, text: &str, special: bool) -> Result<Vec<u32>, TokenizerError> {
    let encoding = guarded(|| tokenizer.encode_fast(text, special).map_err(TokenizerError::inner))?;
    Ok(encoding.get_ids().to_vec())
}

/// The `tokenizers` crate panics on rules that it did not foresee; that is an error of the file, not of this
/// program.
fn guarded<T>(step: impl FnOnce() -> Result<T, TokenizerError>) -> Result<T, TokenizerError> {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| {
        let reason = "expected rules that the `tokenizers` crate can follow, got some on which it panicked";
        Err(TokenizerError::Inner(reason.into()))
    })
}

/// The same vocabulary for pieces of a response: special tokens are text, and no space is put in front (or
/// taken away when decoding).
fn piece_view(whole: &HfTokenizer) -> Result<HfTokenizer, TokenizerError> {
    fn edit<T: serde::Serialize + serde::de::DeserializeOwned>(
        part: Option<&T>,
    ) -> Result<Option<T>, TokenizerError> {
        let wrong = |e: serde_json::Error| TokenizerError::Inner(e.to_string());
        let Some(part) = part else { return Ok(None) };
        let edited = without_prefix(serde_json::to_value(part).map_err(wrong)?);
        edited.map(serde_json::from_value).transpose().map_err(wrong)
    }
    let mut piece = whole.clone();
    piece.set_encode_special_tokens(true);
    piece.with_normalizer(edit(whole.get_normalizer())?).map_err(TokenizerError::inner)?;
    piece.with_pre_tokenizer(edit(whole.get_pre_tokenizer())?);
    piece.with_decoder(edit(whole.get_decoder())?);
    Ok(piece)
}

/// Removes from a normaliser, pre-tokenizer or decoder what adds or strips a leading space.
fn without_prefix(mut part: Value) -> Option<Value> {
    match part["type"].as_str() {
        Some("Prepend" | "Strip") => return None,
        Some("Metaspace") => part["prepend_scheme"] = json!("never"),
        Some("ByteLevel") => part["add_prefix_space"] = json!(false),
        Some("Sequence") => {
            for list in ["normalizers", "pretokenizers", "decoders"] {
                if let Some(Value::Array(parts)) = part.get_mut(list) {
                    *parts = std::mem::take(parts).into_iter().filter_map(without_prefix).collect();
                }
            }
        }
        _ => {}
    }
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokenizers::normalizers::{Prepend, Replace, Sequence};

    /// A tokenizer in the manner of SentencePiece: a leading space, bytes for what the vocabulary lacks.
    fn sentence_piece() -> Tokenizer {
        let bytes = (0..=255u8).map(|byte| format!("<0x{byte:02X}>"));
        let vocab = ["<unk>", "<s>", "</s>"].map(String::from).into_iter().chain(bytes);
        let letters = "\u{2581}abc".chars().map(String::from).chain(["\u{2581}a".into()]);
        let vocab = vocab.chain(letters).zip(0..).collect::<Vocab>();
        let model = BPE::builder()
            .vocab_and_merges(vocab, vec![("\u{2581}".into(), "a".into())])
            .byte_fallback(true)
            .build()
            .unwrap();
        let mut whole = HfTokenizer::new(model);
        let replace = Replace::new(" ", "\u{2581}").unwrap();
        let steps = vec![Prepend::new("\u{2581}".into()).into(), replace.into()];
        whole.with_normalizer(Some(Sequence::new(steps))).unwrap();
        let decoder = json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u{2581}"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]});
        let decoder: tokenizers::DecoderWrapper = serde_json::from_value(decoder).unwrap();
        whole.with_decoder(Some(decoder));
        let processor = json!({"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}});
        let processor: tokenizers::PostProcessorWrapper = serde_json::from_value(processor).unwrap();
        whole.with_post_processor(Some(processor));
        whole.add_tokens(["<s>", "</s>"].map(|token| AddedToken::from(token, true))).unwrap();
        Tokenizer::new(whole, Some(1), vec![2]).unwrap()
    }

    #[test]
    fn characters_are_tokens_and_so_are_the_words_of_a_trace() {
        let tokenizer = Tokenizer::characters();
        let text = "7*3=21,21+12=33 no\n3*15=45 ok\nAnswer: none";
        let ids = tokenizer.encode_piece(text).unwrap();
        let words = ["Answer: ", "Result: ", " ok", " no", "none"].map(|word| tokenizer.id(word).unwrap());
        assert_eq!(ids.iter().filter(|id| words.contains(id)).count(), 4);
        assert_eq!(ids.len(), text.len() - (8 + 3 + 3 + 4) + 4);
        assert_eq!(tokenizer.decode(&ids).unwrap(), text);
        assert_eq!(tokenizer.encode_piece("\u{e9}").unwrap(), [tokenizer.id("<unk>").unwrap()]);
        assert_eq!((tokenizer.vocab_size(), tokenizer.has_tags()), (103, false));
        assert_eq!(tokenizer.controls().unwrap().newline.len(), 1);
        assert_eq!(tokenizer.controls().unwrap().tags, None);
    }

    #[test]
    fn tags_are_added_once_as_single_tokens() {
        let mut tokenizer = Tokenizer::characters();
        assert_eq!(tokenizer.add_tags().unwrap(), [103, 104, 105, 106, 107, 108]);
        assert!(tokenizer.add_tags().unwrap().is_empty());
        assert_eq!(tokenizer.vocab_size(), 109);
        let text =
            "3+4=7\n<Parallel><Path>7*6=42</Path><Path>a b</Path></Parallel>\n<Summary>42 ok</Summary>";
        let mut ids = tokenizer.encode_response(text).unwrap();
        assert_eq!(tokenizer.decode(&ids).unwrap(), text);
        assert_eq!(ids.pop(), Some(tokenizer.end()[0]));
        assert_eq!(ids, tokenizer.encode_prompt(text).unwrap());
        assert_eq!(tokenizer.controls().unwrap().tags, Some([103, 104, 105, 106, 107, 108]));
    }

    #[test]
    fn structure_without_tags_is_an_error() {
        let text = "<Parallel><Path>x</Path></Parallel>\n<Summary>y</Summary>";
        let error = Tokenizer::characters().encode_response(text).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the tokenizer has no <Parallel> token: add the six tags to the model first"
        );
    }

    #[test]
    fn special_tokens_in_text_are_text() {
        let tokenizer = Tokenizer::characters();
        assert_eq!(tokenizer.encode_prompt("<|end|>").unwrap(), tokenizer.end());
        assert_eq!(tokenizer.encode_piece("<|end|>").unwrap().len(), 7);
        assert_eq!(tokenizer.encode_text("<|end|>").unwrap().len(), 7);
    }

    #[test]
    fn a_piece_gets_no_leading_space_and_keeps_its_own() {
        let tokenizer = sentence_piece();
        let a = tokenizer.id("\u{2581}a").unwrap();
        assert_eq!(tokenizer.encode_prompt("a").unwrap(), [a]);
        assert_eq!(tokenizer.encode_text("a").unwrap(), [a]);
        assert_eq!(tokenizer.encode_text(" a").unwrap(), [a]);
        assert_eq!(tokenizer.encode_piece("a").unwrap(), [tokenizer.id("a").unwrap()]);
        for text in [" a", "a b", "\n", "  \u{1F980} c"] {
            assert_eq!(tokenizer.decode(&tokenizer.encode_piece(text).unwrap()).unwrap(), text);
        }
        assert_eq!(tokenizer.leading_token().as_deref(), Some("<s>"));
        assert_eq!(tokenizer.encode_prompt("<s>a").unwrap(), [1, a]);
    }

    #[test]
    fn a_stream_waits_for_whole_characters() {
        let tokenizer = sentence_piece();
        let ids = tokenizer.encode_piece("a\u{1F980}b").unwrap();
        let mut stream = tokenizer.decode_stream();
        let parts: Vec<String> = ids.iter().map(|id| stream.push(*id).unwrap()).collect();
        assert_eq!(parts, ["a", "", "", "", "\u{1F980}", "b"]);
        stream.push(ids[1]).unwrap();
        assert_eq!(stream.flush().unwrap(), "\u{FFFD}");
    }

    #[test]
    fn tags_never_take_the_id_of_another_token() {
        let vocab = [("<e>", 0), ("a", 1), ("b", 4)].map(|(token, id)| (token.to_owned(), id));
        let model =
            BPE::builder().vocab_and_merges(vocab.into_iter().collect::<Vocab>(), vec![]).build().unwrap();
        let mut tokenizer = Tokenizer::new(HfTokenizer::new(model), None, vec![0]).unwrap();
        let error = tokenizer.add_tags().unwrap_err().to_string();
        assert_eq!(error, "the vocabulary has gaps: a new token would take the id 4 of \"b\"");
        assert_eq!((tokenizer.vocab_size(), tokenizer.has_tags()), (5, false));
    }

    proptest! {
        #[test]
        fn text_comes_back(text in "[ -~\n]{0,80}") {
            let tokenizer = Tokenizer::characters();
            let ids = tokenizer.encode_piece(&text).unwrap();
            prop_assert_eq!(tokenizer.decode(&ids).unwrap(), text);
        }
    }
}
