"""What a model makes of inputs that are moved by less than anybody can tell: chance, and what the model amplifies.

A model without floating-point inputs is moved where numbers first appear: at the results of nodes that read integers
and constants only, such as the embeddings of a language model.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.floors import jitter
from tensortriage.inputs.feed import Feed
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import inject, select_outputs
from tensortriage.values.dtype import DType

_FLOATS = (DType.FLOAT, DType.DOUBLE)


def errors_by_chance(inv: Investigation, feed: Feed, names: Sequence[str], draws: int) -> Mapping[str, Sequence[float]]:
    """Return the relative errors that rounding makes at outputs, on inputs moved by up to half a step of the format.

    Raises:
        EngineError: When ONNX Runtime does not evaluate the model.
        ModelError: When the model cannot be rounded.
        UsageError: Likewise.
    """
    first = first_numbers(inv, feed)
    errors: dict[str, list[float]] = {name: [] for name in names}
    if first is None:
        return errors
    rounded = round_results(inv.model, inv.precision, specs=inv.specs(feed), kept=inv.question.kept)
    plain, narrow = (select_outputs(with_overrides(inv, feed, each, first), names) for each in (inv.model, rounded))
    rng, step = np.random.default_rng(0), float(inv.precision.dtype.finfo.eps)
    with inv.lab.session(PLAIN, plain) as exact, inv.lab.session(PLAIN, narrow) as narrowed:
        for _ in range(draws):
            moved = {
                name: (array * (1.0 + step / 2.0 * rng.uniform(-1.0, 1.0, array.shape))).astype(array.dtype)
                if array.dtype.kind == "f"
                else array
                for name, array in (first or feed.tensors).items()
            }
            fed, inside = moved_feed(feed, first, moved)
            right, wrong = exact(fed, injected=inside), narrowed(fed, injected=inside)
            for name in names:
                errors[name].append(error_of(measure(np.asarray(right[name]), np.asarray(wrong[name]))))
    return errors


def amplified(inv: Investigation, feed: Feed, draws: int) -> Mapping[str, float]:
    """Return how far each output of the reference moves when its floating-point inputs move by at most one ulp.

    Raises:
        EngineError: When the reference fails.
    """
    golden, first = inv.golden(feed), first_numbers(inv, feed)
    outputs = [spec.name for spec in inv.model.outputs if spec.name in golden]
    largest = dict.fromkeys(outputs, 0.0)
    if first is None:
        return largest
    model = select_outputs(with_overrides(inv, feed, inv.model, first), outputs) if first else inv.model
    with inv.lab.session(PLAIN if first else inv.question.reference, model) as outputs_of:
        for seed in range(draws):
            fed, inside = moved_feed(feed, first, jitter(first or feed.tensors, seed=seed))
            results = outputs_of(fed, injected=inside)
            for name in outputs:
                if np.shape(results[name]) == golden.spec(name).shape:
                    error = error_of(measure(np.asarray(golden[name]), np.asarray(results[name])))
                    largest[name] = max(largest[name], error)
    return largest


def first_numbers(inv: Investigation, feed: Feed) -> dict[str, np.ndarray] | None:
    """Return the golden values at which a model without floating-point inputs can be moved; empty if it has such.

    None where there are none.
    """
    if any(array.dtype in (np.float32, np.float64) for array in feed.tensors.values()):
        return {}
    golden, graph = inv.golden(feed), inv.model.graph
    constant = graph.constants
    inside = {n for n in golden.names() if golden.spec(n).dtype in _FLOATS and n not in constant}
    # A Cast of integers is exact: 1 - mask is 0 in every engine, and one ulp of it times -10000 no rounding of any.
    exact = {value for node in graph.nodes if node.op_type == "Cast" for value in node.outputs}
    makers = [(node, value) for node in graph.nodes for value in node.outputs if value in inside - exact]
    return {value: np.asarray(golden[value]) for node, value in makers if not inside.intersection(node.uses)} or None


def with_overrides(inv: Investigation, feed: Feed, model: Model, first: Mapping[str, np.ndarray]) -> Model:
    """Return a model whose first numbers can be fed, where it has no floating-point inputs."""
    return inject(model, list(first), specs=inv.specs(feed)) if first else model


def moved_feed(
    feed: Feed, first: Mapping[str, np.ndarray], moved: Mapping[str, np.ndarray]
) -> tuple[Feed, Mapping[str, np.ndarray]]:
    """Return a feed with moved inputs, or itself with the moved numbers that are injected into the model."""
    return (feed, moved) if first else (dataclasses.replace(feed, name=f"{feed.name} moved", tensors=moved), {})
