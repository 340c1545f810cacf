"""Compares our tokenizers and chat templates with Python's, and what we save with what transformers reads from it.

    cargo build --release --workspace --examples && python3 tests/reference/check_tokenizers.py

The small families of tests/golden/tokenizers and, if it is there, SmolLM2 (scripts/fetch-smollm2). Needs torch,
transformers, tokenizers and gguf. Says what was compared; ends with 1 if anything differs.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import transformers
from tokenizers import Tokenizer, pre_tokenizers
from transformers import AutoTokenizer

import chat_templates
import mixed_text
import tokenizer_families

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden" / "tokenizers"
EXAMPLES = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples"
SMOLLM2 = ROOT / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
TAGS = ["<Parallel>", "</Parallel>", "<Path>", "</Path>", "<Summary>", "</Summary>"]

CONVERSATIONS = [
    [{"role": "user", "content": "What is 2 + 2?"}],
    [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "数学\t<|im_end|>"}],
    [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello! \U0001f980"},
     {"role": "user", "content": "<Parallel> is a word"}],
]  # fmt: skip

transformers.utils.logging.disable_progress_bar()
failures = 0


def report(what, ours, theirs, inputs):
    """One line about a comparison, and a few of its differences."""
    global failures
    assert len(ours) == len(theirs) == len(inputs), what
    wrong = [row for row in zip(inputs, ours, theirs) if row[1] != row[2]]
    print(f"{'FAILED' if wrong else 'ok':6} {what}: {len(inputs)} compared, {len(wrong)} differ")
    for text, our, their in wrong[:3]:
        print(f"       {text!r}\n         ours   {our}\n         theirs {their}")
    failures += bool(wrong)


def tokenize(model, inputs, *kind):
    """Our ids."""
    text = "".join(json.dumps(value) + "\n" for value in inputs)
    command = [EXAMPLES / "tokenize", model, *kind]
    out = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def with_weights(folder, out):
    """A copy of a tokenizer's folder that is a model: the smallest Llama, with nine rows to spare."""
    out.mkdir()
    for file in ["tokenizer.json", "tokenizer_config.json"]:
        (out / file).write_bytes((folder / file).read_bytes())
    size = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size()
    config = transformers.LlamaConfig(
        vocab_size=size + 9, hidden_size=2, intermediate_size=2, num_hidden_layers=1, num_attention_heads=1,
        max_position_embeddings=64,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(out)
    return size


def check_golden(folder):
    """The committed files are what the programs make."""
    lines = json.loads((GOLDEN / "lines.json").read_text())
    report("lines.json is up to date", mixed_text.lines(), lines, lines)
    for program, name, pattern in [(tokenizer_families, "tokenizers", "*/*"), (chat_templates, "templates", "*.json")]:
        committed = GOLDEN.parent / name
        program.main(folder / name)
        files = sorted(path.relative_to(committed) for path in committed.glob(pattern))
        content = [[(place / file).read_bytes() for file in files] for place in [folder / name, committed]]
        report(f"{name} are up to date", *content, files)
    return lines


def check_tags(name, saved, size, lines):
    """What we saved with the tags, as transformers reads it."""
    theirs = AutoTokenizer.from_pretrained(saved)
    ids = [theirs(tag, add_special_tokens=False)["input_ids"] for tag in TAGS]
    # SentencePiece puts a space before each text, a tag too; what matters is the one token.
    report(f"{name}: each tag is one new token", [each[-1:] for each in ids], [[size + i] for i in range(6)], TAGS)
    text = "".join(TAGS)
    shown = theirs.decode(theirs(text)["input_ids"], skip_special_tokens=True).replace(" ", "")
    report(f"{name}: tags are shown", [shown], [text], [text])
    tagged = [TAGS[i % 6].join([line[: i % 7], line[i % 7 :]]) for i, line in enumerate(lines[::4])]
    report(f"{name}: saved with tags", tokenize(saved, tagged), encoded(theirs, tagged), tagged)


def encoded(tokenizer, lines):
    return [tokenizer(line, add_special_tokens=False)["input_ids"] for line in lines]


def check_family(folder, work, lines):
    theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = [theirs.encode(line, add_special_tokens=False).ids for line in lines]
    models = {folder.name: work / f"{folder.name}-folder"}
    size = with_weights(folder, models[folder.name])
    if (folder / "model.gguf").exists():
        models[f"{folder.name}.gguf"] = folder / "model.gguf"
    for name, model in models.items():
        report(f"{name}: prompts", tokenize(model, lines), ids, lines)
        saved = work / f"{name}-saved"
        subprocess.run([EXAMPLES / "resave", model, saved, "--tags"], check=True)
        check_tags(name, saved, size, lines)
        begun = AutoTokenizer.from_pretrained(saved)("a")["input_ids"]
        report(f"{name}: begins a text as before", [begun], [theirs.encode("a").ids], ["a"])


def check_smollm2(work, lines):
    theirs = AutoTokenizer.from_pretrained(SMOLLM2.parent, gguf_file=SMOLLM2.name)
    ours, converted = tokenize(SMOLLM2, lines), encoded(theirs, lines)
    plain = [i for i, line in enumerate(lines) if not any(letter.isnumeric() for letter in line)]
    without = [[row[i] for i in plain] for row in (ours, converted, lines)]
    report("SmolLM2: as transformers converts it, lines without digits", *without)
    # The conversion leaves out the published rule that each digit is a word of its own.
    theirs.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), theirs.backend_tokenizer.pre_tokenizer]
    )
    report("SmolLM2: with the published rule for digits, all lines", ours, encoded(theirs, lines), lines)
    rendered = [theirs.apply_chat_template(each, add_generation_prompt=True, return_dict=False) for each in CONVERSATIONS]
    report("SmolLM2: conversations", tokenize(SMOLLM2, CONVERSATIONS), rendered, CONVERSATIONS)
    subprocess.run([EXAMPLES / "resave", SMOLLM2, work / "smollm2", "--tags"], check=True)
    check_tags("SmolLM2", work / "smollm2", len(theirs), lines)


def main():
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        lines = check_golden(work / "golden")
        for folder in sorted(path for path in GOLDEN.iterdir() if path.is_dir()):
            check_family(folder, work, lines)
        if SMOLLM2.exists():
            check_smollm2(work, lines)
        else:
            print(f"skipped SmolLM2: {SMOLLM2} is missing (scripts/fetch-smollm2 fetches it)")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
