import pytest

from models import chain
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.pieces.polygraphy_modes import bisect, linear
from tensortriage.reduce.request import Ends
from tensortriage.runs.commands.phases import Phases
from tensortriage.search.driver import minimize
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, SearchProblem
from tensortriage.search.statistics.repeats import Repeats

PREMISE = 1


def search(mode, count, *needed, ends=Ends.BOTH, phases=None, asked=None):
    model = chain(count)
    pieces = Pieces(model, specs=value_specs(model))

    def oracle(candidate, attempt):
        if asked is not None:
            asked.append((phases.name, phases.next_check(), len(candidate)))
        return OracleVerdict(CandidateOutcome.SAME if set(needed) <= set(candidate) else CandidateOutcome.PASS)

    problem = SearchProblem(pieces.items, oracle, key=repr)
    return minimize(problem, passes=(mode(pieces, ends, phases or Phases()),), repeats=Repeats(premise=PREMISE))


# Polygraphy 0.53.6 on the same chains: sizes 1 and 10, 11 checks by bisection of 64 nodes, N + M = 24 of 16 by linear,
# two of which are about pieces that are known already: the whole, and the result of the first phase.
@pytest.mark.parametrize(("mode", "needed", "size"), [
    (bisect, ("op_7",), 1), (linear, ("op_7",), 1), (bisect, ("op_3", "op_12"), 10), (linear, ("op_3", "op_12"), 10),
])  # fmt: skip
def test_sizes_are_polygraphys(mode, needed, size):
    assert len(search(mode, 16, *needed).kept) == size


def test_the_first_node_is_asked_about_unlike_there():
    assert search(bisect, 16, "op_0").kept == ("op_0",)


def test_number_of_checks():
    assert search(bisect, 64, "op_30").checks - PREMISE <= 12
    assert search(linear, 16, "op_7").checks - PREMISE == 24 - 2


@pytest.mark.parametrize(("ends", "kept"), [(Ends.KEEP_INPUTS, range(8)), (Ends.KEEP_OUTPUTS, range(7, 16))])
def test_one_phase_alone(ends, kept):
    assert search(bisect, 16, "op_7", ends=ends).kept == tuple(f"op_{index}" for index in kept)


def test_the_order_is_polygraphys():
    """Polygraphy 0.53.6 asked about pieces of these sizes, of a chain of 16 nodes of which the eighth is wrong."""
    asked = []
    search(bisect, 16, "op_7", phases=Phases(apart=True), asked=asked)
    assert [step for step in asked if step[0] == "whole"] == [("whole", 0, 16)]
    assert asked[1:] == [
        ("outputs", 0, 9), ("outputs", 1, 5), ("outputs", 2, 7), ("outputs", 3, 8),
        ("inputs", 0, 4), ("inputs", 1, 2), ("inputs", 2, 1),
    ]  # fmt: skip
