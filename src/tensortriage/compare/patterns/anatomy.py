"""The pattern in the error of one tensor: every kind of mistake leaves its own pattern.

A factor, a swapped pair of axes, a stale buffer, a tile whose tail was not computed: an engineer who looks at the
numbers long enough sees them. This module looks at the numbers. Candidates are tried from the simplest to the most
general and are believed only when they explain nine tenths of the squared error and would not do so by luck; rounding
and noise, however large, are reported as such. The bodies of knowledge are in `formats` (the error is the number
format's), `relations` (a function of the reference), `misplaced` (right numbers in wrong places), `places` (the places
of the wrong elements) and `nonfinite_pattern`.
"""

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tensortriage.compare.patterns import misplaced, narrower_format, narrower_numbers, reordered, value_relations
from tensortriage.compare.patterns.blocked_layout import blocked
from tensortriage.compare.patterns.error_places import nonfinite, places, spread_words
from tensortriage.compare.patterns.error_view import Specimen, lay_out
from tensortriage.compare.patterns.finding import PatternFinding, energy
from tensortriage.errors import DataError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType
from tensortriage.values.text import magnitude, percent

_SETTLED = 0.97
"""Strength of a finding about the whole tensor from which the more general ones are skipped."""

_AGREES = 1e-3
"""Share of the energy that may differ where tensors agree in another order of axes: 3 % of their size."""

_NO_PATTERN_BELOW = 1.5
"""An error up to this many times the floor is healthy, and is not dissected."""

MINORITY = 0.25
"""Share of elements up to which scattered ones are called wrong and the others not; more are noise."""

_FEWEST_IN_PART = 16
"""Number of wrong elements from which a relation to the reference is sought among them alone."""

SLUGS = (
    "shape", "nonfinite", "rounding", "through-type", "constant", "stale", "sign", "scale", "offset", "saturation",
    "zeros", "shift", "transposition", "layout", "reordering", "duplicate", "permutation", "wrong-axis", "slice-scale",
    "slice-offset", "narrow-format", "direction", "axis", "tail", "border", "period", "operand", "outliers",
    "scattered", "noise",
)  # fmt: skip
"""Every kind of finding; ``docs/anatomy.md`` explains their usual meaning."""


@frozen_dataclass
class Anatomy:
    """The peculiarities of an error.

    Attributes:
        findings: Strongest first; empty when the tensors are equal, or when all is within the floor given.
    """

    findings: tuple[PatternFinding, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings in words."""
        return tuple(finding.sentence for finding in self.findings)

    @property
    def effect(self) -> str:
        """The fault of an op with this error, as a predicate from the strongest finding; empty if unknown."""
        return self.findings[0].effect if self.findings else ""

    @property
    def slugs(self) -> tuple[str, ...]:
        """The kinds of the findings."""
        return tuple(finding.slug for finding in self.findings)


def dissect(
    reference: np.ndarray,
    target: np.ndarray,
    *,
    others: Mapping[str, np.ndarray] | None = None,
    floor: float = 0.0,
) -> Anatomy:
    """Return the peculiarities of a tensor's error.

    Time is bounded: beyond `specimen.MOST_ELEMENTS` a box of the tensor is examined (whole inner axes; of outer ones
    the indices with the largest errors and as many evenly spaced ones), movements of elements are tried on 16384
    places, and only up to 2**24 elements are sorted. Figures are those of the examined part.

    Args:
        reference: Tensor assumed to be right; any ONNX element type, any layout.
        target: Tensor under suspicion; another type or shape is possible.
        others: Further tensors by name, which the target may hold by mistake: results of an earlier run, operands.
        floor: Relative RMS error that a healthy engine may have in this tensor; 0 when unknown, it is then estimated.

    Returns:
        The findings.

    Raises:
        DataError: When only one side holds strings (``dtype-mismatch``).
        UsageError: For a numpy type without ONNX counterpart (``dtype-unknown``).

    Example:
        >>> x = np.linspace(-1, 1, 64, dtype=np.float32)
        >>> dissect(x, 2 * x).sentences
        ('the target is 2 times the reference (2**1)',)
    """
    reference, target = np.asarray(reference), np.asarray(target)
    kinds = {DType.from_numpy(side.dtype) is DType.STRING for side in (reference, target)}
    if len(kinds) > 1:
        raise DataError(
            f"types cannot be compared: reference {reference.dtype}, target {target.dtype}",
            slug="dtype-mismatch",
            cure="compare outputs of the same model",
        )
    if reference.shape != target.shape:
        return Anatomy(tuple(_other_shape(reference, target)))
    if reference.size == 0:
        return Anatomy(())
    specimen = lay_out(reference, target, floor=floor)
    with np.errstate(all="ignore"):  # a signalling NaN warns wherever it is read
        broken, found = nonfinite(specimen), list(_finite(specimen, others or {}))
    if broken:  # Then noise in the rest is no news.
        found = [finding for finding in found if finding.slug != "noise"]
    found = [*broken, *found]
    return Anatomy(tuple(sorted(found, key=lambda finding: -finding.strength)))


def _other_shape(reference: np.ndarray, target: np.ndarray) -> Iterator[PatternFinding]:
    """Describe a target of another shape: reshaped, transposed, or something else."""
    shapes = f"{list(target.shape)} instead of {list(reference.shape)}"
    facts = {"reference": list(reference.shape), "target": list(target.shape)}
    if reference.size == target.size > 0 and reference.dtype.kind not in "USOc":
        flat = reference.reshape(-1)
        if _agree(flat, target.reshape(-1)):
            words = f"the shape is {shapes}; the values agree in memory order"
            yield PatternFinding("shape", words, 1.0, {**facts, "same_memory_order": True})
            return
        for axes in misplaced.axis_orders(reference.shape):
            transposed = tuple(reference.shape[axis] for axis in axes)
            if transposed == target.shape and _agree(reference.transpose(axes), target):
                sentence = (
                    f"the target is the reference transposed: axes are in the order {axes}, the shape is {shapes}"
                )
                yield PatternFinding("transposition", sentence, 1.0, {**facts, "axes": list(axes)})
                return
    yield PatternFinding("shape", f"the shape is {shapes}", 1.0, facts)


def _agree(reference: np.ndarray, target: np.ndarray) -> bool:
    """Return whether two tensors agree to a few percent of their size, judged by some of their elements."""
    spots = np.random.default_rng(0).integers(0, reference.size, 4096)
    ours, theirs = misplaced.at(reference, spots), misplaced.at(target, spots)
    with np.errstate(all="ignore"):
        return energy(np.nan_to_num(theirs - ours)) <= _AGREES * energy(np.nan_to_num(ours - ours.mean()))


def _finite(specimen: Specimen, others: Mapping[str, np.ndarray]) -> Iterator[PatternFinding]:
    """Describe the errors of the elements that are finite on both sides."""
    total = specimen.error_energy
    if not total > 0.0 or not math.isfinite(total):
        return
    values = int(np.count_nonzero(specimen.finite))
    relative = math.sqrt(total / values) / specimen.rms if specimen.rms > 0.0 else math.inf
    if relative <= _NO_PATTERN_BELOW * specimen.floor:
        return
    format_found = None if specimen.text else narrower_format.narrowed(specimen) or narrower_format.quantised(specimen)
    if format_found and format_found.slug == "rounding":
        yield format_found
        return
    whole = list(_of_the_whole(specimen, others))
    yield from whole
    if any(finding.strength >= _SETTLED and finding.slug not in _LOCAL for finding in whole):
        return
    if format_found:
        yield format_found
    local = list(_of_a_part(specimen, whole))
    yield from local
    if not whole and not local:
        yield _noise(specimen, relative)


_LOCAL = frozenset({"zeros"})
"""Findings about some elements, whose places are reported even when the findings explain everything."""


def _of_the_whole(specimen: Specimen, others: Mapping[str, np.ndarray]) -> Iterator[PatternFinding]:
    """Try every explanation of the whole error, the simplest first, until one explains nearly all of it."""
    for question in _questions(specimen, others):
        finding = question()
        if finding is None:
            continue
        yield finding
        if finding.strength >= _SETTLED:
            return


def _questions(specimen: Specimen, others: Mapping[str, np.ndarray]) -> Iterator[Callable[[], PatternFinding | None]]:
    numeric = not specimen.text
    yield lambda: narrower_numbers.through_another_type(specimen)
    yield lambda: value_relations.constant(specimen)
    if numeric and (zeros := value_relations.zeroed(specimen)):
        yield lambda: zeros[0]
    if numeric:
        yield lambda: misplaced.stale(specimen, others)
        yield lambda: value_relations.linear(specimen)
        yield lambda: value_relations.folded(specimen)
        yield lambda: value_relations.saturated(specimen)
        yield lambda: value_relations.normalised_elsewhere(specimen)
    probe = misplaced.Probe.of(specimen)
    yield lambda: misplaced.shifted(probe)
    yield lambda: misplaced.reversed_order(probe)
    yield lambda: misplaced.transposed(probe)
    yield lambda: blocked(probe)
    yield lambda: reordered.reordered(specimen)
    yield lambda: reordered.permuted(specimen)
    if numeric:
        yield lambda: value_relations.scaled_slices(specimen)


def _of_a_part(specimen: Specimen, whole: list[PatternFinding]) -> Iterator[PatternFinding]:
    """Describe the place of the wrong elements, and their pattern if some elements are right."""
    zeros = value_relations.zeroed(specimen) if any(finding.slug == "zeros" for finding in whole) else None
    if zeros:
        wrong, what = zeros[1], "wrongly zero elements"
    elif specimen.whole_floats:
        wrong, what = specimen.wrong, "wrong elements"
    else:
        wrong, what = specimen.unequal & specimen.finite, "unequal elements"
    count = int(np.count_nonzero(wrong))
    if not 0 < count < wrong.size:
        return
    share = zeros[0].strength if zeros else energy(specimen.error[wrong]) / specimen.error_energy
    found = places(specimen, wrong, what=what, share=share)
    yield from found
    if zeros or whole:
        return
    if not found and count <= MINORITY * wrong.size and (spread := spread_words(specimen, wrong, share)):
        yield spread
    if count >= _FEWEST_IN_PART and not specimen.text and (part := value_relations.linear(specimen, wrong)):
        yield part


def _noise(specimen: Specimen, relative: float) -> PatternFinding:
    """Describe an error without any pattern."""
    share = float(np.count_nonzero(specimen.unequal)) / specimen.unequal.size
    which = "all elements" if share == 1.0 else f"{percent(share)} of the elements"
    sentence = f"{which} differ, without a pattern; the error is {magnitude(relative, 4)} of the tensor's RMS"
    return PatternFinding("noise", sentence, 0.2, {"share": share, "relative_rms_error": relative})
