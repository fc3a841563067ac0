"""Differences that any operator may have, made from its definition: what is not read, or read in another place.

Converters forget an attribute or an optional input, take operands in another order, or one axis for another, at any
operator. These rows ask the definition (`onnx.defs`) which attributes and inputs there are, so that no list of
operators is needed; they are tried after the rows that know an operator.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import onnx

from tensortriage_meanings.calls import call, formal
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode
from tensortriage_meanings.table.attributes import shown

_OPTIONAL = onnx.defs.OpSchema.FormalParameterOption.Optional
_VARIADIC = onnx.defs.OpSchema.FormalParameterOption.Variadic
_KINDS = onnx.defs.OpSchema.AttrType
_COUNTS = frozenset({
    "axis", "axes", "batch", "dims", "dim", "group", "size", "type", "dtype", "heads", "start", "end", "height",
    "width", "ratio",
})  # fmt: skip
"""Words in names of whole-number attributes that count or point, where 0 and 1 do not mean off and on."""
_TYPES = frozenset({"to", "type", "dtype"})
"""Words in names of whole-number attributes that stand for a type."""
_COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min", "Sum", "Mean", "And", "Or", "Xor", "Equal", "BitwiseAnd",
                          "BitwiseOr", "BitwiseXor"})  # fmt: skip
_MOST_EXCHANGED = 5
"""Operands that are exchanged with each other; of a Concat of more, the first ones."""
_FEW = 4
"""Numbers of a constant, or whole ones twice as many, up to which each has its own place (axes, pads)."""


def _not_read(site: MeantNode) -> Iterator[Meaning]:
    """Yield each attribute as if it were not given: an optional one is absent, another has its default."""
    schema = site.schema
    for name in site.node.attributes if schema is not None else ():
        known = schema.attributes.get(name)
        if known is None or known.required or not site.gives(name):
            continue
        given = site.attribute(name)
        if not known.default_value.type:
            yield Meaning(f"its attribute {name} ({shown(given)}) were left out", attributes={name: None})
        elif (default := onnx.helper.get_attribute_value(known.default_value)) != given:
            yield Meaning(f"{name} were {shown(default)} (the default), not {shown(given)}", attributes={name: None})


def _switched(site: MeantNode) -> Iterator[Meaning]:
    """Yield each attribute that is on or off, the other way round."""
    known = {} if site.schema is None else site.schema.attributes
    for name in known or site.node.attributes:
        given = site.attribute(name)
        if not isinstance(given, int) or given not in (0, 1) or not _COUNTS.isdisjoint(name.split("_")):
            continue
        if name not in known or (known[name].default_value.i == given and not known[name].required):
            yield Meaning(f"{name} were {1 - given}, not {given}", attributes={name: 1 - given})


def _numbers(site: MeantNode) -> Iterator[Meaning]:
    """Yield each factor, summand and count as it is in a program that leaves it out: 0 or 1."""
    for name, known in ({} if site.schema is None else site.schema.attributes).items():
        count = site.attribute(name) if known.type == _KINDS.INT else None
        if isinstance(count, int) and count > 1 and _TYPES.isdisjoint(name.split("_")):
            yield Meaning(f"{name} were 1, not {count}", attributes={name: 1})
        given = site.attribute(name) if known.type == _KINDS.FLOAT else None
        for other in (1.0, 0.0) if given is not None else ():
            if other != given:
                yield Meaning(f"{name} were {other:g}, not {given:g}", attributes={name: other})


def _reversed_lists(site: MeantNode) -> Iterator[Meaning]:
    """Yield each list of an attribute by axis in the other order, as of width and height."""
    for name in site.node.attributes if site.schema is not None else ():
        given = site.attribute(name) if site.gives(name) else None
        if isinstance(given, tuple) and name not in ("pads", "axes", "perm") and given != given[::-1]:
            yield Meaning(f"{name} were {list(given[::-1])}, not {list(given)}", attributes={name: list(given[::-1])})


def _other_axes(site: MeantNode) -> Iterator[Meaning]:
    """Yield other axes in the place of the given ones: each alone, all of them, and those of the other layout."""
    rank = site.rank()
    if not rank:
        return
    axis = site.attribute("axis") if site.takes("axis") else None
    if isinstance(axis, int):
        for other in range(rank):
            if other != axis % rank:
                yield Meaning(f"axis were {other}, not {axis % rank}", attributes={"axis": other})
    axes = site.attribute("axes") if site.takes("axes") else None
    if axes is not None:
        for others in _sets(tuple(axes), rank):
            yield Meaning(f"axes were {others}, not {list(axes)}", attributes={"axes": others})
    for index in range(1, len(site.node.inputs)):
        name, given = site.input_name(index), site.constant(index)
        if name not in ("axis", "axes") or given is None or not given.size:
            continue
        for others in _sets(tuple(map(int, given.reshape(-1))), rank, whole=name == "axes"):
            array = np.array(others, given.dtype).reshape(given.shape if name == "axis" else -1)
            yield Meaning(f"its input {name} were {others}, not {given.tolist()}", operands={index: array})


def _sets(given: Sequence[int], rank: int, *, whole: bool = True) -> Iterator[list[int]]:
    now = sorted(axis % rank for axis in given)
    last = list(range(rank - len(now), rank))
    sets = [[axis] for axis in range(rank)]
    if whole:
        sets += [list(range(rank)), list(range(1, rank)), last, [axis - 1 for axis in last]]
    for each in dict.fromkeys(tuple(one) for one in sets):
        if each and list(each) != now and min(each) >= 0:
            yield list(each)


def _left_out(site: MeantNode) -> Iterator[Meaning]:
    """Yield each optional input as if it were not given, the last of any number of them, and none but the first."""
    for index in range(1, len(site.node.inputs)):
        known = site.schema.inputs if site.schema is not None else ()
        if site.node.inputs[index] is None or not known:
            continue
        option = known[min(index, len(known) - 1)].option
        name, given = site.input_name(index), site.constant(index)
        words = f"its input {name} were left out"
        if name.endswith("zero_point"):  # its type says that of the result
            if given is not None and given.any():
                yield Meaning(words, operands={index: np.zeros_like(given)})
        elif option == _OPTIONAL:
            yield Meaning(words, inputs={index: None})
        elif option == _VARIADIC and index == len(site.node.inputs) - 1:
            yield Meaning(words, inputs={index: None}, alone=True)
    yield from _passed_on(site)


def _passed_on(site: MeantNode) -> Iterator[Meaning]:
    """Yield an operator that could pass on an operand, as if it did."""
    kind, made = site.dtype(site.node.outputs[0]), site.made()
    for index, value in enumerate(site.node.inputs[: None if site.broadcasts else 1]):
        if value is None or made is None or site.shape(index) != made or site.dtype(value) != kind:
            continue
        two = site.broadcasts and len(site.node.inputs) == 2
        what = f"its input {site.input_name(1 - index)}" if two else "it"
        rest = "" if len(site.node.inputs) == 1 else f": the result is its input {site.input_name(index)}"
        yield Meaning(
            f"{what} were left out{rest}",
            body=f"{formal(site)} => (y) {{ y = Identity(i{index}) }}",
            cure="leave that node out",
            alone=True,
        )


def _exchanged(site: MeantNode) -> Iterator[Meaning]:
    """Yield two operands of one type in each other's places."""
    if site.op_type in _COMMUTATIVE:
        return
    given = [index for index, value in enumerate(site.node.inputs) if value is not None]
    for one, other in itertools.combinations(given[:_MOST_EXCHANGED], 2):
        values = [site.node.inputs[index] for index in (one, other)]
        kinds = [None if value is None else site.dtype(value) for value in values]
        shapes = site.shape(one), site.shape(other)
        if values[0] is values[1] or kinds[0] is None or kinds[0] != kinds[1]:
            continue
        if shapes[0] == shapes[1] or site.broadcasts:
            names = f"{site.input_name(one)} and {site.input_name(other)}"
            turned = " (the other sign)" if site.op_type == "Sub" else ""
            yield Meaning(
                f"its inputs {names} were exchanged{turned}",
                inputs={one: other, other: one},
                cure="exchange those inputs",
            )


def _results_exchanged(site: MeantNode) -> Iterator[Meaning]:
    """Yield two results of one type and size in each other's places."""
    made = [index for index, value in enumerate(site.node.outputs) if value.name]
    for one, other in itertools.combinations(made[:_MOST_EXCHANGED], 2):
        kinds = [site.dtype(site.node.outputs[index]) for index in (one, other)]
        if kinds[0] is None or kinds[0] != kinds[1] or site.made(one) != site.made(other):
            continue
        names = [f"y{index}" for index in range(len(site.node.outputs))]
        shown = list(names)
        shown[one], shown[other] = names[other], names[one]
        yield Meaning(
            f"its results {one} and {other} were exchanged",
            body=f"{formal(site)} => ({', '.join(shown)}) {{ {', '.join(names)} = {call(site)} }}",
            cure="exchange those results",
        )


def _cut(site: MeantNode) -> Iterator[Meaning]:
    """Yield single numbers that are cut to whole ones: bounds, exponents, factors that are read as integers."""
    cut: dict[int, np.ndarray] = {}
    for index in range(len(site.node.inputs)):
        given = site.constant(index)
        if given is not None and given.size == 1 and given.dtype.kind == "f" and (given != np.trunc(given)).any():
            cut[index] = np.trunc(given)
            yield Meaning(f"its input {site.input_name(index)} were cut to a whole number ({cut[index].item():g}, not "
                          f"{given.item():g})", operands={index: cut[index]})  # fmt: skip
    if len(cut) > 1:
        names = " and ".join(site.input_name(index) for index in cut)
        yield Meaning(f"its inputs {names} were cut to whole numbers", operands=cut)
    for name in site.node.attributes if site.schema is not None else ():
        number = site.attribute(name) if site.gives(name) else None
        if isinstance(number, float) and number != int(number):
            yield Meaning(f"{name} were {int(number)}, cut to a whole number, not {number:g}",
                          attributes={name: float(int(number))})  # fmt: skip


def _first_for_all(site: MeantNode) -> Iterator[Meaning]:
    """Yield constants with a number for each index of one axis, of which the first stands for all."""
    firsts: dict[int, np.ndarray] = {}
    for index in range(1, len(site.node.inputs)):
        given = site.constant(index)
        by_axis = given is not None and given.size == max(given.shape, default=1) > 1
        if given is None or not by_axis or not (given.dtype.kind == "f" or "zero_point" in site.input_name(index)):
            continue
        if (given != given.reshape(-1)[0]).any():
            firsts[index] = np.full_like(given, given.reshape(-1)[0])
            yield Meaning(f"the first number of its input {site.input_name(index)} "
                          f"stood for all {given.size}", operands={index: firsts[index]})  # fmt: skip
    if len(firsts) > 1:
        names = " and ".join(site.input_name(index) for index in firsts)
        yield Meaning(f"the first number of each of its inputs {names} stood for all", operands=firsts)


def _in_another_order(site: MeantNode) -> Iterator[Meaning]:
    """Yield short constants whose numbers come in the other order, all or the last two (width and height)."""
    for index in range(1, len(site.node.inputs)):
        given = site.constant(index)
        if given is None or given.ndim != 1 or not 1 < given.size <= (_FEW if given.dtype.kind == "f" else 2 * _FEW):
            continue
        swapped = np.concatenate([given[:-2], given[:-3:-1]])
        for words, other in (("were reversed", given[::-1]), ("had the last two exchanged", swapped)):
            if not np.array_equal(other, given):
                words = f"the numbers of its input {site.input_name(index)} {words}"
                yield Meaning(words, operands={index: np.ascontiguousarray(other)})


SIGNATURES: tuple[MeaningRow, ...] = tuple(
    MeaningRow((), ways)
    for ways in (
        _not_read, _switched, _left_out, _exchanged, _results_exchanged, _other_axes, _first_for_all, _numbers, _cut,
        _reversed_lists, _in_another_order,
    )
)  # fmt: skip
"""Rows about every operator, the likeliest first."""
