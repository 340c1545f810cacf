//! The tokenizer of a GGUF file, rebuilt as the Hugging Face tokenizer it was converted from.
//!
//! Two kinds exist in the Llama family: byte-level BPE ("gpt2"), whose file names the rule that splits text
//! before merging, and SentencePiece BPE ("llama"), whose merges are implied by the scores of the pieces.

use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::normalizers::{NFC, Prepend, Replace, Sequence as Normalizers};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence as Splits;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer as HfTokenizer};

use super::metadata::Metadata;
use crate::prompt::Tokenizer;

const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";

/// The mark that SentencePiece writes for a space.
const SPACE: &str = "\u{2581}";

/// The longest token in bytes; it is a word or a run of spaces. Work for implied merges grows with its square.
const MAX_TOKEN: usize = 1024;

/// Token types as llama.cpp numbers them.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const UNUSED: i32 = 5;

/// Rebuilds the tokenizer.
pub(super) fn tokenizer(metadata: &Metadata) -> Result<Tokenizer, String> {
    let kind = metadata.text("tokenizer.ggml.model")?.unwrap_or("nothing");
    let mut tokens = metadata.texts(TOKENS)?.ok_or_else(|| format!("{TOKENS}: missing"))?;
    if let Some((index, token)) = tokens.iter().enumerate().find(|(_, token)| token.len() > MAX_TOKEN) {
        let got = token.len();
        return Err(format!("{TOKENS}: token {index}: expected at most {MAX_TOKEN} bytes, got {got}"));
    }
    let types = metadata.integers(TYPES)?.unwrap_or_else(|| vec![NORMAL; tokens.len()]);
    if types.len() != tokens.len() {
        return Err(format!("{TYPES}: expected {} numbers, got {}", tokens.len(), types.len()));
    }
    // Padding to the rows of the embedding; these rows are free for new tokens.
    let padding =
        |&(index, token): &(usize, &&str)| types[index] == UNUSED || *token == format!("[PAD{index}]");
    tokens.truncate(tokens.len() - tokens.iter().enumerate().rev().take_while(padding).count());
    // SentencePiece models of these families begin every text with the token unless the file denies it.
    let (mut whole, begins) = match kind {
        "gpt2" => byte_level(metadata, &tokens)?,
        "llama" => (sentence_piece(metadata, &tokens, &types)?, true),
        other => {
            return Err(format!("tokenizer.ggml.model: expected \"gpt2\" or \"llama\", got {other:?}"));
        }
    };
    let added = tokens.iter().zip(&types).filter_map(|(token, kind)| match *kind {
        UNKNOWN | CONTROL => Some(AddedToken::from(*token, true)),
        USER_DEFINED => Some(AddedToken::from(*token, false).normalized(false)),
        _ => None,
    });
    whole.add_tokens(added).map_err(|e| format!("{TOKENS}: {e}"))?;

    let id = |key: &str| match metadata.id(key)? {
        Some(id) if id as usize >= tokens.len() => {
            Err(format!("{key}: expected an id below {}, got {id}", tokens.len()))
        }
        id => Ok(id),
    };
    let bos = id("tokenizer.ggml.bos_token_id")?;
    let eos = id("tokenizer.ggml.eos_token_id")?.ok_or("tokenizer.ggml.eos_token_id: missing")?;
    let end = std::iter::once(eos).chain(id("tokenizer.ggml.eot_token_id")?).collect();
    if metadata.flag("tokenizer.ggml.add_bos_token")?.unwrap_or(begins) {
        let bos = bos.ok_or("tokenizer.ggml.bos_token_id: missing")?;
        begin_with(&mut whole, tokens[bos as usize], bos)?;
    }
    Tokenizer::new(whole, bos, end).map_err(|e| e.to_string())
}

fn begin_with(whole: &mut HfTokenizer, token: &str, id: u32) -> Result<(), String> {
    let processor = TemplateProcessing::builder()
        .try_single(format!("{token} $A"))?
        .special_tokens(vec![(token, id)])
        .build()
        .map_err(|e| format!("tokenizer.ggml.bos_token_id: {e}"))?;
    whole.with_post_processor(Some(processor));
    Ok(())
}

/// Byte-level BPE with the rules that `tokenizer.ggml.pre` names; and whether it begins every text with a token.
fn byte_level(metadata: &Metadata, tokens: &[&str]) -> Result<(HfTokenizer, bool), String> {
    let vocab = vocabulary(tokens);
    let lines = metadata.texts(MERGES)?.ok_or_else(|| format!("{MERGES}: missing"))?;
    let mut merges = Merges::with_capacity(lines.len());
    for line in lines {
        let known = |token: &str| vocab.contains_key(token);
        match line.split_once(' ') {
            Some((a, b)) if known(a) && known(b) && known(&format!("{a}{b}")) => {
                merges.push((a.into(), b.into()));
            }
            _ => {
                return Err(format!("{MERGES}: expected pairs of tokens that join to a token, got {line:?}"));
            }
        }
    }
    let rules = Rules::named(metadata.text("tokenizer.ggml.pre")?.unwrap_or("default"))?;
    let model = BPE::builder()
        .vocab_and_merges(vocab, merges)
        .ignore_merges(rules.whole_words)
        .build()
        .map_err(|e| format!("{MERGES}: {e}"))?;
    let mut whole = HfTokenizer::new(model);
    whole.with_pre_tokenizer(Some(rules.split));
    whole.with_decoder(Some(ByteLevel::default()));
    if rules.compose {
        whole.with_normalizer(Some(NFC)).map_err(|e| e.to_string())?;
    }
    Ok((whole, rules.begins))
}

/// What a byte-level family does besides merging, as its published `tokenizer.json` says.
struct Rules {
    /// How text is split into words.
    split: Splits,
    /// Whether a whole word is looked up before it is merged.
    whole_words: bool,
    /// Whether characters are composed first (NFC).
    compose: bool,
    /// Whether every text begins with a token, where the file says nothing of it.
    begins: bool,
}

impl Rules {
    fn named(name: &str) -> Result<Self, String> {
        let plain = |split| Self { split, whole_words: false, compose: false, begins: false };
        Ok(match name {
            "default" | "gpt-2" => plain(Splits::new(vec![ByteLevel::new(false, true, true).into()])),
            "smollm" | "starcoder" | "refact" => {
                plain(Splits::new(vec![Digits::new(true).into(), ByteLevel::new(false, true, true).into()]))
            }
            "llama-bpe" | "llama3" | "llama-v3" => {
                Self { whole_words: true, begins: true, ..plain(words(&llama(r"\p{L}", r"\p{N}{1,3}"))?) }
            }
            "tekken" => Self { whole_words: true, begins: true, ..plain(words(TEKKEN)?) },
            "qwen2" | "deepseek-r1-qwen" => {
                Self { compose: true, ..plain(words(&llama(r"\p{L}", r"\p{N}"))?) }
            }
            "qwen35" => Self { compose: true, ..plain(words(&llama(r"\p{L}\p{M}", r"\p{N}"))?) },
            other => {
                return Err(format!(
                    "tokenizer.ggml.pre: expected default, gpt-2, smollm, starcoder, refact, llama-bpe, llama3, \
                     llama-v3, tekken, qwen2, deepseek-r1-qwen or qwen35, got {other:?}"
                ));
            }
        })
    }
}

/// The word pattern that Llama 3 and Qwen share; they differ in what belongs to a word and in how they group
/// digits.
fn llama(letters: &str, digits: &str) -> String {
    format!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?[{letters}]+|{digits}| ?[^\s{letters}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
}

/// The word pattern of Mistral's Tekken: a word begins anew where a capital follows a small letter.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

fn words(pattern: &str) -> Result<Splits, String> {
    let pattern = SplitPattern::Regex(pattern.into());
    let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(|e| e.to_string())?;
    Ok(Splits::new(vec![split.into(), ByteLevel::new(false, true, false).into()]))
}

/// SentencePiece BPE: spaces are a visible mark, unknown characters become bytes.
fn sentence_piece(metadata: &Metadata, tokens: &[&str], types: &[i32]) -> Result<HfTokenizer, String> {
    const SCORES: &str = "tokenizer.ggml.scores";
    let scores = metadata.floats(SCORES)?.ok_or_else(|| format!("{SCORES}: missing"))?;
    if scores.len() != types.len() {
        return Err(format!("{SCORES}: expected {} numbers, got {}", types.len(), scores.len()));
    }
    let vocab = vocabulary(tokens);
    let merges = implied_merges(tokens, types, &scores, &vocab);
    let mut builder = BPE::builder().vocab_and_merges(vocab, merges).byte_fallback(true).fuse_unk(true);
    if let Some(unknown) = types.iter().position(|kind| *kind == UNKNOWN) {
        builder = builder.unk_token(tokens[unknown].into());
    }
    let mut whole = HfTokenizer::new(builder.build().map_err(|e| format!("{TOKENS}: {e}"))?);

    let prefix = metadata.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let replace = |from: &str, to: &str| Replace::new(from, to).map_err(|e| e.to_string());
    let mut steps = vec![replace(" ", SPACE)?.into()];
    let mut back = vec![replace(SPACE, " ")?.into(), ByteFallback::new().into(), Fuse::new().into()];
    if prefix {
        steps.insert(0, Prepend::new(SPACE.into()).into());
        back.push(Strip::new(' ', 1, 0).into());
    }
    whole.with_normalizer(Some(Normalizers::new(steps))).map_err(|e| e.to_string())?;
    whole.with_decoder(Some(Decoders::new(back)));
    Ok(whole)
}

/// SentencePiece joins the neighbours whose joint piece scores best. As ranked merges: for each piece all its
/// splits into two pieces; better pieces first, then as transformers orders them when it converts such a
/// vocabulary. Only ordinary pieces are joined: no text becomes `</s>` because `</` and `s>` are pieces.
fn implied_merges(tokens: &[&str], types: &[i32], scores: &[f32], vocab: &Vocab) -> Merges {
    let ordinary = |token: &str| vocab.get(token).filter(|id| types[**id as usize] == NORMAL);
    let mut merges = Vec::new();
    for (token, score) in tokens.iter().zip(scores).filter(|(token, _)| ordinary(token).is_some()) {
        let mut splits: Vec<_> = token
            .char_indices()
            .skip(1)
            .map(|(at, _)| token.split_at(at))
            .filter_map(|(a, b)| Some((ordinary(a)?, ordinary(b)?, a, b)))
            .collect();
        splits.sort();
        merges.extend(splits.into_iter().map(|(_, _, a, b)| (*score, a, b)));
    }
    let characters = |text: &str| text.chars().count();
    merges.sort_by(|(score, a, b), (other, c, d)| {
        let lengths = (characters(c), characters(d)).cmp(&(characters(a), characters(b)));
        other.total_cmp(score).then(lengths)
    });
    merges.into_iter().map(|(_, a, b)| (a.into(), b.into())).collect()
}

/// Ids by token; of equal tokens the first counts.
fn vocabulary(tokens: &[&str]) -> Vocab {
    tokens.iter().zip(0..tokens.len() as u32).rev().map(|(token, id)| ((*token).to_owned(), id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_imply_merges() {
        let tokens = ["a", "b", "c", "ab", "bc", "abc"];
        let scores = [-9.0, -9.0, -9.0, -1.0, -2.0, -3.0];
        let merges = |types: [i32; 6]| -> Vec<String> {
            let merges = implied_merges(&tokens, &types, &scores, &vocabulary(&tokens));
            merges.iter().map(|(a, b)| format!("{a} {b}")).collect()
        };
        assert_eq!(merges([NORMAL; 6]), ["a b", "b c", "ab c", "a bc"]);
        assert_eq!(merges([NORMAL, NORMAL, NORMAL, NORMAL, NORMAL, CONTROL]), ["a b", "b c"]);
        assert_eq!(merges([NORMAL, NORMAL, NORMAL, USER_DEFINED, NORMAL, NORMAL]), ["b c", "a bc"]);
    }

    #[test]
    fn words_are_split_as_llama_and_qwen_split_them() {
        use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};
        let split = |digits: &str, text: &str| {
            let mut parts = PreTokenizedString::from(text);
            words(&llama(r"\p{L}", digits)).unwrap().pre_tokenize(&mut parts).unwrap();
            let parts = parts.get_splits(OffsetReferential::Original, OffsetType::Byte);
            parts.into_iter().map(|(_, (start, end), _)| text[start..end].to_owned()).collect::<Vec<_>>()
        };
        let text = "It's 12345 (ok)\n\n  go";
        assert_eq!(split(r"\p{N}", text)[2..6], [" ", "1", "2", "3"]);
        let grouped = ["It", "'s", " ", "123", "45", " (", "ok", ")\n\n", " ", " go"];
        assert_eq!(split(r"\p{N}{1,3}", text), grouped);
    }
}
