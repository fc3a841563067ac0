"""Functions as the target computes them, with the nodes that make their operands.

A GELU may be approximated, though none of its ops is alone; and no result shows the rounding inside.
"""

import contextlib
import itertools
from collections.abc import Sequence

from tensortriage.compare.judgement.within import beyond_inner_roundings
from tensortriage.diagnose.measurements.local_errors.local import Local, suspicious
from tensortriage.diagnose.measurements.local_errors.wired_ops import Wired, measure_wired, runnable
from tensortriage.diagnose.measurements.windows import FUNCTIONS, functions_with_makers, regions_of, tiles
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.errors import EngineError, ModelError
from tensortriage.inputs.feed import Feed
from tensortriage.values.dtype import DType

MOST_ROUNDS = 4
"""Rounds of windows that are tried where no region that a target reports is off: two sizes in two positions."""


def only_together(inv: Investigation, local: Local, pieces: Sequence[Wired]) -> list[Wired]:
    """Return the pieces none of whose ops is wrong alone: the freedoms of fusion excuse no wrong op."""
    graph, wrong = inv.model.graph, {*suspicious(local)}
    return [piece for piece in pieces if wrong.isdisjoint(v for name in piece.nodes for v in graph.node(name).outputs)]


def function_pieces(inv: Investigation, feed: Feed) -> list[Wired]:
    """Return the errors of the target's regions around a function, with the nodes that make its operands."""
    pieces = functions_with_makers(inv, runnable(inv, feed))
    if not pieces:
        return []
    try:
        return measure_wired(inv, feed, pieces, what=FUNCTIONS)
    except (EngineError, ModelError):
        return []  # the target does not build them alone: nothing is known of them


def few_together(inv: Investigation, feed: Feed) -> list[Wired]:
    """Return regions, or windows of a few ops, as the target computes them, of the first round that has wrong ones."""
    nodes = runnable(inv, feed)
    for words, sets in [("regions", regions_of(inv, nodes)), *itertools.islice(tiles(nodes), MOST_ROUNDS)]:
        with contextlib.suppress(EngineError, ModelError):  # others may build
            found = measure_wired(inv, feed, sets, what=words)
            if any(piece.wrong or piece.taken for piece in found):
                return found
    return []


def may_round_inside(inv: Investigation, ratios: Sequence[float | None]) -> bool:
    """Return whether a healthy kernel of 16 bits may be as far off as errors over their floors are.

    Narrower formats are those of operands: values inside a kernel are wider, and are not rounded more often.
    """
    halves = inv.precision.dtype in (DType.FLOAT16, DType.BFLOAT16)
    return halves and not any(map(beyond_inner_roundings, ratios))
