"""The bodies of the nodes that are left: the branch that an If takes, the body of a Loop or Scan, a function.

A node with a body is one item of the search. If it is still there at the end, the search can go on inside: the taken
branch of an If, or the nodes of a function, are put in its place; the body of a Loop or Scan that is left alone becomes
a model of its own, fed in every turn with the reference's values.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.cutting.extract_body import LiftedBody, lift_body
from tensortriage.model.model import Model
from tensortriage.model.transforms.inline_branch import ELSE, THEN, take_branch
from tensortriage.model.transforms.inline_functions import calls, without_functions
from tensortriage.values.spec import ValueSpec

MOST_TURNS = 16
"""Turns of a Loop or Scan that are looked at, from the first."""
Run = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
"""Runs a model on the reference."""


@frozen_dataclass
class Opening:
    """A way into a node that is left.

    Attributes:
        what: ``then_branch``, ``else_branch``, ``body`` or ``function``.
        model: The piece with the node opened.
        lifted: The body, when it became a model of its own.
        limit: Name of the value that limits the turns of a Loop; empty for none.
    """

    node: str
    op_type: str
    what: str
    model: Model
    lifted: LiftedBody | None = None
    limit: str = ""

    @property
    def needs(self) -> frozenset[str]:
        """Values around a body that determine its inputs."""
        sources = self.lifted.sources.values() if self.lifted is not None else ()
        return frozenset({source.value for source in sources} | {self.limit}) - {""}


def openings(piece: Model, specs: Mapping[str, ValueSpec], taken: Callable[[str], bool | None]) -> Iterator[Opening]:
    """Yield the ways into the nodes of a piece, the most telling first.

    Args:
        piece: The piece so far.
        specs: Types and shapes of its values.
        taken: Returns the value of the condition of that name; None when it is unknown, and both branches are tried.

    Raises:
        TriageError: When one cannot be opened.
    """
    for node in calls(piece)[:1]:  # all calls are replaced at once
        yield Opening(node.name, node.op_type, "function", without_functions(piece))
    for node in piece.graph.nodes:
        if not node.has_body:
            continue
        if node.op_type == "If":
            value = taken(node.inputs[0])
            for branch in (THEN, ELSE) if value is None else (THEN,) if value else (ELSE,):
                yield Opening(node.name, node.op_type, branch, take_branch(piece, node.name, branch))
        elif node.op_type in ("Loop", "Scan") and sum(other.op_type != "Constant" for other in piece.graph.nodes) == 1:
            lifted = lift_body(piece, node.name, specs=specs)
            limit = node.inputs[0] if node.op_type == "Loop" else ""
            yield Opening(node.name, node.op_type, "body", lifted.model, lifted, limit)


def inner_feeds(
    opening: Opening, recorded: Callable[[str], np.ndarray], run: Run
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yield the inputs of an opened piece, by a name: as it is around it, or as in the first turns of a Loop or Scan.

    Args:
        opening: The piece.
        recorded: Returns a constant, or the recorded value of a name around it.
        run: Runs the piece on the reference.
    """
    if opening.lifted is None:
        yield "inside", {spec.name: recorded(spec.name) for spec in opening.model.inputs}
        return
    values = {name: recorded(name) for name in opening.needs}
    for turn, tensors in enumerate(turns(opening, values, run)):
        yield f"turn {turn}", tensors


def turns(opening: Opening, values: Mapping[str, np.ndarray], run: Run) -> Iterator[dict[str, np.ndarray]]:
    """Yield the inputs of the body of a Loop or Scan in its first iterations.

    Args:
        opening: A body.
        values: Recorded values around the node.
        run: Runs the body on the reference.
    """
    lifted = opening.lifted
    assert lifted is not None
    feed = {name: source.take(values) for name, source in lifted.sources.items()}
    for turn in itertools.islice(itertools.count(), min(MOST_TURNS, _count(opening, values))):
        slices = {name: source.take(values, turn) for name, source in lifted.sources.items() if source.axis is not None}
        feed |= slices
        if opening.op_type == "Loop" and not feed[lifted.own[1]].all():
            return
        yield dict(feed)
        feed = lifted.next_turn(feed, run(feed))


def _count(opening: Opening, values: Mapping[str, np.ndarray]) -> int:
    """Return how many turns there are at most."""
    lifted = opening.lifted
    assert lifted is not None
    sliced = [source for source in lifted.sources.values() if source.axis is not None]
    if sliced:
        return int(values[sliced[0].value].shape[sliced[0].axis or 0])
    return int(values[opening.limit].reshape(-1)[0]) if opening.limit else MOST_TURNS
