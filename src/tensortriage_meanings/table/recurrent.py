"""Differences in a recurrent layer, gates, biases, initial states and directions, and in what loops return.

ONNX has the blocks of weights in the order i, o, f, c (LSTM) and z, r, h (GRU), the forward direction first, and both
biases of a direction in one row; results and states of the backward direction lie at the step that they are of.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from tensortriage_meanings.calls import call, formal
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode
from tensortriage_meanings.table.activations import activations

_ORDERS: Mapping[str, Mapping[str, Sequence[int]]] = {
    "LSTM": {"i, f, c, o (PyTorch, Keras)": (0, 3, 1, 2), "i, f, o, c": (0, 2, 3, 1), "f, i, c, o": (2, 3, 0, 1)},
    "GRU": {"r, z, h (PyTorch)": (1, 0, 2)},
}
"""Other orders of the blocks of weights: which block each one is taken for."""
_GATES: Mapping[str, Mapping[str, tuple[int, float]]] = {
    "LSTM": {"input": (0, 1.0), "output": (1, 1.0), "forget": (2, 1.0)},
    "GRU": {"update": (0, 0.0), "reset": (1, 1.0)},
}
"""The block of a gate, and its value in a layer without it."""
_SATURATES = 100.0
"""Bias at which a Sigmoid is 1 to the last bit of a float64; its negative is 0."""
_BLOCKS: Mapping[str, int] = {"LSTM": 4, "GRU": 3, "RNN": 1}
_WEIGHTS = (1, 2, 3)
"""Inputs of the weights, those of the recurrence, and the biases; states follow from the fifth on."""
_STATES = (5, 6)
OPS = tuple(_BLOCKS)
_STATE_CURE = "give the states that are meant as initial_h and initial_c"

Operands = Mapping[int, np.ndarray]


def _two(site: MeantNode) -> bool:
    return site.text("direction") == "bidirectional"


def _parts(site: MeantNode) -> Iterator[tuple[str, slice]]:
    """Yield the whole layer and, where there are two, each direction: its name with an "of", and its weights."""
    yield "", slice(None)
    if _two(site):
        yield " of its backward direction", slice(1, 2)
        yield " of its forward direction", slice(0, 1)


def _weights(site: MeantNode) -> dict[int, np.ndarray]:
    """Return weights and biases; those that are left out are 0, and none are returned where one is not constant."""
    found = {index: site.constant(index) for index in _WEIGHTS}
    given = {index: array for index, array in found.items() if array is not None}
    if 3 not in given and 1 in given and not (len(site.node.inputs) > 3 and site.node.inputs[3] is not None):
        weight = given[1]
        given[3] = np.zeros((len(weight), 2 * weight.shape[1]), weight.dtype)
    return given if len(given) == len(_WEIGHTS) else {}


def _with(arrays: Operands, part: slice, others: Operands) -> dict[int, np.ndarray]:
    """Return the operands with those of one part replaced."""
    made = {index: arrays[index].copy() for index in others}
    for index, other in others.items():
        made[index][part] = other[part]
    return made


def _orders(site: MeantNode) -> Iterator[Meaning]:
    """Yield gates in the order of another framework."""
    arrays = _weights(site)
    for part, rows in _parts(site) if arrays else ():
        for words, order in _ORDERS.get(site.op_type, {}).items():
            moved = {}
            for index, array in arrays.items():
                blocks = np.split(array, (2 if index == 3 else 1) * len(order), axis=1)
                both = [*order, *(len(order) + each for each in order)] if index == 3 else order
                moved[index] = np.concatenate([blocks[each] for each in both], axis=1)
            whose = f"the gates{part}" if part else "its gates"
            yield Meaning(f"{whose} came in the order {words}, not in ONNX's", operands=_with(arrays, rows, moved))


def _biases(site: MeantNode) -> Iterator[Meaning]:
    """Yield a layer without one of its biases."""
    given = site.constant(3)
    if given is None:
        return
    for part, rows in _parts(site):
        for words, half in {"of the recurrence (Rb)": 1, "of the input (Wb)": 0}.items():
            other = given.copy()
            np.split(other, 2, axis=1)[half][rows] = 0
            if not np.array_equal(other, given):
                yield Meaning(f"the bias {words}{part} were left out", operands={3: other})


def _gates(site: MeantNode) -> Iterator[Meaning]:
    """Yield a layer without one of its gates."""
    arrays, blocks = _weights(site), _BLOCKS[site.op_type]
    if not arrays or site.constant(7) is not None:
        return
    for part, rows in _parts(site):
        for gate, (block, value) in _GATES.get(site.op_type, {}).items():
            without = {index: array.copy() for index, array in arrays.items()}
            for index, array in without.items():
                for each in (block, blocks + block) if index == 3 else (block,):
                    np.split(array, (2 if index == 3 else 1) * blocks, axis=1)[each][:] = 0
            np.split(without[3], 2 * blocks, axis=1)[block][:] = _SATURATES if value else -_SATURATES
            whose = f"the {gate} gate{part}" if part else f"its {gate} gate"
            yield Meaning(f"{whose} were {value:g} everywhere", operands=_with(arrays, rows, without))


def _directions(site: MeantNode) -> Iterator[Meaning]:
    """Yield a layer whose directions have each other's weights."""
    given = {index: site.constant(index) for index in _WEIGHTS}
    arrays = {index: array for index, array in given.items() if array is not None}
    if not _two(site) or not arrays:
        return
    for words, order in {
        "its directions had each other's weights": [1, 0],
        "its backward direction had the weights of the forward one": [0, 0],
        "its forward direction had the weights of the backward one": [1, 1],
    }.items():
        yield Meaning(words, operands={index: np.ascontiguousarray(array[order]) for index, array in arrays.items()})


def _states(site: MeantNode) -> Iterator[Meaning]:
    """Yield a layer that starts otherwise, or counts its steps otherwise."""
    inputs = [index for index, value in enumerate(site.node.inputs) if value is not None]
    axis = 1 if site.attribute("layout") else 0
    states = [index for index in _STATES if index in inputs]
    for words, (operands, before) in _other_states(site, states, axis):
        yield Meaning(words, body=_body(site, operands, before), cure=_STATE_CURE)
    if 4 in inputs:
        yield Meaning(
            "it ran over all steps of every row, not over those that sequence_lens counts",
            body=_body(site, {4: ""}),
            cure="give rows of full length, or mask the steps behind their ends",
        )


def _other_states(
    site: MeantNode, states: Sequence[int], axis: int
) -> Iterator[tuple[str, tuple[Mapping[int, str], str]]]:
    """Yield other initial states: words, then names of the operands and the nodes that make them."""
    if not states:
        return
    yield "it started from zeros, not from its initial state", (dict.fromkeys(states, ""), "")
    if not _two(site):
        return
    names = {index: f"s{index}" for index in states}
    gathered = (f"s{index} = Gather<axis={axis}>(i{index}, f) " for index in states)
    yield (
        "its backward direction started from the initial state of the forward one",
        (names, "f = Constant<value_ints=[0, 0]>() " + "".join(gathered)),
    )
    shape = "[1, 2, 1]" if axis else "[2, 1, 1]"
    for which, factors in (("backward", "1, 0"), ("forward", "0, 1")):
        head = f"k0 = Constant<value_floats=[{factors}]>() q = Constant<value_ints={shape}>() k = Reshape(k0, q) "
        scaled = (f"k{index} = CastLike(k, i{index}) s{index} = Mul(i{index}, k{index}) " for index in states)
        words = f"its {which} direction started from zeros, not from its initial state"
        yield words, (names, head.replace("k0", "z") + "".join(scaled))


def _backward(site: MeantNode) -> Iterator[Meaning]:
    """Yield a layer whose backward direction runs or ends otherwise."""
    if not _two(site) or site.attribute("layout"):
        return
    halves = "w = Constant<value_ints=[1, 1]>() "
    turned = (
        "b = Constant<value_ints=[-1]>() e = Constant<value_ints=[-9223372036854775807]>() "
        "t = Constant<value_ints=[0]>() u, v = Split<axis=1>(Y, w) n = Slice(v, b, e, t, b) y0 = Concat<axis=1>(u, n) "
    )
    yield Meaning(
        "the results of its backward direction lay in the order of computation, the last step first",
        body=_body(site, {}, "", halves + turned, results={0: "y0"}),
        cure="reverse the backward half of Y along the steps",
    )
    if len(site.node.outputs) > 1 and site.node.outputs[1].name:
        last = (
            "a = Constant<value_int=-1>() l = Gather<axis=0>(Y, a) o, p = Split<axis=0>(l, w) "
            "g, h = Split<axis=0>(H, w) y1 = Concat<axis=0>(g, p) "
        )
        yield Meaning(
            "the last state of its backward direction were that at the last step of the input, not at the first",
            body=_body(site, {}, "", halves + last, results={1: "y1"}),
            cure="take the backward half of the last state from the first step of Y, or from Y_h",
        )


def _body(
    site: MeantNode,
    operands: Mapping[int, str],
    before: str = "",
    after: str = "",
    *,
    results: Mapping[int, str] | None = None,
) -> str:
    """Return a body that computes the layer with other operands, and changes its results.

    Args:
        site: The layer.
        operands: Other names of operands by index; empty for one that is left out.
        before: Nodes that make them of the node's, ``i0``, ``i1``, ...
        after: Nodes that make other results of the layer's, ``Y``, ``H`` and ``C``.
        results: Their names by index.
    """
    made = ("Y", "H", "C")[: 3 if site.op_type == "LSTM" else 2]
    shown = [(results or {}).get(n, name) for n, name in enumerate(made[: len(site.node.outputs)])]
    return f"{formal(site)} => ({', '.join(shown)}) {{ {before}{', '.join(made)} = {call(site, operands)} {after}}}"


RECURRENT: tuple[MeaningRow, ...] = (
    MeaningRow(("LSTM", "GRU"), _orders),
    MeaningRow(OPS, _states),
    MeaningRow(OPS, _directions),
    MeaningRow(OPS, _backward, since=13),
    MeaningRow(OPS, _biases),
    MeaningRow(("LSTM", "GRU"), _gates),
    MeaningRow(OPS, activations),
)


def _another_of_the_body(site: MeantNode) -> Iterator[Meaning]:
    """Yield another state or result of the body in the place of one that it returns."""
    given = site.node.attributes.get("body")
    if given is None or given.is_ref():
        return
    body, first = given.as_graph(), int(site.op_type == "Loop")  # the first one of a Loop says whether it goes on
    states = len(site.node.inputs) - (2 if first else int(site.attribute("num_scan_inputs") or 0))
    begin = list(body.inputs)[2 * first :][:states]
    end = list(body.outputs)[first : first + states]
    words = {id(value): f"state '{value.name}' at the beginning of the iteration" for value in begin}
    words |= {id(value): f"state '{value.name}' at the end of the iteration" for value in end}
    for index, own in enumerate(body.outputs):
        maker = own.producer()
        source = maker.inputs[0] if maker is not None and maker.op_type == "Identity" else own
        for other in (*begin, *list(body.outputs)[first:]):
            if index < first or other is own or other is source or not _same_type(own, other):
                continue
            now = words.get(id(own)) or words.get(id(source)) or f"'{own.name}'"
            collects = index >= first + states
            shift = " (shifted by one iteration)" if collects and _is_shift(begin, end, source or own, other) else ""
            yield Meaning(
                f"it {'collected' if collects else 'handed on'} the {words.get(id(other), repr(other.name))}, not the "
                f"{now}{shift}",
                returned={index: other.name or ""},
                cure="return that value of the body",
            )


def _is_shift(begin: list[ir.Value], end: list[ir.Value], one: ir.Value, other: ir.Value) -> bool:
    """Return whether two values are one state, before and after its iteration."""
    return any({id(one), id(other)} == {id(before), id(after)} for before, after in zip(begin, end, strict=False))


def _same_type(one: ir.Value, other: ir.Value) -> bool:
    return one.shape is not None and one.shape == other.shape and one.type == other.type


LOOPS: tuple[MeaningRow, ...] = (MeaningRow(("Loop", "Scan"), _another_of_the_body),)
"""Loops."""
