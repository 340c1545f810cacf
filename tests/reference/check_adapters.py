"""LoRA adapters in both directions: what peft saves gives the same logits here, and what this program writes opens in
peft, with the base grown where the adapter brings tokens."""

import json
import pathlib
import shutil

import adapters
import harness
import peft
import transformers


def laid_out(name, out):
    """A golden adapter beside its base, as its configuration has it."""
    base, _ = adapters.ADAPTERS[name]
    harness.copied(base, out)
    return pathlib.Path(shutil.copytree(harness.ADAPTERS / name, out / "adapters" / name))


def base_of(adapter):
    """The folder that an adapter's configuration names."""
    return adapter / json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"]


def opened(adapter):
    """As a user of peft does it: the base, grown to the tokenizer where there is one, and the adapter on it."""
    model = harness.opened(base_of(adapter))
    if (adapter / "tokenizer_config.json").is_file():
        ids = len(transformers.AutoTokenizer.from_pretrained(adapter))
        if ids > model.config.vocab_size:
            model.resize_token_embeddings(ids, mean_resizing=False)
    return peft.PeftModel.from_pretrained(model, adapter).eval()


def check(name, out):
    adapter = laid_out(name, out)
    tokens = json.loads((adapter / "expected.json").read_text())["cases"][0]["tokens"]
    told = harness.ours(adapter, tokens)
    harness.close(f"{name}: made by peft", told, harness.theirs(opened(adapter), tokens), 1e-4)

    written = out / "written" / name
    harness.run("examples/resave", adapter, written)
    harness.close(f"{name}: written by us, in peft", harness.theirs(opened(written), tokens), told, 1e-4)

    tagged = out / "tagged" / name
    harness.run("examples/resave", adapter, tagged, "--tags")
    told_tagged = harness.ours(tagged, tokens)
    harness.close(f"{name}: with tags, in peft", harness.theirs(opened(tagged), tokens), told_tagged, 1e-4)
    tags = transformers.AutoTokenizer.from_pretrained(tagged).convert_tokens_to_ids(harness.TAGS)
    harness.close(
        f"{name}: logits after tags", harness.theirs(opened(tagged), tags), harness.ours(tagged, tags), 1e-4
    )

    merged = out / "merged" / name
    harness.command("model", "export", adapter, merged, "--dtype", "f32")
    harness.close(
        f"{name}: merged, in transformers", harness.theirs(harness.opened(merged), tokens), told, 1e-4
    )


def main():
    out = harness.scratch()
    for name in adapters.ADAPTERS:
        harness.attempt(name, check, name, out)
    harness.finish()


if __name__ == "__main__":
    main()
