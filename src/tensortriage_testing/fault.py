"""One planted fault: its kind, its place, and the parts of a model that it needs to show."""

import dataclasses
import enum
import random
from collections.abc import Iterable, Mapping

import numpy as np

from tensortriage.engines.sdk import DType, Model, UsageError, ValueSpec
from tensortriage.testing.sdk import Node

LEVELS = ("none", "basic", "all")
"""Levels of optimization of the faulty engine, from safe to aggressive."""


class FaultKind(enum.Enum):
    """Kind of fault; the value is the word in specs. Numeric kinds are described in `fault_numbers`."""

    SCALE = "scale"
    OFFSET = "offset"
    NOISE = "noise"
    NONDETERMINISTIC = "nondeterministic"
    SIGN = "sign"
    SATURATE = "saturate"
    CLIP = "clip"
    FLUSH = "flush"
    COARSE = "coarse"
    NAN = "nan"
    INF = "inf"
    OFF_BY_ONE = "off-by-one"
    ZERO_TAIL = "zero-tail"
    TILE_TAIL = "tile-tail"
    BROADCAST = "broadcast"
    CHANNELS_LAST = "channels-last"
    PERMUTE = "permute"
    WRONG_AXIS = "wrong-axis"
    STALE = "stale"
    WARM_UP = "warm-up"
    BF16_ACCUMULATE = "bf16-accumulate"
    ROW = "row"
    TILE = "tile"
    EPSILON = "epsilon"
    LAST_ROW = "last-row"
    ROWS_ABOVE = "rows-above"
    SWAPPED_ROWS = "swapped-rows"
    PADDING_LEAK = "padding-leak"
    SHAPE = "shape"
    ZERO_POINT = "zero-point"
    CHANNEL_SCALE = "channel-scale"
    STALE_ROW = "stale-row"
    ROW_BEFORE = "row-before"
    IN_ORDER = "in-order"
    SLOT_AFTER = "slot-after"
    MASK_SHORT = "mask-short"
    CRASH = "crash"
    HANG = "hang"
    OUT_OF_MEMORY = "out-of-memory"
    BUILD_FAILURE = "build-failure"
    BUILD_CRASH = "build-crash"
    BUILD_HANG = "build-hang"


@dataclasses.dataclass(frozen=True)
class Fault:
    """One planted fault.

    Attributes:
        kind: Kind of fault; the word of a `FaultKind` will do.
        node: Name of the ONNX node whose result is wrong; models without it run right.
        amount: How much, in the unit of the kind; None for its default.
        output: Which of the node's outputs.
        fused_with: Names of other nodes, joined with ``+``. The fault then shows only while all are in the model, wired
            to each other into one piece, and no value between them is a model output: as if it came from fusing them.
        from_level: The fault shows only from this level of optimization on (`LEVELS`); empty for every level.
        dtype: The fault shows only while the value has this element type (``float16``): a precision problem, cured by
            keeping the node in another type. Empty for any.
        build_chance: Share of builds that have the fault; below 1 builds differ.
        run_chance: Share of runs that have it, as those of a race do.
        length: The fault shows only in runs in which the node's result has an axis of this length, or an operand of
            integers holds this number: at one step of a decoder. None for every run.
        seed: For kinds that draw numbers.
    """

    kind: FaultKind | str
    node: str
    _: dataclasses.KW_ONLY
    amount: float | None = None
    output: int = 0
    fused_with: str = ""
    from_level: str = ""
    dtype: str = ""
    build_chance: float = 1.0
    run_chance: float = 1.0
    length: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "kind", FaultKind(self.kind))
        except ValueError:
            raise UsageError(
                f"'{self.kind}' is not a kind of fault",
                slug="fault-unknown",
                cure="use one of: " + ", ".join(kind.value for kind in FaultKind),
            ) from None
        if self.from_level and self.from_level not in LEVELS:
            raise UsageError(
                f"'{self.from_level}' is not a level of optimization",
                slug="fault-unknown",
                cure="use one of: " + ", ".join(LEVELS),
            )

    def shows_in(self, model: Model, specs: Mapping[str, ValueSpec]) -> bool:
        """Return whether a model has the parts that the fault needs to show."""
        graph = model.graph
        if any(name not in graph for name in self.fused):
            return False
        known = specs[self.value_of(graph.node(self.node))].dtype
        if known is not None and not self.shows_as(known):
            return False
        return len(self.fused) == 1 or self._unbroken(model)

    def shows_in_run(self) -> bool:
        """Draw whether the fault shows in one run."""
        return random.random() < self.run_chance

    def shows_among(self, right: np.ndarray, operands: Iterable[np.ndarray | None]) -> bool:
        """Return whether the fault shows in a run in which the node has this result and these operands."""
        if self.length is None or self.length in right.shape:
            return True
        whole = [operand for operand in operands if operand is not None and operand.dtype.kind in "iu"]
        return any(bool(np.any(operand == self.length)) for operand in whole)

    @property
    def fused(self) -> tuple[str, ...]:
        """Names of the nodes that the fault needs, the faulty one first."""
        return (self.node, *(name for name in self.fused_with.split("+") if name))

    def _unbroken(self, model: Model) -> bool:
        """Return whether the nodes of the fusion are wired into one piece by values that are no model outputs."""
        nodes = [model.graph.node(name) for name in self.fused]
        outputs = {spec.name for spec in model.outputs}
        joined, rest = nodes[:1], nodes[1:]
        while found := [n for n in rest if any(values_between(n, other) for other in joined)]:
            joined += found
            rest = [n for n in rest if n not in found]
        inner = {value for one in nodes for other in nodes for value in values_between(one, other)}
        return not rest and not inner & outputs

    def shows_as(self, dtype: DType) -> bool:
        """Return whether the fault shows in a value of this element type."""
        return not self.dtype or dtype is DType.parse(self.dtype)

    def value_of(self, node: Node) -> str:
        """Return the name of the value that is wrong.

        Raises:
            UsageError: When the node has no such output.
        """
        if self.output < len(node.outputs) and node.outputs[self.output]:
            return node.outputs[self.output]
        raise UsageError(f"node '{node.name}' has no output {self.output}", slug="fault-unsupported")


def values_between(one: Node, other: Node) -> set[str]:
    """Return the values that one of two nodes makes and the other uses."""
    return {*one.outputs} & {*other.uses} | {*other.outputs} & {*one.uses}
