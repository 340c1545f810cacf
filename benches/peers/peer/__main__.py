"""A peer's side of a comparison: for every line on stdin one round, and its result as a line of JSON on stdout.

    python peer CASE        a JSON object

The counterpart of `benches/speed --serve`.
"""

import json
import sys
import time
from pathlib import Path


def peak_mib():
    """The most memory that this process ever had, where the system says it."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def work(case):
    """An object whose method `round` does one round and returns (units of work, notes)."""
    match (case["work"], case.get("peer", "torch")):
        case ("machine", _):
            from machine import Machine as Peer
        case ("train", _):
            from train import Training as Peer
        case ("sample", "llama_cpp"):
            from llamacpp import Sampling as Peer
        case ("sample", _):
            from sample import Sampling as Peer
        case ("grpo", _):
            from grpo import Grpo as Peer
        case other:
            raise SystemExit(f"no peer for {other}")
    return Peer(case)


def main():
    case = json.loads(sys.argv[1])
    peer = work(case)
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        units, notes = peer.round()
        seconds = time.perf_counter() - start
        print(json.dumps({"units": units, "seconds": seconds, "peak_mib": peak_mib(), "notes": notes}), flush=True)


if __name__ == "__main__":
    main()
