"""Times this project's judge and Math-Verify on the same rows, in turns.

    python time_math_verify.py TIME_CASES FILE.jsonl [ROUNDS]

TIME_CASES is the example of that name of crates/verify. Each round judges every row once with either; a row's time is
its median over the rounds. `benches/peers/verify` builds and calls this.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from math_verify import parse, verify
from math_verify import ExprExtractionConfig, LatexExtractionConfig, StringExtractionConfig

OURS, THEIRS = "parallel-r1", "math-verify"
CASES = Path(__file__).resolve().parents[2] / "crates/verify/benches/cases.jsonl"
CONFIGS = {"latex": LatexExtractionConfig, "expr": ExprExtractionConfig, "string": StringExtractionConfig}


def judge(row):
    """The verdict of Math-Verify, with the settings that the row assumes."""
    opts = row.get("opts") or {}
    kinds = [CONFIGS[kind]() for kind in opts.get("match_types", ["latex", "expr"])]
    gold = parse(row["gold"], kinds)
    answer = parse(row["pred"], kinds)
    return bool(
        verify(
            gold,
            answer,
            float_rounding=opts.get("precision", 6),
            strict=opts.get("strict", True),
            allow_set_relation_comp=opts.get("allow_set_relation_comp", False),
        )
    )


def theirs(rows):
    times, verdicts = [], []
    for row in rows:
        start = time.perf_counter()
        verdicts.append(judge(row))
        times.append(time.perf_counter() - start)
    return times, verdicts


def ours(program, file):
    lines = subprocess.run([program, file], check=True, capture_output=True, text=True).stdout.split("\n")
    pairs = [line.split() for line in lines if line]
    return [int(nanoseconds) * 1e-9 for _, nanoseconds in pairs], [verdict == "true" for verdict, _ in pairs]


def right(rows, verdicts):
    return sum(row["expect"] == verdict for row, verdict in zip(rows, verdicts) if row.get("expect") is not None)


def measure(program, file, rounds):
    """Times and verdicts of both, by name: a list of rounds, each a list of rows."""
    with open(file, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    theirs(rows)  # warms caches
    times, verdicts = {OURS: [], THEIRS: []}, {}
    for _ in range(rounds):
        for name, (each, verdicts[name]) in ((OURS, ours(program, file)), (THEIRS, theirs(rows))):
            times[name].append(each)
    return rows, times, verdicts


def median_row(runs):
    """The median over the rows of a row's median time."""
    return statistics.median(statistics.median(each) for each in zip(*runs))


def row(case, program, rounds):
    """The result as `compare.py` has it."""
    rows, times, _ = measure(program, str(CASES), rounds)
    mine, other = ([len(rows) / sum(each) for each in times[name]] for name in (OURS, THEIRS))
    rates = statistics.median(mine), statistics.median(other)
    return {
        "case": case,
        "unit": "rows/s",
        "ours": rates[0],
        "peer": rates[1],
        "peer_name": "Math-Verify",
        "ratio": rates[0] / rates[1],
        "ratio_of_median_rows": median_row(times[THEIRS]) / median_row(times[OURS]),
        "rounds": rounds,
    }


def main():
    program, file, rounds = sys.argv[1], sys.argv[2], int((sys.argv[3:] or ["5"])[0])
    rows, columns, verdicts = measure(program, file, rounds)
    medians = {}
    for name, runs in columns.items():
        per_row = [statistics.median(times) for times in zip(*runs)]
        medians[name] = (statistics.median(per_row), sum(per_row))
        print(
            f"{name:12} median {statistics.median(per_row) * 1e6:9.1f} us a row, all {sum(per_row) * 1e3:9.2f} ms,"
            f" slowest {max(per_row) * 1e3:8.3f} ms, as expected {right(rows, verdicts[name])} of {len(rows)}"
        )
    mine, other = medians[OURS], medians[THEIRS]
    print(f"ratio: {other[0] / mine[0]:.0f} by medians, {other[1] / mine[1]:.0f} by sums")


if __name__ == "__main__":
    main()
