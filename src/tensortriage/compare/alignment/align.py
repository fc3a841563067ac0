"""Pairs the target's tensors with the reference's: by name, and the rest by value.

Guessing (by substring, by position) compares tensors that have nothing to do with each other and lets them pass. So a
name that only one side has is reported, and given a partner only when its values leave no doubt (`matching`).
"""

import collections
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.alignment.tensor_fingerprint import fingerprint
from tensortriage.compare.alignment.value_matching import Relation, ValueMatch, match
from tensortriage.errors import DataError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


@frozen_dataclass
class Incompatible:
    """A tensor that both sides have and that still cannot be compared; ``reason`` is one sentence without full stop."""

    name: str
    reason: str


@frozen_dataclass
class Alignment:
    """The comparable pairs, in the order of the reference.

    Attributes:
        pairs: Names on both sides, of one shape.
        incompatible: Names on both sides whose shapes or kinds exclude a comparison.
        only_reference: Names that the target lacks.
        only_target: Names that the reference lacks.
    """

    pairs: tuple[str, ...]
    incompatible: tuple[Incompatible, ...]
    only_reference: tuple[str, ...]
    only_target: tuple[str, ...]


def align(reference: Sequence[ValueSpec], target: Sequence[ValueSpec]) -> Alignment:
    """Match tensors by exact name.

    Args:
        reference: Tensors of the side assumed to be right.
        target: Tensors of the other side.

    Returns:
        Pairs and everything left over; unknown types and dimensions are compatible with any.

    Raises:
        DataError: When no name is on both sides (``nothing-in-common``).
    """
    theirs = {spec.name: spec for spec in target}
    ours = {spec.name for spec in reference}
    common = [spec for spec in reference if spec.name in theirs]
    if not common:
        raise DataError(
            f"reference and target have no tensor name in common: reference {_sample(reference)}, "
            f"target {_sample(target)}",
            slug="nothing-in-common",
            cure="compare runs of the same model, or name the outputs to compare",
        )
    problems = {spec.name: _problem(spec, theirs[spec.name]) for spec in common}
    return Alignment(
        pairs=tuple(name for name, problem in problems.items() if not problem),
        incompatible=tuple(Incompatible(name, problem) for name, problem in problems.items() if problem),
        only_reference=tuple(spec.name for spec in reference if spec.name not in theirs),
        only_target=tuple(spec.name for spec in target if spec.name not in ours),
    )


def by_value(reference: Mapping[str, np.ndarray], target: Mapping[str, np.ndarray]) -> tuple[ValueMatch, ...]:
    """Match tensors by their values, whatever their names, order of axes, shape and scale.

    Args:
        reference: All tensors of the side assumed to be right that could be meant; more of them make a match surer.
        target: Tensors of the other side, e.g. those whose names only the target has.

    Returns:
        The sure matches (see `match`); none for strings, and for tensors with too little information (few elements,
        constants).
    """
    ours, theirs = (
        {name: fingerprint(array) for name, array in side.items() if array.dtype.kind not in "USOc"}
        for side in (reference, target)
    )
    return tuple(match(ours, theirs).values())


def paired_by_value(reference: Mapping[str, np.ndarray], target: Mapping[str, np.ndarray]) -> Mapping[str, str]:
    """Return which tensors of the target, under other names, are those that it lacks by name.

    The result holds only sure matches of one shape, in the same order and without a factor, each side once: a pair is
    compared as if both had the same name.

    Args:
        reference: By name, of any shapes and types.
        target: Likewise.

    Returns:
        Name in the target to name in the reference; empty when no name is missing.
    """
    missing = {name for name in reference if name not in target}
    unknown = {name: array for name, array in target.items() if name not in reference}
    if not missing or not unknown:
        return {}
    sure = [
        found
        for found in by_value(reference, unknown)
        if found.relation is Relation.EQUAL and found.scale == 1.0 and not found.aliases and found.reference in missing
    ]
    counts = collections.Counter(found.reference for found in sure)
    return {found.target: found.reference for found in sure if counts[found.reference] == 1}


def _problem(reference: ValueSpec, target: ValueSpec) -> str:
    kinds = (reference.dtype, target.dtype)
    if None not in kinds and (kinds[0] is DType.STRING) != (kinds[1] is DType.STRING):
        return "one side holds strings, the other numbers"
    if reference.shape is None or target.shape is None:
        return ""
    sizes = list(zip(reference.shape, target.shape, strict=False))
    fits = all(one == other or not (isinstance(one, int) and isinstance(other, int)) for one, other in sizes)
    if len(reference.shape) != len(target.shape) or not fits:
        return f"shapes differ: reference {list(reference.shape)}, target {list(target.shape)}"
    return ""


def _sample(specs: Sequence[ValueSpec]) -> str:
    names = ", ".join(f"'{spec.name}'" for spec in specs[:3]) or "nothing"
    return names + (" ..." if len(specs) > 3 else "")
