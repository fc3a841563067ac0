"""Sanitize: choose outputs and input shapes, infer shapes, fold constants, bound sizes, clean up."""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.api import Feed, FeedRequest, Model
from tensortriage.envelope.sdk import PLAIN, Lab, ValueSpec, feeds_that_run, markable
from tensortriage.model.sdk import (
    clean,
    convert,
    fold_constants,
    needed_for,
    with_inferred_shapes,
    with_input_shapes,
    with_specs,
)
from tensortriage.sdk import (
    Pass,
    Precision,
    SurgeryResult,
    UsageError,
    format_proof,
    operate,
    output_passes,
    unbounded_sizes,
    value_specs,
)
from tensortriage_surgeon.bound import bound
from tensortriage_surgeon.requests import SanitizeRequest


def sanitize(request: SanitizeRequest) -> SurgeryResult:
    """Sanitize a model, prove it, write it.

    Raises:
        TriageError: For whatever is wrong; nothing is written then.
    """
    proof = format_proof(request.proof, Precision.FP16) if request.to_fp16 else request.proof
    return operate("surgeon sanitize", request.source, request.target, lambda model: passes_of(model, request), proof)


def passes_of(model: Model, request: SanitizeRequest) -> Sequence[Pass]:
    """Return the passes of a request, each from a model to another one."""
    passes = output_passes(model, request.outputs)
    if request.input_shapes:
        passes.append(
            ("override-input-shapes", lambda m: with_input_shapes(m, request.input_shapes, strict=request.strict))
        )
    if request.run_for_shapes:
        passes.append(("fallback-shape-inference", lambda m: with_specs(m, specs_by_running(m, request.feeding))))
    if request.fold is not None:
        options = request.fold
        passes.append(("fold-constants", lambda m: fold_constants(m, options)))
    if request.bounds:
        passes.append(("set-unbounded-dds-upper-bound", lambda m: with_bounds(m, request.bounds)))
    if request.clean:
        passes.append(("cleanup", clean))
    if request.to_fp16:
        passes.append(("fp-to-fp16", lambda m: convert(m, Precision.FP16, specs=value_specs(m))))
    if request.infer_shapes:
        passes.append(("shape-inference", with_inferred_shapes))
    return passes or [("sort", lambda m: Model.from_ir(m.clone().ir))]


def with_bounds(model: Model, bounds: Mapping[str, int]) -> Model:
    """Return the model with bounds on its unbounded sizes.

    Args:
        model: The model; it is not changed.
        bounds: By value name; the empty name bounds every unbounded size that is not named.

    Raises:
        UsageError: When there is nothing to bound (``nothing-unbounded``).
    """
    wanted = {name: limit for name, limit in bounds.items() if name}
    if "" in bounds:
        sizes = unbounded_sizes(model.graph)
        wanted = {size.value: bounds[""] for size in sizes if model.graph.producer(size.value)} | wanted
        if not wanted:
            raise UsageError(
                "every data-dependent size of the model is bounded already",
                slug="nothing-unbounded",
                cure="leave out --set-unbounded-dds-upper-bound",
            )
    return bound(model, wanted, specs=value_specs(model))


def specs_by_running(model: Model, feeding: FeedRequest) -> Mapping[str, ValueSpec]:
    """Return type and shape of every tensor of the model, as they are on the first feed.

    Raises:
        EngineError: When ONNX Runtime cannot run the model.
        DataError: When the feeds do not fit.
    """
    feed = feeds_that_run(feeding, model, option="--load-inputs", nan_will_do=True)[0]
    found = {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()}
    with Lab() as lab:
        captured = lab.stream(PLAIN, model, feed, markable(model), specs=value_specs(model))
        return found | {name: ValueSpec.of(name, array) for name, array in captured}


def recorded(model: Model, feed: Feed, values: Sequence[str], *, in_place: bool = False) -> Mapping[str, np.ndarray]:
    """Return values that nodes make, as ONNX Runtime without optimizations computes them; nothing else is computed.

    Args:
        model: The model.
        feed: Its inputs.
        values: Names of the values.
        in_place: Whether the weights are used where they are, which is quicker and rounds otherwise.
    """
    if not values:
        return {}
    pruned = needed_for(model, values)
    names = {spec.name for spec in pruned.inputs}
    with Lab(in_place=in_place) as lab, lab.session(PLAIN, pruned, sequence=True) as run:
        return run({name: array for name, array in feed.tensors.items() if name in names})
