"""Responses of a fixed length by `transformers.generate`."""

import torch

import texts
from pytorch import load


class Sampling:
    """Samples whole batches from the full distribution."""

    def __init__(self, case):
        self.model = load(case).eval()
        prompts = torch.from_numpy(texts.prompts(case, self.model.config.vocab_size))
        self.prompts = prompts.repeat_interleave(case.get("group", 1), 0)
        self.length = case["response"]
        # Nothing ends a response: without an id for the end there is nothing to look for either.
        self.model.generation_config.eos_token_id = None
        self.model.generation_config.pad_token_id = 0

    @torch.inference_mode()
    def round(self):
        tokens = self.model.generate(
            input_ids=self.prompts,
            attention_mask=torch.ones_like(self.prompts),
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            max_new_tokens=self.length,
        )
        new = tokens[:, self.prompts.shape[1] :].numel()
        assert new == self.prompts.shape[0] * self.length, new
        return new, {}
