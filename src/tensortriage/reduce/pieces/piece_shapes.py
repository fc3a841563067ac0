"""Types and shapes of the values at which a model may be cut, when there are no golden values to take them from."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from tensortriage.engines.spec import PLAIN
from tensortriage.errors import EngineError, ModelError, TriageError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import Shape, with_specs
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.reduce.request import ShapeSource
from tensortriage.runs.lab import Lab
from tensortriage.values.spec import ValueSpec


def piece_specs(model: Model, source: ShapeSource, feed: Callable[[], Feed], lab: Lab) -> Mapping[str, ValueSpec]:
    """Return the specs of every value, as far as known.

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
        untold = ValueSpec("", None, None)
        known = [specs.get(name, untold) for name in markable(model)]
        if all(spec.dtype is not None and spec.shape is not None for spec in known):  # a file without ranks is invalid
            return specs
    try:
        return specs | _seen(model, feed(), specs, lab)
    except (EngineError, ModelError, UsageError, StopIteration):
        if source is ShapeSource.RUN:
            raise
        return specs


def _seen(model: Model, feed: Feed, specs: Mapping[str, ValueSpec], lab: Lab) -> dict[str, ValueSpec]:
    found = {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()}
    batches = lab.stream(PLAIN, model, feed, markable(model), specs=specs)
    return found | {name: ValueSpec.of(name, array) for name, array in batches}


def with_seen_shapes(model: Model, feeds: Iterable[Feed], lab: Lab) -> Model:
    """Return a model whose inputs and outputs declare shapes, as onnx.checker wants; itself where none is seen.

    Args:
        model: The model.
        feeds: Its feeds; sizes that differ between them stay open.
        lab: Runs it.
    """
    ends = [spec.name for spec in (*model.inputs, *model.outputs) if spec.shape is None or spec.dtype is None]
    if not ends:
        return model
    merged: dict[str, ValueSpec] = {}
    try:
        for feed in feeds:
            for name, spec in _seen(model, feed, value_specs(model), lab).items():
                before = merged.get(name, spec)
                merged[name] = dataclasses.replace(spec, shape=_common(before.shape, spec.shape))
    except TriageError:
        return model
    return with_specs(model, {name: merged[name] for name in ends if name in merged})


def _common(one: Shape | None, other: Shape | None) -> Shape | None:
    """Return the sizes that two shapes have in common; None for the others, and without a common rank."""
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(size if size == again else None for size, again in zip(one, other, strict=True))
