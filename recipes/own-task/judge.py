"""Judges answers to `sum S product P`: two whole numbers with that sum and that product, in either order.

Reads one JSON object a line, {"problem", "response", "gold", ...}, and writes one a line, {"score", "correct"}. There is
no one gold answer to compare with, which is why this is a program. `gold` is the row's `answer`, here "S P".
"""

import json
import sys


def numbers(response):
    """The two numbers of the last line that states an answer."""
    stated = [line for line in response.splitlines() if line.startswith("Answer:")]
    try:
        first, second = map(int, stated[-1].removeprefix("Answer:").split())
    except (IndexError, ValueError):
        return None
    return first, second


def judge(gold, response):
    total, product = map(int, gold.split())
    pair = numbers(response)
    if pair is None:
        return {"score": -1.0, "correct": False}
    if sum(pair) == total and pair[0] * pair[1] == product:
        return {"score": 1.0, "correct": True}
    # Half of it is better than nothing, but nowhere near right.
    return {"score": -0.5 if sum(pair) == total else -1.0, "correct": False}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(judge(request["gold"], request["response"])), flush=True)
