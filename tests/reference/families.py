"""Makes tests/golden/models: random models of some 20 thousand parameters as transformers saves them, one for each
family, kind of rotary scaling, and form of storage, and what transformers computes with them (see measure.py).

    python3 tests/reference/families.py [FOLDER]        needs requirements.txt
"""

import json
import pathlib
import shutil
import sys

import measure
import tokenizers
import torch
import transformers

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
VOCABULARY = 64
SIZES = dict(
    vocab_size=VOCABULARY,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
    rms_norm_eps=1e-6,
    bos_token_id=1,
    eos_token_id=2,
)
# Few heads, but wide ones: eight frequencies, so that each kind of scaling has some to keep, to blend and to slow down.
WIDE_HEADS = dict(intermediate_size=32, num_attention_heads=2, num_key_value_heads=1)


def scaled(rope_type, **settings):
    return dict(
        WIDE_HEADS, tie_word_embeddings=True, rope={"rope_type": rope_type, "rope_theta": 1e3, **settings}
    )


PLAIN = {"rope_type": "default", "rope_theta": 5e4}
YARN = dict(factor=4.0, original_max_position_embeddings=32)
# Name, class, settings. `dtype` and `shards` say how it is stored.
FAMILIES = {
    "llama": ("Llama", dict(tie_word_embeddings=False)),
    "llama-linear": ("Llama", scaled("linear", factor=4.0)),
    "llama-llama3": (
        "Llama",
        scaled(
            "llama3",
            factor=8.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_position_embeddings=48,
        ),
    ),
    "llama-yarn": ("Llama", scaled("yarn", **YARN)),
    "llama-yarn-factors": (
        "Llama",
        scaled("yarn", **YARN, attention_factor=1.25, beta_fast=2.0, beta_slow=0.25),
    ),
    "llama-yarn-mscale": ("Llama", scaled("yarn", **YARN, mscale=2.0, mscale_all_dim=0.5, truncate=False)),
    "llama-biased": ("Llama", dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    "llama-f16": ("Llama", dict(tie_word_embeddings=True, dtype=torch.float16)),
    "qwen2": ("Qwen2", dict(tie_word_embeddings=True)),
    # As Qwen2.5's model card says to read long texts: the limit of positions stays that of the unscaled model.
    "qwen2-yarn": ("Qwen2", {**scaled("yarn", **YARN), "max_position_embeddings": 32}),
    "qwen2-bf16": ("Qwen2", dict(tie_word_embeddings=False, dtype=torch.bfloat16)),
    "qwen3": (
        "Qwen3",
        dict(
            tie_word_embeddings=False,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=16,
            shards="40KB",
        ),
    ),
    # More rows than the tokenizer has ids.
    "qwen3-tied": ("Qwen3", dict(tie_word_embeddings=True, vocab_size=96, head_dim=8)),
}
FORKED = ["llama", "qwen2", "qwen3"]


def build(kind, settings, seed):
    """A model with random weights, biases and norms, in eager float32."""
    settings = {**SIZES, **settings}
    rope = settings.pop("rope", PLAIN)
    config = getattr(transformers, kind + "Config")(rope_parameters=dict(rope), **settings)
    model = (
        getattr(transformers, kind + "ForCausalLM")._from_config(config, attn_implementation="eager").float()
    )
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn_like(parameter)
            parameter.copy_(1.0 + 0.1 * noise if "norm" in name else 0.3 * noise)
    return model.eval()


def opened(folder):
    """A saved model, its weights made float32."""
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32
    ).eval()


def watched(model):
    """Parameters whose gradients are recorded, one of each kind."""
    wanted = ["embed_tokens.weight", "lm_head.weight", "model.norm.weight"]
    wanted += [
        "layers.0.self_attn.q_proj.weight",
        "layers.1.self_attn.k_proj.bias",
        "layers.0.self_attn.v_proj.bias",
    ]
    wanted += [
        "layers.0.self_attn.o_proj.bias",
        "layers.1.self_attn.q_norm.weight",
        "layers.0.self_attn.k_norm.weight",
    ]
    wanted += [
        "layers.0.input_layernorm.weight",
        "layers.1.mlp.down_proj.weight",
        "layers.0.mlp.up_proj.bias",
    ]
    return [name for name, _ in model.named_parameters() if any(name.endswith(w) for w in wanted)]


def make(name, out):
    kind, settings = FAMILIES[name]
    settings = dict(settings)
    dtype, shards = settings.pop("dtype", torch.float32), settings.pop("shards", "1GB")
    seed = list(FAMILIES).index(name)
    folder = out / name
    build(kind, settings, seed).to(dtype).save_pretrained(folder, max_shard_size=shards)
    (folder / "generation_config.json").unlink(missing_ok=True)
    model = opened(folder)
    length = 72 if "rope" in settings else 24
    cases = [measure.case(model, "chain", measure.chain(length), seed, list(range(length - 1, 0, -6))[::-1])]
    if name in FORKED:
        cases.append(measure.case(model, "forked", measure.FORKED, seed + 100))
    expected = {
        "made_by": made_by("families.py"),
        "cases": cases,
        **measure.loss_and_gradients(model, cases[0]["tokens"], watched(model)),
        "greedy": measure.safe_greedy(model, 40 if "rope" in settings else 8),
    }
    write(folder / "expected.json", expected)
    return expected["greedy"]["least_margin"]


def made_by(program):
    return {
        "program": f"tests/reference/{program}",
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
    }


def write(path, value):
    text = json.dumps(value).replace("], [", "],\n[").replace('"cases"', '\n"cases"')
    path.write_text(text + "\n")


def tokenizer():
    """One id a character, as many ids as most of the models have rows."""
    characters = "\n abcdefghijklmnopqrstuvwxyz0123456789.,:;!?+-*/=()<>'\"_#$%&@"
    vocabulary = ["<pad>", "<s>", "</s>", *characters][:VOCABULARY]
    assert len(vocabulary) == VOCABULARY
    ids = {token: i for i, token in enumerate(vocabulary)}
    whole = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=ids, merges=[], unk_token="<pad>"))
    whole.decoder = tokenizers.decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=whole, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_max_length=128
    )


def main(out):
    for name in FAMILIES:
        shutil.rmtree(out / name, ignore_errors=True)
        print(f"{name}: least greedy margin {make(name, out)}")
    tokenizer().save_pretrained(out / "tokenizer")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN / "models")
