"""The mistake in folding a BatchNormalization into the op before it, found by the factors and the bias.

Folding multiplies each output channel by ``scale / sqrt(variance + epsilon)`` and adds ``shift - mean * factor``. The
factors in the file show which values its author used; so does the formula that its bias fits.
"""

from collections.abc import Iterator

import numpy as np

from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.values.text import magnitude

_EQUAL = 1e-4
"""Relative RMS error up to which numbers fit a formula: float32 and a few operations."""


def misfolded(model: Model, matched: Correspondence, name: str) -> str:
    """Return how a node of a file folds a BatchNormalization wrongly, as ``folds ...``; empty where it does not.

    Args:
        model: The original with its BatchNormalizations.
        matched: The original with them folded, and the file.
        name: A node of the file.
    """
    own = next((old for old, new in matched.diff.pairs.items() if new == name), "")
    if own not in model.graph or (norm := _norm_behind(model, model.graph.node(own))) is None:
        return ""
    before, after = model.graph.node(own), matched.plain.graph.node(name)
    weight, bias = _constant(model, before, 1), _constant(model, before, 2)
    given, added = _constant(matched.plain, after, 1), _constant(matched.plain, after, 2)
    numbers = _parameters(model, norm)
    if weight is None or given is None or weight.shape != given.shape or numbers is None:
        return ""
    gain, shift, mean, variance = numbers
    axis = 1 if before.op_type == "Gemm" and not before.attributes.get("transB", 0) else 0
    rows, others = (np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1) for array in (weight, given))
    factors = (rows * others).sum(1) / np.maximum((rows * rows).sum(1), 1e-300)
    if not _is_equal(factors[:, None] * rows, others):
        return ""
    epsilon = float(norm.attributes.get("epsilon", 1e-5))  # type: ignore[arg-type]
    bias, added = (np.zeros_like(mean) if each is None else each for each in (bias, added))
    mistakes = next(_factor_words(factors, gain, variance, epsilon), ""), _bias_words(added, factors, shift, mean, bias)
    words = "; ".join(filter(None, mistakes))
    kept = _norm_behind(matched.plain, after)
    if kept is not None and (same := _parameters(matched.plain, kept)) is not None and np.array_equal(same, numbers):
        twice = f"folds BatchNormalization '{norm.name}', which the file computes as well, so that it counts twice"
        return "" if words else f"{twice}: leave '{kept.name}' out"  # rescaled weights fold nothing
    return f"folds BatchNormalization '{norm.name}' wrongly: {words}" if words else ""


def _factor_words(factors: np.ndarray, gain: np.ndarray, variance: np.ndarray, epsilon: float) -> Iterator[str]:
    """Yield the mistake in the factors; nothing if they are right."""
    root = np.sqrt(variance + epsilon)
    if _is_equal(gain / root, factors):
        return
    for words, formula in (
        ("divides by the variance, not by its root", gain / (variance + epsilon)),
        ("omits the variance", gain),
        ("omits the scale", 1.0 / root),
        ("omits the factors from the weight", np.ones_like(gain)),
        ("has the signs of the factors flipped", -gain / root),
        ("multiplies by the root of the variance", gain * root),
    ):
        if _is_equal(formula, factors):
            yield words
    with np.errstate(all="ignore"):
        found = np.square(gain / factors) - variance
    other = float(np.median(found))
    if other > -float(variance.min()) and _is_equal(gain / np.sqrt(variance + other), factors):
        other = 0.0 if abs(other) < 1e-3 * epsilon else other
        yield f"uses an epsilon of {magnitude(other)} instead of {magnitude(epsilon)}"
    yield "its factors are not scale / sqrt(variance + epsilon)"


def _bias_words(added: np.ndarray, factors: np.ndarray, shift: np.ndarray, mean: np.ndarray, bias: np.ndarray) -> str:
    """Return the mistake in the bias, given the factors in the file."""
    right = shift + (bias - mean) * factors
    if _is_equal(right, added):
        return ""
    for words, formula in (
        ("adds the mean instead of subtracting it", shift + (bias + mean) * factors),
        ("omits the mean", shift + bias * factors),
        ("omits the shift", (bias - mean) * factors),
        ("subtracts the shift", (bias - mean) * factors - shift),
        ("omits the original bias", shift - mean * factors),
        ("does not multiply the original bias by the factors", shift + bias - mean * factors),
        ("does not multiply the mean by the factors", shift + bias * factors - mean),
        ("has no bias", np.zeros_like(right)),
    ):
        if _is_equal(formula, added):
            return words
    return "its bias is not shift + (bias - mean) * factor"


def _norm_behind(model: Model, node: Node) -> Node | None:
    readers = list(model.graph.consumers(node.outputs[0])) if node.op_type in ("Conv", "Gemm") else []
    return readers[0] if len(readers) == 1 and readers[0].op_type == "BatchNormalization" else None


def _parameters(model: Model, norm: Node) -> np.ndarray | None:
    """Return scale, shift, mean and variance of a BatchNormalization, ``[4, channels]``; None where one is computed."""
    found = [array for place in range(1, 5) if (array := _constant(model, norm, place)) is not None]
    return np.stack(found) if len(found) == 4 else None


def _constant(model: Model, node: Node, place: int) -> np.ndarray | None:
    name = node.inputs[place] if len(node.inputs) > place else ""
    return model.graph.weight(name).astype(np.float64) if name in model.graph.constants else None


def _is_equal(formula: np.ndarray, numbers: np.ndarray) -> bool:
    size = float(np.linalg.norm(numbers)) or 1e-30
    return formula.shape == numbers.shape and float(np.linalg.norm(formula - numbers)) <= _EQUAL * size
