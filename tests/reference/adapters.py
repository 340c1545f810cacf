"""Makes tests/golden/adapters: LoRA adapters with random weights on golden models as peft saves them, and what peft
computes with them.

    python3 tests/reference/adapters.py [FOLDER]        after families.py; needs requirements.txt

FOLDER must lie beside the folder `models`: an adapter names its base as ../../models/NAME, from its own folder.
"""

import pathlib
import shutil
import sys

import families
import harness
import measure
import peft
import torch

TARGETS = dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"])
LAST = [61, 62, 63]
GROWN = list(range(families.VOCABULARY, families.VOCABULARY + len(harness.TAGS)))
# Name, base, settings; `grown` adds the tags to the tokenizer and rows for them to the base.
ADAPTERS = {
    "qwen2-lora": ("qwen2", TARGETS),
    "qwen2-tokens": ("qwen2", dict(TARGETS, trainable_token_indices={"embed_tokens": LAST})),
    "llama-tokens": ("llama", dict(TARGETS, trainable_token_indices={"embed_tokens": LAST, "lm_head": LAST})),
    "qwen2-grown": ("qwen2", dict(TARGETS, trainable_token_indices={"embed_tokens": GROWN})),
    "qwen3-patterns": (
        "qwen3",
        dict(
            r=4,
            lora_alpha=8,
            use_rslora=True,
            target_modules=r".*self_attn\.(q|o)_proj|.*mlp\.up_proj",
            rank_pattern={"q_proj": 2},
            alpha_pattern={"layers.1.mlp.up_proj": 3},
        ),
    ),
    # Trained copies of tables that the base has tied.
    "qwen2-saved": ("qwen2", dict(TARGETS, modules_to_save=["embed_tokens", "lm_head"])),
    "qwen2-head": ("qwen2", dict(TARGETS, modules_to_save=["lm_head"])),
}


def base(name, rows, models):
    model = families.opened(models / name)
    if rows > model.config.vocab_size:
        model.resize_token_embeddings(rows, mean_resizing=False)
    return model


def randomised(model, settings, seed):
    """The model with an adapter whose every trainable number is random."""
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.copy_(0.3 * torch.randn_like(parameter))
    return adapted


def make(name, out, models):
    base_name, settings = ADAPTERS[name]
    grown = settings.get("trainable_token_indices", {}).get("embed_tokens") == GROWN
    rows = GROWN[-1] + 1 if grown else 0
    seed = 200 + list(ADAPTERS).index(name)
    # Growing rows draws numbers, too.
    torch.manual_seed(seed)
    adapted = randomised(base(base_name, rows, models), settings, seed)
    case = measure.case(adapted, "chain", measure.chain(24), seed, list(range(3, 24, 4)))
    if not rows:
        bare = measure.case(base(base_name, rows, models), "chain", measure.chain(24), seed, case["rows"])
        gap = (torch.tensor(bare["logits"]) - torch.tensor(case["logits"])).abs().max()
        assert gap > 0.5, f"{name}: the adapter hardly changes a logit"
    folder = out / name
    config = adapted.peft_config["default"]
    config.base_model_name_or_path = f"../../models/{base_name}"
    if isinstance(config.target_modules, set):  # whose order differs from run to run
        config.target_modules = sorted(config.target_modules)
    # Only the rows: peft would store whole tables beside them when it sees that they have grown.
    adapted.save_pretrained(folder, save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)
    if grown:
        tokenizer = families.tokenizer()
        tokenizer.add_tokens(harness.TAGS)
        tokenizer.save_pretrained(folder)
    made_by = {**families.made_by("adapters.py"), "peft": peft.__version__}
    families.write(folder / "expected.json", {"made_by": made_by, "base": base_name, "cases": [case]})


def main(out):
    for name in ADAPTERS:
        shutil.rmtree(out / name, ignore_errors=True)
        make(name, out, out.parent / "models")
        print(name)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else families.GOLDEN / "adapters")
