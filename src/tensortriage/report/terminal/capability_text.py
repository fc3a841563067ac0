"""The nodes that an engine can build, as text: the whole model first, then refused nodes by operator and reason."""

import re
from collections.abc import Iterator, Sequence

from tensortriage.report.tables import Looks
from tensortriage.report.terminal.lines import Line
from tensortriage.report.terminal.table_text import listing
from tensortriage.runs.capabilities.capability import Capability, NodeAnswer, Piece, Support
from tensortriage.values.text import count, some

_MOST_NAMES = 6


def capability_lines(found: Capability, *, folder: str = "") -> Iterator[Line]:
    """Yield the lines of an answer.

    Args:
        found: The answer.
        folder: Where the pieces were written; empty when they were not.
    """
    target = found.target
    cost = f"{count(found.builds, 'build')}, {found.build_seconds:.1f} s"
    if not found.answers:
        yield f"{target} builds the whole model: {count(found.nodes, 'node')} ({cost})"
    else:
        yield f"{target} does not build the model: {found.outcome}: {found.message}"
        refused = sum(len(answer.nodes) for answer in found.unsupported)
        yield f"{found.nodes - refused:,} of {count(found.nodes, 'node')} build by themselves ({cost})"
        for group in groups(found.unsupported):
            yield from _group_lines(group)
        if not found.unsupported and not found.pieces:
            yield "the fault is in how they are combined: --with-partitioning finds the pieces that build"
    if found.pieces:
        yield f"pieces ({len(found.pieces)})"
        rows = [_piece_row(piece, folder) for piece in found.pieces]
        yield from listing(rows, Looks.TEXT, Looks.NUMBER, Looks.NUMBER, Looks.TEXT, Looks.TEXT)


def groups(answers: Sequence[NodeAnswer]) -> list[list[NodeAnswer]]:
    """Return answers of the same operators, outcome and reason together, names in the reason apart; largest first."""
    found: dict[tuple[object, ...], list[NodeAnswer]] = {}
    for answer in answers:
        names = "|".join(map(re.escape, sorted(answer.nodes, key=len, reverse=True)))
        reason = re.sub(rf"0x[0-9a-f]+|(?<![\w/])(?:{names})(?![\w/])", "*", answer.message)
        found.setdefault((answer.op_types, answer.support, answer.outcome, reason), []).append(answer)
    return sorted(found.values(), key=len, reverse=True)


def _group_lines(group: Sequence[NodeAnswer]) -> Iterator[str]:
    first = group[0]
    names = [name for answer in group for name in answer.nodes]
    kind = first.outcome if first.support is Support.UNSUPPORTED else "cannot be asked about"
    yield f"  {', '.join(first.op_types)}: {count(len(names), 'node')}: {kind}"
    yield f"      {first.message}"
    yield f"      {some(names, _MOST_NAMES)}"
    if modules := list(dict.fromkeys(module for answer in group for module in answer.modules)):
        yield f"      of {some(modules, _MOST_NAMES)}"


def _piece_row(piece: Piece, folder: str) -> tuple[str, ...]:
    place = f"{folder}/{piece.file_name}" if folder and piece.support is not Support.UNKNOWN else ""
    names = " to ".join(dict.fromkeys((piece.nodes[0], piece.nodes[-1])))
    return piece.support.value, f"{piece.first}-{piece.last}", count(len(piece.nodes), "node"), names, place
