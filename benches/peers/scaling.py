"""Measures this project's speed as the work grows and draws it beside the machine's limit.

Called by `scaling` beside this file; see there. Each point is one process, a round that warms up and some timed ones.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

import matplotlib

import ceiling
from compare import HERE, Side, measured_machine, write_model

matplotlib.use("svg")
matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
matplotlib.rcParams["svg.hashsalt"] = "scaling"  # the same file for the same numbers
from matplotlib import pyplot  # noqa: E402

TRAIN, SAMPLE, BLOCK = {"work": "train"}, {"work": "sample"}, {"work": "block", "model": "135m"}
MODELS = {"embedded": 0.8, "d192": 2.7, "d384": 24.4, "135m": 134.5}  # million parameters


def powers(first, last):
    return [first << i for i in range((last // first).bit_length())]


def train_length(model, tokens):
    count = max(1, (4096 if model == "embedded" else 512) // tokens)
    sizes = {"prompts": count, "prompt": 1, "response": tokens - 1, "micro_batch_tokens": max(2048, tokens)}
    return TRAIN | sizes | {"model": model}


def train_group(model, group):
    return TRAIN | {"model": model, "group": group, "prompt": 128, "response": 128}


def sample_batch(model, batch):
    return SAMPLE | {"model": model, "group": batch, "prompt": 32, "response": 64}


def sample_length(model, prompt):
    return SAMPLE | {"model": model, "group": 8, "prompt": prompt, "response": 32}


def block_paths(kind, paths):
    return BLOCK | {"work": kind, "paths": paths, "prompt": 128, "response": 48, "summary": 32}


def model_size(kind, size):
    model = next(name for name, millions in MODELS.items() if millions == size)
    if kind == "train":
        return train_length(model, 256) | {"prompts": 2}
    return sample_batch(model, 32)


def threads(kind, _):
    return train_length("135m", 512) if kind == "train" else sample_batch("135m", 8)


# name: (what grows, the lines and their points, the case of a point)
SERIES = {
    "train_length": (
        "tokens of a training sequence",
        {"embedded": powers(256, 8192), "135m": powers(256, 4096)},
        train_length,
    ),
    "train_group": (
        "responses below a prompt (128 + 128 tokens)",
        {"embedded": powers(1, 64), "135m": powers(1, 16)},
        train_group,
    ),
    "sample_batch": (
        "responses sampled at a time",
        {"embedded": powers(1, 256), "135m": powers(1, 64)},
        sample_batch,
    ),
    "sample_length": (
        "tokens before the response (8 at a time)",
        {"embedded": powers(256, 8192), "135m": powers(256, 4096)},
        sample_length,
    ),
    "block_paths": (
        "paths of a block on SmolLM2-135M",
        {"block": [1, 2, 5, 8, 16], "reread": [1, 2, 5, 8, 16]},
        block_paths,
    ),
    "model_size": (
        "million parameters",
        {"train": list(MODELS.values()), "sample": list(MODELS.values())},
        model_size,
    ),
    "threads": ("threads, SmolLM2-135M", {"train": [], "sample": []}, threads),
}


def rate(case, results):
    """Tokens a second; in sampling those after the first, so that the reading of the prompt does not count."""
    if case["work"] != "sample":
        return statistics.median(r["units"] / r["seconds"] for r in results)
    tokens = case.get("group", 1) * (case["response"] - 1)
    return statistics.median(tokens / (r["seconds"] - r["notes"]["seconds_to_first_token"]) for r in results)


def limit(case, config, machine):
    """Tokens a second that the machine allows; None for what has no ceiling of its own."""
    if case["work"] == "reread":
        return None
    model = ceiling.Model(config)
    if case["work"] == "sample":
        branches, steps = case.get("group", 1), case["response"] - 1
        return branches * steps / ceiling.passes(model, machine, steps, branches, case["prompt"])
    units = case.get("prompts", 1) * (case["prompt"] + case.get("group", 1) * case["response"])
    if case["work"] == "block":
        units = 4 + case["paths"] * case["response"] + case["summary"]
    return units / ceiling.seconds(case, model, machine)


def point(case, arguments, count):
    """Results of the timed rounds."""
    side = Side([arguments.speed, "--serve", json.dumps(case)], count)
    try:
        return [side.round() for _ in range(arguments.rounds + 1)][1:]
    finally:
        side.close()


def series(name, arguments, models, machines, folder):
    """The points of a series, by line."""
    _, lines, make = SERIES[name]
    result = {}
    for line, points in lines.items():
        result[line] = []
        for x in points or list(machines):
            case = make(line, x) | {"name": name}
            case["folder"] = str(folder / case["model"])
            write_model(case["model"], folder / case["model"], arguments.speed)
            count = x if name == "threads" else arguments.threads
            results = point(case, arguments, count)
            entry = {"x": x, "tokens_per_second": rate(case, results), "peak_mib": results[-1]["peak_mib"]}
            entry["limit"] = limit(case, models[case["model"]], machines[count])
            result[line].append(entry)
            print(name, line, entry, file=sys.stderr, flush=True)
    return result


def draw(name, lines, file):
    """One picture: measured lines, and dashed the limit of each."""
    figure, axes = pyplot.subplots(figsize=(6, 3.6))
    for number, (line, points) in enumerate(lines.items()):
        xs, colour = [p["x"] for p in points], f"C{number}"
        axes.plot(xs, [p["tokens_per_second"] for p in points], "o-", color=colour, label=line)
        if points[0]["limit"]:
            axes.plot(xs, [p["limit"] for p in points], "--", color=colour, label=f"{line}, limit")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    xs = sorted({p["x"] for points in lines.values() for p in points})
    axes.set_xticks(xs, [str(x) for x in xs])
    axes.set_xlabel(SERIES[name][0])
    axes.set_ylabel("tokens/s")
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def arguments_of():
    parser = argparse.ArgumentParser(prog="benches/peers/scaling", description=__doc__.split("\n\n")[0])
    parser.add_argument("out", type=Path, help="folder for scaling.json and the pictures")
    parser.add_argument("--series", nargs="+", choices=SERIES, default=list(SERIES), help="only these; others stay")
    parser.add_argument("--rounds", type=int, default=2, metavar="N", help="timed rounds a point (2)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="threads (all)")
    parser.add_argument("--speed", type=Path, required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = arguments_of()
    models = json.loads((HERE / "cases.json").read_text())["models"]
    file = arguments.out / "scaling.json"
    arguments.out.mkdir(parents=True, exist_ok=True)
    known = json.loads(file.read_text()) if file.is_file() else {"series": {}}
    wanted = powers(1, arguments.threads) if "threads" in arguments.series else [arguments.threads]
    machines = {count: measured_machine(arguments.speed, count) for count in wanted}
    known["machine"] = machines[arguments.threads]
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.series:
            known["series"][name] = series(name, arguments, models, machines, Path(folder))
            file.write_text(json.dumps(known, indent=1) + "\n")
            draw(name, known["series"][name], arguments.out / f"{name}.svg")


if __name__ == "__main__":
    main()
