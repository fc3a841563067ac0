"""Does rounding explain the error, as chance has it? Asked where every op is right alone.

What rounding costs an output is predicted by one evaluation, which is one draw: the roundings of a healthy engine are
others. Where an output has many elements that are off independently, draws are alike; where few numbers decide all of
them, as where a short signal is upsampled, they are not: the error of a vocoder's 80 samples in bf16 was 0.4 to 1.0 %
over twelve feeds that bf16 cannot tell apart. So the model is evaluated, rounded and not, on inputs moved by less than
the format can tell, and the largest error of these draws is what rounding may cost.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, say, say_gap
from tensortriage.compare.judgement.within import near_limit, near_prediction, prediction_gap_db, within_limit
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.local import local_errors
from tensortriage.diagnose.measurements.local_errors.representatives import suspicious
from tensortriage.diagnose.rungs.number_format.predicted import precision_command
from tensortriage.diagnose.rungs.number_format.sensitivity import first_numbers, moved_feed
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.confidence import FREEDOMS_EXPLAIN
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.floors import ROUNDED
from tensortriage.errors import EngineError, ModelError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.transforms.mark_outputs import inject, select_outputs
from tensortriage.values.dtype import Precision

QUESTION = "may rounding cost as much by chance?"

DRAWS = 12
"""How often the inputs are moved: of twelve draws of one distribution and a thirteenth, that is the largest once in 13,
and seldom by 3 dB."""


@rung(QUESTION, reads=("results", "local", "wrong_together"))
def rounding_by_chance(inv: Investigation, evidence: Evidence) -> Verdict | None:
    """Is the error what rounding costs on inputs that the format cannot tell from these, every op being right alone?"""
    local, worst = evidence.local, evidence.worst
    if inv.precision not in ROUNDED or inv.precision is Precision.INT8 or local is None or suspicious(local):
        return None
    if evidence.wrong_together or worst.decided is not None or inv.question.tolerance is not None:
        return None
    failing = [name for name, within in worst.within.items() if not within]
    if any(figure.nonfinite_mismatch or figure.exact for figure in map(worst.metrics.__getitem__, failing)):
        return None
    try:
        drawn = drawn_errors(inv, evidence.feed, failing)
    except (EngineError, ModelError, UsageError) as problem:
        inv.answered(QUESTION, f"unknown: the model cannot be evaluated that way: {problem.message}")
        return None
    largest = {name: max(drawn[name], default=0.0) for name in failing}
    gaps = {name: prediction_gap_db(worst.metrics[name], worst.errors[name], largest[name]) for name in failing}
    beyond = [name for name in failing if not near_prediction(gaps[name])]
    name = max(beyond or failing, key=lambda name: gaps[name])
    words = (
        f"rounding to {inv.precision.value} costs output '{name}' {say(min(drawn[name], default=0.0))} to "
        f"{say(largest[name])} on inputs that it cannot tell apart"
    )
    inv.answered(
        QUESTION,
        f"{'no' if beyond else 'yes'}: {words}",
        drawn=drawn,
        measured_error={name: worst.errors[name] for name in failing},
        draws=DRAWS,
    )
    if beyond:
        return None
    return inv.verdict(
        VerdictKind.ROUNDING,
        FREEDOMS_EXPLAIN,
        f"{words}; the target is off by {say(worst.errors[name])} ({say_gap(gaps[name])} against the largest), and "
        "every op is right alone; no op is to blame",
        next=[
            inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", "mark", "all"),
            *precision_command(inv),
        ],
    )


def limits_by_chance(inv: Investigation, feed: Feed, figures: Mapping[str, Metrics]) -> dict[str, float]:
    """Return how far off outputs beyond their floors may be by chance, as `rounding_by_chance` would find.

    Args:
        inv: The investigation.
        feed: The feed.
        figures: The outputs that are beyond their floors.

    Returns:
        Relative errors by output; empty where chance does not explain all of them, or an op is wrong alone.

    Raises:
        EngineError: When the model cannot be evaluated, or the target does not run its ops one by one.
        ModelError: Likewise.
        UsageError: Likewise.
    """
    if inv.precision not in ROUNDED or inv.precision is Precision.INT8:
        return {}
    if any(figure.exact or figure.nonfinite_mismatch for figure in figures.values()):
        return {}
    limits = {name: near_limit(max(drawn, default=0.0)) for name, drawn in drawn_errors(inv, feed, [*figures]).items()}
    beyond = any(not within_limit(error_of(figure), limits[name]) for name, figure in figures.items())
    return {} if beyond or suspicious(local_errors(inv, feed)) else limits


def drawn_errors(inv: Investigation, feed: Feed, names: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """Return the relative error that rounding makes at outputs, on inputs moved by up to half a step of the format.

    Raises:
        EngineError: When ONNX Runtime does not evaluate the model.
        ModelError: When the model cannot be rounded.
        UsageError: Likewise.
    """
    first, specs = first_numbers(inv, feed), inv.specs(feed)
    errors: dict[str, list[float]] = {name: [] for name in names}
    if first is None:
        return errors
    models = [inv.model, round_results(inv.model, inv.precision, specs=specs, kept=inv.question.kept)]
    plain, rounded = (
        select_outputs(inject(each, list(first), specs=specs) if first else each, names) for each in models
    )
    rng, step = np.random.default_rng(0), float(inv.precision.dtype.finfo.eps)
    with inv.new_runner(PLAIN, plain) as exact, inv.new_runner(PLAIN, rounded) as narrow:
        for _ in range(DRAWS):
            moved = {
                name: (array * (1.0 + step / 2.0 * rng.uniform(-1.0, 1.0, array.shape))).astype(array.dtype)
                if array.dtype.kind == "f"
                else array
                for name, array in (first or feed.tensors).items()
            }
            fed = moved_feed(feed, first, moved)
            right, wrong = exact.run(fed), narrow.run(fed)
            for name in names:
                errors[name].append(error_of(measure(np.asarray(right[name]), np.asarray(wrong[name]))))
    return errors
