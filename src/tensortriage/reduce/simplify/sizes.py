"""Smaller sizes: batch, sequence, channels, heads, whatever the operators allow.

Only operators know which axes belong together; so every axis of one size is cut at once, in inputs, constants and the
integers that state shapes, and the reference shows whether the model is still valid. In a case of a few nodes a wrong
guess costs milliseconds.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.errors import TriageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.shape_inference.annotate import with_input_shapes
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.reduce.reduction_result import Shrunk
from tensortriage.reduce.repro.repro_case import Repro
from tensortriage.reduce.simplify.trials import Trials


@frozen_dataclass
class _Cut:
    """Cuts every axis of one size to another.

    Attributes:
        before: The size.
        after: Its size afterwards.
        tail: Whether the end is kept instead of the beginning.
        constants: Whether constants are cut as well.
        shapes: Whether integers in constants that equal the size change with it.
    """

    before: int
    after: int
    tail: bool
    constants: bool
    shapes: bool

    def array(self, array: np.ndarray) -> np.ndarray:
        """Return a cut array."""
        part = slice(-self.after, None) if self.tail else slice(0, self.after)
        index = tuple(part if size == self.before else slice(None) for size in array.shape)
        return np.ascontiguousarray(array[index]) if self.before in array.shape else array

    def constant(self, array: np.ndarray) -> np.ndarray:
        """Return a cut constant."""
        if self.shapes and array.dtype.kind == "i" and array.ndim == 1 and (array == self.before).any():
            return np.where(array == self.before, np.array(self.after, array.dtype), array)
        return self.array(array) if self.constants else array


def shrink_sizes(repro: Repro, trials: Trials) -> tuple[Repro, Shrunk | None]:
    """Make every size as small as the failure allows: 1 if possible, else halved as often as possible."""
    changes: list[str] = []
    stuck: list[int] = []
    for size in sorted(_sizes(repro), reverse=True):
        smallest, repro = _shrink(repro, trials, size)
        if smallest < size:
            changes.append(f"{size} -> {smallest}")
        else:
            stuck.append(size)
    if not changes and not stuck:
        return repro, None
    detail = ", ".join(changes)
    if stuck:
        detail += ("; " if detail else "") + "not smaller: " + ", ".join(map(str, stuck))
        detail += " (out of time)" if trials.over else ""
    return repro, Shrunk("sizes", bool(changes), detail)


def _shrink(repro: Repro, trials: Trials, size: int) -> tuple[int, Repro]:
    found = _attempt(repro, trials, size, 1)
    if found is not None:
        return 1, found
    while size > 2:
        found = _attempt(repro, trials, size, size // 2)
        if found is None:
            break
        size, repro = size // 2, found
    return size, repro


def _attempt(repro: Repro, trials: Trials, size: int, after: int) -> Repro | None:
    for cut in _cuts(size, after):
        changed = _apply(repro, trials, cut)
        if changed is not None:
            return changed
    return None


def _cuts(size: int, after: int) -> Iterator[_Cut]:
    for tail in (False, True):
        for constants in (True, False):
            yield _Cut(size, after, tail, constants, shapes=True)


def _apply(repro: Repro, trials: Trials, cut: _Cut) -> Repro | None:
    feeds = [{name: cut.array(array) for name, array in sample.inputs.items()} for sample in repro.samples]
    model = repro.model
    constants = {name: cut.constant(model.graph.weight(name)) for name in model.graph.constants}
    constants = {name: array for name, array in constants.items() if array is not model.graph.weight(name)}
    constants = {name: array for name, array in constants.items() if _differs(array, model.graph.weight(name))}
    shapes = _input_shapes(repro, feeds[0])
    try:
        changed = with_input_shapes(freeze(model, constants) if constants else model, shapes)
    except TriageError:
        return None
    return trials.step(changed, feeds)


def _differs(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape != other.shape or not np.array_equal(one, other)


def _input_shapes(repro: Repro, feed: Mapping[str, np.ndarray]) -> dict[str, tuple[int | str | None, ...]]:
    """Return the declared shapes of the inputs with the new sizes; dynamic ones stay dynamic."""
    shapes: dict[str, tuple[int | str | None, ...]] = {}
    for spec in repro.model.inputs:
        declared = spec.shape or feed[spec.name].shape
        sizes = feed[spec.name].shape
        shapes[spec.name] = tuple(
            size if isinstance(known, int) else known for known, size in zip(declared, sizes, strict=True)
        )
    return shapes


def _sizes(repro: Repro) -> set[int]:
    graph = repro.model.graph
    shapes = [array.shape for sample in repro.samples for array in sample.inputs.values()]
    shapes += [graph.weight(name).shape for name in graph.constants]
    return {size for shape in shapes for size in shape if size > 1}
