"""From the emulation's choice to one that the engine has shown to be enough, in as few builds as possible.

The first candidate is the emulation's choice. Where the engine does worse than rounding explains, nodes are kept
together with their fused neighbours, then the nodes are added whose result on golden inputs the engine gets wrong;
where it does a little worse, the emulation chooses again under a limit that is stricter by the engine's miss. Where
that fails too, everything is kept once: if that is not enough either, no precision will help and the fault lies
elsewhere. Where the engine does better (it fuses, and holds more in registers than the format), prefixes of the ranking
are halved. The result is thinned out: as many nodes at once as the engine's error leaves room for, in the end one by
one.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

from tensortriage.compare.judgement.relative_error import amplitude, decibels
from tensortriage.compare.judgement.within import near_prediction, within_prediction
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.precision.goal import GoalReading
from tensortriage.precision.selection.node_choice import KeptNodes
from tensortriage.precision.selection.node_groups import Groups
from tensortriage.search.passes.bisection import Halving
from tensortriage.values.text import error_size

_SAME_ROUNDING = 4.0
"""Ratio (12 dB) up to which an engine's miss counts as more of the same rounding."""

_STRICTER_DB = 1.0
"""How much stricter than the engine's miss the next limit is: a step that is seen, and small."""

_EMULATED_CLOSE_DB = 6.0
"""An emulated ratio this far above the limit counts as the engine's answer too, when both agree elsewhere."""

STRICTER = 2
"""Times that the emulation chooses more nodes before the engine is suspected."""


class NotPrecisionError(EngineError):
    """The target fails with every node in the higher precision: its fault has another cause."""

    exit_code = 4


@frozen_dataclass
class Settled:
    """A choice of nodes that the engine has confirmed.

    Attributes:
        kept: Nodes to keep, most influential first.
        reading: Reading of the engine with them; None when interrupted before.
        predicted: Reading that the emulation predicts for the same nodes; None likewise.
        tried_without: Kept nodes without which the engine, or the emulation with a clear margin, is not good enough.
        complete: Whether every kept node is one of those.
        interrupted: Whether the user ended the search early.
    """

    kept: tuple[str, ...]
    reading: GoalReading | None
    predicted: GoalReading | None
    tried_without: frozenset[str]
    complete: bool
    interrupted: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Questions:
    """The engine and its questions.

    Attributes:
        engine: Reading of a set of kept nodes on the engine; costs a build.
        emulated: The reading in emulation.
        stricter: The emulation's choice when its ratio may be 1 / this.
        items: All nodes that can be kept.
        suspicion: Evidence against each node.
        limited: Whether ratios are relative to a limit.
        exact: Whether the engine is the emulation itself, so that another run of it proves nothing.
        suspects: Nodes that do worse on the engine, on golden inputs, than the format explains; costs one build.
        groups: Nodes that are best kept together on the engine; may cost one build.
        builds_left: Builds that may still be made.
    """

    engine: Callable[[frozenset[str]], GoalReading]
    emulated: Callable[[frozenset[str]], GoalReading]
    stricter: Callable[[float], KeptNodes | None]
    items: Sequence[str]
    suspicion: Callable[[str], float]
    limited: bool
    exact: bool
    suspects: Callable[[], Sequence[str]]
    groups: Callable[[], Groups]
    builds_left: Callable[[], int]


def gap_db(measured: GoalReading | None, predicted: GoalReading | None) -> float | None:
    """Return by how many dB a measured error exceeds its prediction; None where one of them is not a number."""
    if measured is None or predicted is None:
        return None
    if not (math.isfinite(measured.error) and math.isfinite(predicted.error)):
        return None
    if measured.error == 0.0 or predicted.error == 0.0:
        return None
    return decibels(measured.error / predicted.error)


def explained(measured: GoalReading | None, predicted: GoalReading | None) -> bool:
    """Return whether rounding to the format explains an engine's error: at most 3 dB more than the emulation's.

    Errors of outputs with few elements scatter, so that more is allowed; see `tensortriage.compare.judgement.within`.
    """
    if measured is None or predicted is None:
        return True  # nothing is known that speaks against it
    if measured.failure or (math.isinf(measured.error) and math.isfinite(predicted.error)):
        return False
    gap = gap_db(measured, predicted)
    return gap is None or within_prediction(gap, measured.elements)


def settle(first: KeptNodes, ask: Questions) -> Settled:
    """Confirm a choice on the engine, enlarge it as far as needed, and thin it out.

    Raises:
        NotPrecisionError: When the engine fails with everything kept (``precision-not-the-cause``).
    """
    return _thinned(_enough(first, ask), ask)


def _enough(first: KeptNodes, ask: Questions) -> list[str]:
    """Return nodes that are enough on the engine."""
    kept = list(first.kept)
    reading = ask.engine(frozenset(kept))
    if reading.within:
        return kept
    suspects: list[str] = []
    if not ask.exact and not explained(reading, ask.emulated(frozenset(kept))):
        if (whole := _if_enough(ask.groups().closed(kept), kept, ask)) is not None:
            return whole
        suspects = [node for node in ask.suspects() if node in set(ask.items)]
        if (enlarged := _if_enough([*dict.fromkeys([*suspects, *kept])], kept, ask)) is not None:
            return enlarged
    stricter = _stricter(kept, reading, ask) if ask.limited else None
    if stricter is not None:
        return stricter
    everything = ask.engine(frozenset(ask.items))
    if not everything.within:
        raise not_precision(everything, "on the target")
    return _searched(kept, ask, suspects)


def _if_enough(enlarged: list[str], kept: Sequence[str], ask: Questions) -> list[str] | None:
    """Return a larger set if it is larger indeed, and enough on the engine."""
    return enlarged if len(enlarged) > len(kept) and ask.engine(frozenset(enlarged)).within else None


def _stricter(kept: Sequence[str], reading: GoalReading, ask: Questions) -> list[str] | None:
    """Return the emulation's choice under a limit tightened by the engine's miss; None if it is not enough."""
    strict = 1.0
    for _ in range(STRICTER):
        if math.isinf(reading.ratio) or reading.ratio > _SAME_ROUNDING:
            return None
        strict *= reading.ratio * amplitude(_STRICTER_DB)
        choice = ask.stricter(strict)
        if choice is None or set(choice.kept) == set(kept):
            return None
        kept, reading = choice.kept, ask.engine(frozenset(choice.kept))
        if reading.within:
            return list(kept)
    return None


def not_precision(everything: GoalReading, where: str) -> NotPrecisionError:
    """Return the error for outputs that are not good enough with every node in the higher precision."""
    how = everything.failure or f"error {error_size(everything.error)}"
    return NotPrecisionError(
        f"with every node in fp32 the outputs are not good enough {where} either ({how}): the fault is not precision",
        slug="precision-not-the-cause",
        cure="find the fault with triage diagnose, or the smallest case with triage debug reduce",
    )


def _searched(kept: Sequence[str], ask: Questions, suspects: Sequence[str]) -> list[str]:
    """Return enough nodes: those kept, and others that the engine needs, found on it alone, group by group.

    The shortest sufficient prefix of the others ends with a needed node; with that one added the next is sought among
    those before it (QuickXplain's idea, Junker, AAAI 2004). The last build is for the few nodes between the longest
    insufficient and the shortest sufficient prefix.
    """
    groups = ask.groups()
    base = groups.closed(kept)

    def doubt(unit: Sequence[str]) -> tuple[bool, float]:
        return any(node in suspects for node in unit), max(map(ask.suspicion, unit))

    others = sorted((unit for unit in groups.units() if not set(base).issuperset(unit)), key=doubt, reverse=True)

    def enlarged(units: Sequence[tuple[str, ...]]) -> list[str]:
        return [*dict.fromkeys([*base, *(node for unit in units for node in unit)])]

    while others:
        count = Halving(0, len(others))
        while (middle := count.middle) is not None and ask.builds_left() > 1:
            count.answered(middle, enough=ask.engine(frozenset(enlarged(others[:middle]))).within)
        few, best = enlarged(others[count.low : count.high]), enlarged(others[: count.high])
        if count.low == 0 or ask.builds_left() <= 0:
            return best
        if ask.engine(frozenset(few)).within:
            return few
        base, others = few, others[: count.low]
    return base


def _thinned(kept: list[str], ask: Questions) -> Settled:
    """Drop nodes that the engine does not need; without builds left, the emulation decides."""
    agrees = ask.exact or _agrees(kept, ask)
    if kept and not agrees:
        kept = _halved(kept, ask)
    needed = set[str]()

    def hopeless(node: str) -> bool:
        rest = ask.emulated(frozenset(kept).difference([node]))
        clear = rest.ratio > amplitude(_EMULATED_CLOSE_DB) if ask.limited else not rest.within
        return agrees and clear

    if ask.exact:
        needed.update(node for node in kept if hopeless(node))
    most = len(kept) if ask.limited else 1 if agrees else max(1, len(kept) // 2)
    while ask.builds_left() > 0 and (batch := _batch(kept, needed, most, ask)):
        rest = [node for node in kept if node not in batch]
        if ask.engine(frozenset(rest)).within:
            kept, most = rest, len(rest) if ask.limited else most
        else:
            most = len(batch) // 2
            needed.update(batch if len(batch) == 1 else ())
    needed.update(node for node in kept if node not in needed and hopeless(node))
    chosen = frozenset(kept)
    return Settled(tuple(kept), ask.engine(chosen), ask.emulated(chosen), chosen & needed, complete=chosen <= needed)


def _batch(kept: Sequence[str], needed: set[str], most: int, ask: Questions) -> list[str]:
    """Return the least suspicious nodes that the engine's error leaves room for, one at least unless all are needed.

    Errors of independent roundings add in power. The contribution of a node was measured in emulation; the engine is
    assumed to do as much better or worse there as it does on the whole.
    """
    open_ = [node for node in reversed(kept) if node not in needed]
    if ask.exact or not ask.limited:
        return open_[: 1 if ask.exact else max(most, 1)]
    chosen = frozenset(kept)
    measured, emulated = ask.engine(chosen).ratio, ask.emulated(chosen).ratio
    scale = measured / emulated if math.isfinite(emulated) and emulated > 0.0 else 1.0
    room = 1.0 - measured**2
    for count, node in enumerate(open_[:most]):
        room -= (scale * ask.suspicion(node)) ** 2
        if room < 0.0:
            return open_[: max(count, 1)]
    return open_[: max(most, 1)]


def _agrees(kept: Sequence[str], ask: Questions) -> bool:
    """Return whether the engine's error matches the emulation's within 3 dB."""
    gap = gap_db(ask.engine(frozenset(kept)), ask.emulated(frozenset(kept)))
    return gap is not None and near_prediction(abs(gap))


def _halved(kept: list[str], ask: Questions) -> list[str]:
    """Return the shortest prefix that is enough on an engine that is better than its emulation."""
    length = Halving(-1, len(kept))
    while (middle := length.middle) is not None and ask.builds_left() > 0:
        length.answered(middle, enough=ask.engine(frozenset(kept[:middle])).within)
    return kept[: length.high]
