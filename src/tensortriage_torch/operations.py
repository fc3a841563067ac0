"""The operations of PyTorch's program that an ONNX file was made from, and the same operations in the network today.

Names alone do not identify operations: one that was added or left out shifts the numbers behind all later ones. So the
two sequences are aligned, first by all their properties, then, between equal ones, by module, operator, line and
constants, by less, at last by module and line: a wrong translation is another operator at the same place.
"""

import dataclasses
import difflib
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from tensortriage.engines.sdk import FX_NODE, Model, NodeOrigin, read_origin

_ARGUMENT = re.compile(r"%(\w+)")


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """One node of an exported program.

    Attributes:
        origin: Name (``fx_node``), operator, module and line.
        arguments: Names of the nodes whose values it takes, each once, in order.
        constants: How it is called, as PyTorch prints it, with ``%`` for each of these.
    """

    origin: NodeOrigin
    arguments: tuple[str, ...]
    constants: str = ""

    @property
    def name(self) -> str:
        """Its name in the program."""
        return self.origin.fx_node


_ALIKE: Sequence[Callable[["Operation"], Hashable]] = (
    lambda each: (each.name, each.arguments, each.origin.module, each.origin.operator, each.constants),
    lambda each: (each.origin.module, each.origin.operator, each.origin.source, each.constants),
    lambda each: (each.origin.module, each.origin.operator, each.origin.source),
    lambda each: (each.origin.module, each.origin.operator),
    lambda each: (each.origin.module, each.origin.source),
)


def read_operation(metadata: Mapping[str, str]) -> Operation:
    """Return the operation in a node's metadata; one without a name when they hold none."""
    origin = read_origin("", metadata)
    _, _, call = metadata.get(FX_NODE, "").partition("](args = ")
    return Operation(origin, tuple(dict.fromkeys(_ARGUMENT.findall(call))), _ARGUMENT.sub("%", call))


def operations(model: Model) -> tuple[Operation, ...]:
    """Return the operations that an ONNX file was made from, each once, in the order of its nodes."""
    found: dict[str, Operation] = {}
    for node in model.ir.graph:
        if FX_NODE in node.metadata_props:
            made = read_operation(node.metadata_props)
            found.setdefault(made.name, made)
    found.pop("", None)
    return tuple(found.values())


def counterparts(file: Sequence[Operation], network: Sequence[Operation]) -> Mapping[str, Operation]:
    """Return, by name in the file, the operations of the network that its values come from.

    Operations that the file folded into constants are included, by the name that the operations using them have for
    them.
    """
    found: dict[str, Operation] = {}
    pairs = [(file[here], network[there]) for here, there in _aligned(file, network, (0, len(file)), (0, len(network)))]
    for here, there in pairs:
        found[here.name] = there
    by_name: Mapping[str, Any] = {each.name: each for each in network}
    for here, there in pairs:
        if len(here.arguments) == len(there.arguments):
            for name, other in zip(here.arguments, there.arguments, strict=True):
                if other in by_name:
                    found.setdefault(name, by_name[other])
    return found


def _aligned(
    file: Sequence[Operation],
    network: Sequence[Operation],
    here: tuple[int, int],
    there: tuple[int, int],
    level: int = 0,
) -> Iterator[tuple[int, int]]:
    """Yield equal places in both sequences, with the begin and end of each range."""
    if level == len(_ALIKE) or here[0] == here[1] or there[0] == there[1]:
        return
    key = _ALIKE[level]
    left = [key(each) for each in file[here[0] : here[1]]]
    right = [key(each) for each in network[there[0] : there[1]]]
    for word, first, last, other_first, other_last in difflib.SequenceMatcher(None, left, right, False).get_opcodes():
        if word == "equal":
            yield from zip(
                range(here[0] + first, here[0] + last),
                range(there[0] + other_first, there[0] + other_last),
                strict=True,
            )
        else:
            inner = (here[0] + first, here[0] + last)
            yield from _aligned(file, network, inner, (there[0] + other_first, there[0] + other_last), level + 1)
