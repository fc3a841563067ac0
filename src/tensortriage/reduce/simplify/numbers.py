"""Simpler numbers: random weights instead of trained ones, and values of few digits.

A repro that goes to a vendor should not hold the user's weights, and is easier to read with round numbers. Weights
become reproducible random ones with the mean and standard deviation of the old, within their range.
"""

import functools
import zlib
from collections.abc import Callable, Mapping

import numpy as np

from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.reduce.reduction_result import Shrunk
from tensortriage.reduce.repro.repro_case import Repro
from tensortriage.reduce.simplify.trials import Trials
from tensortriage.values.dtype import DType

FEW_ELEMENTS = 16
"""Constants up to this size are parameters of the computation rather than weights."""
BITS = (1, 3, 7)
"""Mantissa bits tried for values, the plainest first; 7 are those of bfloat16."""


def replace_weights(repro: Repro, trials: Trials) -> tuple[Repro, Shrunk | None]:
    """Replace the weights, all together or else one by one, where it still fails with others."""
    graph = repro.model.graph
    arrays = {name: graph.weight(name) for name in graph.constants}
    weights = {name: a for name, a in arrays.items() if a.size > FEW_ELEMENTS and _is_plain_float(a)}
    if not weights:
        return repro, None
    random = {name: _like(array, name) for name, array in weights.items()}
    feeds = [sample.inputs for sample in repro.samples]
    changed = trials.step(freeze(repro.model, random), feeds)
    if changed is not None:
        return changed, Shrunk("weights", True, f"{len(weights)} tensors are random numbers of equal mean and spread")
    kept: list[str] = []
    for name, array in random.items():
        changed = trials.step(freeze(repro.model, {name: array}), feeds) if len(weights) > 1 else None
        repro, missing = (repro, [name]) if changed is None else (changed, [])
        kept += missing
    detail = "it does not fail with random numbers: " + ", ".join(f"'{name}'" for name in kept)
    return repro, Shrunk("weights", len(kept) < len(weights), detail)


def simplify_values(repro: Repro, trials: Trials) -> tuple[Repro, Shrunk | None]:
    """Round inputs and floating-point constants to as few bits as the failure allows."""
    graph = repro.model.graph
    arrays = {name: graph.weight(name) for name in graph.constants}
    constants = {name: array for name, array in arrays.items() if array.size > 1 and _is_plain_float(array)}
    inputs = [name for name, array in repro.samples[0].inputs.items() if _is_plain_float(array)]
    if not inputs and not constants:
        return repro, None
    for bits in BITS:
        feeds = [
            {name: rounded(a, bits) if name in inputs else a for name, a in sample.inputs.items()}
            for sample in repro.samples
        ]
        changed = _step(repro, trials, constants, feeds, functools.partial(rounded, bits=bits))
        if changed is not None:
            return changed, Shrunk("values", True, f"{bits + 1} significant bits are left of inputs and constants")
    return repro, Shrunk("values", False, "it does not fail when rounded to 8 significant bits or fewer")


def _step(
    repro: Repro,
    trials: Trials,
    constants: Mapping[str, np.ndarray],
    feeds: list[dict[str, np.ndarray]],
    change: Callable[[np.ndarray], np.ndarray],
) -> Repro | None:
    """Try inputs and constants together, then the inputs alone."""
    model = freeze(repro.model, {name: change(array) for name, array in constants.items()}) if constants else None
    changed = None if model is None else trials.step(model, feeds)
    return trials.step(repro.model, feeds) if changed is None else changed


def rounded(array: np.ndarray, bits: int) -> np.ndarray:
    """Return floating-point values with ``bits`` bits of mantissa behind the leading one; non-finite ones stay."""
    mantissa, exponent = np.frexp(array.astype(np.float64))
    with np.errstate(invalid="ignore"):
        short = np.ldexp(np.round(mantissa * 2.0 ** (bits + 1)) / 2.0 ** (bits + 1), exponent)
    result: np.ndarray = np.where(np.isfinite(array), short, array).astype(array.dtype)
    return result


def _like(array: np.ndarray, name: str) -> np.ndarray:
    """Return random numbers with the mean, spread and range of an array, the same for the same name."""
    values = array.astype(np.float64)
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return array
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    random = rng.normal(finite.mean(), finite.std(), array.shape)
    result: np.ndarray = np.clip(rounded(random, BITS[-1]), finite.min(), finite.max()).astype(array.dtype)
    return result


def _is_plain_float(array: np.ndarray) -> bool:
    return DType.from_numpy(array.dtype).is_float and array.size > 0
