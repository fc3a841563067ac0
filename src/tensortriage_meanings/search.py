"""Which differences of meaning make a model give the other side's numbers? The likeliest are tried first.

Every way of the tables is tried on all nodes of its kind at once, then numbers that are measured (a factor of a result,
the steps of a quantizer); then on single nodes; then in addition to those that came nearer. The judge confirms those
that come near. All ways that fit equally are reported.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import onnx_ir as ir

from tensortriage.diagnose.sdk import Model, TriageError, error_of, is_minor, measure, value_specs
from tensortriage.model.sdk import ValueSpec, with_input_shapes
from tensortriage_meanings.example import example_rows
from tensortriage_meanings.grids import grid_rows
from tensortriage_meanings.own_numbers import factor_rows
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

SECONDS = 15.0
"""Time to try ways, if each takes as long as the fastest: other load on the machine must not decide."""
LONGEST = 45.0
"""How long at most however slow the machine is."""
CHANCE_BITS = 6.0
"""By so many bits an agreement must be less likely than one of all that was tried by chance."""
MUCH_CLOSER = 0.5
"""Share of the error that may be left for a way to be kept while others are tried on top of it."""
MOST_TOGETHER = 3
MOST_NODES = 24
"""Nodes of one kind that are taken back one by one, to see which of them matter."""

_MOST_BITS = 16.0
"""Largest information of one element, in bits: values that are equal to the last bit may have few."""
_MOST_ELEMENTS = 64
"""Number of elements that count: those of a picture do not lie by chance each."""

_DOMAINS = ("", "ai.onnx", "com.microsoft")
"""Domains of the operators in the table; ONNX Runtime's own ones share names and attributes with the standard's."""

Tensors = Mapping[str, np.ndarray]
Ways = Mapping[str, Meaning]


@dataclasses.dataclass(frozen=True)
class Unexplained:
    """Numbers of a side that differ from the model's.

    Attributes:
        model: The model as it stands.
        run: Computes the outputs of a changed model; raises a TriageError where it cannot be run.
        theirs: The other side's outputs.
        limits: The judge's limits of a changed model's outputs, by name, if the other side's are within; else None.
        given: The model's inputs as they are fed, by name: a file may leave sizes open.
        around: The inputs of the whole model where this one is a part of it.
        sizes: Sizes of the whole model's open dimensions, by their names.
        among: Names of the nodes that the other side may understand otherwise; None for all.
    """

    model: Model
    run: Callable[[Model], Tensors]
    theirs: Tensors
    limits: Callable[[Model, Tensors], Mapping[str, float] | None]
    given: Tensors = dataclasses.field(default_factory=dict)
    around: Tensors = dataclasses.field(default_factory=dict)
    sizes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    among: frozenset[str] | None = None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the inputs as they are fed, by name."""
        return {name: np.shape(array) for name, array in self.given.items()}

    def distance(self, made: Tensors) -> float:
        """Return the largest relative error of the other side's outputs against those of a model; inf for others."""
        return max((self._of(made.get(name), array) for name, array in self.theirs.items()), default=math.inf)

    @staticmethod
    def _of(made: np.ndarray | None, theirs: np.ndarray) -> float:
        if made is None or made.shape != theirs.shape or made.dtype.kind != theirs.dtype.kind:
            return math.inf
        figure = measure(np.asarray(made), np.asarray(theirs))
        return math.inf if figure.nonfinite_mismatch else float(error_of(figure))


@dataclasses.dataclass(frozen=True)
class Agreement:
    """How well a changed model's outputs are the other side's.

    Attributes:
        ratio: The share of a limit that they are off by, the largest.
        bits: How unlikely that is by chance: as many bits.
    """

    ratio: float
    bits: float


@dataclasses.dataclass(frozen=True)
class MeaningFound:
    """The differences of the other side.

    Attributes:
        ways: By name of the node.
        agreement: How well that explains it.
        equals: Other ways that fit as well on these inputs.
        before: The relative error as the model stands.
    """

    ways: Ways
    agreement: Agreement
    before: float
    equals: tuple[Ways, ...] = ()


def explained(
    subject: Unexplained,
    *tables: Sequence[MeaningRow],
    seconds: float = math.inf,
    seen: Callable[[], Iterable[Ways]] = tuple,
) -> MeaningFound | None:
    """Return the differences of meaning that explain the other side's numbers; None where none does.

    Args:
        subject: The numbers.
        tables: Tables to try; a later table is for numbers that no earlier one explains.
        seconds: How long, besides the limits of this module.
        seen: Returns ways that are read off the numbers, for those that no table explains.
    """
    return _Search(subject, tables, seconds).found(seen)


@dataclasses.dataclass(frozen=True)
class Fitting:
    """Ways that the judge confirms, and the outputs that they make."""

    ways: Ways
    agreement: Agreement
    made: Tensors


class _Search:
    def __init__(self, subject: Unexplained, tables: Sequence[Sequence[MeaningRow]], seconds: float) -> None:
        self._subject, self._tables = subject, tables
        self._rewriter = Rewriter(subject.model)
        self._seconds, self._started, self._fastest = seconds, time.perf_counter(), math.inf
        self.tried = 0
        self._before = math.inf
        self._outputs: Tensors = {}
        self._groups: list[Ways] = []
        self._near: list[tuple[float, Ways]] = []

    def found(self, seen: Callable[[], Iterable[Ways]]) -> MeaningFound | None:
        subject = self._subject
        try:
            self._outputs = subject.run(subject.model)
        except TriageError:
            return None
        self._before = subject.distance(self._outputs)
        if self._before == 0.0:
            return None
        ours, theirs = self._outputs, subject.theirs
        measured = (*factor_rows(ours, theirs), *grid_rows(ours, theirs, subject.given))
        measured += example_rows(ours, theirs, subject.sizes)
        tables = [
            list(sites_of(self._rewriter, table, subject.shapes, subject.among)) for table in (*self._tables, measured)
        ]
        alone: list[list[Ways]] = [
            [{name: way} for g in groups if len(g) > 1 for name, way in g.items()] for groups in tables
        ]
        self._groups = [group for groups in tables for group in groups]
        for parts in (tables, alone):  # all nodes of a kind in every table first: an engine has one kernel for them
            for number, candidates in enumerate(parts, 1):
                if found := self._fitting(candidates):
                    later = (group for groups in tables[number:] for group in groups)
                    return self._told([*found, *self._fitting(_at(found[0].ways, later))])
        if found := self._fitting(list(seen())):
            return self._told(found)
        together = [ways for part in (*tables, *alone) for ways in part if not _is_alone(ways)]
        for _ in range(MOST_TOGETHER - 1):
            nearest = min(self._near, key=lambda each: each[0], default=None)
            if nearest is None:
                return None
            self._near = []
            base = nearest[1]
            if found := self._fitting(
                [{**ways, **base} for ways in together if base.keys() != ways.keys()], nearest[0]
            ):
                return self._told(found)
        return None

    def _fitting(self, candidates: Sequence[Ways], before: float = math.inf) -> list[Fitting]:
        """Return the candidates that the judge confirms."""
        found = []
        limit = min(before, self._before)
        for ways in candidates:
            if self._is_over():
                break
            made = self._run(ways)
            if made is None:
                continue
            distance = self._subject.distance(made[1])
            if (
                math.isfinite(distance)
                and is_minor(distance, self._before)
                and (agreement := self._agrees(*made)) is not None
            ):
                found.append(Fitting(ways, agreement, made[1]))
            elif distance <= MUCH_CLOSER * limit and not _is_alone(ways):
                self._near.append((distance, ways))
        needed = CHANCE_BITS + math.log2(max(self.tried, 1))
        return [each for each in found if each.agreement.bits >= needed]

    def _run(self, ways: Ways) -> tuple[Model, Tensors] | None:
        began = time.perf_counter()
        self.tried += 1
        try:
            model = self._rewriter.rewritten(ways)
            if any(map(_may_empty, ways.values())) and _is_empty(model, self._subject.shapes):
                return None
            return model, self._subject.run(model)
        except (TriageError, ValueError, TypeError, RuntimeError):
            return None
        finally:
            self._fastest = min(self._fastest, time.perf_counter() - began)

    def _agrees(self, model: Model, made: Tensors) -> Agreement | None:
        theirs = self._subject.theirs
        try:
            limits = self._subject.limits(model, made)
        except TriageError:
            return None
        if limits is None:
            return None
        errors = {name: float(error_of(measure(made[name], array))) for name, array in theirs.items()}
        ratio = max((errors[name] / limit for name, limit in limits.items() if limit), default=0.0)
        return Agreement(ratio, bits_of(self._outputs, theirs, limits))

    def _is_over(self) -> bool:
        spent = time.perf_counter() - self._started
        return spent > min(self._seconds, LONGEST) or (self.tried > 0 and self.tried * self._fastest > SECONDS)

    def _told(self, found: Sequence[Fitting]) -> MeaningFound:
        """Return the explanation that changes least, and those that fit as well on the nodes that matter."""
        first = min(found, key=_size)
        ways = self._narrowed(first)
        if len(ways) < len(first.ways):
            others = [{name: group[name] for name in ways} for group in self._groups if ways.keys() <= group.keys()]
            found = [Fitting(ways, first.agreement, first.made), *self._fitting(others)]
            ways = min(found, key=_size).ways
        equals = [other.ways for other in found if not _contains(other.ways, ways)]
        return MeaningFound(ways, first.agreement, self._before, tuple(equals))

    def _narrowed(self, found: Fitting) -> Ways:
        """Return the ways without those that change nothing here."""
        kept, own = dict(found.ways), self._subject.distance(found.made)
        for name in list(found.ways)[:MOST_NODES]:
            if len(kept) == 1 or self._is_over():
                break
            fewer = {each: way for each, way in kept.items() if each != name}
            without = self._run(fewer)
            if without is not None and self._subject.distance(without[1]) <= 2.0 * own:
                kept = fewer
        return kept


def _at(told: Ways, groups: Iterable[Ways]) -> list[Ways]:
    """Return the ways of groups at the nodes that are told."""
    return [{name: group[name] for name in told} for group in groups if told.keys() <= group.keys()]


def _may_empty(way: Meaning) -> bool:
    """Return whether a way may change sizes: inputs elsewhere, or other whole numbers."""
    return bool(way.inputs or way.behind) or any(array.dtype.kind == "i" for array in way.operands.values())


def _is_empty(model: Model, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Return whether values have no elements: kernels may end the process there (ONNX Runtime's MatMul, by SIGFPE)."""
    return any(0 in (spec.shape or ()) for spec in _specs(model, shapes, refine=True).values())


def _is_alone(ways: Ways) -> bool:
    return any(way.alone for way in ways.values())


def _size(found: Fitting) -> int:
    """Return how much is changed: a body or an operand counts as one attribute."""
    return sum(len(way.attributes) or 1 for way in found.ways.values())


def _contains(other: Ways, ways: Ways) -> bool:
    """Return whether ways include all of others: the same, or further attributes besides."""
    return all(
        name in other
        and (
            other[name].words == way.words
            or (bool(way.attributes) and way.attributes.items() <= other[name].attributes.items())
        )
        for name, way in ways.items()
    )


def sites_of(
    rewriter: Rewriter,
    table: Sequence[MeaningRow],
    shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    among: frozenset[str] | None = None,
) -> Iterator[Ways]:
    """Yield every way of a table that fits a model, each at all nodes that it fits.

    Args:
        rewriter: The model.
        table: Rows.
        shapes: As of `Unexplained`.
        among: Likewise.
    """
    specs: dict[int, Mapping[str, ValueSpec]] = {}
    for row in table:
        if row.ops and not any(node.op_type in row.ops for node in rewriter.base(0).ir.graph):
            continue
        base = rewriter.base(row.since)
        if id(base) not in specs:
            specs[id(base)] = _specs(base, shapes)
        groups: dict[str, dict[str, Meaning]] = {}
        for node in base.ir.graph:
            if among is not None and node.name not in among:
                continue
            if node.domain in _DOMAINS and (node.op_type in row.ops if row.ops else _computes(node)):
                for known in row.ways(MeantNode(node, base.opset, specs[id(base)])):
                    way = dataclasses.replace(known, since=max(known.since, row.since))
                    groups.setdefault(way.group or _key(node.op_type, way), {})[node.name or ""] = way
        yield from groups.values()


def _computes(node: ir.Node) -> bool:
    """Whether rows about every operator are about a node: not about constants, nor what runs graphs of its own."""
    graphs = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
    return bool(node.inputs) and not any(each.type in graphs for each in node.attributes.values())


def _specs(model: Model, shapes: Mapping[str, tuple[int, ...]], *, refine: bool = False) -> Mapping[str, ValueSpec]:
    fed = {spec.name: shapes[spec.name] for spec in model.inputs if shapes.get(spec.name, spec.shape) != spec.shape}
    return value_specs(with_input_shapes(model, fed) if fed else model, refine=refine or bool(fed))


def _key(op_type: str, way: Meaning) -> str:
    """Return the common part of the ways of several nodes."""
    changed = {name: repr(value) for name, value in way.attributes.items()}
    return f"{op_type} {changed or way.words}"


def bits_of(before: Tensors, theirs: Tensors, limits: Mapping[str, float]) -> float:
    """Return how unlikely it is by chance that numbers, once off, are within limits: as many bits.

    A number that was off by an error is within a limit by chance once in their ratio; a whole one once in as many as
    are about.
    """
    found = 0.0
    for name, array in theirs.items():
        was = before.get(name)
        if was is None or was.shape != array.shape:
            found += _MOST_BITS
            continue
        off = was != array
        count = min(int(np.count_nonzero(off)), _MOST_ELEMENTS)
        if array.dtype.kind in "fc":
            error = float(error_of(measure(was, array)))
            limit = limits.get(name, 0.0)
            if is_minor(limit, error):  # else many networks are within it
                found += count * (min(math.log2(min(error, 1.0) / limit), _MOST_BITS) if limit else _MOST_BITS)
        elif array.size:
            wide = array.astype(np.float64)
            found += count * min(math.log2(1.0 + float(np.ptp(wide))), _MOST_BITS)
    return found
