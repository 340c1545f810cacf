"""What the checks share: running this program, and saying what was compared."""

import atexit
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = REPOSITORY / "tests/golden/models"
ADAPTERS = REPOSITORY / "tests/golden/adapters"
SMOLLM2 = REPOSITORY / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
BUILT = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"
TAGS = ["<Parallel>", "</Parallel>", "<Path>", "</Path>", "<Summary>", "</Summary>"]

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

failures = []


def run(program, *arguments):
    """The standard output of one of this repository's programs; its failure is an error with its message."""
    done = subprocess.run([BUILT / program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{program} {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def command(*arguments):
    return run("parallel-r1", *arguments)


def logits(model, *arguments):
    """What examples/logits.rs says."""
    return json.loads(run("examples/logits", model, *arguments))


def ours(model, tokens):
    """Our logits `[tokens, vocabulary]`."""
    return torch.tensor(logits(model, "--all", "--ids", ",".join(map(str, tokens)))["logits"])


def theirs(model, tokens):
    """The logits of a model of transformers or peft."""
    with torch.no_grad():
        return model(input_ids=torch.tensor([tokens])).logits[0].float()


def opened(folder, **how):
    how = {"attn_implementation": "eager", "dtype": torch.float32, **how}
    return transformers.AutoModelForCausalLM.from_pretrained(folder, **how).eval()


def close(what, got, expected, tolerance):
    """Compares two tensors, relative to the largest element expected."""
    if got.shape != expected.shape:
        return verdict(what, False, f"shape {tuple(got.shape)}, expected {tuple(expected.shape)}")
    gap = ((got - expected).abs().max() / expected.abs().max()).item()
    verdict(
        what, gap <= tolerance, f"largest difference {gap:.1e} of the largest value (allowed {tolerance:.0e})"
    )


def equal(what, got, expected, shown=None):
    """Compares two values that must be the same."""
    if got == expected:
        return verdict(what, True, shown or "equal")
    verdict(what, False, f"got {got!r}, expected {expected!r}")


def verdict(what, good, detail):
    print(f"{'ok    ' if good else 'FAILED'} {what}: {detail}", flush=True)
    if not good:
        failures.append(what)


def attempt(what, check, *arguments):
    """An error is a failure of this comparison; the others go on."""
    try:
        check(*arguments)
    except Exception as error:
        verdict(what, False, f"{type(error).__name__}: {error}")


def finish():
    sys.exit(1 if failures else 0)


def scratch():
    """A folder that is gone when the check ends."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="parallel-r1-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def copied(name, out):
    """A golden model with a tokenizer, in a folder of `out`."""
    folder = out / "models" / name
    shutil.copytree(MODELS / name, folder, dirs_exist_ok=True)
    shutil.copytree(MODELS / "tokenizer", folder, dirs_exist_ok=True)
    return folder


def golden_models():
    return sorted(folder.parent.name for folder in MODELS.glob("*/expected.json"))
