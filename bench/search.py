"""How many checks does a search need? Seeded graphs of 500 ops of which 1 to 3 are needed, adjacent or anywhere.

    python bench/search.py [--seeds 200] [--items 500] [--part black-box suspicion hidden flaky context]

Simulated oracles, so only counts are measured. "checks" are runs of the oracle: the three runs of the premise and every
confirmation of the result are in them. For three unrelated ops of 500 the answers have to carry log2 C(500, 3) = 24.3
bits even if it is known that there are three, and 1-minimality takes three confirmations that tell nothing new.
"right" is the share of runs whose result is exactly the needed set, "1-minimal" the share of those whose result was
seen to fail and of which every single removal was seen not to.
"""

import argparse
import dataclasses
import functools
import math
import random
import statistics
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tensortriage.search.dialogue import Dialogue, Minimality, Pass, SearchState
from tensortriage.search.driver import TO_BLOCKS, TO_ITEMS, minimize
from tensortriage.search.passes.deletion import blocks, one_minimal
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, SearchProblem, T
from tensortriage.search.search_result import SearchResult
from tensortriage.search.statistics.repeats import Repeats

Graph = list[list[int]]
"""Predecessors of every op, in topological order."""


def chain(count: int, rng: random.Random) -> Graph:
    return [[index - 1] if index else [] for index in range(count)]


def residual(count: int, rng: random.Random) -> Graph:
    graph: Graph = [[]]
    while len(graph) < count:
        entry = len(graph) - 1
        for _ in range(rng.choice([3, 5, 6])):
            graph.append([len(graph) - 1])
        graph.append([len(graph) - 1, entry])
    return graph[:count]


def branchy(count: int, rng: random.Random) -> Graph:
    graph: Graph = [[]]
    while len(graph) < count:
        entry, ends = len(graph) - 1, []
        for _ in range(rng.randint(2, 6)):
            last = entry
            for _ in range(rng.randint(1, 6)):
                graph.append([last])
                last = len(graph) - 1
            ends.append(last)
        graph.append(ends)
    return graph[:count]


BLOCK = """
    mean:x center:x,mean square:center norm:center,square
    q:norm k:norm v:norm q_heads:q k_heads:k v_heads:v k_turned:k_heads
    scores:q_heads,k_turned scaled:scores softmax:scaled mixed:softmax,v_heads
    merged:mixed projected:merged added:x,projected
    mean2:added center2:added,mean2 square2:center2 norm2:center2,square2
    up:norm2 erf:up gelu:up,erf down:gelu out:added,down
"""
"""Ops of a transformer block with their inputs; attention and decomposed normalisation and activation."""


def transformer(count: int, rng: random.Random) -> Graph:
    graph: Graph = [[]]
    while len(graph) < count:
        places = {"x": len(graph) - 1}
        for op in BLOCK.split():
            name, inputs = op.split(":")
            graph.append([places[source] for source in inputs.split(",")])
            places[name] = len(graph) - 1
    return graph[:count]


SHAPES: dict[str, Callable[[int, random.Random], Graph]] = {
    "chain": chain,
    "residual": residual,
    "branchy": branchy,
    "transformer": transformer,
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A graph with the ops that are needed for the fault."""

    neighbours: Mapping[int, Sequence[int]]
    needed: frozenset[int]
    seed: str

    @property
    def items(self) -> tuple[int, ...]:
        """All ops."""
        return tuple(range(len(self.neighbours)))


def case(shape: str, needed: int, *, adjacent: bool, seed: int, items: int = 500) -> Case:
    text = f"{shape} {needed} {adjacent} {seed} {items}"
    rng = random.Random(text)
    linked: dict[int, set[int]] = {index: set() for index in range(items)}
    for index, sources in enumerate(SHAPES[shape](items, rng)):
        for source in sources:
            linked[index].add(source)
            linked[source].add(index)
    neighbours = {index: sorted(others) for index, others in linked.items()}
    chosen = [rng.randrange(items)]
    while len(chosen) < needed:
        beside = sorted({other for index in chosen for other in neighbours[index]} - set(chosen))
        chosen.append(rng.choice(beside if adjacent else sorted(set(neighbours) - set(chosen))))
    return Case(neighbours, frozenset(chosen), text)


def chance(*parts: object) -> float:
    """Return a number from 0 to 1 that depends on nothing but the parts."""
    return random.Random(zlib.crc32(repr(parts).encode())).random()


@dataclasses.dataclass(frozen=True)
class Fault:
    """Shows when all needed ops are there, except in hiding cuts (always the same ones), and only now and then."""

    case: Case
    hiding: float = 0.0
    rate: float = 1.0
    context: int = 0

    def __call__(self, candidate: tuple[int, ...], attempt: int) -> OracleVerdict:
        """Check a candidate."""
        shows = self.case.needed <= set(candidate) and len(candidate) >= self.context
        if shows and len(self.case.needed) < len(candidate) < len(self.case.items):
            shows = chance(self.case.seed, candidate) >= self.hiding
        if shows and self.rate < 1.0:
            shows = chance(self.case.seed, candidate, attempt) < self.rate
        return OracleVerdict(CandidateOutcome.SAME if shows else CandidateOutcome.PASS)


Suspicion = Callable[[Case, random.Random], dict[int, float]]


def one_known(case: Case, rng: random.Random) -> dict[int, float]:
    return {rng.choice(sorted(case.needed)): 1.0}


def raised(factor: float) -> Suspicion:
    """Local errors of needed ops are that much above those of the others, which differ by a factor of e (sigma)."""

    def errors(case: Case, rng: random.Random) -> dict[int, float]:
        return {
            index: math.exp(rng.gauss(0.0, 1.0)) * (factor if index in case.needed else 1.0) for index in case.items
        }

    return errors


def misleading(case: Case, rng: random.Random) -> dict[int, float]:
    return {index: math.exp(rng.gauss(0.0, 1.0)) for index in case.items}


@dataclasses.dataclass(frozen=True)
class Row:
    """Counts over the seeds of one kind of case."""

    name: str
    checks: tuple[int, ...]
    right: int
    minimal: int
    sizes: tuple[int, ...]

    def __str__(self) -> str:
        ordered, runs = sorted(self.checks), len(self.checks)
        return (
            f"{self.name:34}{statistics.median(ordered):8.0f}{ordered[int(0.9 * (runs - 1))]:6d}{ordered[-1]:7d}"
            f"{statistics.fmean(ordered):8.1f}{self.right / runs:8.1%}{self.minimal / runs:11.1%}"
            f"{statistics.median(self.sizes):7.0f}"
        )


HEADER = f"{'':34}{'median':>8}{'p90':>6}{'worst':>7}{'mean':>8}{'right':>8}{'1-minimal':>11}{'size':>7}"


def solve(
    fault: Fault, *, suspicion: Suspicion | None = None, passes: Sequence[Pass[int]] = TO_ITEMS, premise: int = 3
) -> SearchResult[int]:
    case = fault.case
    problem = SearchProblem(
        case.items,
        fault,
        key=repr,
        suspicion=suspicion(case, random.Random(case.seed)) if suspicion else {},
        neighbours=case.neighbours.__getitem__,
    )
    return minimize(problem, passes=passes, repeats=Repeats(premise=premise))


Solver = Callable[[Fault], SearchResult[int]]


def row(name: str, faults: Iterable[Fault], solver: Solver = solve) -> Row:
    checks, sizes, right, minimal = [], [], 0, 0
    for fault in faults:
        result = solver(fault)
        checks.append(result.checks + result.repeats)
        sizes.append(len(result.kept))
        right += set(result.kept) == fault.case.needed
        minimal += shown_minimal(result)
    return Row(name, tuple(checks), right, minimal, tuple(sizes))


def shown_minimal(result: SearchResult[int]) -> bool:
    """Return whether the result itself failed and every single removal from it was asked and did not."""
    confirmed = all(not verdict.same for verdict in result.removals.values())
    asked = len(result.removals) == len(result.kept) or len(result.kept) == 1
    return result.verdict.same and confirmed and asked and result.minimality is Minimality.ONE_MINIMAL


KINDS = [(1, True), (2, True), (2, False), (3, True), (3, False)]


def kind(needed: int, adjacent: bool) -> str:
    return "1 needed" if needed == 1 else f"{needed} needed, {'adjacent' if adjacent else 'unrelated'}"


def total(rows: Sequence[Row]) -> Row:
    return Row(
        "all",
        tuple(count for row in rows for count in row.checks),
        sum(row.right for row in rows),
        sum(row.minimal for row in rows),
        tuple(size for row in rows for size in row.sizes),
    )


def by_shape(
    seeds: int,
    items: int,
    *,
    kinds: Sequence[tuple[int, bool]] = KINDS,
    fault: Callable[[Case], Fault] = Fault,
    solver: Solver = solve,
) -> Iterator[Row]:
    rows = []
    for needed, adjacent in kinds:
        for shape in SHAPES:
            cases = (case(shape, needed, adjacent=adjacent, seed=seed, items=items) for seed in range(seeds))
            rows.append(row(f"{shape}, {kind(needed, adjacent)}", map(fault, cases), solver))
            yield rows[-1]
    yield total(rows)


def black_box(seeds: int, items: int) -> None:
    table("black box", by_shape(seeds, items))
    table("black box, delta debugging by counters alone", by_shape(seeds, items, solver=COUNTERS))


def suspicion(seeds: int, items: int) -> None:
    for name, errors in {
        "one needed op is known": one_known,
        "needed ops 100 times above": raised(100.0),
        "needed ops 30 times above": raised(30.0),
        "misleading local errors": misleading,
    }.items():
        table(f"suspicion: {name}", by_shape(seeds, items, solver=functools.partial(solve, suspicion=errors)))


def hidden(seeds: int, items: int) -> None:
    for share in (0.1, 0.3):
        rows = by_shape(seeds, items, kinds=KINDS[3:], fault=functools.partial(Fault, hiding=share))
        table(f"{share:.0%} of the cuts hide the fault", rows)


def flaky(seeds: int, items: int) -> None:
    for rate in (0.9, 0.5, 0.3):
        solver = functools.partial(solve, premise=PREMISE[rate])
        rows = by_shape(seeds, items, kinds=KINDS[3:], fault=functools.partial(Fault, rate=rate), solver=solver)
        table(f"the fault shows in {rate:.0%} of the runs", rows)


PREMISE = {0.9: 48, 0.5: 16, 0.3: 32}
"""Runs of the whole after which a fault that shows in that share of the runs has been seen both ways (all but 1 %)."""
FIRST_DELETION = 2.0
"""Delta debugging starts from a chance of 2 / N that an item is needed, that is with blocks of about N / 2."""
GROWTH = 1.0 / (1.0 - 1.0 / math.e)
"""Factor by which that chance grows with every round of the counter form (arXiv:2408.04735)."""


def delta_debug(state: SearchState[T]) -> Dialogue[T]:
    """Remove blocks, one attempt each, in sizes that shrink from half of all to one.

    The counter form of probabilistic delta debugging with blocks of equal weight (arXiv:2411.19410). Needs no
    ranking and no luck with it; `tensortriage.search` needs fewer checks where few items are needed.
    """
    chance = min(0.5, FIRST_DELETION / len(state.current))
    while True:
        size = max(1, round(-1.0 / math.log1p(-chance))) if chance < 1.0 else 1
        for block in blocks(state.problem, state.problem.ordered(state.current), size):
            rest = state.current.difference(block)
            if rest:
                yield from state.shrinks_to(rest)
        if size == 1:
            return
        chance = min(1.0, chance * GROWTH)


COUNTERS = functools.partial(solve, passes=(delta_debug, one_minimal))


def context(seeds: int, items: int) -> None:
    ways = {"to single items": solve, "to blocks": functools.partial(solve, passes=TO_BLOCKS), "by counters": COUNTERS}
    for name, solver in ways.items():
        rows = []
        for needed in (6, 20, 60):
            for adjacent in (True, False):
                cases = [
                    case("transformer", needed, adjacent=adjacent, seed=seed, items=items) for seed in range(seeds)
                ]
                rows.append(row(kind(needed, adjacent), map(Fault, cases), solver))
        cases = [case("transformer", 3, adjacent=True, seed=seed, items=items) for seed in range(seeds)]
        rows.append(row("3 needed among any 60", (Fault(one, context=60) for one in cases), solver))
        table(f"many needed, {name}", rows)


def table(title: str, rows: Iterable[Row]) -> None:
    print(f"\n{title}\n{HEADER}")
    for one in rows:
        print(one, flush=True)


PARTS = {"black-box": black_box, "suspicion": suspicion, "hidden": hidden, "flaky": flaky, "context": context}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200, help="cases of every kind")
    parser.add_argument("--items", type=int, default=500, help="ops of a graph")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    for part in options.part:
        PARTS[part](options.seeds, options.items)


if __name__ == "__main__":
    main()
