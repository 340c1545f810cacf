"""Runs the cases of cases.json on both sides, in turns, and writes medians and ratios.

`run` beside this file installs the peers, builds this project's side and calls this program; see there for its
arguments. Each side of a case is a process of its own that loads its model once and then does a round whenever it is
told to. While one works the other is stopped, so that no thread of it spins.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import ceiling

HERE = Path(__file__).resolve().parent
START, END = "<!-- table -->", "<!-- end of the table -->"
KINDS = {
    "torch": "PyTorch, eager, SDPA, fused AdamW",
    "transformers": "transformers.generate",
    "llama_cpp": "llama.cpp",
    "trl": "TRL GRPOTrainer",
    "math_verify": "Math-Verify",
    "reread": "the same engine, prefix re-read at fork and join",
    "one_path": "the same engine, a block of one path",
    "one_branch": "the same engine, one branch",
}


class Side:
    """A process that does rounds."""

    def __init__(self, command, threads):
        each = dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self.process = subprocess.Popen(
            command, env=os.environ | each | quiet, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer("ready")
        self.process.send_signal(signal.SIGSTOP)

    def _answer(self, what):
        for line in self.process.stdout:
            if line.startswith(("{", "ready")):  # some libraries greet on stdout
                return line
        raise SystemExit(f"a side ended before its {what}: {' '.join(map(str, self.process.args))[:300]}")

    def round(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write("round\n")
        self.process.stdin.flush()
        result = json.loads(self._answer("result"))
        self.process.send_signal(signal.SIGSTOP)
        return result

    def close(self):
        self.process.kill()
        self.process.wait()


def sides(case, speed):
    """The commands of both sides of a case."""
    ours = [speed, "--serve"]
    theirs = {
        "reread": case | {"work": "reread"},
        "one_path": case | {"paths": 1},
        "one_branch": case | {"group": 1},
    }.get(case.get("peer"))
    if theirs:
        return ours + [json.dumps(case)], ours + [json.dumps(theirs)]
    return ours + [json.dumps(case)], [sys.executable, HERE / "peer", json.dumps(case)]


def peer_name(case):
    return KINDS[case.get("peer", "transformers" if case["work"] == "sample" else "torch")]


def measure(case, speed, threads, rounds):
    """Both sides of a case in turns, after a round each that warms up."""
    pair = []
    try:
        for command in sides(case, speed):
            pair.append(Side(command, threads))
        results = [[side.round() for side in pair] for _ in range(rounds + 1)][1:]
    finally:
        for side in pair:
            side.close()
    return [list(side) for side in zip(*results)]


def row(case, ours, theirs):
    """One entry of the result."""

    def rate(results):
        return statistics.median(r["units"] / r["seconds"] for r in results)

    def seconds(results):
        return statistics.median(r["seconds"] for r in results)

    mine, other = rate(ours), rate(theirs)
    return {
        "case": case["name"],
        "unit": "tokens/s",
        "ours": mine,
        "peer": other,
        "peer_name": peer_name(case),
        "ratio": mine / other,
        "wall_time_ratio": seconds(ours) / seconds(theirs),  # of a round: five paths against one, say
        "rounds": len(ours),
        "ours_seconds": [r["seconds"] for r in ours],
        "peer_seconds": [r["seconds"] for r in theirs],
        "ours_peak_mib": ours[-1]["peak_mib"],
        "peer_peak_mib": theirs[-1]["peak_mib"],
        "ours_notes": ours[-1]["notes"],
        "peer_notes": theirs[-1]["notes"],
        "work": {key: value for key, value in case.items() if key not in ("name", "quick", "peer", "folder")},
    }


def table(machine, rows):
    """The rows as Markdown."""
    lines = [
        f"{machine['threads']} threads; f32 products {machine['gflops']:.0f} GFLOP/s, "
        f"memory {machine['gbytes_per_second']:.1f} GB/s",
        "",
        "| case | unit | ours | peer | ratio | of the ceiling | peak MiB, ours / peer | peer |",
        "|---|---|--:|--:|--:|--:|--:|---|",
    ]
    for r in rows:
        share = f"{r['share_of_ceiling']:.0%}" if r.get("share_of_ceiling") else ""
        peak = f"{r['ours_peak_mib']} / {r['peer_peak_mib']}" if r.get("ours_peak_mib") else ""
        lines.append(
            f"| {r['case']} | {r['unit']} | {r['ours']:,.4g} | {r['peer']:,.4g} | {r['ratio']:.2f} | {share} | {peak}"
            f" | {r['peer_name']} |"
        )
    return "\n".join(lines)


def measured_machine(speed, threads, before=None):
    """Limits of the machine: the better of the two sides' products, and the bandwidth that ours reads with. What was
    measured `before` counts where it was higher."""
    ours, theirs = measure({"name": "machine", "work": "machine"}, speed, threads, 1)
    mine, other = ours[0]["notes"], theirs[0]["notes"]
    machine = {
        "gflops": max(mine["gflops"], other["gflops"]),
        "gflops_ours": mine["gflops"],
        "gflops_torch": other["gflops"],
        "gbytes_per_second": mine["gbytes_per_second"],
    }
    best = {key: max(value, (before or {}).get(key, 0)) for key, value in machine.items()}
    return {"threads": threads} | best


def write_model(name, folder, speed):
    if not (folder / "model.safetensors").is_file():
        subprocess.run([speed, "--write-model", name, folder], check=True)


def arguments_of():
    parser = argparse.ArgumentParser(prog="benches/peers/run", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="shorter work, three rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    parser.add_argument("--merge", action="store_true", help="keep the cases that FILE holds and this call doesn't run")
    parser.add_argument("--table", type=Path, metavar="FILE", help="put the table into this page, between its marks")
    parser.add_argument("--case", nargs="+", metavar="NAME", help="only these cases")
    parser.add_argument("--rounds", type=int, metavar="N", help="timed rounds (5; 3 with --quick)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="threads of both sides")
    parser.add_argument("--speed", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--time-cases", type=Path, required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def chosen(cases, arguments):
    """The cases that this call runs, in the sizes that it runs them in; `quick` leaves some out unless they are named."""
    names = arguments.case or [c["name"] for c in cases if not (arguments.quick and c["quick"] is None)]
    unknown = set(names) - {case["name"] for case in cases}
    if unknown:
        raise SystemExit(f"no case {', '.join(sorted(unknown))}")
    sizes = (lambda case: case["quick"] or {}) if arguments.quick else (lambda case: {})
    return [case | sizes(case) for case in cases if case["name"] in names]


def replace_table(file, text):
    """Puts the table where an earlier one stands in a page."""
    page = file.read_text()
    before, rest = page.split(START, 1)
    file.write_text(f"{before}{START}\n{text}\n{END}{rest.split(END, 1)[1]}")


def run(cases, models, arguments, rounds):
    """The limits of the machine, measured before and after, and an entry for each case."""
    speed, threads, rows = arguments.speed, arguments.threads, []
    machine = measured_machine(speed, threads)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            if case["work"] == "verify":
                import time_math_verify  # needs Math-Verify

                rows.append(time_math_verify.row(case["name"], arguments.time_cases, rounds))
            else:
                case["folder"] = str(Path(folder) / case["model"])
                write_model(case["model"], Path(case["folder"]), speed)
                rows.append(row(case, *measure(case, speed, threads, rounds)))
            print(f"{case['name']}: {rows[-1]['ratio']:.2f}", file=sys.stderr, flush=True)
    machine = measured_machine(speed, threads, machine)
    for entry in rows:
        entry["machine"] = machine
        if "work" in entry:
            ceiling.add(entry, models[entry["work"]["model"]], machine)
    return machine, rows


def main():
    arguments = arguments_of()
    file = json.loads((HERE / "cases.json").read_text())
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    machine, rows = run(chosen(file["cases"], arguments), file["models"], arguments, rounds)
    if arguments.merge and arguments.json.is_file():
        fresh = {entry["case"] for entry in rows}
        rows += [entry for entry in json.loads(arguments.json.read_text()) if entry["case"] not in fresh]
    order = [case["name"] for case in file["cases"]]
    rows.sort(key=lambda entry: order.index(entry["case"]))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.table:
        replace_table(arguments.table, table(machine, rows))
    print(table(machine, rows))


if __name__ == "__main__":
    main()
