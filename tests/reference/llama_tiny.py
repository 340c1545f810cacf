"""Makes tests/golden/llama-tiny: a random Llama of 20 thousand parameters as transformers saves it, and its logits.

    pip install torch transformers safetensors && python3 tests/reference/llama_tiny.py

Two texts: one chain, and one that forks and joins. What the second one's tokens see and where they stand is worked
out here from the rule alone (a token sees its own segment up to itself and all of its segment's ancestors; a segment
starts behind the furthest of its parents) and given to transformers as a 4-D mask and position ids.
"""

import json
import pathlib

import torch
import transformers

SEED = 7
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "golden" / "llama-tiny"

# Role, parents, tokens: a prompt, a block of three paths, and a block of two in what follows it.
FORKED = [
    ("prompt", [], 5),
    ("trunk", [0], 3),
    ("path", [1], 4),
    ("path", [1], 2),
    ("path", [1], 6),
    ("join", [2, 3, 4], 4),
    ("path", [5], 3),
    ("path", [5], 2),
    ("join", [6, 7], 3),
]
CHAIN = [("prompt", [], 4), ("trunk", [0], 12)]


def laid_out(segments):
    """Positions, and for each token the tokens that it sees."""
    places, positions, sees, ends = [], [], [], []
    for _, parents, length in segments:
        start = max((ends[p] for p in parents), default=0)
        ancestors = set()
        for parent in parents:
            ancestors |= places[parent][1] | set(places[parent][0])
        own = list(range(len(positions), len(positions) + length))
        for i, token in enumerate(own):
            positions.append(start + i)
            sees.append(ancestors | set(own[: i + 1]))
        places.append((own, ancestors))
        ends.append(start + length)
        assert token == len(positions) - 1
    return positions, sees


def logits(model, tokens, segments):
    positions, sees = laid_out(segments)
    n = len(tokens)
    assert n == len(positions)
    mask = torch.full((1, 1, n, n), torch.finfo(torch.float32).min)
    for row, keys in enumerate(sees):
        mask[0, 0, row, sorted(keys)] = 0.0
    out = model(
        input_ids=torch.tensor([tokens]), position_ids=torch.tensor([positions]), attention_mask=mask, use_cache=False
    )
    return out.logits[0]


def main():
    torch.manual_seed(SEED)
    config = transformers.LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        rms_norm_eps=1e-6,
        rope_theta=50000.0,
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = transformers.LlamaForCausalLM._from_config(config, attn_implementation="eager").float().eval()
    cases = []
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn_like(parameter)
            parameter.copy_(1.0 + 0.1 * noise if "norm" in name else 0.3 * noise)
        for name, segments in [("chain", CHAIN), ("forked", FORKED)]:
            tokens = torch.randint(0, 64, (sum(length for *_, length in segments),)).tolist()
            rows = logits(model, tokens, segments)
            if name == "chain":  # transformers' own causal mask and positions say the same
                assert torch.allclose(rows, model(input_ids=torch.tensor([tokens])).logits[0], atol=1e-5)
            cases.append(
                {
                    "name": name,
                    "segments": [{"role": r, "parents": p, "len": n} for r, p, n in segments],
                    "tokens": tokens,
                    "logits": [[round(x, 6) for x in row] for row in rows.tolist()],
                }
            )
    model.save_pretrained(FOLDER)
    (FOLDER / "generation_config.json").unlink(missing_ok=True)
    made_by = {
        "program": "tests/reference/llama_tiny.py",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "seed": SEED,
    }
    text = json.dumps({"made_by": made_by, "cases": cases})
    (FOLDER / "expected.json").write_text(text.replace("], [", "],\n[").replace('"cases"', '\n"cases"') + "\n")


if __name__ == "__main__":
    main()
