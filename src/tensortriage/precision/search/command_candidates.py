"""Candidates that a command judges: typed models; and the emulation that ranks their nodes."""

from collections.abc import Callable, Collection, Mapping, Sequence

from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.model import Model
from tensortriage.precision.goal import PrecisionGoal
from tensortriage.precision.search.number_formats import CommandCandidates, number_format
from tensortriage.precision.search.shared_parts import in_order, samples_of
from tensortriage.precision.selection.emulation import Emulation
from tensortriage.precision.selection.switchable_model import TYPED, SwitchableModel, raised, stage_of
from tensortriage.precision.tool_settings import settings_for
from tensortriage.runs.questions.golden_values import GoldenValues
from tensortriage.values.dtype import Precision


class TypedShown:
    """Candidates whose types set the format of each node; see `CommandCandidates`."""

    identity = ""
    scaled = False

    def __init__(self, source: GoldenValues, precision: Precision) -> None:
        self._source = source
        model = raised(source.question.model, precision)
        self.stage: SwitchableModel = stage_of(model, precision, source.specs(source.question.feeds[0]), typed=True)

    def whole(self, kept: Collection[str]) -> tuple[str, ...]:
        """Return all nodes in the higher precision when some are kept, those between them included, in order."""
        return in_order(self.stage.model, {*kept, *self.stage.islands.carriers(kept)})

    def model(self, kept: Collection[str]) -> Model:
        """Return the candidate for a choice of kept nodes."""
        stage = self.stage
        return convert(stage.model, stage.precision, specs=stage.specs, kept_nodes=self.whole(kept))

    def emulation(self, goal: PrecisionGoal, seconds: float | None) -> Emulation:
        """Return the emulation that measures each node's influence (to be closed)."""
        return self.stage.emulation(samples_of(self._source), goal, lab=self._source.lab, seconds=seconds)

    def settings(self, whole: Sequence[str]) -> Mapping[str, str]:
        """Return the same choice for other tools."""
        return settings_for(self.stage.model.graph, whole, self.stage.precision)


def shown(source: GoldenValues, precision: Precision, tell: Callable[[str], None]) -> CommandCandidates:
    """Return the candidates that a format takes.

    Raises:
        UsageError: When no package writes models in the format (``precision-not-typed``).
    """
    return TypedShown(source, precision) if precision in TYPED else number_format(precision).shown(source, tell)
