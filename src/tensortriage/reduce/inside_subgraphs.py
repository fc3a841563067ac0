"""Goes on inside: when no more node can be left out, the If, Loop, Scan or function that is left is searched as well.

Inside, it is a reduction like any other, whose whole is the opened piece. That must fail the same way first; where it
does not, the fault needs the node itself, and the result notes it.
"""

import contextlib
from collections.abc import Callable, Iterator

from tensortriage.errors import TriageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.reduce.commands.by_command import StagedAsking
from tensortriage.reduce.engines.by_engine import EngineAsking
from tensortriage.reduce.pieces.node_bodies import Opening, openings
from tensortriage.reduce.reduction_result import Opened
from tensortriage.search.search_result import SearchBudget, SearchResult, SearchStop

Asking = EngineAsking | StagedAsking
"""One way of asking, of the same methods: engines, or a command or a person."""


@frozen_dataclass
class FoundInside:
    """The findings of a search.

    Attributes:
        asking: The judge of candidates.
    """

    asking: Asking
    result: SearchResult[str]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes of the result."""
        return self.asking.pieces.nodes(self.result.kept)


Find = Callable[[Asking, SearchBudget], FoundInside]


def go_inside(
    found: FoundInside, find: Find, *, budget: SearchBudget, enter: contextlib.ExitStack, say: Callable[[str], None]
) -> tuple[list[FoundInside], tuple[Opened, ...]]:
    """Search inside the remaining nodes while that makes progress.

    Args:
        found: The result of the search outside.
        find: Searches.
        budget: Limits of all searches together.
        enter: Closes opened resources.
        say: Receives the name of the current step.

    Returns:
        The results outside and then inside, each inside the one before; and the outcome at every node with a body.
    """
    path = [found]
    outcomes: dict[str, Opened] = {}
    while path[-1].result.stop is SearchStop.FINISHED:
        following = _one_step(path, find, outcomes, budget=budget, enter=enter, say=say)
        if following is None:
            break
        path.append(following)
    last = path[-1]
    pieces = last.asking.pieces
    for name in last.nodes:
        node = pieces.model.graph.node(name)
        if node.has_body and name not in outcomes:
            reason = "it stays whole: it fails only with other nodes, or the search was cut short"
            if pieces.weights.get(pieces.item_of(name) or ""):
                reason = "sequences, optionals or maps pass between it and other nodes: they can only be kept together"
            outcomes[name] = Opened(name, node.op_type, "body", False, reason)
    return path, tuple(outcomes.values())


def _one_step(
    path: list[FoundInside],
    find: Find,
    told: dict[str, Opened],
    *,
    budget: SearchBudget,
    enter: contextlib.ExitStack,
    say: Callable[[str], None],
) -> FoundInside | None:
    """Return the findings inside the remaining piece; None when no way in leads on."""
    asking = path[-1].asking
    repeats = asking.repeats.inside(path[-1].result.rate)
    ways = _ways(path[-1], told)
    for opening in ways:
        say(f"looking into {opening.op_type} '{opening.node}'")
        try:
            inner = enter.enter_context(contextlib.closing(asking.inside(opening, repeats)))
            found = find(inner, _rest(budget, path))
        except TriageError as error:
            told[opening.node] = _not_opened(opening, error)
            continue
        told[opening.node] = Opened(opening.node, opening.op_type, opening.what, True, _opened(opening))
        return found
    return None


def _ways(found: FoundInside, told: dict[str, Opened]) -> Iterator[Opening]:
    """Yield the ways into a piece; impossible ones are reported."""
    pieces, nodes = found.asking.pieces, found.nodes
    try:
        yield from openings(pieces.cut(nodes), pieces.specs, found.asking.taken)
    except TriageError as error:
        for name in nodes:
            node = pieces.model.graph.node(name)
            if node.has_body:
                told[name] = Opened(name, node.op_type, "body", False, f"it cannot be opened: {error.message}")


def _opened(opening: Opening) -> str:
    if opening.lifted is not None:
        return "its body became the model, with the inputs of its iterations"
    return "its nodes replaced it" if opening.what == "function" else f"its {opening.what} replaced it"


def _not_opened(opening: Opening, error: TriageError) -> Opened:
    if error.slug == "premise-not-failing":
        reason = f"its content does not fail in isolation ({opening.what}): the fault needs the node itself"
    else:
        reason = f"its content could not be searched: {error.message}"
    return Opened(opening.node, opening.op_type, opening.what, False, reason)


def _rest(budget: SearchBudget, path: list[FoundInside]) -> SearchBudget:
    """Return the rest of a budget."""
    checks = sum(found.result.checks for found in path)
    seconds = sum(found.result.seconds for found in path)
    return SearchBudget(
        None if budget.checks is None else max(0, budget.checks - checks),
        None if budget.seconds is None else max(0.0, budget.seconds - seconds),
    )
