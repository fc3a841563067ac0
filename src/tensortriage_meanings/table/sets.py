"""Mistakes of compilers in ops that are computed together: their order, a sign, one of them twice, an operand.

Rules that rewrite several ops into one match a pattern that is not there, or write the right one down wrongly. These
rows know no operator, and no engine's rules: of ops wired to each other they exchange two neighbours, apply one twice,
turn a sign, and take a constant or another value of one op for that of another. That one is left out, or has its
operands exchanged, is a matter of its definition (`signatures`). Casts that leave numbers as they are, and ops that are
left out one after another, are looked for where outputs alone are seen as well: a program takes a value further up.
"""

from collections.abc import Iterator

import numpy as np
import onnx
import onnx_ir as ir

from tensortriage.model.sdk import GOLDEN_PREFIX, array_of
from tensortriage_meanings.calls import call, formal
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode
from tensortriage_meanings.table.quantizers import PAIR

_MOST_OPERANDS = 3
"""Operands of which each may be the one that an op is applied to, or have the other sign."""
_MOST_VALUES = 3
"""Earlier values that are tried for a result, the nearest ones: those of a residual network are all alike."""
_MOST_BETWEEN = 24
"""Ops that may lie between."""


def _in_another_order(site: MeantNode) -> Iterator[Meaning]:
    """Yield an op and the only one that takes its result, in each other's places."""
    behind = site.only_user()
    if behind is None or len(behind.outputs) > 1 or len(site.node.outputs) > 1:
        return
    for index, value in enumerate(site.node.inputs[:_MOST_OPERANDS]):
        if value is None or array_of(value) is not None:
            continue
        operand = f", on its input {site.input_name(index)}" if _changing(site.node) > 1 else ""
        yield Meaning(
            f"{behind.op_type} '{behind.name}' came before it{operand}, not behind it",
            behind=behind.name or "",
            through=index,
            cure="keep their order: mark the value between them as an output",
        )


def _changing(node: ir.Node) -> int:
    return sum(value is not None and array_of(value) is None for value in node.inputs)


def _turned(site: MeantNode) -> Iterator[Meaning]:
    """Yield the result, and each operand, with the other sign."""
    made = site.dtype(site.node.outputs[0])
    if made is None or made.kind not in "fi" or len(site.node.outputs) > 1:
        return
    cure = "write Neg there"
    yield Meaning(
        "its result had the other sign", body=f"{formal(site)} => (y) {{ r = {call(site)} y = Neg(r) }}", cure=cure
    )
    for index in range(min(len(site.node.inputs), _MOST_OPERANDS)):
        if site.kind(index) == made.kind and (site.broadcasts or index == 0):
            text = f"{formal(site)} => (y) {{ n = Neg(i{index}) y = {call(site, {index: 'n'})} }}"
            yield Meaning(f"its input {site.input_name(index)} had the other sign", body=text, cure=cure)


def _twice(site: MeantNode) -> Iterator[Meaning]:
    """Yield an op that is applied to its own result."""
    made = site.made()
    for index, value in enumerate(site.node.inputs[:_MOST_OPERANDS]):
        if value is None or array_of(value) is not None or made is None or site.shape(index) != made:
            continue
        if site.dtype(value) == site.dtype(site.node.outputs[0]) and len(site.node.outputs) == 1:
            text = f"{formal(site)} => (y) {{ t = {call(site)} y = {call(site, {index: 't'})} }}"
            again = (
                f", its result in the place of its input {site.input_name(index)}" if _changing(site.node) > 1 else ""
            )
            yield Meaning(f"it were computed twice{again}", body=text, cure="write it twice", alone=True)


def _constant_of_another(site: MeantNode) -> Iterator[Meaning]:
    """Yield constants of another op of the set in the place of a node's, and both in each other's."""
    nodes = [] if site.node.graph is None or site.op_type in PAIR else list(site.node.graph)
    for index, value in enumerate(site.node.inputs):
        own, name = site.constant(index), site.input_name(index)
        for node in nodes if own is not None else ():
            for at, other in enumerate(node.inputs):
                theirs = None if other is value or node is site.node else array_of(other)
                if own is None or theirs is None or node.op_type in PAIR or not _alike(own, theirs):
                    continue
                words = f"its input {name} were that of {node.op_type} '{node.name}'"
                yield Meaning(words, operands={index: theirs})
                pair = " and ".join(sorted((f"input {name} of '{site.node.name}'", _named(node, at, site))))
                yield Meaning(f"{pair} were exchanged", operands={index: theirs}, group=pair)


def _named(node: ir.Node, at: int, site: MeantNode) -> str:
    return f"input {MeantNode(node, site.opset, site.specs).input_name(at)} of '{node.name}'"


def _another_value(site: MeantNode) -> Iterator[Meaning]:
    """Yield values of the set in the place of an operand: of an op that is passed by, of another branch."""
    if site.node.graph is None:
        return
    behind, nodes = {site.node}, list(site.node.graph)
    for node in nodes:
        if any(value is not None and value.producer() in behind for value in node.inputs):
            behind.add(node)
    values = [*site.node.graph.inputs, *(each for node in nodes if node not in behind for each in node.outputs)]
    for index, own in enumerate(site.node.inputs):
        for other in values if array_of(own) is None else ():
            if own is None or own is other or not site.alike(own, other):
                continue
            names = [(value.name or "").removeprefix(GOLDEN_PREFIX) for value in (own, other)]
            words = f"its input {site.input_name(index)} were '{names[1]}', not '{names[0]}'"
            yield Meaning(words, wired={index: other.name or ""}, cure="mark both values as outputs", alone=True)


def _alike(own: np.ndarray, theirs: np.ndarray) -> bool:
    return own.shape == theirs.shape and own.dtype == theirs.dtype and not np.array_equal(own, theirs)


SETS: tuple[MeaningRow, ...] = tuple(
    MeaningRow((), ways) for ways in (_in_another_order, _turned, _constant_of_another, _another_value, _twice)
)
"""Rows about ops that are computed together."""


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
