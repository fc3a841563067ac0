"""How does a wrong value inside the model affect its outputs? The reference runs the rest of the model with it.

Only the nodes behind the wrong values are run, fed with golden values from other branches. Where one wrong value lies
behind another, its error is added to the value that arrives there, so that neither hides the other. Errors that arrive
through the piece that made both are in that error already: inside the piece errors are not carried on, or they would
count twice.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager

import numpy as np

from tensortriage.model.cutting.extract import extract
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.model.transforms.inject_error import ERROR_PREFIX, perturb
from tensortriage.model.transforms.mark_outputs import INJECT_PREFIX, USE_PREFIX, inject, select_outputs
from tensortriage.reduce.engines.sample import GoldenSample
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.runs.lab import Run
from tensortriage.values.dtype import DType


def carry(
    pieces: Pieces,
    wrong: Mapping[str, np.ndarray],
    outputs: Collection[str],
    *,
    inside: Collection[str] = (),
    sample: GoldenSample,
    run: Callable[[Model], AbstractContextManager[Run]],
) -> dict[str, np.ndarray]:
    """Return outputs of the model as they are when some values are wrong and everything else is right.

    Args:
        pieces: The model, and types and shapes of all its values.
        wrong: The wrong values, in their golden shapes.
        outputs: The outputs of the model that are wanted; those that the wrong values do not reach are left out.
        inside: Names of the nodes of the piece that the wrong values come from.
        sample: Golden values.
        run: Opens a model on the reference.

    Raises:
        EngineError: When the reference refuses or fails the rest of the model.
    """
    model, specs = pieces.model, pieces.specs
    nodes = _nodes(model, wrong, outputs, frozenset(inside))
    made = {value for node in nodes for value in node.outputs}
    found = {name: wrong[name] for name in outputs if name in wrong and name not in made}
    wanted = [name for name in outputs if name in made]
    if not wanted:
        return found
    rest = extract(model, [node.name for node in nodes], specs=specs, outputs=wanted)
    later = [name for name in wrong if name in made]
    added = [name for name in later if DType.from_numpy(wrong[name].dtype).is_float]
    replaced = [name for name in later if name not in added]
    if replaced:
        rest = select_outputs(inject(rest, replaced, specs=specs), wanted)
    if added:
        rest = perturb(rest, added, specs=specs, sparing=inside)
    feed = {spec.name: _fed(spec.name, wrong, sample) for spec in rest.inputs}
    with run(rest) as ask:
        return found | dict(ask(feed))


def _nodes(
    model: Model, wrong: Mapping[str, np.ndarray], outputs: Collection[str], inside: frozenset[str]
) -> list[Node]:
    """Return the nodes to be run: those between the wrong values and the outputs that errors reach from outside.

    A wrong value that one of them uses inside the piece has a right form, too; the nodes that make it are run for that.
    """
    graph = model.graph
    first = {user.name: user for value in wrong for user in graph.consumers(value) if user.name not in inside}
    behind = {*first, *(node.name for node in graph.descendants([v for n in first.values() for v in n.outputs]))}
    run = behind & {node.name for node in graph.ancestors(tuple(outputs))}

    def makers() -> Iterator[str]:
        for name in run & inside:
            for value in wrong.keys() & set(graph.node(name).uses):
                producer = graph.producer(value)
                if producer is not None:
                    yield producer.name

    while missing := set(makers()) - run:
        run |= missing
    return [node for node in graph.nodes if node.name in run]


def _fed(name: str, wrong: Mapping[str, np.ndarray], sample: GoldenSample) -> np.ndarray:
    if name.startswith(ERROR_PREFIX):
        value = name.removeprefix(ERROR_PREFIX)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(wrong[value] - sample[value])
    if name.startswith(INJECT_PREFIX):
        return wrong[name.removeprefix(INJECT_PREFIX)]
    if name.startswith(USE_PREFIX):
        return np.array(True)
    return wrong[name] if name in wrong else sample[name]
