"""Makes tests/golden/tokenizers/FAMILY: small tokenizers with the rules of published families, and what they give.

    pip install tokenizers transformers gguf && python3 tests/reference/tokenizer_families.py

Each is trained on lines.json (see mixed_text.py) and written as its family publishes it (tokenizer.json), as llama.cpp's
converter writes it (model.gguf, with weights of width two), and with what Python's `tokenizers` gives for each line
(expected.json): a hash of the ids, once of the line as a prompt (its special tokens are tokens) and once as a piece of
a response (they are text, and nothing is put in front), and whether decoding the prompt's ids gives the line back.
"""

import collections
import json
import os
import pathlib
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import gguf
import numpy
import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers.tokenization_utils_base import generate_merges

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "golden" / "tokenizers"
MERGES = 420
# Characters that the SentencePiece family has pieces for; the others become bytes.
LETTERS = 160
SPACE = "\u2581"

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

CHATML = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LLAMA3_MARKS = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
QWEN_WORDS = ["<tool_call>", "</tool_call>", "<think>", "</think>"]


def byte_level(regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}


def split(pattern):
    rule = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [rule, byte_level(False)]}


DIGITS = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level(True)]}

# Byte-level families: the splitting rule, its name in a GGUF file, special tokens (before the bytes or after the merges),
# other added tokens, the tokens that begin and end a text, and where two files differ.
BYTE_LEVEL = {
    "gpt2": {"split": byte_level(True), "pre": "gpt-2", "special": CHATML[:1], "bos": CHATML[0], "eos": CHATML[0],
             "class": "GPT2Tokenizer"},
    "smollm": {"split": DIGITS, "pre": "smollm", "special": CHATML, "first": True, "bos": CHATML[1], "eos": CHATML[2],
               "class": "GPT2Tokenizer"},
    "llama3": {"split": split(LLAMA3), "pre": "llama-bpe", "special": LLAMA3_MARKS, "bos": LLAMA3_MARKS[0],
               "eos": LLAMA3_MARKS[4], "begins": True, "whole_words": True, "class": "PreTrainedTokenizerFast"},
    "tekken": {"split": split(TEKKEN), "pre": "tekken", "special": ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"],
               "first": True, "bos": "<s>", "eos": "</s>", "begins": True, "whole_words": True,
               "class": "PreTrainedTokenizerFast"},
    "qwen2": {"split": split(QWEN2), "pre": "qwen2", "special": CHATML, "words": QWEN_WORDS, "eos": CHATML[2], "nfc": True,
              "class": "Qwen2Tokenizer", "spare": 9},
    "qwen35": {"split": split(QWEN35), "pre": "qwen35", "special": CHATML, "words": QWEN_WORDS, "eos": CHATML[2],
               "nfc": True, "class": "Qwen3_5Tokenizer"},
}  # fmt: skip


def begins_with(token, number):
    return {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}},
    }


def added(tokens, number, special):
    """Added tokens in the form of tokenizer.json."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    return [{"id": number + i, "content": token, **flags} for i, token in enumerate(tokens)]


def written(version, added_tokens, normalizer, pre_tokenizer, post_processor, decoder, model):
    model = {"type": "BPE", "dropout": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, **model}
    return {"version": version, "truncation": None, "padding": None, "added_tokens": added_tokens, "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": decoder, "model": model}  # fmt: skip


def train_byte_level(family, lines):
    """The text of tokenizer.json."""
    normalizer = {"type": "NFC"} if family.get("nfc") else None
    form = written("1.0", [], normalizer, family["split"], None, byte_level(True), {"vocab": {}, "merges": []})
    learner = Tokenizer.from_str(json.dumps(form))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=256 + MERGES, initial_alphabet=alphabet, show_progress=False)
    learner.train_from_iterator(lines, trainer)
    model = json.loads(learner.to_str())["model"]

    special, words = family["special"], family.get("words", [])
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    if family.get("first"):
        tokens = special + tokens
        marks = added(special, 0, True)
    else:
        marks = added(special, len(tokens), True) + added(words, len(tokens) + len(special), False)
    model["vocab"] = {token: i for i, token in enumerate(tokens)}
    if family.get("whole_words"):
        # Some words are tokens although no merge leads to them: they are looked up whole.
        model["merges"], model["ignore_merges"] = model["merges"][:-12], True
    begin = [mark for mark in marks if mark["content"] == family.get("bos")]
    processor = begins_with(begin[0]["content"], begin[0]["id"]) if family.get("begins") else byte_level(True)
    form = written("1.0", marks, normalizer, family["split"], processor, byte_level(True), model)
    return Tokenizer.from_str(json.dumps(form)).to_str()


def train_sentence_piece(lines, legacy):
    """The text of tokenizer.json, and the score of each piece: what is learned first scores best, single characters
    come last, and merges are all the splits of all pieces, by score."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Metaspace(SPACE, prepend_scheme="always"), pre_tokenizers.Digits(individual_digits=True),
    ])  # fmt: skip
    count = collections.Counter("".join(lines).replace(" ", SPACE))
    alphabet = sorted(count, key=lambda letter: (-count[letter], letter))[:LETTERS]
    trainer = trainers.BpeTrainer(
        vocab_size=LETTERS + MERGES, initial_alphabet=alphabet, limit_alphabet=LETTERS, show_progress=False
    )
    # Enough of these that both halves of an end-of-text token become pieces.
    learner.train_from_iterator(lines + ["</ s>"] * 200, trainer)
    learned = learner.get_vocab()
    words = sorted((token for token in learned if len(token) > 1), key=learned.get)
    letters = sorted((token for token in learned if len(token) == 1), key=learned.get)
    control, in_bytes = ["<unk>", "<s>", "</s>"], [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = control + in_bytes + words + letters
    scores = [0.0] * (len(control) + len(in_bytes)) + [-float(i) for i in range(len(words) + len(letters))]
    vocab = {token: i for i, token in enumerate(tokens)}
    by_score = dict(zip(tokens, scores))
    merges = generate_merges(vocab, by_score, skip_tokens=control + in_bytes)
    model = {"vocab": vocab, "merges": merges, "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}

    replace = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    prepend = {"type": "Prepend", "prepend": SPACE}
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": False}
    back = [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]  # fmt: skip
    form = written(
        "1.0", added(control, 0, True), {"type": "Sequence", "normalizers": [prepend, replace]} if legacy else None,
        None if legacy else metaspace, begins_with("<s>", 1), {"type": "Sequence", "decoders": back}, model,
    )  # fmt: skip
    return Tokenizer.from_str(json.dumps(form)).to_str(), scores


def for_pieces(text):
    """The same tokenizer where special tokens are text and nothing is put in front."""
    form = json.loads(text)
    if form["model"]["byte_fallback"]:
        form["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
        form["pre_tokenizer"] = None
    piece = Tokenizer.from_str(json.dumps(form))
    piece.encode_special_tokens = True
    return piece


def fingerprint(ids):
    """FNV-1a in 32 bits over the ids as little-endian 32-bit numbers, its halves folded into 16 bits."""
    value = 0x811C9DC5
    for byte in numpy.array(ids, dtype="<u4").tobytes():
        value = (value ^ byte) * 0x01000193 % 2**32
    return f"{value >> 16 ^ value & 0xFFFF:04x}"


def expected(text, lines):
    whole, piece = Tokenizer.from_str(text), for_pieces(text)
    prompts = [whole.encode(line, add_special_tokens=False).ids for line in lines]
    pieces = [piece.encode(line, add_special_tokens=False).ids for line in lines]
    back = [whole.decode(ids, skip_special_tokens=False) for ids in prompts]
    made_by = {"program": "tests/reference/tokenizer_families.py", "tokenizers": tokenizers.__version__}
    return {
        "made_by": made_by,
        "alone": whole.encode("a", add_special_tokens=True).ids,
        "prompts": "".join(map(fingerprint, prompts)),
        "pieces": "".join(map(fingerprint, pieces)),
        "restored": "".join("01"[ours == line] for ours, line in zip(back, lines)),
    }


def write_gguf(path, family, text, scores):
    """What llama.cpp's converter writes; a vocabulary is padded to the rows of the embedding."""
    form, whole = json.loads(text), Tokenizer.from_str(text)
    size = whole.get_vocab_size()
    rows = size + family.get("spare", 0)
    types = {mark["id"]: gguf.TokenType.CONTROL if mark["special"] else gguf.TokenType.USER_DEFINED
             for mark in form["added_tokens"]}  # fmt: skip
    if scores:
        types[0] = gguf.TokenType.UNKNOWN
        types |= {number: gguf.TokenType.BYTE for number in range(3, 259)}
    types |= {number: gguf.TokenType.UNUSED for number in range(size, rows)}
    tokens = [whole.id_to_token(number) or f"[PAD{number}]" for number in range(rows)]

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(2)
    writer.add_feed_forward_length(2)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama" if scores else "gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([types.get(number, gguf.TokenType.NORMAL) for number in range(rows)])
    if scores:
        writer.add_token_scores(scores)
    else:
        writer.add_tokenizer_pre(family["pre"])
        writer.add_token_merges([" ".join(pair) for pair in form["model"]["merges"]])
    if "bos" in family:
        writer.add_bos_token_id(whole.token_to_id(family["bos"]))
    writer.add_eos_token_id(whole.token_to_id(family["eos"]))
    shapes = {"token_embd": (rows, 2), "output_norm": (2,), "blk.0.attn_norm": (2,), "blk.0.ffn_norm": (2,)}
    shapes |= {f"blk.0.{name}": (2, 2) for name in
               ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]}  # fmt: skip
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", numpy.ones(shape, dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write(name, folder, family, text, scores, lines):
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(text + "\n", newline="\n")
    config = {"tokenizer_class": family["class"], "bos_token": family.get("bos"), "eos_token": family["eos"],
              "clean_up_tokenization_spaces": False, **family.get("config", {})}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", newline="\n")
    (folder / "expected.json").write_text(json.dumps(expected(text, lines), indent=0) + "\n", newline="\n")
    write_gguf(folder / "model.gguf", family, text, scores)


def main(folder=FOLDER):
    lines = json.loads((FOLDER / "lines.json").read_text())
    for name, family in BYTE_LEVEL.items():
        write(name, folder, family, train_byte_level(family, lines), None, lines)
    for name, legacy in [("llama2", True), ("llama2-new", False)]:
        text, scores = train_sentence_piece(lines, legacy)
        family = {"bos": "<s>", "eos": "</s>", "class": "LlamaTokenizer", "config": {"legacy": legacy, "add_bos_token": True}}
        write(name, folder, family, text, scores, lines)
    # A GGUF file does not say which of the two rules it had; the first is llama.cpp's.
    (folder / "llama2-new" / "model.gguf").unlink()


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
