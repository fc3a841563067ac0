"""The uses of an input in a model show which values it needs, so the graph is searched forward from every input.

Random numbers in [0, 1] are the classic false alarm: every token id is 0 or 1, half an attention mask is off, a
logarithm gets a negative number. So the uses decide first (an operand that indexes a table of 30522 rows takes 0 to
30521), then the name (``position_ids`` count up), and only the remaining inputs are drawn without constraint.

The search passes through operators that only move numbers or convert their type, and notes every operand of the tables
below that it meets. It does not enter the bodies of If, Loop and Scan.
"""

import dataclasses
import enum
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.values.spec import ValueSpec


class Use(enum.Enum):
    """Role of an input's numbers."""

    FREE = "no constraint"
    INDEX = "integers from 0 to high"
    COUNT_UP = "0, 1, 2, ... along the last axis, at most high"
    FILL = "the number low everywhere"
    LENGTH = "the size of the axis that it counts, of another input"
    RESHAPE = "a shape that fits everything: -1, 1, 1, ..."
    POSITIVE = "above zero"
    AT_LEAST_ONE = "one or more"
    UNIT = "between 0 and 1"
    SYMMETRIC = "between -1 and 1"


@frozen_dataclass
class Role:
    """The numbers that one input needs.

    Attributes:
        use: Kind of numbers.
        low: The number itself for `Use.FILL`.
        high: Largest index for `Use.INDEX` and `Use.COUNT_UP`; infinite when not known.
        reason: Evidence for people, e.g. ``indexes 'wte.weight'``.
        choices: Numbers that one alone may be, likely ones first: of a scalar the constants that it is compared with.
    """

    use: Use
    low: float = 0.0
    high: float = float("inf")
    reason: str = ""
    choices: tuple[float, ...] = ()


@frozen_dataclass
class _Place:
    """State of the search: a value, whether 0 and 1 have changed places, and the change of an index, ``i + offset``.

    An index that was multiplied has an infinite offset, so that only 0 is left of its range.
    """

    value: str
    is_flipped: bool = False
    offset: float = 0.0


SpecOf = Callable[[str], ValueSpec | None]
_MOVES: Mapping[str, tuple[int, ...]] = {
    "Cast": (0,), "CastLike": (0,), "Identity": (0,), "Unsqueeze": (0,), "Squeeze": (0,), "Reshape": (0,),
    "Flatten": (0,), "Transpose": (0,), "Slice": (0,), "Expand": (0,), "Tile": (0,), "Split": (0,), "Gather": (0,),
    "GatherND": (0,), "GatherElements": (0,), "Concat": tuple(range(64)), "Where": (1, 2), "Clip": (0,),
}  # fmt: skip
_FILLS: Mapping[tuple[str, int], float] = {
    ("Expand", 1): 1, ("Tile", 1): 1, ("Slice", 1): 0, ("Slice", 2): 2**31 - 1, ("Slice", 4): 1, ("TopK", 1): 1,
    ("Pad", 1): 0, ("Range", 0): 0, ("Range", 1): 8, ("Range", 2): 1, ("OneHot", 1): 8, ("ConstantOfShape", 0): 2,
    ("Resize", 2): 1, ("Upsample", 1): 1, ("CumSum", 1): 0, ("CumProd", 1): 0, ("Trilu", 1): 0,
    ("AffineGrid", 1): 4, ("DFT", 2): 1, ("Resize", 3): 1, ("TensorScatter", 2): 0, ("Loop", 0): 3, ("Loop", 1): 1,
    ("Dropout", 1): 0.5,
    ("NonMaxSuppression", 2): 5, ("NonMaxSuppression", 3): 0.5, ("NonMaxSuppression", 4): 0.5, ("RoiAlign", 2): 0,
    ("Attention", 3): 1, ("MultiHeadAttention", 4): 1, ("EmbedLayerNormalization", 7): 1,
}  # fmt: skip
_DOMAINS: Mapping[tuple[str, int], Use] = {
    ("Log", 0): Use.POSITIVE, ("Sqrt", 0): Use.POSITIVE, ("Reciprocal", 0): Use.POSITIVE, ("Div", 1): Use.POSITIVE,
    ("Mod", 1): Use.POSITIVE, ("ReduceLogSum", 0): Use.POSITIVE, ("QuantizeLinear", 1): Use.POSITIVE,
    ("DequantizeLinear", 1): Use.POSITIVE, ("BatchNormalization", 4): Use.POSITIVE, ("Asin", 0): Use.SYMMETRIC,
    ("Acos", 0): Use.SYMMETRIC, ("Atanh", 0): Use.SYMMETRIC, ("GridSample", 1): Use.SYMMETRIC,
    ("Acosh", 0): Use.AT_LEAST_ONE, ("Bernoulli", 0): Use.UNIT,
}  # fmt: skip
_RECURRENT = frozenset({"RNN", "LSTM", "GRU"})
_LENGTHS = frozenset({*((each, 4) for each in _RECURRENT), ("ReverseSequence", 1)})
_WHOLE = (float("inf"), 1.0)
"""Values of a length: that of the whole, else 1 if the axis that it counts is shorter than its input's."""
_COUNTS_UP = frozenset({("Slice", 3), ("Unsqueeze", 1), ("Squeeze", 1)})
_TABLES: Mapping[tuple[str, int], tuple[int, str, int]] = {
    # (operator, index operand) -> (table operand, attribute naming its axis, that attribute's default)
    ("Gather", 1): (0, "axis", 0), ("GatherElements", 1): (0, "axis", 0), ("ScatterElements", 1): (0, "axis", 0),
    ("Scatter", 1): (0, "axis", 0), ("GatherND", 1): (0, "batch_dims", 0), ("ScatterND", 1): (0, "", 0),
    ("GatherBlockQuantized", 1): (0, "", 0),
    ("NegativeLogLikelihoodLoss", 1): (0, "", 1), ("SoftmaxCrossEntropyLoss", 1): (0, "", 1),
    ("ArrayFeatureExtractor", 1): (0, "", -1), ("EmbedLayerNormalization", 0): (2, "", 0),
    ("EmbedLayerNormalization", 1): (4, "", 0), ("EmbedLayerNormalization", 8): (3, "", 0),
}  # fmt: skip
_STRUCTURAL = (Use.FILL, Use.RESHAPE, Use.COUNT_UP, Use.LENGTH)
_COMPARED: Mapping[str, tuple[int, ...]] = {
    "Equal": (0,), "Greater": (1, 0), "GreaterOrEqual": (0, -1), "Less": (0, -1), "LessOrEqual": (1, 0),
}  # fmt: skip
"""Steps from a constant to numbers on both sides of a comparison with it."""
_CONVOLUTIONS = frozenset({"Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "MaxPool", "AveragePool"})
_MIXERS = frozenset({"MatMul", "Gemm", "Gather", "Softmax", "Attention", "LSTM", "GRU", "RNN", "GlobalAveragePool"})
_MASK_WORD = re.compile(r"(^|[^a-z])mask([^a-z]|$)")
_POSITION_WORD = re.compile(r"position_?ids?$|(^|[^a-z])positions?$")
_LENGTH_WORD = re.compile(r"(^|_)(seq)?(lens?|lengths?)($|_)")
_RATE_WORD = re.compile(r"^sr$|sampl(e|ing)_?rate")
_RATES = (16000.0, 8000.0, 44100.0)
_MOST_PLACES = 400
_BLOCKING = -1e3


def roles(graph: Graph, inputs: Sequence[ValueSpec], spec_of: SpecOf) -> dict[str, Role]:
    """Return the role of every input.

    Args:
        graph: The model's graph.
        inputs: Inputs of the model.
        spec_of: Returns the spec of a value that is not constant; called only for computed tables.
    """
    return {spec.name: _role(graph, spec, spec_of) for spec in inputs}


def is_convolved(graph: Graph, name: str) -> bool:
    """Return whether an input enters a convolution or pooling before anything mixes its positions."""
    pending, seen = [name], {name}
    while pending and len(seen) < 100:
        for node in graph.consumers(pending.pop(0)):
            if node.op_type in _CONVOLUTIONS:
                return True
            if node.op_type not in _MIXERS:
                pending += [output for output in node.outputs if output not in seen]
                seen.update(node.outputs)
    return False


def leads_with_time(graph: Graph, name: str) -> bool:
    """Return whether an input is the sequence of a recurrent layer whose first axis is time, as it is by default."""
    return any(
        node.op_type in _RECURRENT and node.inputs[0] == name and not node.attributes.get("layout")
        for node in graph.consumers(name)
    )


def _role(graph: Graph, spec: ValueSpec, spec_of: SpecOf) -> Role:
    found = list(_uses(graph, spec, spec_of))
    indexes = [role for role in found if role.use is Use.INDEX]
    structural = [role for role in found if role.use in _STRUCTURAL]
    is_integer = spec.dtype is not None and spec.dtype.is_integer
    word = spec.name.lower()
    if is_integer and _POSITION_WORD.search(word):
        high = min((role.high for role in indexes), default=float("inf"))
        return Role(Use.COUNT_UP, high=high, reason="is named like positions")
    if indexes:
        return min(indexes, key=lambda role: role.high)
    if len({(role.use, role.low) for role in structural}) > 1:  # where a part begins, and where it ends
        return Role(Use.COUNT_UP, reason=structural[0].reason)
    if structural:
        return structural[0]
    if _MASK_WORD.search(word):
        return _named_mask(graph, spec)
    if spec.shape is not None and set(spec.shape) <= {1} and (choices := _compared_with(graph, spec.name)):
        return Role(Use.FILL, low=choices[0], reason="is compared with it", choices=choices)
    if is_integer and _RATE_WORD.search(word):
        return Role(Use.FILL, low=_RATES[0], reason="is named like a sample rate", choices=_RATES)
    if is_integer and _LENGTH_WORD.search(word):
        return Role(Use.LENGTH, reason="is named like a length", choices=_WHOLE)
    return found[0] if found else Role(Use.FREE)


def _compared_with(graph: Graph, name: str) -> tuple[float, ...]:
    """Return numbers on both sides of an input's threshold, so that each branch runs; largest first.

    An equality with 0 says no more than whether there is a number, as of masks.
    """
    found: set[float] = set()
    for place in _places(graph, name):
        for node in graph.consumers(place.value):
            if node.op_type in _COMPARED and place.value in node.inputs:
                constant = _constant(graph, node.inputs[1 - node.inputs.index(place.value)])
                for number in constant.reshape(-1)[:8].tolist() if constant is not None else ():
                    found |= {number + step for step in _COMPARED[node.op_type]}
    return tuple(sorted(found - {0.0}, reverse=True))


def _named_mask(graph: Graph, spec: ValueSpec) -> Role:
    """A mask of floats may be added to scores (0 lets through) or multiplied; any other mask lets through with 1."""
    is_float = spec.dtype is not None and spec.dtype.is_float
    added = is_float and any(
        node.op_type == "Add" for place in _places(graph, spec.name) for node in graph.consumers(place.value)
    )
    low = 0.0 if added else 1.0
    return Role(Use.FILL, low=low, reason="is named like a mask", choices=() if added else (low, 1.0 - low))


def _uses(graph: Graph, spec: ValueSpec, spec_of: SpecOf) -> Iterator[Role]:
    for place in _places(graph, spec.name):
        for node in graph.consumers(place.value):
            for operand, name in enumerate(node.inputs):
                if name == place.value:
                    yield from _operand_roles(graph, node, operand, place, spec_of)


def _operand_roles(graph: Graph, node: Node, operand: int, place: _Place, spec_of: SpecOf) -> Iterator[Role]:
    key = (node.op_type, operand)
    where = f"is operand {operand} of {node.op_type} '{node.name}'"
    if key in _TABLES:
        yield _index_role(graph, node, key, place.offset, spec_of)
    elif node.op_type == "OneHot" and operand == 0:
        depth = _constant(graph, _operand(node, 1))
        high = float(depth.max()) - 1 if depth is not None and depth.size else float("inf")
        yield Role(Use.INDEX, high=high, reason=where)
    elif key in _FILLS:
        yield Role(Use.FILL, low=_FILLS[key], reason=where)
    elif key in _LENGTHS:
        yield Role(Use.LENGTH, reason=where, choices=_WHOLE)
    elif key in _COUNTS_UP or (node.op_type.startswith("Reduce") and operand == 1):
        yield Role(Use.COUNT_UP, reason=where)
    elif key == ("Reshape", 1):
        yield Role(Use.RESHAPE, reason=where)
    elif key in _DOMAINS or key == ("Pow", 0):
        if key != ("Pow", 0) or not _is_harmless_exponent(_constant(graph, _operand(node, 1))):
            yield Role(_DOMAINS.get(key, Use.POSITIVE), reason=where)
    else:
        blocks_on_one = _blocks_on_one(graph, node, operand)
        if blocks_on_one is not None:
            lets_through = blocks_on_one == place.is_flipped
            yield Role(Use.FILL, low=1 if lets_through else 0, reason=f"masks in {node.op_type} '{node.name}'")


def _index_role(graph: Graph, node: Node, key: tuple[str, int], offset: float, spec_of: SpecOf) -> Role:
    table, attribute, default = _TABLES[key]
    axis = node.attributes.get(attribute, default) if attribute else default
    name = _operand(node, table)
    spec = graph.constants.get(name) or spec_of(name)
    sizes: tuple[int | str | None, ...] = ()
    if spec is not None and spec.shape and isinstance(axis, int) and -len(spec.shape) <= axis < len(spec.shape):
        sizes = spec.shape[axis:] if node.op_type in ("GatherND", "ScatterND") else (spec.shape[axis],)
    known = [size for size in sizes if isinstance(size, int)]
    # Index 0 is valid in any table.
    high = float(min(known) - 1) - offset if known and len(known) == len(sizes) else 0.0
    return Role(Use.INDEX, high=max(high, 0.0), reason=f"indexes '{name}'")


def _is_harmless_exponent(exponent: np.ndarray | None) -> bool:
    """Return whether any base may be raised to the input: whole numbers from 0 up."""
    return exponent is not None and bool(np.all((exponent >= 0) & (exponent == np.round(exponent))))


def _blocks_on_one(graph: Graph, node: Node, operand: int) -> bool | None:
    """Return whether 1 at this operand makes an attention score very negative, or 0 does; None when it is no mask."""
    if node.op_type == "Where" and operand == 0:
        for branch, verdict in ((1, True), (2, False)):
            if _is_blocking(_constant(graph, _operand(node, branch))):
                return verdict
    if node.op_type == "Mul" and _is_blocking(_constant(graph, _operand(node, 1 - operand))):
        return True
    return None


def _is_blocking(constant: np.ndarray | None) -> bool:
    return constant is not None and constant.size > 0 and bool(np.all(constant <= _BLOCKING))


def _places(graph: Graph, name: str) -> list[_Place]:
    """Return every place that an input's numbers reach without being computed with, nearest first."""
    places = [_Place(name)]
    seen = set(places)
    for place in places:
        for node in graph.consumers(place.value):
            for operand, value in enumerate(node.inputs):
                if value != place.value or len(places) >= _MOST_PLACES:
                    continue
                for following in _following(graph, node, operand, place):
                    if following not in seen:
                        seen.add(following)
                        places.append(following)
    return places


def _following(graph: Graph, node: Node, operand: int, place: _Place) -> Iterator[_Place]:
    if operand in _MOVES.get(node.op_type, ()) or node.op_type in ("And", "Or"):
        yield from (dataclasses.replace(place, value=output) for output in node.outputs if output)
        return
    other = node.inputs[1 - operand] if len(node.inputs) == 2 else ""
    flipped = dataclasses.replace(place, value=node.outputs[0], is_flipped=not place.is_flipped)
    if node.op_type == "Not":
        yield flipped
        return
    constant = _constant(graph, other) if other and node.op_type in ("Add", "Sub", "Mul", "Equal") else None
    if constant is None or not constant.size or constant.dtype.kind == "O":
        return
    subtracted_from_one = node.op_type == "Sub" and operand == 1 and np.all(constant == 1)
    if subtracted_from_one or (node.op_type == "Equal" and np.all(constant == 0)):
        yield flipped
    elif node.op_type in ("Add", "Mul") and np.all(constant > 0):
        offset = float(constant.max()) if node.op_type == "Add" else float("inf")
        yield dataclasses.replace(place, value=node.outputs[0], offset=place.offset + offset)


def _operand(node: Node, position: int) -> str:
    return node.inputs[position] if position < len(node.inputs) else ""


def _constant(graph: Graph, name: str) -> np.ndarray | None:
    """Return a small constant; None when the value is computed, or too large to be an exponent, offset or limit."""
    spec = graph.constants.get(name)
    if spec is None or spec.dtype is None or spec.shape is None:
        return None
    size = int(np.prod([d if isinstance(d, int) else 0 for d in spec.shape]))
    numeric = spec.dtype.is_float or spec.dtype.is_integer
    return graph.weight(name).astype(np.float64) if size <= 1024 and numeric else None
