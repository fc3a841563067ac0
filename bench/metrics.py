"""Ratio of the metrics pass to np.copyto over the same bytes, both tensors, measured in one run.

    python bench/metrics.py [--gb 0.5] [--workers N]

The bar: at most 4x for float32, all metrics together. "equal" is the common case of a layer-wise comparison.
"""

import argparse
import time
from collections.abc import Callable

import ml_dtypes
import numpy as np

from tensortriage.compare.metrics import measure, measure_many


def best_seconds(action: Callable[[], object], repeats: int = 5) -> float:
    action()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def noisy(reference: np.ndarray, scale: float) -> np.ndarray:
    noise = np.random.default_rng(1).standard_normal(reference.size, dtype=np.float32).reshape(reference.shape)
    return reference + np.float32(scale) * noise


def row(name: str, reference: np.ndarray, target: np.ndarray, workers: int | None) -> None:
    copies = [np.empty_like(reference), np.empty_like(target)]

    def copy() -> None:
        np.copyto(copies[0], reference)
        np.copyto(copies[1], target)

    copying = best_seconds(copy)
    del copies
    measuring = best_seconds(lambda: measure(reference, target, workers=workers))
    megabytes = (reference.nbytes + target.nbytes) / 2**20
    print(f"{name:34} {megabytes:8.0f} MB {copying * 1e3:9.1f} ms {measuring * 1e3:9.1f} ms {measuring / copying:7.2f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=0.25, help="size of each tensor in GiB")
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args()
    count = int(options.gb * 2**30) // 4
    reference = np.random.default_rng(0).standard_normal(count, dtype=np.float32)
    print(f"{'pair':34} {'both':>11} {'np.copyto':>12} {'metrics':>12} {'ratio':>8}")
    row("float32, equal", reference, reference.copy(), options.workers)
    row("float32, noise 1e-4", reference, noisy(reference, 1e-4), options.workers)
    row("float32, unrelated", reference, noisy(reference, 1e3), options.workers)
    relu = np.maximum(reference, 0)
    row("float32, half zeros", relu, np.maximum(noisy(reference, 1e-4), 0), options.workers)
    masked = reference.copy()
    masked[::3] = -np.inf
    target = noisy(reference, 1e-4)
    target[::3] = -np.inf
    row("float32, a third -inf", masked, target, options.workers)
    half = count // 2
    for dtype in (np.float64, np.float16, ml_dtypes.bfloat16):
        row(f"{np.dtype(dtype).name}, noise", reference[:half].astype(dtype), noisy(reference[:half], 1e-2).astype(dtype),
            options.workers)  # fmt: skip
    small = [(str(i), reference[i * 64 : i * 64 + 64], target[i * 64 : i * 64 + 64]) for i in range(2000)]
    for name, pairs in (("unequal", small), ("equal", [(name, one, one.copy()) for name, one, _ in small])):
        seconds = best_seconds(lambda pairs=pairs: list(measure_many(pairs, workers=options.workers)))
        print(f"2000 pairs of 64 float32, {name:7}: {seconds / 2000 * 1e6:.1f} us per pair")


if __name__ == "__main__":
    main()
