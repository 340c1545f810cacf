"""A whole step of TRL's GRPOTrainer."""

import queue
import tempfile
import threading

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

import texts
from pytorch import load


def words(vocab):
    """A tokenizer with a word for each id, so that a prompt has as many tokens as it is meant to."""
    tokenizer = Tokenizer(models.WordLevel({f"w{i}": i for i in range(vocab)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="w0", pad_token="w0", unk_token="w0")


def reward(completion_ids, **_):
    """A number that differs within a group: advantages that are all 0 would spare the update."""
    return [float(sum(ids) % 17) for ids in completion_ids]


class Turns(TrainerCallback):
    """Lets the trainer do one step whenever it is told to."""

    def __init__(self):
        self.go, self.done = queue.Queue(), queue.Queue()

    def on_step_begin(self, *_, **__):
        self.go.get()

    def on_step_end(self, *_, **__):
        self.done.put(None)


class Grpo:
    """The trainer in a thread of its own, which waits before each step."""

    def __init__(self, case):
        model = load(case)
        vocab, length = model.config.vocab_size, case["response"]
        prompts = [" ".join(f"w{i}" for i in prompt) for prompt in texts.prompts(case, vocab).tolist()]
        config = GRPOConfig(
            output_dir=tempfile.mkdtemp(),
            use_cpu=True,
            bf16=False,
            per_device_train_batch_size=len(prompts) * case["group"],
            gradient_accumulation_steps=1,
            gradient_checkpointing=False,
            num_generations=case["group"],
            max_completion_length=length,
            generation_kwargs={"min_new_tokens": length},
            temperature=1.0,
            beta=0.0,
            optim="adamw_torch_fused",
            learning_rate=1e-5,
            adam_beta2=0.95,
            weight_decay=0.01,
            max_steps=100_000,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        self.turns = Turns()
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_dict({"prompt": prompts}),
            processing_class=words(vocab),
            callbacks=[self.turns],
        )
        threads = torch.get_num_threads()

        def train():
            torch.set_num_threads(threads)  # holds for a thread alone
            try:
                trainer.train()
            except BaseException as error:
                self.turns.done.put(error)

        threading.Thread(target=train, daemon=True).start()
        self.units = texts.useful_tokens(case)

    def round(self):
        self.turns.go.put(None)
        error = self.turns.done.get()
        if error:
            raise error
        return self.units, {}
