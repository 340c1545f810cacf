"""Texts without meaning: what they cost depends on their lengths alone."""

import numpy as np


def useful_tokens(case):
    """Tokens that a round is about: each prompt once, and its responses."""
    return case.get("prompts", 1) * (case["prompt"] + case.get("group", 1) * case["response"])


def prompts(case, vocab):
    """[prompts, prompt] random ids, no two prompts the same."""
    count = case.get("prompts", 1)
    tokens = np.random.default_rng(7).integers(vocab, size=(count, case["prompt"]))
    tokens[:, 0] = np.arange(count) % vocab
    return tokens
