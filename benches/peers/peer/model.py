"""What the peers on PyTorch share: the model, and texts without meaning."""

import torch
from transformers import AutoModelForCausalLM


def load(folder):
    """The model of this project's side, in f32, with the attention that PyTorch fuses."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa")


def useful_tokens(case):
    """Tokens that a round is about: each prompt once, and its responses."""
    return case.get("prompts", 1) * (case["prompt"] + case.get("group", 1) * case["response"])


def prompts(case, vocab):
    """[prompts, prompt] random ids, no two prompts the same."""
    count = case.get("prompts", 1)
    tokens = torch.randint(vocab, (count, case["prompt"]), generator=torch.Generator().manual_seed(7))
    tokens[:, 0] = torch.arange(count) % vocab
    return tokens
