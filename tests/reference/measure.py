"""What the golden files say about a model: logits of a chain and of a forked layout, a loss and its gradients, and a
greedy continuation.

What a forked layout's tokens see and where they stand is worked out here from the rule alone (a token sees its own
segment up to itself and all of its segment's ancestors; a segment starts behind the furthest of its parents) and given
to transformers as a 4-D mask and position ids.
"""

import torch

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

# A greedy continuation is only worth comparing where no rounding can change it.
LEAST_MARGIN = 1e-3


def chain(length):
    return [("prompt", [], 4), ("trunk", [0], length - 4)]


def laid_out(segments):
    """Positions, and for each token the tokens that it sees."""
    places, positions, sees, ends = [], [], [], []
    for _, parents, length in segments:
        start = max((ends[p] for p in parents), default=0)
        ancestors = set()
        for parent in parents:
            ancestors |= places[parent][1] | set(places[parent][0])
        own = list(range(len(positions), len(positions) + length))
        for i in range(length):
            positions.append(start + i)
            sees.append(ancestors | set(own[: i + 1]))
        places.append((own, ancestors))
        ends.append(start + length)
    return positions, sees


def random_tokens(vocabulary, count, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, vocabulary, (count,), generator=generator).tolist()


def forward(model, tokens, segments):
    positions, sees = laid_out(segments)
    mask = torch.full((1, 1, len(tokens), len(tokens)), torch.finfo(torch.float32).min)
    for row, keys in enumerate(sees):
        mask[0, 0, row, sorted(keys)] = 0.0
    ids, positions = torch.tensor([tokens]), torch.tensor([positions])
    return model(input_ids=ids, position_ids=positions, attention_mask=mask, use_cache=False).logits[0]


def case(model, name, segments, seed, rows=None):
    """Tokens and the logits of some rows (all of them unless said otherwise)."""
    tokens = random_tokens(model.config.vocab_size, sum(length for *_, length in segments), seed)
    with torch.no_grad():
        logits = forward(model, tokens, segments)
        if name == "chain":  # transformers' own causal mask and positions say the same
            assert torch.allclose(logits, model(input_ids=torch.tensor([tokens])).logits[0], atol=1e-5)
    rows = list(range(len(tokens))) if rows is None else rows
    return {
        "name": name,
        "segments": [{"role": role, "parents": parents, "len": length} for role, parents, length in segments],
        "tokens": tokens,
        "rows": rows,
        "logits": short(logits[rows]),
    }


def loss_and_gradients(model, tokens, names):
    """Mean cross-entropy of predicting each token of a chain from those before it."""
    model.zero_grad()
    logits = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]
    loss = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(tokens[1:]))
    loss.backward()
    parameters = dict(model.named_parameters())
    gradients = {name: gradient(name, parameters[name].grad, tokens) for name in names}
    return {"loss": short(loss), "gradients": gradients}


def gradient(name, grad, tokens):
    """Two rows of it (of a table of tokens: rows of tokens that occur), its largest entry and its norm."""
    grad = grad.reshape(-1, grad.shape[-1])
    rows = (
        sorted(set(tokens))[:2]
        if grad.shape[0] > 1 and "layers" not in name
        else list(range(grad.shape[0]))[:2]
    )
    return {
        "rows": rows,
        "values": short(grad[rows]),
        "largest": short(grad.abs().max()),
        "norm": short(grad.norm()),
    }


def greedy(model, prompt, count):
    """The continuation by the likeliest token, and the least gap between the likeliest and the next."""
    tokens, least = list(prompt), float("inf")
    with torch.no_grad():
        for _ in range(count):
            top = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1].topk(2)
            least = min(least, (top.values[0] - top.values[1]).item())
            tokens.append(top.indices[0].item())
    return {"prompt": list(prompt), "tokens": tokens[len(prompt) :], "least_margin": least}


def safe_greedy(model, length, count=64):
    """The first random prompt whose greedy continuation is beyond doubt."""
    for seed in range(100):
        found = greedy(model, random_tokens(model.config.vocab_size, length, 1000 + seed), count)
        if found["least_margin"] > LEAST_MARGIN and len(set(found["tokens"])) > 8:
            return {**found, "least_margin": short(torch.tensor(found["least_margin"]))}
    raise SystemExit("no prompt found with a greedy continuation beyond doubt")


def short(values):
    """Six significant digits."""
    values = values.tolist() if torch.is_tensor(values) else values
    return [short(v) for v in values] if isinstance(values, list) else float(f"{values:.6g}")
