"""What this program writes opens in transformers and gives the same logits there: the golden models, the embedded
one, both with the six tags, and SmolLM2 read from its GGUF file."""

import harness
import transformers

TEXT = "2 + 3*4 = 14, so (a) is right."


def opened_tokenizer(folder):
    """AutoTokenizer gives every Qwen2 model the splitting rule of Qwen2, which the golden tokenizer has not; with
    Qwen2's own rule it is compared in check_tokenizers.py."""
    qwen2 = transformers.AutoConfig.from_pretrained(folder).model_type == "qwen2"
    kind = transformers.PreTrainedTokenizerFast if qwen2 else transformers.AutoTokenizer
    return kind.from_pretrained(folder)


def check(what, model, folder, tolerance=1e-4, columns=None):
    """`folder` was written from `model`. Logits are compared up to `columns`: beyond are tokens that the model has got
    since, in new rows or in spare ones."""
    tokenizer = opened_tokenizer(folder)
    told = harness.logits(folder, "--text", TEXT)
    harness.equal(f"{what}: ids", told["tokens"], tokenizer(TEXT)["input_ids"], f"{len(told['tokens'])} ids")
    tokens = told["tokens"]
    got = harness.theirs(harness.opened(folder), tokens)
    harness.close(f"{what}: logits against transformers", harness.ours(folder, tokens), got, 1e-4)
    before = harness.ours(model, tokens)
    columns = columns or before.shape[1]
    now = harness.ours(folder, tokens)[:, :columns]
    harness.close(f"{what}: logits before writing", now, before[:, :columns], tolerance)
    return tokenizer


def check_tags(what, model, out):
    """The model with tags added: each one id to transformers, and a row of its own."""
    folder = out / f"{what}-tagged"
    harness.run("examples/resave", model, folder, "--tags")
    ids = len(opened_tokenizer(folder)) - len(harness.TAGS)
    tokenizer = check(f"{what} with tags", model, folder, columns=ids)
    told = harness.logits(folder, "--text", "".join(harness.TAGS))["tokens"]
    theirs = tokenizer("".join(harness.TAGS), add_special_tokens=False)["input_ids"]
    single = [tokenizer.convert_tokens_to_ids(tag) for tag in harness.TAGS]
    harness.equal(f"{what}: ids of the tags", theirs, single, str(single))
    harness.equal(f"{what}: the tags are tokens to us", told[-len(single) :], single)
    got = harness.theirs(harness.opened(folder), single)
    harness.close(f"{what}: logits after tags", harness.ours(folder, single), got, 1e-4)


def check_smollm2(out):
    """Import keeps the values of the file; what half precision loses shows in the logits."""
    file = harness.SMOLLM2
    if not file.is_file():
        print(f"skipped: {file} is missing (scripts/fetch-smollm2 fetches it)")
        return
    harness.command("model", "import", file, "--out", out / "smollm2")
    check("SmolLM2, imported", file, out / "smollm2", 5e-2)


def check_export(name, model, out):
    folder = out / f"{name}-f32"
    harness.command("model", "export", model, folder, "--dtype", "f32")
    check(f"{name} in f32", model, folder)


def check_half(name, model, out):
    folder = out / f"{name}-half"
    harness.command("model", "export", model, folder)
    check(f"{name} in bf16", model, folder, 5e-2)


def main():
    out = harness.scratch()
    models = {name: harness.copied(name, out) for name in harness.golden_models()} | {"embedded": "embedded"}
    for name, model in models.items():
        harness.attempt(name, check_export, name, model, out)
    harness.attempt("llama in bf16", check_half, "llama", models["llama"], out)
    for name in ["llama", "qwen3-tied", "embedded"]:
        harness.attempt(f"{name} with tags", check_tags, name, models[name], out)
    harness.attempt("SmolLM2, imported", check_smollm2, out)
    harness.finish()


if __name__ == "__main__":
    main()
