"""A training step in eager PyTorch: forward, backward, clipping, fused AdamW."""

import torch
import torch.nn.functional as F

import texts
from pytorch import load


class Training:
    """Steps on the same padded batch; a group's prompt is repeated for each of its responses."""

    def __init__(self, case):
        self.model = load(case).train()
        self.optim = torch.optim.AdamW(
            self.model.parameters(), lr=1e-5, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01, fused=True
        )
        vocab, group = self.model.config.vocab_size, case.get("group", 1)
        prompts = torch.from_numpy(texts.prompts(case, vocab)).repeat_interleave(group, 0)
        self.responses = torch.randint(vocab, (len(prompts), case["response"]))
        self.tokens = torch.cat([prompts, self.responses], 1)
        signs = torch.tensor([-1.0 if group > 1 and i % 2 else 1.0 for i in range(len(prompts))])
        self.weights = signs.repeat_interleave(case["response"]) / self.responses.numel()
        # Logits are wanted for the responses alone.
        self.predictors = torch.arange(case["prompt"] - 1, self.tokens.shape[1] - 1)
        self.useful_tokens = texts.useful_tokens(case)

    def round(self):
        logits = self.model(input_ids=self.tokens, use_cache=False, logits_to_keep=self.predictors).logits
        losses = F.cross_entropy(logits.flatten(0, 1), self.responses.flatten(), reduction="none")
        losses.dot(self.weights).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optim.step()
        self.optim.zero_grad(set_to_none=True)
        return self.useful_tokens, {}
