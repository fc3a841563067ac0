"""Types and shapes of the values at which a model may be cut, when there are no golden values to take them from."""

from collections.abc import Callable, Mapping

from tensortriage.engines.spec import PLAIN
from tensortriage.errors import EngineError, ModelError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.reduce.request import ShapeSource
from tensortriage.runs.lab import Lab
from tensortriage.values.spec import ValueSpec


def piece_specs(model: Model, source: ShapeSource, feed: Callable[[], Feed], lab: Lab) -> Mapping[str, ValueSpec]:
    """Return what is known of every value.

    Args:
        model: The model.
        source: How shapes become known.
        feed: Gives inputs to run it on, if that is needed.
        lab: Runs it.

    Raises:
        EngineError: When the model was to be run and ONNX Runtime cannot.
    """
    if source is ShapeSource.DECLARED:
        return {}
    specs = dict(value_specs(model))
    if source is ShapeSource.INFERENCE:
        unknown = [name for name in markable(model) if name not in specs or specs[name].dtype is None]
        if not unknown:
            return specs
    try:
        return specs | _seen(model, feed(), specs, lab)
    except (EngineError, ModelError):
        if source is ShapeSource.RUN:
            raise
        return specs


def _seen(model: Model, feed: Feed, specs: Mapping[str, ValueSpec], lab: Lab) -> dict[str, ValueSpec]:
    found = {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()}
    batches = lab.captured(PLAIN, model, feed, markable(model), specs=specs)
    return found | {name: ValueSpec.of(name, array) for name, array in batches}
