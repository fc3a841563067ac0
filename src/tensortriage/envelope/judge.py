"""The judge: what a healthy engine may do at each value, decided by the rows of one registry.

`run` and edits walk the registry; `diagnose` asks the same rows, each by a question of its ladder.

A walk takes sets of rows in the order of the table, evaluates one only while a value still stands out, and ends for
each value at the first set that explains it. What a row needs beside the outputs (values inside, ops alone) is asked of
the target when the row is about to count. A row that cannot be evaluated, or whose cost is NaN or Inf, allows nothing.

Values that a target shows inside its own run are judged by the same limits, and so are ops that are fed with golden
operands (`tensortriage.envelope.ops`): as one exploded model they are a model like any other.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.judgement.relative_error import error_of, say_gap
from tensortriage.compare.judgement.within import is_habit, is_lost, is_nearer, prediction_gap_db, within_limit
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.envelope.costs import of_draws, of_format, of_freedoms, of_moved_inputs, of_rewrite
from tensortriage.envelope.explanations import PREDICTED, Cost, Explanation, Usual
from tensortriage.envelope.limits import Limit, half_at_most
from tensortriage.envelope.registry import costing, freedoms_of_target
from tensortriage.envelope.setting import Floors, Setting
from tensortriage.errors import EngineError, TriageError, UsageError
from tensortriage.model.cutting.between import between
from tensortriage.values.text import error_size

Together = tuple[Explanation, ...]
"""Explanations that an engine takes all at once."""


class Alone(Protocol):
    """Ops that were run alone on golden operands."""

    @property
    def over(self) -> Mapping[str, float]:
        """Error over its limit, by value."""

    @property
    def chosen(self) -> Mapping[str, Explanation]:
        """Freedoms that account for what values are off by, where one does."""


class SeenTarget(Protocol):
    """What a target shows beside its outputs; each is asked of it when a row needs it."""

    def inside(self) -> Mapping[str, Metrics]:
        """Return the figures of values in its own run; empty where it shows none, or showing them is another run."""

    def alone(self) -> Alone | None:
        """Return its ops run one by one; None where it does not run them so."""


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """Errors held against what explanations predict.

    Attributes:
        explanations: These.
        predicted: Relative error that they cost, by value.
        gaps: By how many dB outputs that stand out exceed it.
        limits: The largest error of each that they allow.
        beyond: Outputs that are farther off than predicted; what is predicted may leave nothing of an output.
        inside: The first value inside that does, with its error and what it may be off by; None where none does.
    """

    explanations: Together
    predicted: Mapping[str, float]
    gaps: Mapping[str, float]
    limits: Mapping[str, Limit]
    beyond: list[str]
    inside: tuple[str, float, Limit] | None = None

    @property
    def explains(self) -> bool:
        """Whether nothing is beyond."""
        return bool(self.gaps) and not self.beyond and self.inside is None

    @property
    def worst(self) -> str:
        """The output that exceeds what is predicted most."""
        return max(self.beyond or self.gaps, key=lambda name: self.gaps[name])

    @property
    def gap(self) -> str:
        """By how much it does, in words."""
        return say_gap(self.gaps[self.worst])

    @property
    def why_not(self) -> str:
        """What is beyond, in words; empty where nothing is."""
        if self.explains:
            return ""
        if self.inside is None:
            return f"output '{self.worst}' is {self.gap} against what that predicts"
        value, error, limit = self.inside
        return f"'{value}' inside is off by {error_size(error)}, at most {error_size(limit.error)} is expected"


class Judge:
    """Judges the outputs of a target on one feed.

    Args:
        setting: The model, the feed, and the target.
        floors: Those of its outputs, and of values inside that are looked at.
        figures: The target's outputs against the reference's, by name.
        errors: Relative errors where they are not those of the figures: inf after a decision that is no tie.
        shown: What the target shows beside; None where it cannot be asked.
    """

    def __init__(
        self,
        setting: Setting,
        floors: Floors,
        figures: Mapping[str, Metrics],
        *,
        errors: Mapping[str, float] | None = None,
        shown: SeenTarget | None = None,
    ) -> None:
        self.setting, self.floors, self.shown = setting, floors, shown
        self._figures = figures
        self._errors = {name: error_of(figure) for name, figure in figures.items()} | dict(errors or {})

    def limit(self, name: str) -> Limit:
        """Return what orders of sums and the target's format allow an output."""
        return self.floors.limit(name, self._figures[name].count)

    @property
    def standing_out(self) -> list[str]:
        """Outputs beyond that, lost ones but for those that the format explains."""
        names = [name for name in self._figures if not within_limit(self._errors[name], self.limit(name).error)]
        predicted = self.setting.precision in PREDICTED
        return self.against(costing(of_format), self.floors.target, names).beyond if predicted else names

    # -- the walk ------------------------------------------------------------------------------------------------------

    def walk(self) -> dict[str, Limit]:
        """Return the limit of every output, by the first explanations under which it does not stand out."""
        found = {name: self.limit(name) for name in self._figures}
        left = self.standing_out
        if any(is_lost(error) for error in self._errors.values()):  # whatever it may cost, it does not pass
            return found
        return found | self.explained(self._sets(), left)

    def explained(
        self, sets: Iterable[tuple[Together, Callable[[Held], bool]]], names: Sequence[str]
    ) -> dict[str, Limit]:
        """Return the limits of outputs that sets of explanations account for, each by the first that does.

        Args:
            sets: The sets, and what else has to hold of each; one is evaluated while an output is left.
            names: The outputs.
        """
        found: dict[str, Limit] = {}
        for together, holds in sets if names else ():
            left = [name for name in names if name not in found]
            with contextlib.suppress(TriageError):  # what cannot be evaluated allows nothing
                held = self.held(together, left)
                explained = [name for name in left if name not in held.beyond]
                if explained and held.inside is None and holds(held):
                    found |= {name: held.limits[name] for name in explained}
            if len(found) == len(names):
                break
        return found

    def _sets(self) -> Iterator[tuple[Together, Callable[[Held], bool]]]:
        """Yield the sets of rows beyond the format, in the order of the table, and what else has to hold of each."""
        yield from ((each, always) for each in self.expected())
        for each in (*self.of_the_model(of_rewrite), *self.of_the_model(of_moved_inputs)):
            yield (each,), self.right_alone
        if self.may_choose():
            alone = self.alone()
            if alone is not None and alone.chosen and not beyond(alone, 1.0):
                yield tuple(dict.fromkeys(alone.chosen.values())), always
            if alone is None and not self.setting.hardware.has_habits and self.inside():
                yield from ((each, self.is_taken) for each in self.single())
        yield from (((each,), self.right_alone) for each in self.of_the_model(of_draws))

    def expected(self) -> Iterator[Together]:
        """Yield what all engines of the target's class choose: the first, all, and what they seldom choose besides."""
        freedoms, unseen = self.freedoms(Usual.EXPECTED), self.shown is not None and not self.inside()
        if freedoms and self.setting.trusts_float64 and not self.setting.kept and not unseen:
            seldom = self.freedoms(Usual.SELDOM)
            yield from dict.fromkeys((freedoms[:1], freedoms, (*freedoms, *seldom)))

    def may_choose(self) -> bool:
        """Whether the target can be asked for its ops, and all that it may choose would explain an output."""
        freedoms = self.freedoms(None)
        if self.shown is None or not freedoms or not self.setting.trusts_float64:
            return False
        names = self.standing_out
        costs = of_freedoms(self.setting, self.floors, freedoms, list(self._figures))
        return len(self.against(freedoms, costs, names, inside=False).beyond) < len(names)

    def single(self) -> Iterator[Together]:
        """Yield each freedom that the target may take, alone: nothing shows where functions of any operator are."""
        if self.setting.trusts_float64:
            yield from ((each,) for each in self.freedoms(None) if each.operators)

    def of_the_model(self, cost: Cost) -> Sequence[Explanation]:
        """Return the rows of a cost that can be of this model in the target's format."""
        rows = (each for each in costing(cost) if self.setting.precision in each.formats)
        return [each for each in rows if each.applies(self.setting.model)]

    def freedoms(self, usual: Usual | None) -> Together:
        """Return what the target may choose at operators that the model has, of that what is so usual; None for all."""
        return freedoms_of_target(self.setting.target, usual, op_types=self.setting.op_types)

    def in_format(self) -> Held:
        """Hold the outputs against what rounding to the target's format is predicted to cost; see `standing_out`."""
        held = self.against(costing(of_format), self.floors.target, list(self._figures))
        return dataclasses.replace(held, beyond=self.standing_out)

    # -- one set -------------------------------------------------------------------------------------------------------

    def held(self, together: Together, names: Sequence[str] | None = None) -> Held:
        """Hold outputs against what a set of explanations costs them.

        Args:
            together: The set.
            names: The outputs; None for those that stand out, or all where none does.

        Raises:
            TriageError: When its cost cannot be evaluated.
        """
        names = (self.standing_out or list(self._figures)) if names is None else names
        seen = self.inside() if together[0].needs.inside else {}
        values = [value for value in self.setting.values if value in seen or value in self._figures]
        return self.against(together, together[0].cost(self.setting, self.floors, together, values), names)

    def against(
        self, together: Together, costs: Mapping[str, float], names: Sequence[str], *, inside: bool = True
    ) -> Held:
        """Hold outputs against costs that are known; and values inside, where the explanations need that."""
        kept = together[0].cost is of_format  # half of the signal, where the format overflows
        predicted = {name: cost for name, cost in costs.items() if kept or math.isfinite(cost)}
        words, basis = tuple(each.name for each in together), Basis.FORMAT
        if together[0].cost is of_freedoms:
            basis = Basis.HARDWARE
        gaps, limits, beyond = {}, {}, []
        for name in names:
            figure, error, cost = self._figures[name], self._errors[name], predicted.get(name, 0.0)
            allowed = Limit(together[0].allows(cost, figure), basis, words)
            gaps[name] = prediction_gap_db(figure, error, cost)
            limits[name] = half_at_most(allowed)
            if not allowed.allows(error):
                beyond.append(name)
        first = self.first_inside(predicted) if inside and together[0].needs.inside and not beyond else None
        return Held(together, predicted, gaps, limits, beyond, first)

    def inside(self) -> Mapping[str, Metrics]:
        """Return the figures of values inside the target's own run that have a floor and are no exact types."""
        shown = self.shown.inside() if self.shown is not None else {}
        return {v: figure for v, figure in shown.items() if v in self.floors.fp32 and not figure.exact}

    def first_inside(self, predicted: Mapping[str, float]) -> tuple[str, float, Limit] | None:
        """Return the first value inside that is farther off than healthy, with its error and its limit."""
        seen = self.inside()
        for value in self.setting.values:
            if value in seen:
                error = error_of(seen[value])
                limit = self.floors.limit(value, seen[value].count, predicted.get(value))
                if not limit.allows(error):
                    return value, error, limit
        return None

    def alone(self) -> Alone | None:
        """Return the target's ops run one by one; None where that cannot be had."""
        try:
            return self.shown.alone() if self.shown is not None else None
        except TriageError:
            return None

    def right_alone(self, held: Held) -> bool:
        """Whether no op is wrong by itself, as far as an explanation needs that."""
        needs = held.explanations[0].needs
        if needs.alone is None:
            return True
        if self.shown is None:
            return False
        alone = self.alone()
        return needs.unproven if alone is None else not beyond(alone, needs.alone)

    def is_taken(self, held: Held) -> bool:
        """Whether the target takes a freedom where that would show; see `taken_at`."""
        taken, shows = self.taken_at(held)
        return shows > 0 and is_habit(taken, shows)

    def taken_at(self, held: Held) -> tuple[int, int]:
        """Return at how many values of the target's own run a freedom is taken, and at how many it would show.

        It is where an error is nearer to what is predicted with the freedom than to what is predicted without.
        """
        (freedom,), graph, seen = held.explanations, self.setting.model.graph, self.inside()
        known = {*seen, *self.setting.feed.tensors}
        taken = shows = 0
        for value, chosen in held.predicted.items():
            if value in seen and freedom.concerns([node.op_type for node in between(graph, value, known)]):
                plain = self.floors.target.get(value, 0.0)
                shows += chosen > plain
                taken += chosen > plain and is_nearer(error_of(seen[value]), chosen, plain)
        return taken, shows


def expected_limits(setting: Setting, floors: Floors, counts: Mapping[str, int]) -> dict[str, Limit]:
    """Return what healthy engines of a target's class may be off by, whatever it made of the model.

    Args:
        setting: The model, the feed, and the target.
        floors: Of the values that are asked about.
        counts: Their elements, by name.
    """
    chosen: Mapping[str, float] = {}
    freedoms = freedoms_of_target(setting.target, Usual.EXPECTED, op_types=setting.op_types)
    if counts and freedoms and setting.trusts_float64:
        with contextlib.suppress(
            EngineError, UsageError
        ):  # an operator without an exact kernel: the floor alone counts
            chosen = of_freedoms(setting, floors, freedoms, list(counts))
    names = tuple(each.name for each in freedoms)
    return {name: floors.limit(name, count, chosen.get(name), names) for name, count in counts.items()}


def beyond(alone: Alone, times: float) -> list[str]:
    """Return the values of ops that alone are off by more than so many times their limits."""
    return [value for value, over in alone.over.items() if over > times]


def always(_: Held) -> bool:
    """Say that nothing else has to hold."""
    return True
