"""Differences in what a Loop or Scan hands on or collects in each iteration."""

from collections.abc import Iterator

import onnx_ir as ir

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode


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
            if index < first or other is own or other is source or not _alike(own, other):
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


def _alike(one: ir.Value, other: ir.Value) -> bool:
    return one.shape is not None and one.shape == other.shape and one.type == other.type


LOOPS: tuple[MeaningRow, ...] = (MeaningRow(("Loop", "Scan"), _another_of_the_body),)
"""What loops return of their bodies."""
