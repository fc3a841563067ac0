"""The judge: the healthy error of each value, decided by the rows of one registry.

`WALK` is their order, in stages: `run` and edits take all of them in one go (`Judge.walk`), `diagnose` takes each at a
question of its ladder (`Judge.take`) and looks for faults between them. A stage takes sets of rows, evaluates one only
while a value still stands out, and ends for each value at the first set that explains it. Further conditions (values
inside, ops alone) are measured on the target when a set is about to count. A row that cannot be evaluated, or whose
cost is NaN or Inf, allows nothing.

The parts that an output is composed of (`tensortriage.model.inspect.output_parts`) are judged as if each were an
output: its floor and its costs are those of its elements, in the same evaluations.

Values that a target shows inside its own run are judged by the same limits, and so are ops that are fed with golden
operands (`tensortriage.envelope.ops`): as one exploded model they are a model like any other.
"""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.judgement.within import (
    excuses_much,
    is_gone,
    is_habit,
    is_nearer,
    near_prediction,
    prediction_gap_db,
    within_limit,
)
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.envelope.costs import of_draws, of_format, of_freedoms, of_int16, of_moved_inputs, of_rewrite, of_ties
from tensortriage.envelope.explanations import (
    PREDICTED,
    Alone,
    Cost,
    Explanation,
    Held,
    Needs,
    SeenTarget,
    Taken,
    Together,
    Usual,
)
from tensortriage.envelope.limits import Limit, half_at_most
from tensortriage.envelope.registry import costing, freedoms_of_target
from tensortriage.envelope.setting import Floors, Setting, of_whole_numbers
from tensortriage.errors import TriageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.cutting.between import between
from tensortriage.model.inspect.output_parts import whole
from tensortriage.values.text import error_size


@frozen_dataclass
class Stage:
    """A stage of the walk.

    Attributes:
        sets: Returns its sets of rows, those that allow least first.
        needs: Further conditions on each; None for those of its rows.
    """

    sets: Callable[["Judge"], Iterable[Together]]
    needs: Needs | None = None


class Judge:
    """Judges the outputs of a target on one feed.

    Args:
        setting: The model, the feed, and the target.
        floors: Floors of its outputs, and of the examined values inside.
        figures: The target's outputs and their parts against the reference's, by name.
        errors: Relative errors where they are not those of the figures: inf after a decision that is no tie.
        shown: The target's inner values; None where the target cannot show them.
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
        self._figures, self._outputs = figures, whole(list(figures), setting.parts)
        self._errors = {name: error_of(figure) for name, figure in figures.items()} | dict(errors or {})

    @property
    def names(self) -> list[str]:
        """The outputs."""
        return list(self._figures)

    def limit(self, name: str) -> Limit:
        """Return the error that orders of sums and the target's format allow an output."""
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
        # Whatever it may cost, what is lost does not pass.
        if any(is_gone(figure, self._errors[name]) for name, figure in self._figures.items()):
            return found
        if not left and (by_format := self.by_format) and self.contradicted(by_format):
            left = by_format
            found |= {name: self.floors.in_fp32(name) for name in left}
        for stage in WALK:
            explained = self.take(stage, left).limits
            found |= explained
            left = [name for name in left if name not in explained]
        return found

    def take(self, stage: Stage, names: Sequence[str]) -> Taken:
        """Try the sets of a stage in turn, while any output is unexplained."""
        taken = Taken([], {})
        for together in stage.sets(self) if names else ():
            left = [name for name in names if name not in taken.limits]
            try:
                taken.tried.append(self.held(together, left, needs=stage.needs))
            except TriageError as problem:  # what cannot be evaluated allows nothing
                taken = dataclasses.replace(taken, problem=problem.message)
                continue
            taken.limits.update(taken.tried[-1].explained)
            if len(taken.limits) == len(names):
                break
        return taken

    def expected(self) -> Iterator[Together]:
        """Yield the choices expected of the target's class: the first, all, and with the rare ones."""
        freedoms, known = self.freedoms(Usual.EXPECTED), self.setting.trusts_float64 and not self.setting.kept
        if freedoms and known and (self.shown is None or (self.in_reach and self.inside())):
            seldom = self.freedoms(Usual.SELDOM)
            yield from dict.fromkeys((freedoms[:1], freedoms, (*freedoms, *seldom)))

    def by_ops(self) -> Iterator[Together]:
        """Yield the combined choices of ops that ran in isolation."""
        alone = self.alone(asked=False) or (self.alone() if self.may_choose else None)
        fused = self.shown.fused(windows=True) if alone is not None and self.shown is not None else None
        if alone is not None and fused is not None and not fused.wrong and (alone.chosen or fused.chosen):
            yield tuple(dict.fromkeys({**alone.chosen, **fused.chosen}.values()))

    def single(self) -> Iterator[Together]:
        """Yield each freedom that the target may take, alone: nothing shows where functions of any operator are."""
        if self.setting.trusts_float64:
            yield from ((each,) for each in self.freedoms(None) if each.operators)

    def everywhere(self) -> Iterator[Together]:
        """Yield the same of a target of unknown class whose ops cannot run alone, and that shows values inside."""
        if not self.setting.hardware.has_habits and self.may_choose and self.inside() and self.alone() is None:
            yield from self.single()

    @functools.cached_property
    def may_choose(self) -> bool:
        """Whether the target can show inner values, and all its freedoms together would explain an output."""
        return self.shown is not None and self._all_taken is not None and bool(self._all_taken.explained)

    @property
    def in_reach(self) -> bool:
        """Whether freedoms may explain an output: not where all are off by ten times what all together allow."""
        held = self._all_taken
        if held is None or not held.limits or not held.predicted.keys() >= held.limits.keys():
            return True
        return any(self._errors[name] <= MATCH_FACTOR * limit.error for name, limit in held.limits.items())

    @functools.cached_property
    def _all_taken(self) -> Held | None:
        """All freedoms of the target together; None where it has none, or they cannot be evaluated."""
        freedoms = self.freedoms(None)
        if not freedoms or not self.setting.trusts_float64:
            return None
        with contextlib.suppress(TriageError):
            costs = of_freedoms(self.setting, self.floors, freedoms, list(self._figures))
            return self.against(freedoms, costs, self.standing_out)
        return None

    def of_the_model(self, cost: Cost) -> Sequence[Explanation]:
        """Return the rows of a cost that can be of this model in the target's format."""
        hardware, engine = self.setting.hardware, self.setting.engine.known_as
        mine = (each for each in costing(cost) if each.is_of(hardware, engine))
        return [each for each in mine if self.setting.precision in each.formats and each.applies(self.setting.model)]

    def freedoms(self, usual: Usual | None) -> Together:
        """Return the freedoms of the target at the model's operators, as common as given; None for all."""
        return freedoms_of_target(self.setting.target, usual, op_types=self.setting.op_types)

    @property
    def by_format(self) -> list[str]:
        """Outputs that the target's format explains, and nothing less."""
        predicted = self.setting.precision in PREDICTED
        within = {name for name in self._figures if within_limit(self._errors[name], self.floors.in_fp32(name).error)}
        return [name for name in self._figures if name not in within] if predicted and not self.standing_out else []

    @property
    def excused(self) -> bool:
        """Whether one of these is beyond its prediction, and excused by having few elements only."""
        gaps = self.against(costing(of_format), self.floors.target, self.by_format).gaps
        return not all(map(near_prediction, gaps.values()))

    def in_format(self) -> Held:
        """Compare the outputs with the predicted cost of rounding to the target's format; see `standing_out`.

        Ten numbers may be 11 dB off by chance; inside, tensors are large. Where an output is `excused`, they have to
        be explained as well, but where marking them moved the outputs.
        """
        held = self.against(costing(of_format), self.floors.target, list(self._figures))
        inside = self.first_inside({}) if self.excused and not self.moved_by_marking else ""
        return dataclasses.replace(held, beyond=self.standing_out, unmet=inside)

    @property
    def moved_by_marking(self) -> bool:
        """Whether marking values moved the outputs: the values inside are then of another program."""
        shown = self.shown.inside() if self.shown is not None else {}
        return any(
            name in shown and shown[name].rms_error != figure.rms_error for name, figure in self._figures.items()
        )

    def contradicted(self, names: Sequence[str]) -> bool:
        """Return whether the format explains outputs, but not the target's other values."""
        if self.shown is None:
            return False
        if self.in_format().unmet:
            return True
        return self.setting.hardware.hides_fusions and bool(names) and self.shown.fused().certain

    # -- one set -------------------------------------------------------------------------------------------------------

    def held(self, together: Together, names: Sequence[str] | None = None, *, needs: Needs | None = None) -> Held:
        """Compare outputs with the cost of a set of explanations, and check its other conditions.

        Args:
            together: The set.
            names: The outputs; None for those that stand out, or all where none does.
            needs: Further conditions; None for those of the rows.

        Raises:
            TriageError: When its cost cannot be evaluated.
        """
        names = (self.standing_out or list(self._figures)) if names is None else names
        needs = together[0].needs if needs is None else needs
        seen = self.inside() if needs.inside else {}
        values = [value for value in self.setting.values if value in seen or value in self._outputs]
        values += [name for name in self._figures if name not in self._outputs]
        held = self.against(together, together[0].cost(self.setting, self.floors, together, values), names)
        return dataclasses.replace(held, unmet=self.unmet(held, needs)) if held.explained else held

    def against(self, together: Together, costs: Mapping[str, float], names: Sequence[str]) -> Held:
        """Compare outputs with known costs."""
        kept = together[0].cost is of_format  # half of the signal, where the format overflows
        predicted = {name: cost for name, cost in costs.items() if kept or math.isfinite(cost)}
        words, basis = tuple(each.name for each in together), Basis.FORMAT
        if together[0].cost is of_freedoms:
            basis = Basis.HARDWARE
        gaps, limits, beyond = {}, {}, []
        for name in names:
            figure, error, cost = self._figures[name], self._errors[name], predicted.get(name, 0.0)
            exactly = not cost and error and figure.exact and of_whole_numbers(self.setting, name)
            allowed = Limit(0.0 if exactly else together[0].allows(cost, figure), basis, words)
            gaps[name] = math.inf if exactly else prediction_gap_db(figure, error, cost)
            limits[name] = half_at_most(allowed)
            if not allowed.allows(error):
                beyond.append(name)
        return Held(together, predicted, gaps, limits, beyond)

    def unmet(self, held: Held, needs: Needs) -> str:
        """Return the first condition of a set that the target does not meet, in words; empty where it meets all."""
        shown = self.shown.inside() if self.shown is not None and needs.finite else {}
        if born := [value for value, figure in shown.items() if figure.nonfinite_mismatch]:
            return f"'{born[0]}' inside is NaN or Inf"
        if needs.inside and (words := self.first_inside(held.predicted)):
            return words
        taken, shows = self.taken_at(held) if needs.taken else (1, 1)
        if not shows or not is_habit(taken, shows):
            return f"taken at {taken} of {shows} values"
        if needs.alone is not None and self.shown is None:
            return "there is no target to run the ops in isolation"
        freedoms, most = held.explanations[0].cost is of_freedoms, max(each.error for each in held.explained.values())
        if freedoms and excuses_much(most):  # what excuses the whole must excuse each op
            needs = Needs(alone=1.0, unproven=needs.alone is None)
        if needs.alone is not None:
            alone = self.alone()
            if alone is None:
                return "" if needs.unproven else "the ops could not be run alone"
            spared = alone.harmless if needs.makes_it else ()
            guilty = [value for value in beyond(alone, needs.alone) if value not in spared]
            if guilty and not (needs.makes_it and self.shown is not None and self.shown.are_harmless(guilty)):
                return f"'{guilty[0]}' is wrong in isolation"
        return ""

    def inside(self) -> Mapping[str, Metrics]:
        """Return the figures of values inside the target's own run that have a floor and are no exact types."""
        shown = self.shown.inside() if self.shown is not None else {}
        return {v: figure for v, figure in shown.items() if v in self.floors.fp32 and not figure.exact}

    def first_inside(self, predicted: Mapping[str, float]) -> str:
        """Return which value inside is the first that is further off than healthy, in words; empty where none is."""
        seen = self.inside()
        for value in self.setting.values:
            if value in seen:
                error = error_of(seen[value])
                limit = self.floors.limit(value, seen[value].count, predicted.get(value))
                if not limit.allows(error):
                    most = error_size(limit.error)
                    return f"'{value}' inside is off by {error_size(error)}, at most {most} is expected"
        return ""

    def alone(self, *, asked: bool = True) -> Alone | None:
        """Return the target's ops run one by one; None where it cannot run them."""
        return None if self.shown is None else self.shown.alone(asked=asked)

    def taken_at(self, held: Held) -> tuple[int, int]:
        """Return at how many values of the target's own run a freedom is taken, and at how many it would show.

        It is taken where an error is nearer to the prediction with the freedom than to the one without.
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


def beyond(alone: Alone, times: float) -> list[str]:
    """Return the values of ops that alone are off by more than so many times their limits."""
    return [value for value, over in alone.over.items() if over > times]


def only(*sets: Together) -> Stage:
    """Return the stage of given sets without further conditions."""
    return Stage(lambda _: sets, Needs())


def rows(*costs: Cost) -> Stage:
    """Return the stage that tries the rows of given costs one by one."""
    return Stage(lambda judge: ((each,) for cost in costs for each in judge.of_the_model(cost)))


EXPECTED = Stage(Judge.expected)
"""Freedoms expected of all engines of the target's class."""

INTEGERS, AMPLIFIED = rows(of_rewrite, of_int16), rows(of_ties, of_moved_inputs)
"""The model in another arithmetic; and numbers that lie as rounding may leave them: beside ties, and at its inputs."""

BY_OPS = Stage(Judge.by_ops, Needs(alone=1.0, makes_it=True))
"""Freedoms of ops seen in isolation: inner values add nothing."""

EVERYWHERE = Stage(Judge.everywhere, Needs(inside=True, taken=True))
"""One freedom in the whole model."""

BY_CHANCE = rows(of_draws)
"""Other draws of rounding."""

WALK = (EXPECTED, INTEGERS, AMPLIFIED, BY_OPS, EVERYWHERE, BY_CHANCE)
"""Everything beyond the format, in order."""
