"""The model as the peers on PyTorch load it."""

import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging

logging.disable_progress_bar()


def load(case):
    """The model of a case in f32, with the attention that PyTorch fuses."""
    return AutoModelForCausalLM.from_pretrained(case["folder"], dtype=torch.float32, attn_implementation="sdpa")
