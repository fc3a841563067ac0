"""Origins of NaN and Inf, and values that a number format cannot hold.

A non-finite element has an origin: a node with a non-finite output whose inputs are all finite, or a constant that the
format turns into Inf. Carriers downstream are innocent. The same walk is made twice: on the run in which every result
was only rounded to the format (the effect of the format alone), and on the target's own values.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import ErrorFigures
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.measurements.local_errors.local import Local
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED, ROUNDED
from tensortriage.envelope.floors import emulate, in_format
from tensortriage.envelope.setting import Floors
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.runs.analyses.ranges import USUAL, RangeRow, RangeScan, largest_sum, range_scan
from tensortriage.runs.observation.derived import Derived
from tensortriage.values.dtype import DType, Precision


@frozen_dataclass
class Excess:
    """A value of the reference run that the target's format cannot hold.

    Attributes:
        value: The tensor, or the constant.
        node: The node that makes it, or that uses the constant.
        magnitude: Largest absolute value in the reference.
        constant: Whether it is a constant of the model.
        vanishes: The consequence where it is too small, not too large, as the end of a sentence.
        what: The subject of a sentence about it: not the result where a sum on the way to it is too large.
    """

    value: str
    node: str
    op_type: str
    magnitude: float
    constant: bool
    vanishes: str = ""
    what: str = "its result"


@frozen_dataclass
class Scan:
    """The rows of a range scan, as kept in a case."""

    rows: tuple[RangeRow, ...]


def scanned(inv: Investigation, feed: Feed) -> tuple[RangeRow, ...]:
    """Return the values that formats cannot hold: of the centre where they were `watched`, else of the reference."""

    def ask() -> Scan:
        inv.lab.progress("checking every tensor against the range of the number formats")
        limit = largest_sum(inv.precision)
        return Scan(range_scan(inv.model, inv.golden.of(feed), feed.tensors, formats=_formats(inv), beyond=limit))

    return (_kept(inv, feed, CORRECTLY_ROUNDED).known() or _kept(inv, feed, inv.question.reference).of(ask)).rows


@contextlib.contextmanager
def watched(inv: Investigation, feed: Feed, values: Sequence[str]) -> Iterator[Callable[[str, np.ndarray], None]]:
    """Return a listener to the centre's values that stores those beyond the formats.

    Args:
        inv: The investigation.
        feed: The feed they are evaluated on.
        values: The available values; nothing is kept unless all of them come.
    """
    scan = RangeScan(inv.model, feed.tensors, formats=_formats(inv), beyond=largest_sum(inv.precision))
    yield scan.take
    if scan.taken.issuperset(values):
        _kept(inv, feed, CORRECTLY_ROUNDED).keep(Scan(scan.rows()))


def _kept(inv: Investigation, feed: Feed, spec: EngineSpec) -> Derived[Scan]:
    return inv.lab.derived(Scan, _SCANNED, spec, inv.model, feed, [precision.value for precision in _formats(inv)])


def _formats(inv: Investigation) -> tuple[Precision, ...]:
    return tuple(dict.fromkeys((*USUAL, inv.precision)))


_SCANNED = "what number formats cannot hold"


def largest_number(precision: Precision) -> float:
    """Return the largest finite number of a format; of integers, which no result is kept in, that of fp32.

    That of bf16 is 0.4 % below that of fp32: the lowest fp32 number, which masks are often made of, is -Inf there.
    """
    dtype = precision.dtype if precision in ROUNDED and precision.dtype.is_float else DType.FLOAT
    return float(dtype.finfo.max)


def origins(graph: Graph, nonfinite: Collection[str], *, tainted: Collection[str] = ()) -> list[Node]:
    """Return the nodes in which non-finite values originate: output non-finite, every input finite.

    Args:
        graph: The model's index.
        nonfinite: Values with a NaN or Inf that the reference does not have.
        tainted: Constants that the format turns into Inf; a node that uses one counts as an origin.
    """
    bad = set(nonfinite)
    found = []
    for node in graph.nodes:
        if not any(output in bad for output in node.outputs):
            continue
        if any(name in tainted for name in node.uses) or not any(name in bad for name in node.uses):
            found.append(node)
    return found


def born(graph: Graph, figures: Mapping[str, ErrorFigures], excess: Sequence[Excess] = ()) -> list[Node]:
    """Return the origins of the non-finite values among given figures."""
    nonfinite = [name for name, metrics in figures.items() if metrics.nonfinite_mismatch]
    tainted = {item.value for item in excess if item.constant}
    return origins(graph, nonfinite, tainted=tainted)


def sources(graph: Graph, figures: Mapping[str, Metrics], outputs: Collection[str]) -> list[Node]:
    """Return every origin that the non-finite outputs lead back to through non-finite values, in topological order.

    Where no output among the figures is non-finite (marking tensors made it vanish) every origin counts.
    """
    bad = {name for name, metrics in figures.items() if metrics.nonfinite_mismatch}
    found = born(graph, figures)
    reached, pending = set[str](), [name for name in outputs if name in bad]
    if not pending:
        return found
    while pending:
        node = graph.producer(pending.pop())
        if node is not None and node.name not in reached:
            reached.add(node.name)
            pending += [name for name in node.uses if name in bad]
    return [node for node in found if node.name in reached]


def nonfinite_alone(inv: Investigation, local: Local) -> list[Node]:
    """Return the nodes that make a NaN or Inf out of golden operands."""
    graph = inv.model.graph
    producers = (graph.producer(value) for value, figure in local.metrics.items() if figure.nonfinite_mismatch)
    return list(dict.fromkeys(node for node in producers if node is not None))


def wide_nodes(graph: Graph, excess: Sequence[Excess]) -> set[str]:
    """Return the nodes that must work in a wider format: they make a value beyond the range, or read one."""
    nodes = {item.node for item in excess}
    for item in excess:
        if not item.constant:
            nodes |= {node.name for node in graph.consumers(item.value)}
    return nodes


def floors_in_range(inv: Investigation, feed: Feed, floors: Floors, nodes: Collection[str]) -> Floors:
    """Return the floors of the format when some nodes are kept in fp32, so that nothing leaves its range.

    The fall of the outputs' floors from ``floors`` to these is the proof that an overflow matters.
    """
    setting, what = inv.setting(feed), "every layer, overflowing ops kept in fp32,"
    figures = emulate(
        setting, inv.question.values, golden=inv.golden.of(feed), specs=inv.golden.specs(feed), what=what, kept=nodes
    )
    return in_format(setting, floors, figures)
