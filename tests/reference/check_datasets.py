"""Data sets written here, in Python: pyarrow and datasets read the same rows, and TRL's SFTTrainer takes a step on them."""

import json

import datasets
import harness
import pyarrow
import pyarrow.parquet
import transformers
import trl

datasets.disable_progress_bars()

TEXT = "Let $a,\\ b$\n\n\\[a^2 < 3\\] \u00a0\u2603 \U0001d4b3"
BLOCK = "<Parallel><Path>1 + 1 = 2</Path><Path>two</Path></Parallel>\n<Summary>2</Summary>"
ROWS = [
    {"id": "a", "problem": TEXT, "answer": "2", "source": "test", "response": f"{BLOCK}\nAnswer: 2"},
    {"id": "b", "problem": "1 + 1?", "answer": "2", "source": "test", "level": "5", "response": TEXT,
     "repairs": [{"kind": "spacing", "at": 3}]},
]


def written(folder, name, form):
    """The rows in a file of this form."""
    source = folder / "source.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    harness.command("data", "convert", source, folder / name, "--form", form)
    return folder / name


def filled(value):
    """A value without what is null: a table has every column in every row."""
    if isinstance(value, dict):
        return {name: filled(inner) for name, inner in value.items() if inner is not None}
    return [filled(inner) for inner in value] if isinstance(value, list) else value


def rows_are_read(folder):
    file = written(folder, "rows.parquet", "rows")
    harness.equal("pyarrow reads rows", [filled(row) for row in pyarrow.parquet.read_table(file).to_pylist()], ROWS, "equal")
    for name, kind in [("rows.parquet", "parquet"), ("rows.jsonl", "json")]:
        file = written(folder, name, "rows")
        read = datasets.load_dataset(kind, data_files=str(file), split="train", cache_dir=str(folder / kind))
        harness.equal(f"datasets reads {name}", [filled(row) for row in read], ROWS, "equal")


def rows_are_written(folder):
    """And the other way: what pyarrow writes comes back."""
    # pyarrow takes the columns from the first row.
    names = list(dict.fromkeys(name for row in ROWS for name in row))
    table = pyarrow.Table.from_pylist([{name: row.get(name) for name in names} for row in ROWS])
    for compression in ["snappy", "zstd"]:
        theirs, back = folder / f"{compression}.parquet", folder / "back.jsonl"
        pyarrow.parquet.write_table(table, theirs, compression=compression)
        harness.command("data", "convert", theirs, back)
        read = [json.loads(line) for line in back.read_text().splitlines()]
        harness.equal(f"a file of pyarrow is read ({compression})", read, ROWS, "equal")


def chats_are_read(folder):
    chat = [
        [{"role": "user", "content": row["problem"]}, {"role": "assistant", "content": row["response"]}] for row in ROWS
    ]
    for name in ["chats.parquet", "chats.jsonl"]:
        file = written(folder, name, "messages")
        read = datasets.load_dataset(
            "json" if name.endswith("jsonl") else "parquet", data_files=str(file), split="train", cache_dir=str(folder / name[6:])
        )
        harness.equal(f"datasets reads {name}", read["messages"][:], chat, "equal")


def a_step_is_taken(folder):
    """One step of a small golden model: its loss is a number, and it learns from the assistant's words alone."""
    base = harness.copied("llama", folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] + eos_token }}{% endgeneration %}"
        "{% else %}{{ m['content'] + '\\n' }}{% endif %}{% endfor %}"
    )
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    data = datasets.load_dataset(
        "parquet", data_files=str(written(folder, "sft.parquet", "messages")), split="train", cache_dir=str(folder / "sft")
    ).select_columns(["messages"])
    settings = trl.SFTConfig(
        output_dir=str(folder / "out"), max_steps=1, per_device_train_batch_size=2, assistant_only_loss=True,
        max_length=64, use_cpu=True, bf16=False, report_to=[], save_strategy="no", disable_tqdm=True,
    )
    trainer = trl.SFTTrainer(model=harness.opened(base), args=settings, train_dataset=data, processing_class=tokenizer)
    loss = trainer.train().training_loss
    harness.verdict("TRL's SFTTrainer takes a step", loss == loss and loss > 0, f"loss {loss:.3f}")


folder = harness.scratch()
for check in [rows_are_read, rows_are_written, chats_are_read, a_step_is_taken]:
    harness.attempt(check.__name__, check, folder)
harness.finish()
