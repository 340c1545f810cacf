"""The rate of a large product in PyTorch."""

import time

import torch

SIDE = 2048


class Machine:
    """Measures the best of some tries."""

    def __init__(self, case):
        self.a, self.b = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)

    def round(self):
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            torch.mm(self.a, self.b)
            best = min(best, time.perf_counter() - start)
        return 1, {"gflops": 2 * SIDE**3 / best * 1e-9}
