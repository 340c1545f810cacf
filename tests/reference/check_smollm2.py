"""SmolLM2-135M from its GGUF file: logits, greedy continuations and the chat template against transformers, which
dequantises the weights; and how far the model is from them whose weights stay quantised."""

import harness
import torch
import transformers

TEXT = "The quick brown fox jumps over the lazy dog. In 1987, 3 of 12 = 25 %; naïve café, 東京."
PROMPTS = [
    "What is the capital of France?",
    "A farmer has 17 sheep and buys 5 more. How many does he have?",
    "Write a short poem about the sea.",
]
TOKENS = 64


def greedy(model, prompt, count):
    """The continuation by the likeliest token, and the least gap to the next one."""
    ids, past, tokens, least = torch.tensor([prompt]), None, [], float("inf")
    with torch.no_grad():
        for _ in range(count):
            out = model(input_ids=ids, cache=past, use_cache=True)
            top, past = out.logits[0, -1].topk(2), out.past_key_values
            least = min(least, (top.values[0] - top.values[1]).item())
            tokens.append(top.indices[0].item())
            ids = torch.tensor([tokens[-1:]])
    return tokens, least


def main():
    file = harness.SMOLLM2
    if not file.is_file():
        print(f"skipped: {file} is missing (scripts/fetch-smollm2 fetches it)")
        return
    how = {"gguf_file": file.name}
    model = harness.opened(file.parent, **how)
    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, **how)

    told = harness.logits(file, "--all", "--text", TEXT, "--dequantise")
    harness.equal("ids of a text", told["tokens"], tokenizer(TEXT)["input_ids"], f"{len(told['tokens'])} ids")
    got = torch.tensor(told["logits"])
    harness.close("logits of a text", got, harness.theirs(model, told["tokens"]), 1e-3)
    quantised = harness.logits(file, "--all", "--text", TEXT)["logits"]
    likely = [torch.log_softmax(logits, dim=-1) for logits in (got, torch.tensor(quantised))]
    divergence = (likely[0].exp() * (likely[0] - likely[1])).sum(-1).mean().item()
    harness.verdict("quantised", divergence < 0.02, f"mean KL divergence {divergence:.4f} (allowed 0.02)")
    for prompt in PROMPTS:
        told = harness.logits(file, "--chat", prompt, "--greedy", TOKENS, "--dequantise")
        messages = [{"role": "user", "content": prompt}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        harness.equal(f"chat text, {prompt!r}", told["text"], text, f"{len(text)} characters")
        harness.equal(f"chat ids, {prompt!r}", told["tokens"], ids, f"{len(ids)} ids")
        last = harness.theirs(model, ids)[-1]
        harness.close(f"logits, {prompt!r}", torch.tensor(told["logits"]), last, 1e-3)
        tokens, least = greedy(model, ids, TOKENS)
        harness.equal(
            f"greedy, {prompt!r}", told["greedy"], tokens, f"{TOKENS} tokens, least margin {least:.1e}"
        )
    harness.finish()


if __name__ == "__main__":
    main()
