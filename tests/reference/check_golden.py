"""The golden files are what families.py and adapters.py make."""

import json

import adapters
import families
import harness
from safetensors.torch import load_file

TOLERANCE = 1e-5
# These may differ, if the numbers don't.
VERSIONS = {"made_by", "transformers_version", "peft_version"}


def gap(a, b):
    """The largest difference between two JSON values; infinite where they differ in anything but numbers."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return max((gap(a[key], b[key]) for key in a if key not in VERSIONS), default=0.0)
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return max(map(gap, a, b), default=0.0)
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) / max(1.0, abs(b))
    return 0.0 if a == b else float("inf")


def weights(folder):
    return {name: t for file in sorted(folder.glob("*.safetensors")) for name, t in load_file(file).items()}


def check(fresh, committed):
    for file in committed.glob("*.json"):
        difference = gap(*(json.loads((folder / file.name).read_text()) for folder in (fresh, committed)))
        detail = f"largest difference {difference:.1e}"
        harness.verdict(f"{committed.name}/{file.name}", difference <= TOLERANCE, detail)
    new, old = weights(fresh), weights(committed)
    same = new.keys() == old.keys() and all(new[name].equal(old[name]) for name in new)
    harness.verdict(f"{committed.name}: weights", same, f"{len(old)} tensors")


def main():
    out = harness.scratch()
    families.main(out / "models")
    adapters.main(out / "adapters")
    for committed in (harness.MODELS, harness.ADAPTERS):
        for expected in sorted(committed.glob("*/expected.json")):
            check(out / committed.name / expected.parent.name, expected.parent)
    harness.finish()


if __name__ == "__main__":
    main()
