"""Makes the JSON file of this directory with the real Polygraphy: ``python make.py``, where 0.53.6 is installed.

Random small pairs, each judged by one comparison function. Polygraphy compares (target, reference) in ``simple`` and
(reference, target) in the others, so that its reference is ours.
"""

import json
import math
import warnings
from collections import OrderedDict
from pathlib import Path

import numpy as np
import polygraphy
from polygraphy.comparator import IterationResult
from polygraphy.comparator.compare import (
    CosineSimilarityCompareFunc,
    L2CompareFunc,
    PsnrCompareFunc,
    SimpleCompareFunc,
    SnrCompareFunc,
)
from polygraphy.logger import G_LOGGER

assert polygraphy.__version__ == "0.53.6"
G_LOGGER.module_severity = G_LOGGER.CRITICAL + 10
warnings.simplefilter("ignore")
RNG = np.random.default_rng(9)
TYPES = [np.float32] * 4 + [np.float16, np.float64, np.int32, np.int8, np.uint8, np.uint32, np.int64, np.bool_]
STATS = ["elemwise", "max", "mean", "median", "quantile"]
OTHERS = {"l2": L2CompareFunc, "cosine_similarity": CosineSimilarityCompareFunc, "psnr": PsnrCompareFunc,
          "snr": SnrCompareFunc}  # fmt: skip
WANTED = 14


def pair():
    dtype, size = np.dtype(TYPES[RNG.integers(len(TYPES))]), RNG.integers(2, 13)
    if dtype.kind == "b":
        reference = RNG.random(size) < 0.5
        return reference, reference ^ (RNG.random(size) < 0.1)
    if dtype.kind in "iu":
        reference = RNG.integers(0 if dtype.kind == "u" else -5, 6, size).astype(dtype)
        return reference, reference + (RNG.random(size) < 0.2).astype(dtype)
    reference = (RNG.standard_normal(size) * 10.0 ** RNG.integers(-3, 3)).astype(dtype)
    reference[RNG.random(size) < RNG.choice([0, 0, 0.3])] = 0
    noise = RNG.standard_normal((2, size)) * 10.0 ** RNG.integers(-8, -1, (2, 1))
    target = (reference * (1 + noise[0]) + noise[1] * RNG.integers(0, 2)).astype(dtype)
    for side in (reference, target):
        side[RNG.random(size) < RNG.choice([0] * 8 + [0.2])] = RNG.choice([np.nan, np.inf, -np.inf])
    both = RNG.random(size) < RNG.choice([0] * 8 + [0.2])
    reference[both] = target[both] = np.inf
    return reference, target


def plain(array):
    words = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return ["NaN" if item != item else words.get(item, item) for item in array.tolist()]


def verdict(function, first, second):
    results = (IterationResult(OrderedDict(x=array), runner_name=name) for name, array in (("0", first), ("1", second)))
    return bool(function(*results)["x"])


def main():
    kept = {}
    while len(kept) < 2 * len([*STATS, *OTHERS]) or min(map(len, kept.values())) < WANTED:
        reference, target = pair()
        atol, rtol = (float(10.0 ** RNG.integers(-9, 0) * RNG.choice([1, 0, 3.3])) for _ in range(2))
        case = {"dtype": str(reference.dtype), "reference": plain(reference), "target": plain(target)}
        for stat in STATS:
            if reference.dtype.kind == "b" and stat == "quantile":
                continue  # numpy refuses it.
            limits = {"atol": atol, "rtol": rtol, "error_quantile": float(RNG.choice([0.99, 0.5, 0.9, 0.25])),
                      "infinities_compare_equal": bool(RNG.random() < 0.3)}  # fmt: skip
            passed = verdict(SimpleCompareFunc(check_error_stat=stat, **limits), target, reference)
            kept.setdefault((stat, passed), []).append({"check": stat, **case, **limits, "passed": passed})
        for name, kind in OTHERS.items():
            if reference.dtype.kind == "b":
                continue  # They subtract, which numpy refuses for bools.
            low = {"l2": 10.0 ** RNG.integers(-8, 1), "cosine_similarity": 1 - 10.0 ** RNG.integers(-6, 0)}
            threshold = float(low.get(name, RNG.integers(-20, 140)))
            passed = verdict(kind(threshold), reference, target)
            kept.setdefault((name, passed), []).append(
                {"check": name, **case, "threshold": threshold, "passed": passed}
            )
    lines = ",\n".join(json.dumps(case) for cases in kept.values() for case in cases[:WANTED])
    path = Path(__file__).with_name("polygraphy-0.53.6.json")
    path.write_text(f'{{"source": "polygraphy {polygraphy.__version__}, see make.py",\n"cases": [\n{lines}\n]}}\n')


main()
