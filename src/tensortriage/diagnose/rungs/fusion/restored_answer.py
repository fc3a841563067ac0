"""Is the answer right again? The question put to every change that might cure a failure.

A change of the model (values marked as outputs) or of the engine's options restores the answer when every output is
within its limit, or off by no more than the number format explains.
"""

from tensortriage.compare.measured import in_words
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import FeedResult, OutputFigures, Unsound, judge, measured_outputs
from tensortriage.diagnose.rungs.number_format.predicted import beyond_format
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.floors import Floors
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.runner import precision_of


def restored(inv: Investigation, evidence: Evidence, feed: Feed, *, model: Model, spec: EngineSpec) -> bool:
    """Say whether a model on an engine gives right outputs on a feed.

    Args:
        inv: The investigation.
        evidence: Has the noise floors of the outputs.
        feed: The feed.
        model: The model, changed or not, with the outputs of `inv.model` among its own.
        spec: The engine with its options.

    Raises:
        EngineError: When it fails.
    """
    after = with_change(inv, feed, evidence.worst.floors, model=model, spec=spec)
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

    def ask() -> OutputFigures:
        with inv.new_runner(spec, model) as runner:
            outputs = runner.run(feed)
        try:
            return measured_outputs(inv, feed, outputs, spec=spec, model=model)
        except Unsound:
            return OutputFigures({})

    names = [output.name for output in inv.model.outputs]
    key = inv.key(spec, model, feed, "restored", names, *in_words(inv.tolerances))
    found = inv.case.checks.remember(key, f"outputs of {spec} once changed, on {feed.name}", OutputFigures, ask)
    return judge(inv, feed, found, floors) if found.metrics else None


def sound(inv: Investigation, result: FeedResult, spec: EngineSpec) -> bool:
    """Say whether outputs are within their limits, or as far off as the format of an engine explains."""
    if result.passes:
        return True
    return precision_of(spec) is inv.precision and not beyond_format(inv, result)
