"""Responses of a fixed length by llama.cpp, through its own interface for batches of sequences."""

import json
import os
import tempfile
from pathlib import Path

import gguf
import llama_cpp as llama
import numpy as np
from safetensors.numpy import load_file

import texts

MODULES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def interleaved(weight, heads):
    """Rotary pairs as neighbours, which is how llama.cpp has them in this family."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def renamed(name, weight, config):
    """A tensor under its name in GGUF."""
    fixed = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    if name in fixed:
        return fixed[name], weight
    _, _, layer, module = name.removesuffix(".weight").split(".", 3)
    heads = {"self_attn.q_proj": "num_attention_heads", "self_attn.k_proj": "num_key_value_heads"}.get(module)
    if heads:
        weight = interleaved(weight, config[heads])
    return f"blk.{layer}.{MODULES[module]}.weight", weight


def write_gguf(folder, file):
    """The model of a folder in f32, without a vocabulary."""
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_vocab_size(config["vocab_size"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_tokenizer_model("none")
    for name, weight in load_file(folder / "model.safetensors").items():
        name, weight = renamed(name, weight, config)
        writer.add_tensor(name, np.ascontiguousarray(weight))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return config


class Sampling:
    """All sequences in one batch, each with a sampler of its own; keys and values in f32 like everything else."""

    def __init__(self, case):
        self.silence = llama.llama_log_callback(lambda *_: None)
        llama.llama_log_set(self.silence, None)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model.gguf")
            config = write_gguf(Path(case["folder"]), file)
            params = llama.llama_model_default_params()
            params.use_mmap = False
            self.model = llama.llama_model_load_from_file(file.encode(), params)
        self.prompts = texts.prompts(case, config["vocab_size"]).tolist()
        self.length = case["response"]
        self.context = self._context(len(self.prompts), case["prompt"] + case["response"])
        self.samplers = [llama.llama_sampler_init_dist(i) for i in range(len(self.prompts))]
        self.batch = llama.llama_batch_init(len(self.prompts) * case["prompt"], 0, 1)

    def _context(self, sequences, length):
        params = llama.llama_context_default_params()
        params.n_seq_max = sequences
        params.n_ctx = sequences * -(-length // 256) * 256  # rounded up to what it pads a sequence to
        params.n_batch = params.n_ctx
        params.n_threads = params.n_threads_batch = int(os.environ["OMP_NUM_THREADS"])
        params.type_k = params.type_v = llama.GGML_TYPE_F32
        return llama.llama_init_from_model(self.model, params)

    def _add(self, token, position, sequence, wanted):
        at = self.batch.n_tokens
        self.batch.token[at], self.batch.pos[at] = token, position
        self.batch.n_seq_id[at], self.batch.seq_id[at][0] = 1, sequence
        self.batch.logits[at] = wanted
        self.batch.n_tokens += 1

    def _decode(self):
        code = llama.llama_decode(self.context, self.batch)
        assert code == 0, code

    def round(self):
        llama.llama_memory_clear(llama.llama_get_memory(self.context), False)
        self.batch.n_tokens, rows = 0, []
        for sequence, prompt in enumerate(self.prompts):
            for position, token in enumerate(prompt):
                self._add(token, position, sequence, position + 1 == len(prompt))
            rows.append(self.batch.n_tokens - 1)
        self._decode()
        for step in range(self.length):
            drawn = [llama.llama_sampler_sample(*pair) for pair in zip(self.samplers, [self.context] * len(rows), rows)]
            if step + 1 == self.length:
                break
            self.batch.n_tokens = 0
            for sequence, token in enumerate(drawn):
                self._add(token, len(self.prompts[sequence]) + step, sequence, True)
            rows = range(len(drawn))
            self._decode()
        return len(self.prompts) * self.length, {}
