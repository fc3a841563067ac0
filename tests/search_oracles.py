"""Simulated faults for the tests of the search; picklable, and always the same for the same candidate and attempt."""

import dataclasses
import os
import random
import signal
import time
import zlib

from tensortriage.search.dialogue import SearchState
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, SearchProblem


def chance(*parts):
    """Return a number from 0 to 1 that depends on nothing but the parts."""
    return random.Random(zlib.crc32(repr(parts).encode())).random()


@dataclasses.dataclass(frozen=True)
class Fault:
    """Shows when all items of one of the cores are there, less often when told so.

    Attributes:
        cores: Sets of items of which each is enough.
        hiding: Share of the cuts (but the whole and the cores) that hide it.
        unresolved: Share of the cuts (but the whole) that cannot be checked.
        other: Share of the cuts (but the whole) that fail in another way.
        rate: Share of the runs in which it shows.
        seconds: How long a check takes.
    """

    cores: tuple[frozenset, ...]
    items: int
    hiding: float = 0.0
    unresolved: float = 0.0
    other: float = 0.0
    rate: float = 1.0
    seconds: float = 0.0

    def __call__(self, candidate, attempt):
        time.sleep(self.seconds)
        kept = frozenset(candidate)
        if len(kept) < self.items:
            if chance("unresolved", candidate) < self.unresolved:
                return OracleVerdict(CandidateOutcome.UNRESOLVED, detail="would not build")
            if chance("other", candidate) < self.other:
                return OracleVerdict(CandidateOutcome.OTHER, signature=f"other {len(candidate) % 2}")
        shows = any(core <= kept for core in self.cores)
        if shows and len(kept) < self.items and kept not in self.cores:
            shows = chance("hiding", candidate) >= self.hiding
        if shows and chance("rate", candidate, attempt) >= self.rate:
            shows = False
        return (
            OracleVerdict(CandidateOutcome.SAME, signature="wrong") if shows else OracleVerdict(CandidateOutcome.PASS)
        )


def fault(*cores, items, **how):
    """Return a fault of the items that are numbered from 0."""
    return Fault(tuple(frozenset(core) for core in cores), items, **how)


def chain(items):
    """Return the neighbours of items in a row."""
    return {item: [other for other in (item - 1, item + 1) if 0 <= other < items] for item in range(items)}


def problem_of(oracle, items, **how):
    return SearchProblem(tuple(range(items)), oracle, key=repr, **how)


def converse(one_pass, items, same, **how):
    """Let a pass talk about items; return where it ended and the candidates it asked about, with the care."""
    state = SearchState(problem_of(fault(items=items), items, **how), frozenset(range(items)))
    dialogue, asked = one_pass(state), []
    ask = next(dialogue, None)
    while ask is not None:
        asked += [(candidate, ask.care) for candidate in ask.candidates]
        said = (
            CandidateOutcome.SAME if candidate == state.current or same(candidate) else CandidateOutcome.PASS
            for candidate in ask.candidates
        )
        try:
            ask = dialogue.send(tuple(map(OracleVerdict, said)))
        except StopIteration:
            break
    assert all(candidate for candidate, _ in asked)
    return state, asked


@dataclasses.dataclass(frozen=True)
class Trap:
    """Needs items 3 and 7; candidates without item 0 kill their process, those without item 1 hang, likewise ..."""

    def __call__(self, candidate, attempt):
        if not {3, 7} <= set(candidate):
            return OracleVerdict(CandidateOutcome.PASS)
        if 0 not in candidate:
            os.kill(os.getpid(), signal.SIGKILL)
        if 1 not in candidate:
            time.sleep(60.0)
        return OracleVerdict(CandidateOutcome.SAME)


@dataclasses.dataclass(frozen=True)
class Raises:
    """Raises at every candidate but the whole."""

    items: int

    def __call__(self, candidate, attempt):
        if len(candidate) < self.items:
            raise LookupError(f"no answer to {len(candidate)} items")
        return OracleVerdict(CandidateOutcome.SAME)


class Unreadable:
    """Can be pickled, but not be read again."""

    def __reduce__(self):
        return (int, ("no number",))

    def __call__(self, candidate, attempt):
        return OracleVerdict(CandidateOutcome.SAME)


class DiesOnArrival(Unreadable):
    """Can be pickled; reading it ends the process."""

    def __reduce__(self):
        return (os._exit, (3,))


class StartsOthers:
    """Starts a process that outlives it, notes its number in a file, and hangs."""

    def __init__(self, file):
        self.file = file

    def __call__(self, candidate, attempt):
        child = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "600")
        with open(self.file, "a") as file:
            file.write(f"{os.getpid()} {child}\n")
        time.sleep(600.0)


class Memory:
    """A cache in memory that also says what was stored twice."""

    def __init__(self):
        self.answers = {}
        self.twice = []

    def get(self, key, kind):
        answer = self.answers.get(key)
        assert answer is None or isinstance(answer, kind)
        return answer

    def put(self, key, question, answer, *, seconds):
        if key in self.answers:
            self.twice.append(key)
        self.answers[key] = answer
