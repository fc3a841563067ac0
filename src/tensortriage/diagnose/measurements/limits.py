"""The limits of tensors whose figures are known; what else the target may show is measured only where one needs it."""

from collections.abc import Mapping

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.floors import expected_limits, floors_of
from tensortriage.envelope.judge import Judge
from tensortriage.envelope.limits import Limit
from tensortriage.inputs.feed import Feed
from tensortriage.model.inspect.output_parts import whole


def limits_of(
    inv: Investigation,
    feed: Feed,
    figures: Mapping[str, Metrics],
    *,
    apart: Mapping[str, float],
    asked: bool,
) -> dict[str, Limit]:
    """Return the limits of tensors of a model whose figures are known.

    Args:
        inv: The investigation.
        feed: The feed.
        figures: Outputs and parts of them, which the walk judges, or values inside.
        apart: By how much of each error the model itself is another, by name.
        asked: Whether the target may be asked for more.
    """
    setting = inv.setting(feed)
    wanted, parts = whole(list(figures), setting.parts), {part.name for part in setting.parts}
    names = [name for name in inv.question.values if name in wanted] or wanted
    floors = floors_of(setting, names, what="the outputs")
    figures = {name: figure for name, figure in figures.items() if name in floors.fp32 or name not in parts}
    errors = {name: max(error_of(figure) - apart.get(name, 0.0), 0.0) for name, figure in figures.items()}
    plain = {name: floors.limit(name, figure.count) for name, figure in figures.items()}
    beyond = {name: figures[name].count for name, limit in plain.items() if not limit.allows(errors[name])}
    outputs = {spec.name for spec in inv.model.outputs}.union(parts)
    if not outputs.issuperset(figures):  # who has values shown looks for the op
        return plain | expected_limits(setting, floors, beyond)
    judge = Judge(setting, floors, figures, errors=errors)
    if asked and (beyond or judge.standing_out or judge.by_format):
        from tensortriage.diagnose.measurements.judging import observed_limits  # with all that a target can show

        return observed_limits(inv, feed, floors, figures, errors)
    return judge.walk()
