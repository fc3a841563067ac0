"""Premises of a comparison: outputs of the reference that are numbers, and outputs of the target that fit them.

Anything agrees with NaN, and with nothing.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from tensortriage.errors import DataError
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


def require_numbers(outputs: Iterable[tuple[str, Mapping[str, np.ndarray]]]) -> None:
    """Refuse outputs of the reference that nothing can be judged by.

    Args:
        outputs: Name of the feed and the reference's outputs on it.

    Raises:
        DataError: When one holds NaN (``reference-nan``), or all are without elements (``nothing-compared``).
    """
    elements = 0
    for feed, found in outputs:
        for name, array in found.items():
            elements += array.size
            if has_nan(array):
                raise DataError(
                    f"output '{name}' of the reference holds NaN on {feed}: nothing can be judged by it",
                    slug="reference-nan",
                    cure="look at the inputs with triage inspect data; triage diagnose finds the node that makes the "
                    "NaN",
                )
    if not elements:
        raise DataError(
            "every output of the reference is empty on every feed, so that agreement would prove nothing",
            slug="nothing-compared",
            cure="give inputs for which the model computes something",
        )


def mismatched(expected: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]) -> str:
    """Return why the target's outputs cannot be compared with the reference's; empty if they can, or are equal.

    Args:
        expected: The reference's outputs by name, of any shapes and types.
        outputs: The target's; more of them do no harm.
    """
    missing = [name for name in expected if name not in outputs]
    if missing:
        return f"the target does not return output '{missing[0]}'"
    for name, reference in expected.items():
        target = outputs[name]
        if target.shape != reference.shape:
            shapes = f"{list(target.shape)} on the target, {list(reference.shape)} on the reference"
            return f"output '{name}' has shape {shapes}"
        if not same_kind(reference, target):
            made, wanted = (DType.from_numpy(each.dtype).label for each in (target, reference))
            return f"output '{name}' is {made} on the target, {wanted} on the reference"
    return ""


def same_kind(reference: np.ndarray, target: np.ndarray) -> bool:
    """Return whether both arrays are floating-point numbers or neither is, or whether they are equal all the same."""
    kinds = [DType.from_numpy(array.dtype).is_float for array in (reference, target)]
    return kinds[0] == kinds[1] or np.array_equal(reference, target)


def retyped(declared: Iterable[ValueSpec], outputs: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return the outputs of another type than declared, by name, with both types in words; equal numbers are equal."""
    made = {name: DType.from_numpy(array.dtype) for name, array in outputs.items()}
    return {
        spec.name: f"is {made[spec.name].label}, which the model declares as {spec.dtype.label}"
        for spec in declared
        if spec.dtype is not None and made.get(spec.name, spec.dtype) is not spec.dtype
    }


def is_constant(array: np.ndarray) -> bool:
    """Whether an array carries no information: no element at all, or several that are all equal."""
    return array.size == 0 or (array.size > 1 and bool((array == array.flat[0]).all()))


def any_finite(array: np.ndarray) -> bool:
    """Return whether a number of an array is neither NaN nor infinite; arrays without elements and strings pass."""
    return array.size == 0 or array.dtype.kind not in "fc" or bool(np.isfinite(array).any())


def has_nan(array: np.ndarray) -> bool:
    """Return whether a floating-point array holds a NaN.

    Args:
        array: Array of any shape and element type; types that have no NaN hold none.
    """
    return DType.from_numpy(array.dtype).is_float and bool(np.isnan(array.astype(np.float32, copy=False)).any())
