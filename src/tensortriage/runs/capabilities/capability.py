"""Which parts of a model an engine can build: every node by itself, and the largest pieces.

The whole model comes first: when it builds, every node does. Otherwise nodes are cut out with typed inputs. Of nodes
that are alike (same operator, attributes, operand types and shapes) one is asked about, and many are built at a time,
side by side and unconnected in one model; only a model that fails is divided, down to the nodes that do not build
alone. A crash or a hang is an answer like any other. Nodes that pass a sequence or an optional between them stay
together, since engines take tensors only, and a node that fails alone gets a second chance together with what computes
its shape operands, which some engines want as constants.
"""

import dataclasses
import enum
import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property

from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError, ModelError
from tensortriage.model.cutting.cut_units import inseparable_units
from tensortriage.model.cutting.explode import explode
from tensortriage.model.cutting.extract import extract
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.similarity.structural_hash import Likeness
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.experiment import ObservedBuild
from tensortriage.runs.outcome import OK, Outcome
from tensortriage.values.spec import ValueSpec

Say = Callable[[str], None]


class Support(enum.Enum):
    """What is known of a node; the value is the word in documents."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class NodeAnswer:
    """What an engine made of a node, or of nodes that cannot be separated.

    Attributes:
        nodes: Their names.
        op_types: Their operators, each once, with the domain when it is not the standard one.
        support: Whether they were built.
        outcome: ``ok``, or how the build ended.
        message: The engine's own words; why it could not be asked when `support` is unknown.
        modules: Modules of the source network that the nodes come from, with class and line, each once.
    """

    nodes: tuple[str, ...]
    op_types: tuple[str, ...]
    support: Support
    outcome: str
    message: str
    modules: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    """A range of nodes, in topological order.

    Attributes:
        first, last: Positions of its first and last node.
        nodes: Their names; Constant nodes are left out.
        support: Whether the engine builds them as one model.
        outcome: ``ok``, or how the build ended.
        message: The engine's own words.
    """

    first: int
    last: int
    nodes: tuple[str, ...]
    support: Support
    outcome: str
    message: str

    @property
    def file_name(self) -> str:
        """Name of the ONNX file that holds it (Polygraphy's)."""
        return f"{self.support.value}_subgraph-nodes-{self.first}-{self.last}.onnx"


PIECE_FILE = re.compile(r"(" + "|".join(one.value for one in Support) + r")_subgraph-nodes-\d+-\d+\.onnx(\.data)?")
"""Names of files that hold pieces."""


@dataclasses.dataclass(frozen=True, slots=True)
class Capability:
    """What an engine can build of a model.

    Attributes:
        model: The file.
        target: The engine and its options.
        nodes: Nodes of the main graph, Constant nodes not counted.
        outcome: How building the whole model ended.
        message: The engine's own words about it.
        answers: What the engine made of each node; empty when the whole model builds.
        pieces: Ranges of nodes that build together, and nodes that do not build; empty unless asked for.
        builds: Models compiled.
        build_seconds: Time that took.
    """

    model: str
    target: str
    nodes: int
    outcome: str
    message: str
    answers: tuple[NodeAnswer, ...]
    pieces: tuple[Piece, ...]
    builds: int
    build_seconds: float
    format: str = "tensortriage.capability/1"

    @property
    def unsupported(self) -> tuple[NodeAnswer, ...]:
        """Answers that are not "supported"."""
        return tuple(answer for answer in self.answers if answer.support is not Support.SUPPORTED)


class Prober:
    """Asks an engine about parts of a model.

    Args:
        model: The model.
        spec: The engine and its options.
        lab: Where it is asked.
    """

    def __init__(self, model: Model, spec: EngineSpec, lab: Lab) -> None:
        self.model = model
        self.builds = 0
        self.build_seconds = 0.0
        self._spec = spec
        self._lab = lab
        self._known: dict[str, Outcome | str] = {}  # by likeness; a text says why it could not be asked

    @cached_property
    def specs(self) -> Mapping[str, ValueSpec]:
        """Types and shapes for the inputs of what is cut out."""
        return value_specs(self.model)

    @cached_property
    def _alike(self) -> Likeness:
        return Likeness(self.model, self.specs)

    @cached_property
    def units(self) -> tuple[tuple[Node, ...], ...]:
        """The nodes but Constants, those that cannot be separated together, in topological order."""
        return inseparable_units(self.model)

    def capability(self, *, partition: bool) -> Capability:
        """Ask about the whole model, then about every node and, if wanted, about the largest pieces.

        Raises:
            EngineMissing: When the engine cannot be used here.
            UsageError: For options it does not know.
        """
        self._lab.progress("the whole model")
        whole = self._build(self.model)
        answers = () if whole.ok else tuple(self._answers())
        pieces: tuple[Piece, ...] = ()
        if partition:
            pieces = tuple(self._pieces(answers)) if answers else (self._piece(self.units, OK),)
        return Capability(
            model=str(self.model.path or ""),
            target=str(self._spec),
            nodes=sum(map(len, self.units)),
            outcome=whole.kind.value,
            message=whole.message,
            answers=answers,
            pieces=pieces,
            builds=self.builds,
            build_seconds=self.build_seconds,
        )

    def cut(self, names: Collection[str]) -> Model:
        """Return the model of some nodes; see `tensortriage.model.cutting.extract.extract`."""
        return extract(self.model, names, specs=self.specs)

    def _answers(self) -> Iterator[NodeAnswer]:
        likeness = [self._likeness(unit) for unit in self.units]
        self._ask(list(dict(zip(likeness, self.units, strict=True)).items()))
        for key, unit in zip(likeness, self.units, strict=True):
            names = tuple(node.name for node in unit)
            op_types = tuple(dict.fromkeys(map(_label, unit)))
            outcome, modules = self._known[key], self.model.graph.origin_labels(names)
            if isinstance(outcome, str):
                yield NodeAnswer(names, op_types, Support.UNKNOWN, "", outcome, modules)
            else:
                support = Support.SUPPORTED if outcome.ok else Support.UNSUPPORTED
                yield NodeAnswer(names, op_types, support, outcome.kind.value, outcome.message, modules)

    def _ask(self, units: Sequence[tuple[str, tuple[Node, ...]]]) -> None:
        """Find out which units build alone, and note it by their keys: halve those that do not build side by side."""
        if len(units) == 1:
            ((key, unit),) = units
            self._lab.progress(f"{unit[0].op_type} {unit[0].name}")
            try:
                self._known[key] = self._unit_outcome(unit)
            except ModelError as error:  # nothing tells the type of what the node uses
                self._known[key] = error.message
        elif self._build_together([unit for _, unit in units]):
            self._known.update((key, OK) for key, _ in units)
        else:
            middle = len(units) // 2
            self._ask(units[:middle])
            self._ask(units[middle:])

    def _build_together(self, units: Sequence[tuple[Node, ...]]) -> bool:
        self._lab.progress(f"{len(units)} nodes side by side, from {units[0][0].name}")
        try:
            exploded = explode(self.model, [[node.name for node in unit] for unit in units], specs=self.specs)
        except ModelError:
            return False
        return self._build(exploded.model).ok

    def _unit_outcome(self, unit: tuple[Node, ...]) -> Outcome:
        outcome = self._build(self.cut([node.name for node in unit]))
        if not outcome.ok and (shaped := self._with_shapes(unit)):
            again = self._build(self.cut(shaped))
            return again if again.ok else outcome
        return outcome

    def _with_shapes(self, unit: tuple[Node, ...]) -> set[str]:
        """Return the names of nodes with those that compute their shape operands; nothing when there are none."""
        graph = self.model.graph
        operands = [value for node in unit for value in node.uses if value in graph.shape_like]
        before = {node.name for node in graph.ancestors(operands) if {*node.outputs} & graph.shape_like}
        own = {node.name for node in unit}
        return before | own if before - own else set()

    def _pieces(self, answers: Sequence[NodeAnswer]) -> Iterator[Piece]:
        """Yield the ranges: from each start the longest that builds, cut at nodes that do not build alone."""
        start = 0
        while start < len(self.units):
            answer = answers[start]
            if answer.support is not Support.SUPPORTED:
                yield self._piece(self.units[start : start + 1], None, answer)
                start += 1
                continue
            barrier = next(
                (i for i in range(start, len(answers)) if answers[i].support is not Support.SUPPORTED), len(answers)
            )
            end = self._longest(start, barrier)
            yield self._piece(self.units[start:end], OK)
            start = end

    def _longest(self, start: int, end: int) -> int:
        """Return the end of the longest range that builds, supposing that parts of what builds do."""
        if self._range_builds(start, end):
            return end
        good, bad = start + 1, end
        while bad - good > 1:
            middle = (good + bad) // 2
            if self._range_builds(start, middle):
                good = middle
            else:
                bad = middle
        return good

    def _range_builds(self, start: int, end: int) -> bool:
        if end - start == 1:
            return True  # it was built alone
        names = [node.name for unit in self.units[start:end] for node in unit]
        self._lab.progress(f"{len(names)} nodes from {names[0]}")
        return self._build(self.cut(names)).ok

    def _piece(
        self, units: Sequence[tuple[Node, ...]], outcome: Outcome | None, answer: NodeAnswer | None = None
    ) -> Piece:
        nodes = [node for unit in units for node in unit]
        positions = [node.index for node in nodes]
        support = answer.support if answer else Support.SUPPORTED
        return Piece(
            min(positions),
            max(positions),
            tuple(node.name for node in nodes),
            support,
            answer.outcome if answer else (outcome or OK).kind.value,
            answer.message if answer else "",
        )

    def _likeness(self, unit: tuple[Node, ...]) -> str:
        keys = [self._alike.of(node) for node in unit]
        wiring = [node.name for node in unit] if len(unit) > 1 else []
        return hashlib.sha256("\0".join([*keys, *wiring]).encode()).hexdigest()

    def _build(self, model: Model) -> Outcome:
        started = time.perf_counter()
        try:
            with self._lab.session(self._spec, model, sequence=True) as ask:
                ask.of(observed=ObservedBuild())
        except EngineError as error:
            return Outcome.of(error)
        finally:
            self.builds += 1
            self.build_seconds += time.perf_counter() - started
        return OK


def _label(node: Node) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type
