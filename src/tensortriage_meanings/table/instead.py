"""Operators that are taken for a neighbour: the same inputs, another function."""

from collections.abc import Iterator, Sequence

import onnx

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

_NEIGHBOURS: Sequence[Sequence[str]] = (
    ("Less", "LessOrEqual"),
    ("Greater", "GreaterOrEqual"),
    ("Less", "Greater"),
    ("LessOrEqual", "GreaterOrEqual"),
    ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"),
    ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceSum"),
    ("ReduceLogSum", "ReduceLogSumExp"),
    ("Max", "Min"),
    ("Mean", "Sum"),
    ("And", "Or", "Xor"),
    ("ArgMax", "ArgMin"),
    ("Softmax", "LogSoftmax"),
    ("MaxPool", "AveragePool"),
    ("GlobalMaxPool", "GlobalAveragePool"),
    ("Elu", "Celu", "Selu"),
)
"""Operators that differ in one word of a converter's table."""
_AXES_AS_INPUT = 18
"""Opset from which all reductions take their axes as an input."""


def _neighbours(site: MeantNode) -> Iterator[Meaning]:
    """Yield each operator next to a node's that can take its inputs."""
    near = [name for names in _NEIGHBOURS if site.op_type in names for name in names if name != site.op_type]
    count = len(site.node.inputs)
    for name in dict.fromkeys(near):
        schema = onnx.defs.get_schema(name, site.opset)
        if schema.min_input <= count <= schema.max_input and len(site.node.outputs) <= schema.max_output:
            yield Meaning(f"it were {name}", op=name, cure=f"write {name} where it is meant")


INSTEAD: tuple[MeaningRow, ...] = tuple(
    MeaningRow(tuple(dict.fromkeys(names)), _neighbours, since)
    for names, since in (
        ([n for names in _NEIGHBOURS for n in names if not n.startswith("Reduce")], 13),
        ([n for names in _NEIGHBOURS for n in names if n.startswith("Reduce")], _AXES_AS_INPUT),
    )
)
