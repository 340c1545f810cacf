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

from math_verify import parse, verify
from math_verify import ExprExtractionConfig, LatexExtractionConfig, StringExtractionConfig

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


def main():
    program, file, rounds = sys.argv[1], sys.argv[2], int((sys.argv[3:] or ["5"])[0])
    with open(file, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    theirs(rows)  # warms caches
    columns = {"parallel-r1": [], "math-verify": []}
    for _ in range(rounds):
        mine, my_verdicts = ours(program, file)
        other, other_verdicts = theirs(rows)
        columns["parallel-r1"].append(mine)
        columns["math-verify"].append(other)
    verdicts = {"parallel-r1": my_verdicts, "math-verify": other_verdicts}
    medians = {}
    for name, runs in columns.items():
        per_row = [statistics.median(times) for times in zip(*runs)]
        medians[name] = (statistics.median(per_row), sum(per_row))
        print(
            f"{name:12} median {statistics.median(per_row) * 1e6:9.1f} us a row, all {sum(per_row) * 1e3:9.2f} ms,"
            f" slowest {max(per_row) * 1e3:8.3f} ms, as expected {right(rows, verdicts[name])} of {len(rows)}"
        )
    mine, other = medians["parallel-r1"], medians["math-verify"]
    print(f"ratio: {other[0] / mine[0]:.0f} by medians, {other[1] / mine[1]:.0f} by sums")


if __name__ == "__main__":
    main()
