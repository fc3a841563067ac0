"""Operators that are not computed: a cast that leaves numbers as they are, and whole stretches of a network.

A compiler drops casts in a row, or a program takes a value from further up for the one that is meant. One operator
that could pass on its operand is a matter of its definition (`signatures`); here the value that is taken has the type
and shape of the result, however many ops lie between.
"""

from collections.abc import Iterator

import onnx
import onnx_ir as ir

from tensortriage.model.sdk import GOLDEN_PREFIX, array_of
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

_MOST_VALUES = 3
"""Earlier values that are tried for a result, the nearest ones: those of a residual network are all alike."""
_MOST_BETWEEN = 24
"""Ops that may lie between."""


def _kept_type(site: MeantNode) -> Iterator[Meaning]:
    """Yield a cast that is skipped: numbers stay as they are."""
    value = site.node.inputs[0]
    given, to = None if value is None else site.dtype(value), site.attribute("to")
    if given is None or given.kind not in "fiub" or not isinstance(to, int):
        return
    own = onnx.helper.np_dtype_to_tensor_dtype(given)
    if own != to:
        kinds = [onnx.TensorProto.DataType.Name(kind).lower() for kind in (own, to)]
        yield Meaning(
            f"it were left out: numbers passed through as {kinds[0]}, without becoming {kinds[1]}",
            attributes={"to": own},
        )


def _stretch(site: MeantNode) -> Iterator[Meaning]:
    """Yield an earlier value in the place of a result, as if the ops between were left out."""
    if site.node.domain not in ("", "ai.onnx") or len(site.node.outputs) > 1:
        return
    result, between = site.node.outputs[0], [site.node]
    level, found = between, 0
    while level and len(between) <= _MOST_BETWEEN:
        makers: list[ir.Node] = []
        for value in dict.fromkeys(each for node in level for each in node.inputs):
            if value is None or array_of(value) is not None:
                continue
            if value not in site.node.inputs and site.alike(value, result):
                yield _instead(site, value)
                found += 1
            maker = value.producer()
            if maker is not None and maker not in between and maker not in makers:
                makers.append(maker)
        if found >= _MOST_VALUES:
            return
        between += makers
        level = makers


def _instead(site: MeantNode, value: ir.Value) -> Meaning:
    name = value.name or ""
    shown = name.removeprefix(GOLDEN_PREFIX)
    return Meaning(
        f"its result were '{shown}', and what lies between were left out",
        op="Identity",
        inputs=dict.fromkeys(range(1, len(site.node.inputs))),
        wired={0: name},
        cure=f"leave out what lies between '{shown}' and it",
        alone=True,
    )


STRETCHES: tuple[MeaningRow, ...] = (MeaningRow(("Cast",), _kept_type), MeaningRow((), _stretch))
"""Operators that are not computed."""
