"""Which tensors of a model to look at: names, wildcard patterns, modules, operator types."""

import fnmatch
import logging
from collections.abc import Collection, Sequence

from tensortriage.errors import UsageError, did_you_mean
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.cutting.node_selection import nodes_of_module
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import markable

_logger = logging.getLogger(__name__)
EVERYTHING = (("*",), ("mark", "all"))
"""Words for every tensor: ``'*'``, and the guide's two words ``mark all``."""


@frozen_dataclass
class OutputChoice:
    """Which tensors are compared.

    Attributes:
        mark: Names and patterns, also of modules; empty for the model's own outputs.
        exclude: Names and patterns to leave out.
        by_type: Operator types whose results are added (instead of the model's outputs when ``mark`` is empty).
        strict: Whether a type that no node has is an error; else it is warned about and adds nothing.
    """

    mark: Sequence[str] = ()
    exclude: Sequence[str] = ()
    by_type: Sequence[str] = ()
    strict: bool = True

    @property
    def is_everything(self) -> bool:
        """Whether every tensor is marked."""
        return tuple(self.mark) in EVERYTHING


def joined(*lists: Sequence[str]) -> tuple[str, ...]:
    """Return the tensors that several lists of names mark; a list of every tensor covers the others."""
    whole = next((tuple(words) for words in lists if tuple(words) in EVERYTHING), None)
    return whole or tuple(dict.fromkeys(word for words in lists for word in words))


def chosen_values(model: Model, choice: OutputChoice) -> tuple[str, ...]:
    """Return the chosen values in topological order, the model's own outputs in their own order.

    Raises:
        UsageError: When a name, pattern or operator type matches nothing, or nothing is left.
    """
    own = tuple(spec.name for spec in model.outputs)
    if not (choice.mark or choice.exclude or choice.by_type):
        return own
    known = markable(model)
    candidates = tuple(dict.fromkeys((*known, *own)))
    picked: set[str] = set()
    if choice.is_everything:
        picked |= set(candidates)
    else:
        picked |= _results(model, choice.mark, candidates)
    typed = of_types(model, choice.by_type, known, strict=choice.strict)
    picked |= typed
    if not (choice.mark or typed):
        picked |= set(own)
    picked -= _results(model, choice.exclude, candidates)
    if not picked:
        raise UsageError("no tensor is left to compare", slug="outputs-empty", cure="exclude fewer tensors")
    return tuple(name for name in candidates if name in picked)


def _results(model: Model, patterns: Sequence[str], candidates: Sequence[str]) -> set[str]:
    """Return the values that equal or match a pattern, or that leave the modules it means."""
    found: set[str] = set()
    for pattern in patterns:
        own = pattern in candidates or fnmatch.filter(candidates, pattern)
        nodes = set() if own else nodes_of_module(model.graph, pattern)
        leaving = _leaving(model, nodes) & set(candidates)
        found |= leaving or matching([pattern], candidates)
    return found


def _leaving(model: Model, nodes: Collection[str]) -> set[str]:
    """Return the results of nodes that other modules use, or the model returns."""
    graph, returned = model.graph, {spec.name for spec in model.outputs}
    leaving: set[str] = set()
    for name in nodes:
        module = graph.origin(name).module
        for value in graph.node(name).outputs:
            users = {graph.origin(user.name).module for user in graph.consumers(value)}
            if value in returned or any(not f"{user}.".startswith(f"{module}.") for user in users):
                leaving.add(value)
    return leaving


def matching(patterns: Sequence[str], names: Sequence[str]) -> set[str]:
    """Return the names that equal or match a pattern.

    Raises:
        UsageError: When a pattern matches nothing; the cure names the nearest.
    """
    found: set[str] = set()
    known = set(names)
    for pattern in patterns:
        hits = {pattern} if pattern in known else set(fnmatch.filter(names, pattern))
        if not hits:
            raise UsageError(
                f"no tensor is called '{pattern}'",
                slug="value-unknown",
                cure=did_you_mean(pattern, names, otherwise="list them: triage run MODEL --onnx-outputs mark all"),
            )
        found |= hits
    return found


def of_types(model: Model, types: Sequence[str], known: Sequence[str], *, strict: bool = True) -> set[str]:
    """Return the results of all nodes of some operator types, case-insensitive.

    Raises:
        UsageError: When the model has no node of a type (``op-type-unknown``); when not `strict`, that is warned about.
    """
    by_type: dict[str, set[str]] = {}
    markable_values = set(known)
    for node in model.graph.nodes:
        by_type.setdefault(node.op_type.lower(), set()).update(o for o in node.outputs if o in markable_values)
    found: set[str] = set()
    for word in types:
        if not by_type.get(word.lower()):
            if not strict:
                _logger.warning("the model has no node of type '%s'", word)
                continue
            raise UsageError(
                f"the model has no node of type '{word}'",
                slug="op-type-unknown",
                cure=did_you_mean(word, by_type, otherwise="it has: " + ", ".join(sorted(by_type)[:30])),
            )
        found |= by_type[word.lower()]
    return found
