"""Is it the network that the file was exported from, made, called and fed alike? Asked where file and network differ.

The network's other properties (made again, called again, its weights, its modules) decide whether any value can be
compared. Whether inputs were exchanged, or a step before or after the network is on one side only, is tried: fed, or
read, accordingly, the two agree. Each answer is a sentence with its cure; None is left to the questions about nodes.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.diagnose.sdk import (
    CORRECTLY_ROUNDED,
    EngineError,
    EngineSpec,
    Feed,
    Graph,
    Investigation,
    MemoryStore,
    Node,
    TriageError,
    UsageError,
    disputes,
    enumeration,
    error_size,
    is_minor,
)
from tensortriage_torch.premises import NetworkPremises
from tensortriage_torch.rungs.branch_taken import branch_taken
from tensortriage_torch.rungs.network_values import asked_about, modules_of
from tensortriage_torch.rungs.network_weights import HeldWeights, held_weights

_MODULES_OTHER = 0.5
"""Share of a network's modules whose weights differ, beyond which the file is of another checkpoint, and not one weight
of it wrong; likewise of a file's modules that a network lacks, beyond which it is another network."""

_MOST_NAMED = 3
_MOST_EXCHANGED = 4
_MOST_STEPS = 6
"""Nodes after an input, or before an output, that are tried as a step of one side only."""

RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)


@dataclasses.dataclass(frozen=True)
class Mistake:
    """Why a network and a file cannot be compared as they are.

    Attributes:
        what: Description of the mistake, with figures.
        cure: Advice, as an instruction.
    """

    what: str
    cure: str


@dataclasses.dataclass(frozen=True)
class Subject:
    """A network and a file that differ on a feed.

    Attributes:
        network: Spec of the network.
        outputs: The network's outputs; None where it fails.
        error: Relative error of an output of the file against it; inf where it fails.
        training: Whether a module is in training mode.
    """

    inv: Investigation
    network: EngineSpec
    feed: Feed
    outputs: Mapping[str, np.ndarray] | None = None
    error: float = math.inf
    training: bool = False

    @property
    def called(self) -> str:
        """The user's name for the network."""
        options = self.network.options
        return f"{options['attribute']}()" if "attribute" in options else options.get("file", "the network")

    def run(self, tensors: Mapping[str, np.ndarray], name: str) -> Mapping[str, np.ndarray] | None:
        """Return the network's results on other inputs; None where it fails."""
        try:
            return self.inv.lab.outputs(self.network, self.inv.model, Feed(name, tensors, self.feed.origin))
        except TriageError:
            return None

    def agrees(self, values: Mapping[str, np.ndarray], feed: Feed | None = None) -> bool:
        """Whether values are the file's results on the feed, or on another one."""
        try:
            return not disputes(self.inv.lab, self.inv.model, feed or self.feed, list(values), MemoryStore(values))
        except TriageError:
            return False


@dataclasses.dataclass(frozen=True)
class Mistaken:
    """Why network and file differ, as far as values of single nodes are not needed for it.

    Attributes:
        mistake: One that is no fault of the export.
        weights: Which modules are others, or which weights differ.
        statistics: Which modules normalize by other statistics, proven; see `other_statistics`.
    """

    mistake: Mistake | None = None
    weights: str = ""
    statistics: str = ""


def mistaken(subject: Subject) -> Mistaken:
    """Return why network and file differ."""
    if drawn := random_in_file(subject.inv.model.graph):
        return Mistaken(drawn)
    try:
        premises = asked_about(subject.inv.lab, subject.network, subject.inv.model, subject.feed).premises()
    except (EngineError, UsageError):
        return Mistaken()
    held, graph = held_weights(subject.inv.model.graph, premises), subject.inv.model.graph
    if branch := branch_taken(graph, premises):  # the file has no weights of what it does not compute
        computed = premises.ran.difference(branch.left_out)
        other = {module: error for module, error in held.other.items() if module in computed}
        held = dataclasses.replace(held, other=other)
    tried: Sequence[Callable[[], Mistake | None]] = (
        lambda: changes(subject, premises),
        lambda: another(subject, premises, held),
        lambda: exchanged(subject),
        lambda: step_before(subject, premises),
        lambda: step_after(subject, premises),
    )
    outputs = subject.outputs or subject.run(subject.feed.tensors, subject.feed.name)
    differ = not outputs or not subject.agrees(outputs)  # else there is nothing to try for
    found = next((each for each in (one() for one in (tried if differ else tried[:2])) if each), None)
    statistics = other_statistics(subject, premises) if differ and found is None else ""
    told = filter(None, (branch.words if branch else "", weights_differ(premises, held)))
    return Mistaken(found, "; ".join(told), statistics)


def random_in_file(graph: Graph) -> Mistake | None:
    """Return the mistake of a file that draws random numbers: no later value can be compared."""
    drawing = [node for node in graph.nodes if node.op_type in RANDOM]
    if not drawing:
        return None
    node = drawing[0]
    place = graph.origin(node.name).label
    where = f" of {place}" if place else ""
    return Mistake(
        f"the model draws random numbers: {node.op_type} '{node.name}'{where} gives different ones in every run and "
        f"engine",
        "make the noise an input of forward, or leave it out in evaluation mode, and export again",
    )


def changes(subject: Subject, premises: NetworkPremises) -> Mistake | None:
    """Return the mistake of a network that is another one at each making or call."""
    if premises.made_again:
        far = sorted(premises.made_again.items(), key=lambda item: -item[1])
        named = ", ".join(f"'{name}' by {error_size(error)}" for name, error in far[:_MOST_NAMED])
        return Mistake(
            f"{subject.called} gives other weights at every call: {len(far)} differ between two calls, {named}",
            "load a checkpoint in it, or call torch.manual_seed before the network is made",
        )
    varies = max(premises.state, premises.random)
    if not varies or (math.isfinite(subject.error) and is_minor(varies, subject.error)):
        return None
    if subject.training:
        return Mistake(
            f"the network is in training mode: equal inputs give results that differ by {error_size(varies)}",
            "call .eval() before it is exported and compared",
        )
    where = f" in {premises.module}" if premises.module else " in forward"
    if premises.state:
        kept = f": calls change {enumeration([repr(name) for name in premises.buffers[:_MOST_NAMED]])}"
        return Mistake(
            f"the network keeps state between calls{kept if premises.buffers else ''}; equal inputs give results that "
            f"differ by {error_size(premises.state)}{where}",
            "make that state an input and an output of forward, or reset it there, and export again",
        )
    return Mistake(
        f"the network draws random numbers{where}: equal inputs give results that differ by "
        f"{error_size(premises.random)}",
        "make the noise an input of forward, or leave it out in evaluation mode, and export again",
    )


def another(subject: Subject, premises: NetworkPremises, held: HeldWeights) -> Mistake | None:
    """Return the mistake of a file of another network, or of other weights."""
    graph = subject.inv.model.graph
    modules = [module for module in modules_of(graph) if module]
    found = [module for module in modules if module in premises.paths and module not in held.missing]
    if modules and len(found) < _MODULES_OTHER * len(modules):
        return Mistake(
            f"the file is of another network: {len(found)} of its {len(modules)} modules are in {subject.called} with "
            "weights of their size",
            "name the function that makes the network which was exported",
        )
    if len(held.other) > _MODULES_OTHER * (len(held.other) + len(held.same)):
        return Mistake(
            f"the file is of another checkpoint than {subject.called}: {weights_differ(premises, held)}",
            "load the checkpoint that was exported, or export the file again",
        )
    return None


def weights_differ(premises: NetworkPremises, held: HeldWeights) -> str:
    """Return in how many modules the file has other weights, and how far they are; empty for none."""
    if not held.other:
        return ""
    of = len({name.rpartition(".")[0] for name in premises.shapes})
    named = ", ".join(f"'{module}' by {error_size(error)}" for module, error in list(held.other.items())[:_MOST_NAMED])
    return f"weights differ in {len(held.other)} of {of} modules, {named}"


def other_statistics(subject: Subject, premises: NetworkPremises) -> str:
    """Return that the file normalizes by the statistics of each input, if the network then gives its results."""
    names = [spec.name for spec in subject.inv.model.outputs]
    if not premises.own or len(premises.own) != len(names):
        return ""
    if not subject.agrees(dict(zip(names, premises.own, strict=True))):
        return ""
    named = [f"'{path}' ({kind})" for path, kind in list(premises.normalizing.items())[:_MOST_NAMED]]
    if len(premises.normalizing) > _MOST_NAMED:
        named.append(f"{len(premises.normalizing) - _MOST_NAMED} more")
    instances = all("Instance" in kind for kind in premises.normalizing.values())
    cure = (
        "exchange each for BatchNorm with its weights and statistics, which is equal in evaluation"
        if instances
        else "export in evaluation mode, after .eval()"
    )
    return (
        f"the file does not use the running statistics of {enumeration(named)}, it normalizes by the mean and variance "
        f"of each {'instance' if instances else 'input'}: computing those, the network gives the file's results. "
        f"Cure: {cure}"
    )


def exchanged(subject: Subject) -> Mistake | None:
    """Return the mistake of inputs in another order, if exchanging them gives the file's results."""
    tensors = subject.feed.tensors
    names = [spec.name for spec in subject.inv.model.inputs if spec.name in tensors]
    if not 1 < len(names) <= _MOST_EXCHANGED:
        return None
    for order in itertools.permutations(names):
        other = {name: tensors[source] for name, source in zip(names, order, strict=True)}
        if all(np.array_equal(other[name], tensors[name]) for name in names):
            continue
        if subject.outputs is not None and any(_kind(other[name]) != _kind(tensors[name]) for name in names):
            continue  # the network cannot take such an array there
        outputs = subject.run(other, f"{subject.feed.name} exchanged")
        if outputs and subject.agrees(outputs):
            pairs = ", ".join(f"'{b}' as '{a}'" for a, b in zip(names, order, strict=True) if a != b)
            return Mistake(
                f"inputs are exchanged: fed with {pairs}, {subject.called} gives the same results as the file",
                "give example inputs, and name the inputs of the file, in the order of forward's parameters",
            )
    return None


def step_before(subject: Subject, premises: NetworkPremises) -> Mistake | None:
    """Return the mistake of preprocessing on one side only."""
    for name, array in subject.feed.tensors.items():
        for path, given in premises.given.items():
            if subject.outputs and _kind(given) == _kind(array) and not np.array_equal(given, array):
                fed = Feed(
                    f"{subject.feed.name} as {path} has it", {**subject.feed.tensors, name: given}, subject.feed.origin
                )
                if subject.agrees(subject.outputs, fed):
                    return Mistake(
                        f"forward prepares '{name}' before '{path}', and the file does not: fed with the input of "
                        f"'{path}' in PyTorch, the file gives the same results as the network",
                        "export the network with that step, or leave it out of forward and feed its result",
                    )
        nodes = list(_after(subject.inv.model.graph, name))
        for node, exact in _evaluated(subject, nodes):
            made = exact.astype(array.dtype)
            if _kind(made) == _kind(array) and not np.array_equal(made, array):
                outputs = subject.run({**subject.feed.tensors, name: made}, f"{subject.feed.name} after {node.name}")
                if outputs and subject.agrees(outputs):
                    done = [f"{each.op_type} '{each.name}'" for each in nodes[: nodes.index(node) + 1]]
                    return Mistake(
                        f"the file prepares '{name}' ({', '.join(done)}), and forward does not: fed with the prepared "
                        "input, the network gives the same results as the file",
                        "name the function that makes the network with that step, or export the network without it",
                    )
    return None


def step_after(subject: Subject, premises: NetworkPremises) -> Mistake | None:
    """Return the mistake of postprocessing on one side only."""
    graph = subject.inv.model.graph
    for name, array in (subject.outputs or {}).items():
        for path, returned in premises.returned.items():
            if (
                returned.shape == array.shape
                and not np.array_equal(returned, array)
                and subject.agrees({name: returned})
            ):
                return Mistake(
                    f"forward continues where the file ends: '{name}' of the file is the result of '{path}' in PyTorch",
                    "export the network with the steps that follow, or name a function that makes it without them",
                )
        nodes: list[Node] = []
        value = name
        while (node := graph.producer(value)) is not None and len(nodes) < _MOST_STEPS:
            nodes.append(node)
            made = [used for used in node.uses if graph.producer(used) is not None and used not in graph.initializers]
            if len(made) != 1:
                break
            value = made[0]
            if subject.agrees({value: array}):
                done = ", ".join(f"{each.op_type} '{each.name}'" for each in reversed(nodes))
                return Mistake(
                    f"the file continues where forward ends: '{value}' is the network's output '{name}', and "
                    f"{done} follow{'s' * (len(nodes) == 1)} in the file",
                    "name the function that makes the network with that step, or export the network without it",
                )
    return None


def _after(graph: Graph, value: str) -> Iterator[Node]:
    """Yield the nodes that prepare an input: one after the other, nothing else made of it."""
    for _ in range(_MOST_STEPS):
        users = graph.consumers(value)
        if len(users) != 1 or len(users[0].outputs) != 1:
            return
        yield users[0]
        value = users[0].outputs[0]


def _evaluated(subject: Subject, nodes: Sequence[Node]) -> Iterator[tuple[Node, np.ndarray]]:
    """Yield the results of nodes, by the file."""
    by_value = {node.outputs[0]: node for node in nodes}
    try:
        made = subject.inv.lab.values(CORRECTLY_ROUNDED, subject.inv.model, subject.feed, list(by_value))
    except TriageError:
        return
    yield from ((node, np.asarray(made[value])) for value, node in by_value.items() if value in made)


def _kind(array: np.ndarray) -> tuple[np.dtype[np.generic], tuple[int, ...]]:
    return array.dtype, array.shape
