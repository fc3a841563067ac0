"""Text of IREE's importer: MLIR with one operator a line, in the order of the ONNX nodes.

    %27 = torch.operator "onnx.Relu"(%26) : (!torch.vtensor<[4,16],f32>) -> !torch.vtensor<[4,16],f32>

So the k-th operator that is no Constant is the k-th such node of the model, as long as their types are the same one by
one, and a value is seen by having the function return it.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Sequence

from tensortriage_worker.adapter import AdapterError, AdapterFailure

_OPERATOR = re.compile(r'^ *(%[\w:]+) = torch\.operator "onnx\.(\w+)"\(.*-> (\(?!torch\.[^{]*?\)?) *$', re.MULTILINE)
_FUNCTION = re.compile(r"^( *func\.func @\w+\()(.*?)(\) -> )(.*?)( attributes .*)$", re.MULTILINE)
_RETURN = re.compile(r"^( *return )(.*?)( : )(.*)$", re.MULTILINE)
_TYPE = re.compile(r"!torch\.vtensor<\[([\d,]*)\],\w+>")


class Value(NamedTuple):
    """A value of the text: its name there, and its type."""

    name: str
    type: str


class ImportedModel:
    """A file of the importer's, edited or not.

    Args:
        text: What is in it.

    Attributes:
        inputs: Shapes of the operands.
        outputs: Shapes of the results.

    Raises:
        AdapterError: When it is something else.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        function, returned = _FUNCTION.search(text), _RETURN.search(text)
        if function is None or returned is None:
            message = "the file is not what iree-import-onnx writes: it has no function of tensors"
            raise AdapterError(AdapterFailure.BUILD, message)
        self.inputs = _shapes(function.group(2))
        self.outputs = _shapes(function.group(4))

    def values(self, nodes: Sequence[Sequence[Any]]) -> Dict[str, Value]:
        """Return the values of the text by the names of the model's; none where the operators are not the nodes.

        Args:
            nodes: Type and names of the results of each node that is no Constant, in order.
        """
        rows = [match.groups() for match in _OPERATOR.finditer(self.text) if match.group(2) != "Constant"]
        if [row[1] for row in rows] != [node[0] for node in nodes]:
            return {}
        found = {}  # type: Dict[str, Value]
        for (name, _, kind), (_, results) in zip(rows, nodes):  # noqa: B905 - Python 3.8
            if len(results) == 1 and ":" not in name and _TYPE.fullmatch(kind):
                found[results[0]] = Value(name, kind)
        return found

    def marked(self, values: List[Value]) -> str:
        """Return the text with further values returned, behind the results that it has."""
        kinds = [value.type for value in values]
        text = _FUNCTION.sub(
            lambda m: m.group(1) + m.group(2) + m.group(3) + _all(m.group(4), kinds) + m.group(5), self.text, 1
        )
        names = ", ".join(value.name for value in values)
        return _RETURN.sub(
            lambda m: m.group(1) + m.group(2) + ", " + names + m.group(3) + ", ".join([m.group(4), *kinds]), text, 1
        )


def _all(kinds: str, further: List[str]) -> str:
    inside = kinds[1:-1] if kinds.startswith("(") else kinds
    return "({})".format(", ".join([inside, *further]))


def _shapes(types: str) -> List[List[int]]:
    return [[int(size) for size in sizes.split(",") if size] for sizes in _TYPE.findall(types)]
