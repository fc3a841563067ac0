"""Ratio of the metrics pass to np.copyto over the same bytes, both tensors, measured in one run.

    python bench/metrics.py [--gb 0.25] [--workers N] [--repeats 5]
    TRIAGE_PURE_PYTHON=1 python bench/metrics.py  # numpy's pass, as where there was no compiler

The bar: at most 4x for float32, all metrics together; "equal" is the common case of a layer-wise comparison. Copying
and measuring take turns and the best of each counts; "cpu" is the ratio of processor time, which a busy machine blurs
less.
"""

import argparse
import time
from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np

from tensortriage.compare.metrics import compiled_pass
from tensortriage.compare.metrics.tensor_metrics import measure, measure_many

Action = Callable[[], object]


def seconds(action: Action) -> tuple[float, float]:
    """Wall and processor time of one call."""
    wall, processor = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - processor


def in_turns(actions: list[Action], repeats: int) -> list[tuple[float, float]]:
    """Best wall and processor time of each action."""
    rounds = [[seconds(action) for action in actions] for _ in range(repeats + 1)][1:]
    return [tuple(map(min, zip(*times, strict=True))) for times in zip(*rounds, strict=True)]


def noise(size: int, scale: float) -> np.ndarray:
    return np.float32(scale) * np.random.default_rng(1).standard_normal(size, dtype=np.float32)


def masked(reference: np.ndarray, target: np.ndarray, mask: float) -> tuple[np.ndarray, np.ndarray]:
    """Return copies of both sides, a third of which holds the mask."""
    sides = reference.copy(), target.copy()
    for side in sides:
        side[::3] = mask
    return sides


def pairs(count: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    reference = np.random.default_rng(0).standard_normal(count, dtype=np.float32)
    yield "float32, equal", reference, reference.copy()
    yield "float32, noise 1e-4", reference, reference + noise(count, 1e-4)
    yield "float32, in proportion", reference, reference * (1 + noise(count, 1e-4))
    yield "float32, unrelated", reference, noise(count, 1)
    yield "float32, half zeros", np.maximum(reference, 0), np.maximum(reference + noise(count, 1e-4), 0)
    for mask in (-np.inf, np.finfo(np.float32).min):
        yield f"float32, a third {mask:.2g}", *masked(reference, reference + noise(count, 1e-4), mask)
    growing = np.arange(count, dtype=np.float32) / np.float32(count)
    yield "float32, errors that grow", np.ones_like(growing), 1 + growing
    half = reference[: count // 2]
    for dtype in (np.float64, np.float16, ml_dtypes.bfloat16):
        yield f"{np.dtype(dtype).name}, noise 1e-2", half.astype(dtype), (half + noise(half.size, 1e-2)).astype(dtype)
        if np.dtype(dtype).itemsize == 2:
            sides = masked(half.astype(dtype), (half + noise(half.size, 1e-2)).astype(dtype), -np.inf)
            yield f"{np.dtype(dtype).name}, a third -inf", *sides
    yield "int64, unequal", (half * 100).astype(np.int64), (half * 99).astype(np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=0.25, help="size of each float32 tensor in GiB")
    parser.add_argument("--workers", type=int, default=None, help="threads; default: one per core")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print("compiled pass" if compiled_pass.is_used() else "numpy's pass")
    print(f"{'pair':26} {'both':>9} {'np.copyto':>12} {'metrics':>12} {'ratio':>8} {'cpu':>8}")
    for name, reference, target in pairs(int(options.gb * 2**30) // 4):
        copies = np.empty_like(reference), np.empty_like(target)

        def copy(reference=reference, target=target, copies=copies) -> None:
            np.copyto(copies[0], reference)
            np.copyto(copies[1], target)

        def metrics(reference=reference, target=target) -> None:
            measure(reference, target, workers=options.workers)

        copying, measuring = in_turns([copy, metrics], options.repeats)
        print(
            f"{name:26} {(reference.nbytes + target.nbytes) / 2**20:6.0f} MB {copying[0] * 1e3:9.1f} ms "
            f"{measuring[0] * 1e3:9.1f} ms {measuring[0] / copying[0]:7.2f}x {measuring[1] / copying[1]:7.2f}x"
        )
    values = np.random.default_rng(0).standard_normal((2000, 64), dtype=np.float32)
    for name, others in (("unequal", values + np.float32(1e-4)), ("equal", values.copy())):
        small = [(str(index), *pair) for index, pair in enumerate(zip(values, others, strict=True))]
        ((wall, processor),) = in_turns([lambda small=small: list(measure_many(small))], options.repeats)
        print(f"2000 pairs of 64 float32, {name:8}: {wall / 2e-3:.1f} us per pair, processor {processor / 2e-3:.1f} us")


if __name__ == "__main__":
    main()
