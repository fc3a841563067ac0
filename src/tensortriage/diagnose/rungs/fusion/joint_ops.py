"""The smallest sets of ops that are wrong only together: found in regions and windows, shrunk, and weighed.

A set counts when injecting its wrong results into the reference's run reproduces the failure, as for single ops.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from tensortriage.compare.judgement.within import counts, is_decisive
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.injection import Influence, influence
from tensortriage.diagnose.measurements.local_errors.local import MOST_SUSPECTS
from tensortriage.diagnose.measurements.local_errors.wired_ops import (
    Wired,
    inner_values,
    measure_wired,
    runnable,
    wrong_ends,
)
from tensortriage.diagnose.measurements.windows import Round, disjoint, neighbourhood, neighbours
from tensortriage.diagnose.rungs.fusion.fusion_breakers import restores
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion
from tensortriage.errors import EngineError, ModelError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.runs.check_cache import digest
from tensortriage.search.driver import minimize
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, SearchProblem
from tensortriage.search.search_result import SearchBudget
from tensortriage.search.statistics.repeats import Repeats
from tensortriage.values.store import MemoryStore

MOST_SHRUNK = 4
"""Windows that are shrunk; sets built like one that was found are recognised in the others without that."""

MOST_CHECKS = 60
"""Builds of a window or less that shrinking one window may take; it keeps the smallest so far."""


@frozen_dataclass
class Together:
    """Sets of ops that are wrong only together.

    Attributes:
        sets: The smallest found, most influential first.
        where: The kind of set in which they were found: ``regions``, ``windows of 4 ops``, ...
        wrong: Windows or regions found wrong there.
        explained: Share of the target's output error that injecting their results reproduces.
        influence: Error at the outputs when only one set's results are injected, for the sets in order.
    """

    sets: tuple[Wired, ...]
    where: str
    wrong: tuple[Wired, ...]
    explained: float
    influence: tuple[float, ...]


def find_together(
    inv: Investigation,
    evidence: Evidence,
    tried: Iterable[Round],
    *,
    excuse: Callable[[Sequence[Wired]], Conclusion | None] = lambda _: None,
) -> tuple[Together | None, Conclusion | None]:
    """Try sets round by round until some are wrong and make the failure; return them, shrunk.

    Args:
        inv: The investigation.
        evidence: The evidence so far.
        tried: The sets to try, see `windows.rounds`.
        excuse: Asked after a round without such sets, about those whose errors a freedom of the target's hardware
            predicts: a verdict, when that explains the failure, ends the search.
    """
    for words, sets in tried:
        measured: Sequence[Wired] = ()
        wrong: Sequence[Wired] = ()
        weights: Influence | None = None
        with contextlib.suppress(EngineError, ModelError):  # larger or other pieces may build
            measured = measure_wired(inv, evidence.feed, sets, what=words)
            wrong = sorted((item for item in measured if item.wrong), key=lambda item: -item.ratio)
            weights = weigh(inv, evidence, wrong) if wrong else None
        matter = weights is not None and (decisive(weights) or cured(inv, evidence, wrong, weights))
        if weights is not None and matter and (together := shrunk(inv, evidence, words, wrong, weights)):
            return together, None
        if verdict := excuse([item for item in measured if item.taken]):
            return None, verdict
    return None, None


def weigh(inv: Investigation, evidence: Evidence, sets: Sequence[Wired]) -> Influence:
    """Inject the wrong results of sets into the reference's run."""
    ends = dict(list(wrong_ends(inv, evidence.feed, sets).items())[:MOST_SUSPECTS])
    return influence(inv, evidence.feed, MemoryStore(ends), list(ends))


def decisive(weights: Influence) -> bool:
    """Return whether injected errors make the failure."""
    return is_decisive(weights.explained)


def cured(inv: Investigation, evidence: Evidence, wrong: Sequence[Wired], weights: Influence) -> bool:
    """Return whether marking the sets whose errors are not negligible makes the whole model right.

    Of faults in many places each is blurred by the others' errors, which injecting golden-fed results does not have.
    """
    inner = {value for item in wrong for value in inner_values(inv.model.graph, item.nodes)}
    marked = [value for value in inv.question.values if value in inner]
    return bool(marked) and counts(weights.explained, 1.0) and restores(inv, evidence, marked)


def shrunk(
    inv: Investigation, evidence: Evidence, words: str, wrong: Sequence[Wired], seen: Influence
) -> Together | None:
    """Shrink the windows that matter; None when all come down to ops that are wrong in isolation."""
    weights = {id(item): strongest(item, seen.alone) for item in wrong}
    most = max(weights.values())
    matter = sorted((item for item in wrong if counts(weights[id(item)], most)), key=lambda item: -weights[id(item)])
    sets: list[Wired] = []
    rest, shrinks = list(matter), 0
    while rest and shrinks < MOST_SHRUNK:
        smallest = shrink(inv, evidence, rest.pop(0))
        shrinks += 1
        if smallest is not None and len(smallest.nodes) > 1:
            sets += [smallest, *repeats_of(inv, evidence, smallest, sets)]
            rest = [item for item in rest if not any({*known.nodes} <= {*item.nodes} for known in sets)]
    if not sets:
        return None
    try:
        again = weigh(inv, evidence, sets)
    except EngineError:
        again = seen
    sets.sort(key=lambda item: -strongest(item, again.alone))
    alone = tuple(strongest(item, again.alone) for item in sets)
    return Together(tuple(sets), words, tuple(matter), max(seen.explained, again.explained), alone)


def repeats_of(inv: Investigation, evidence: Evidence, first: Wired, others: Sequence[Wired]) -> list[Wired]:
    """Return the sets anywhere that are built like the first one and wrong as well, measured in one build.

    Not in the other wrong windows alone: one window may hold two of them, or end amid one.
    """
    graph = inv.model.graph
    known = {name for item in (first, *others) for name in item.nodes}
    free = [name for name in runnable(inv, evidence.feed) if name not in known]
    kind, reach = graph.node(first.nodes[0]).op_type, len(first.nodes) - 1
    seeds = [name for name in free if graph.node(name).op_type == kind]
    near = ((seed, *(n for n in neighbourhood(graph, [seed], reach, free) if n != seed)) for seed in seeds)
    guesses = disjoint(guess for nodes in near if (guess := alike(graph, first.nodes, nodes)) is not None)
    if not guesses:
        return []
    try:
        found = measure_wired(inv, evidence.feed, guesses, what="further sets of ops")
    except (EngineError, ModelError):
        return []
    return [item for item in found if counts(item.ratio, first.ratio) and item.wrong]


def alike(graph: Graph, pattern: Sequence[str], window: Sequence[str]) -> tuple[str, ...] | None:
    """Return ops of a window with the operators of a pattern, wired to each other in the same way; None without."""
    wanted, offered = [[graph.node(name) for name in names] for names in (pattern, window)]
    wiring = [inner_inputs(graph, node, pattern) for node in wanted]

    def extended(chosen: tuple[str, ...]) -> tuple[str, ...] | None:
        if len(chosen) == len(wanted):
            return chosen
        place = len(chosen)
        for node in offered:
            new = (*chosen, node.name)
            fits = node.op_type == wanted[place].op_type and node.name not in chosen
            if fits and inner_inputs(graph, node, new) == wiring[place] and (made := extended(new)):
                return made
        return None

    return extended(())


def inner_inputs(graph: Graph, node: Node, nodes: Sequence[str]) -> dict[int, tuple[int, int]]:
    """Return which inputs of a node some nodes make: input position to the maker's place and its output's."""
    found = {}
    for position, value in enumerate(node.inputs):
        made = graph.producer(value) if value else None
        if made is not None and made.name in nodes:
            found[position] = (list(nodes).index(made.name), made.outputs.index(value))
    return found


def strongest(item: Wired, alone: Mapping[str, float]) -> float:
    """Return the largest influence of any wrong end of a set."""
    return max((alone.get(value, 0.0) for value in item.errors), default=0.0)


def shrink(inv: Investigation, evidence: Evidence, window: Wired) -> Wired | None:
    """Return the smallest part of a window that is still wrong; None if unknown.

    A part counts while its error is beyond its floor and not negligible against the window's, so that the search does
    not drift from the fault to the slight differences of a kernel.
    """
    answers: dict[tuple[str, ...], Wired] = {window.nodes: window}

    def oracle(candidate: tuple[str, ...], attempt: int) -> OracleVerdict:
        del attempt
        try:
            found = answers.get(candidate) or measure_wired(inv, evidence.feed, [candidate], what="part of a window")[0]
        except (EngineError, ModelError) as error:
            return OracleVerdict(CandidateOutcome.UNRESOLVED, detail=error.message)
        answers[candidate] = found
        same = found.wrong and counts(found.ratio, window.ratio)
        return OracleVerdict(CandidateOutcome.SAME if same else CandidateOutcome.PASS)

    inv.lab.progress(f"shrinking a window of {len(window.nodes)} ops")
    graph = inv.model.graph
    problem = SearchProblem(
        window.nodes,
        oracle,
        key=lambda candidate: digest("window", candidate),
        neighbours=lambda name: neighbours(graph, name) & {*window.nodes},
    )
    result = minimize(problem, repeats=Repeats(premise=1), budget=SearchBudget(checks=MOST_CHECKS))
    return answers.get(tuple(result.kept))
