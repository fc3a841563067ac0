"""Some engines refuse a model because of one tensor that is marked as an output: see the others, and find that one.

TensorRT 8.5 copies no bool from host to device, NPUs have no 64-bit integers, and a compiler may fail on one tensor
for reasons of its own. Kinds of tensors that are refused often are left out first, as that costs one build each and
keeps the rest together; then refused parts are halved, every half that is accepted being seen as it is.
"""

import collections
import dataclasses
import time
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tensortriage.errors import EngineError, EngineHung
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.model import Model
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

MOST_BUILDS = 28
"""Builds that looking for refused tensors may take: one culprit among 4,000 tensors needs twice log2 of that, and four
for the kinds."""

FUTILE_BUILDS = 10
"""After so many refusals from the start, the engine refuses nearly everything; four kinds and one culprit take six."""

NARROWING_SECONDS, NARROWING_SHARE = 5.0, 0.2
"""Narrowing down which of the left-out tensors are refused takes no longer than this, or than this share of the time
that seeing the others took: they are of kinds that do not round."""

Ask = Callable[[Sequence[str]], Mapping[str, np.ndarray]]
"""Marks some values and runs; raises `EngineError` when the engine refuses."""


@frozen_dataclass
class Unseen:
    """Values that an engine did not show.

    Attributes:
        refused: Values that it refuses even when they are marked alone, with its reason.
        left_out: Values among which more that it refuses were not looked for.
    """

    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.refused, *self.left_out)

    def joined(self, other: "Unseen") -> "Unseen":
        """Return the values that either of two did not show."""
        return Unseen({**self.refused, **other.refused}, (*self.left_out, *other.left_out))

    def sentence(self) -> str:
        """Return the values that could not be seen, in words; empty when there are none."""
        parts = []
        if self.refused:
            parts.append(f"the target refuses to show {_named(list(self.refused))}")
        if self.left_out:
            kind = "more" if self.refused else "tensors"
            parts.append(f"{len(self.left_out)} {kind} were left out: {_named(self.left_out)}")
        return "; ".join(parts)


def _named(values: Sequence[str]) -> str:
    return ", ".join(f"'{value}'" for value in values[:4]) + (f" and {len(values) - 4} more" if len(values) > 4 else "")


def suspected_kinds(
    model: Model, values: Sequence[str], specs: Mapping[str, ValueSpec], message: str
) -> list[tuple[str, ...]]:
    """Return disjoint kinds of values that engines refuse, the likeliest first; kinds without values are left out.

    Args:
        model: The model.
        values: The values that were marked.
        specs: Their element types, as far as known.
        message: Why they were refused; values that it names come first.
    """
    words = {word.strip("'\"[](){},.:;") for word in message.split()}

    def dtype(value: str) -> DType | None:
        spec = specs.get(value)
        return spec.dtype if spec else None

    shape_like = model.graph.shape_like
    tests: list[Callable[[str], bool]] = [
        lambda value: value in words,
        lambda value: dtype(value) is DType.BOOL,
        lambda value: value in shape_like,
        lambda value: (kind := dtype(value)) is not None and not kind.is_float,
    ]
    rest, kinds = list(values), []
    for test in tests:
        kinds.append(tuple(filter(test, rest)))
        rest = [value for value in rest if value not in kinds[-1]]
    return [kind for kind in kinds if kind]


def seen_in_parts(
    ask: Ask, values: Sequence[str], kinds: Sequence[Collection[str]], first: EngineError
) -> tuple[dict[str, np.ndarray], Unseen]:
    """Return the values that an engine shows in parts after it refused them all at once, and the rest.

    Args:
        ask: Asks the engine for some values.
        values: The values, in topological order.
        kinds: Kinds to leave out first; see `suspected_kinds`.
        first: Why it refused all of them.

    Raises:
        EngineError: ``first``, when it refuses nearly everything; `EngineHung` when a part takes too long.
    """
    search = _Search(ask, first)
    rest, groups, accepted = list(values), [], False
    for kind in kinds:
        groups.append([value for value in rest if value in kind])
        rest = [value for value in rest if value not in kind]
        if accepted := bool(rest) and search.refusal(rest) == "":
            break
    if not accepted:
        search.divide(rest, first.message)
    search.limit_seconds()
    for group in reversed(groups):  # what was left out last made the difference; what before it may be harmless
        search.divide(group, search.last_message if accepted and group is groups[-1] else "")
    left_out = [value for value in values if value not in search.found and value not in search.refused]
    return search.found, Unseen(search.refused, tuple(left_out))


class _Search:
    """Values shown and refused so far, and the attempts left."""

    def __init__(self, ask: Ask, first: EngineError) -> None:
        self.found: dict[str, np.ndarray] = {}
        self.refused: dict[str, str] = {}
        self.last_message = first.message
        self._ask, self._first = ask, first
        self._builds = 0
        self._started = time.perf_counter()
        self._until = float("inf")

    def limit_seconds(self) -> None:
        """From now on take a share of the time until now at most, or `NARROWING_SECONDS`."""
        now = time.perf_counter()
        self._until = now + max(NARROWING_SECONDS, NARROWING_SHARE * (now - self._started))

    def refusal(self, part: Sequence[str]) -> str | None:
        """Mark values; return why the engine refuses them, an empty text if it does not, None if not tried."""
        if self._builds >= MOST_BUILDS or time.perf_counter() > self._until:
            return None
        self._builds += 1
        try:
            self.found.update(self._ask(part))
        except EngineHung:
            raise
        except EngineError as error:
            if not self.found and self._builds >= FUTILE_BUILDS:
                raise self._first from error
            self.last_message = error.message or "no reason given"
            return self.last_message
        return ""

    def divide(self, part: Sequence[str], message: str) -> None:
        """Observe as many of the given values as possible.

        Args:
            part: The values.
            message: Why they are refused together; empty when that is not known yet.
        """
        pending = collections.deque([(list(part), message)] if part else [])
        while pending:
            values, known = pending.popleft()  # the largest first: they show most
            why = known or self.refusal(values)
            if why and len(values) == 1:
                self.refused[values[0]] = why
            elif why:
                middle = len(values) // 2
                pending += [(values[:middle], ""), (values[middle:], "")]
