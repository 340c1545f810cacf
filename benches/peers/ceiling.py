"""How much of what the machine can do a case reaches.

The least time of some work is that of its multiplications at the measured rate of a large product or, for a pass over
a few rows, that of reading the weights and the keys and values once, whichever is longer. What a norm, an activation,
a softmax or a random number costs is left out, as is the optimizer, so 100 % can't be reached.
"""

from math import comb


class Model:
    """Sizes of a decoder that its costs follow from."""

    def __init__(self, config):
        d, layers = config["hidden_size"], config["num_hidden_layers"]
        self.attention = config["num_attention_heads"] * config["head_dim"]
        self.kv = config["num_key_value_heads"] * config["head_dim"]
        self.layers = layers
        self.body = layers * (2 * d * (self.attention + self.kv) + 3 * d * config["intermediate_size"])
        self.head = d * config["vocab_size"]

    def multiplications(self, rows, logits, pairs):
        """Multiply-adds of `rows` through the layers, of which `logits` go to the head; `pairs` of row and seen row."""
        return rows * self.body + logits * self.head + 2 * pairs * self.attention * self.layers


def pairs_of(length, before=0):
    """How many rows `length` new rows see, `before` older ones among them."""
    return length * before + comb(length + 1, 2)


def passes(model, machine, steps, branches, length):
    """Seconds of `steps` passes of one row a branch, the branches being `length` tokens long at first."""
    seconds = 0.0
    for step in range(steps):
        seen = branches * (length + step)
        work = 2e-9 * model.multiplications(branches, branches, seen) / machine["gflops"]
        read = 4e-9 * (model.body + model.head + 2 * seen * model.kv * model.layers) / machine["gbytes_per_second"]
        seconds += max(work, read)
    return seconds


def prompts(model, machine, count, length):
    """Seconds of reading `count` prompts, each to its first logits."""
    return 2e-9 * model.multiplications(count * length, count, count * pairs_of(length)) / machine["gflops"]


def training(model, machine, case):
    """Seconds of forward and backward, a prompt once for all of its responses."""
    count, group = case.get("prompts", 1), case.get("group", 1)
    prompt, response = case["prompt"], case["response"]
    rows = count * (prompt + group * response)
    pairs = count * (pairs_of(prompt) + group * pairs_of(response, prompt))
    return 6e-9 * model.multiplications(rows, count * group * response, pairs) / machine["gflops"]


def sampling(model, machine, case):
    """Seconds of prompts and passes; the first token of a response comes from its prompt's logits."""
    count, branches = case.get("prompts", 1), case.get("prompts", 1) * case.get("group", 1)
    prompt = case["prompt"]
    return prompts(model, machine, count, prompt) + passes(model, machine, case["response"] - 1, branches, prompt)


def block(model, machine, case):
    """Seconds of a block and its summary; a path's two tags are not sampled."""
    prompt, paths, path = case["prompt"], case["paths"], case["response"]
    return (
        prompts(model, machine, 1, prompt)
        + passes(model, machine, path - 1, paths, prompt)
        + passes(model, machine, case["summary"], 1, prompt + paths * path)
    )


def seconds(case, model, machine):
    """The least time of a round."""
    match case["work"]:
        case "train":
            return training(model, machine, case)
        case "sample":
            return sampling(model, machine, case)
        case "grpo":
            return sampling(model, machine, case) + training(model, machine, case)
        case "block":
            return block(model, machine, case)


def add(entry, config, machine):
    """Adds the share of the ceiling to a result."""
    least = seconds(entry["work"], Model(config), machine)
    times = sorted(entry["ours_seconds"])
    entry["share_of_ceiling"] = least / times[len(times) // 2]
