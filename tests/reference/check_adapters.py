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

    merged = out / "merged" / name
    harness.command("model", "export", adapter, merged, "--dtype", "f32")
    harness.close(
        f"{name}: merged, in transformers", harness.theirs(harness.opened(merged), tokens), told, 1e-4
    )


def check_trained(out):
    """A run that trains an adapter and the rows of the tags leaves what peft opens."""
    base, run = out / "base", out / "run"
    harness.command("model", "export", "embedded", base, "--dtype", "f32")
    settings = ["model.lora.r=4", f"model.path={base}", "arms.0.stages.0.sft.optim.lr=0.01"]
    flags = [word for setting in settings for word in ("--set", setting)]
    harness.command("train", "countdown/smoke", "--out", run, *flags)
    adapter = sorted((run / "checkpoints/parallel").glob("step-*"))[-1]
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(adapter)
    tags = tokenizer.convert_tokens_to_ids(harness.TAGS)
    tokens = [5, *tags, 9, 40]
    ours = harness.ours(adapter, tokens)
    theirs = peft.AutoPeftModelForCausalLM.from_pretrained(adapter).eval()
    harness.close("trained here, in peft", harness.theirs(theirs, tokens), ours, 1e-4)
    plain = harness.ours(base, [5, 9, 40])
    moved = (harness.ours(adapter, [5, 9, 40])[:, : plain.shape[1]] - plain).abs().max().item()
    harness.verdict("training moved the logits", moved > 0.01, f"by up to {moved:.2f}")


def main():
    out = harness.scratch()
    harness.attempt("trained here", check_trained, out)
    for name in adapters.ADAPTERS:
        harness.attempt(name, check, name, out)
    harness.finish()


if __name__ == "__main__":
    main()
