"""Constants of a file that the original computes from its inputs, and inputs that the file no longer reads.

An exporter that follows one example keeps what it saw of it as constants; an optimizer that takes too much for constant
does the same. The file then answers for that example, whatever it is given.
"""

from collections.abc import Collection, Mapping

from tensortriage.model.model import Model
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.values.text import enumeration

_SIZES = frozenset({"Shape", "Size"})
"""Operators of whose operand only the size counts."""


def baked(matched: Correspondence, name: str) -> str:
    """Return that a node reads a constant where the original computes one from its inputs; empty where it does not.

    Args:
        matched: The original and the file, with their nodes matched.
        name: A node of the file.
    """
    own = next((old for old, new in matched.diff.pairs.items() if new == name), "")
    if not own:
        return ""
    graph, sources = matched.plain.graph, _sources(matched.original)
    for was, now in zip(matched.original.graph.node(own).inputs, graph.node(name).inputs, strict=False):
        if now in graph.constants and (inputs := sources.get(was)):
            return (
                f"reads the constant '{now}' where the reference's model computes '{was}' from {_listed(inputs)}: "
                "it was kept as it was for one example. Cure: export or optimize anew so that it stays computed (no "
                "numbers of Python made of tensors, no branch on their values)"
            )
    return ""


def ignored(matched: Correspondence) -> str:
    """Return the inputs that the file's outputs no longer depend on, as the rest of a sentence; empty for none."""
    was, now = _sources(matched.original), _sources(matched.plain)
    places = {matched.diff.values.get(spec.name, spec.name): spec.name for spec in matched.plain.inputs}
    needed = set().union(*(was.get(spec.name, ()) for spec in matched.original.outputs))
    read = set().union(*(now.get(spec.name, ()) for spec in matched.plain.outputs))
    lost = sorted(name for name in needed if places.get(name, "") not in read)
    return f"; its outputs do not depend on {_listed(lost)} any more" if lost else ""


def _sources(model: Model) -> Mapping[str, frozenset[str]]:
    """Return the inputs of a model on whose numbers, not sizes alone, each value depends."""
    found = {spec.name: frozenset({spec.name}) for spec in model.inputs}
    for node in model.graph.nodes:
        used = () if node.op_type in _SIZES else node.uses
        sources = frozenset().union(*(found.get(name, frozenset()) for name in used))
        found.update(dict.fromkeys(node.outputs, sources))
    return found


def _listed(names: Collection[str]) -> str:
    quoted = [f"'{name}'" for name in sorted(names)]
    return f"input{'s' if len(quoted) > 1 else ''} {enumeration(quoted)}"
