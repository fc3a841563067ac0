"""Is the answer right again? The question put to every change that might cure a failure.

A change of the model (values marked as outputs) or of the engine's options restores the answer when every output is
within its limit, or off by no more than the number format explains.
"""

from tensortriage.diagnose.measurements.branches import fed_to
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import FeedResult, Unsound, judge, measured_outputs
from tensortriage.diagnose.rungs.number_format.predicted import beyond_format
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.setting import Floors
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model


def restored(inv: Investigation, evidence: Evidence, feed: Feed, *, model: Model, spec: EngineSpec) -> bool:
    """Return whether a model on an engine gives right outputs on a feed.

    Args:
        inv: The investigation.
        evidence: Has the noise floors of the outputs.
        feed: The feed.
        model: The model, changed or not, with the outputs of `inv.model` among its own.
        spec: The engine with its options.

    Raises:
        EngineError: When it fails.
    """
    after = with_change(inv, feed, evidence.worst_feed.floors, model=model, spec=spec)
    return after is not None and sound(inv, after, spec)


def with_change(inv: Investigation, feed: Feed, floors: Floors, *, model: Model, spec: EngineSpec) -> FeedResult | None:
    """Return the outputs of a changed model or engine on a feed; None when they cannot be compared.

    Args:
        inv: The investigation.
        feed: The feed.
        floors: Noise floors of the outputs.
        model: The model, changed or not, with the outputs of `inv.model` among its own.
        spec: The engine with its options.

    Raises:
        EngineError: When it fails.
        EngineMissing: When it does not have the options.
    """
    outputs = inv.lab.outputs(spec, model, fed_to(model, feed))
    try:
        return judge(inv, feed, measured_outputs(inv, feed, outputs, spec=spec, model=model), floors)
    except Unsound:
        return None


def sound(inv: Investigation, result: FeedResult, spec: EngineSpec) -> bool:
    """Return whether outputs are within their limits, or as far off as the format of an engine explains."""
    if result.passes:
        return True
    return resolve(spec).precision is inv.precision and not beyond_format(inv, result)
