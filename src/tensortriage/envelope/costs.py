"""The cost of explanations: the few functions by which the cost of a row of the registry is found.

Each takes the model and its feed (`Setting`), the floors that were measured with it, the rows that a target takes
together, and the names of values; it returns relative errors by value. None looks at the target's results.
"""

import contextlib
import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import difference
from tensortriage.engines.cpu_features import PAIRED_BY_TAP, sums_in_int16
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.distances import by_value, distances
from tensortriage.envelope.evaluations import Healthy
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED, UNROUNDED, Explanation
from tensortriage.envelope.limits import BESIDE_A_TIE
from tensortriage.envelope.setting import Floors, Setting
from tensortriage.errors import EngineError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.synthetic.jitter import jitter
from tensortriage.model.inspect.output_parts import whole, with_parts
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.model.quantization.int8_products import unsigned_weights
from tensortriage.model.quantization.int16_products import int16_products
from tensortriage.model.quantization.qdq import integer_biases
from tensortriage.model.quantization.whole_numbers import beside_ties
from tensortriage.model.transforms.mark_outputs import inject, select_outputs
from tensortriage.values.dtype import DType
from tensortriage.values.store import MemoryStore, TensorStore

Arrays = Mapping[str, np.ndarray]
Together = Sequence[Explanation]
_FLOATS = (DType.FLOAT, DType.DOUBLE)


def of_orders(_: Setting, floors: Floors, __: Together, values: Sequence[str]) -> dict[str, float]:
    """Return the fp32 floors."""
    return {name: floors.fp32[name] for name in values if name in floors.fp32}


def of_format(_: Setting, floors: Floors, __: Together, values: Sequence[str]) -> dict[str, float]:
    """Return the predicted cost of rounding to the target's format."""
    return {name: floors.target[name] for name in values if name in floors.target}


def of_freedoms(
    setting: Setting, _: Floors | None, together: Together, values: Sequence[str], *, what: str = ""
) -> dict[str, float]:
    """Return the error that an engine makes which takes several freedoms at once.

    Args:
        setting: The model, its feed and its format.
        together: Freedoms, all of them taken.
        values: Values to measure, in topological order.
        what: Progress line.

    Returns:
        By value name; inf where an evaluation is not finite, and nothing where a shape depends on the arithmetic.

    Raises:
        EngineError: When the model cannot be evaluated.
        UsageError: Likewise.
    """
    healthy = Healthy.of(setting.model, setting.precision, tuple(together))
    what = what or "the model with the chosen freedoms"
    wanted = whole(values, setting.parts)
    found = distances(setting, wanted, healthy.with_freedoms, what=what)
    costs = {value: healthy.cost_of_freedoms(each) for value, each in by_value(found).items()}
    return {value: cost for value, cost in costs.items() if cost is not None}


def of_rewrite(setting: Setting, _: Floors, together: Together, values: Sequence[str]) -> dict[str, float]:
    """Return the error of a row's rewritten model on the reference, by output.

    Raises:
        EngineError: When the reference cannot run it.
        DataError: When the feed does not fit it.
    """
    for each in together:
        if (model := each.rewrite(setting.model)) is not None:
            errors = output_errors(setting, model)
            return {name: error for name, error in errors.items() if name in values}
    return {}


def output_errors(setting: Setting, model: Model) -> dict[str, float]:
    """Return the relative errors of another model's outputs, and their parts, on the reference; inf for another shape.

    Raises:
        EngineError: When the reference cannot run the model.
        DataError: When the feed does not fit it.
    """
    fed = check_feed(setting.feed, model.inputs, casting=Casting.ROUND)
    outputs = with_parts(setting.lab.outputs(setting.reference, model, fed), setting.parts)
    return {name: difference(right, outputs[name]) for name, right in setting.right.items() if name in outputs}


# -- what kernels of some processors lose ------------------------------------------------------------------------------

_DRAWN = UNROUNDED.with_options({**UNROUNDED.options, "draw": "1"})
"""An unrounded file whose stored integers are another rounding of its weights."""


def of_int16(setting: Setting, _: Floors, __: Together, values: Sequence[str]) -> dict[str, float]:
    """Return the loss of such kernels at outputs, at most the cost of rounding to 8 bits.

    Both are evaluated in float64: a reference on this processor may lose as much, and would excuse the target. Of an
    engine whose kernels nobody knows, at most what it does otherwise where its int8 weights are uint8 ones.

    Raises:
        EngineError: When the model cannot be evaluated.
        DataError: When the feed does not fit it.
    """
    if not sums_in_int16(setting.target.name):
        return {}
    rounded, by_tap = integer_biases(setting.model) or setting.model, setting.target.name in PAIRED_BY_TAP
    model = int16_products(rounded, by_tap=by_tap)
    if model is None:
        return {}
    exact = dataclasses.replace(setting, reference=CORRECTLY_ROUNDED, golden_outputs=lambda: _exact(setting))
    found = output_errors(exact, model)
    if any(found.values()) and setting.target.name not in ("onnxruntime", "openvino"):
        found = _by_weights(setting, found)
    own = rounding_costs(exact) if any(found.values()) else {}
    return {name: min(lost, own.get(name, 0.0)) for name, lost in found.items() if name in values}


def _by_weights(setting: Setting, foreseen: dict[str, float]) -> dict[str, float]:
    """Return what is foreseen, at most what uint8 weights change; all where the target does not run on these."""
    other = unsigned_weights(setting.model)
    with contextlib.suppress(EngineError):
        if other is not None:
            ours = (setting.lab.outputs(setting.target, model, setting.feed) for model in (setting.model, other))
            made, same = (with_parts(outputs, setting.parts) for outputs in ours)
            return {name: min(lost, difference(made[name], same[name])) for name, lost in foreseen.items()}
    return foreseen


def _exact(setting: Setting) -> TensorStore:
    return MemoryStore(setting.lab.outputs(CORRECTLY_ROUNDED, setting.model, setting.feed))


def rounding_costs(setting: Setting) -> Mapping[str, float]:
    """Return the cost of rounding activations and weights at outputs, whatever the engine.

    Raises:
        EngineError: When the model cannot be evaluated.
    """
    plain, drawn = (
        with_parts(setting.lab.outputs(spec, setting.model, setting.feed), setting.parts)
        for spec in (UNROUNDED, _DRAWN)
    )
    costs = {
        name: (difference(setting.right[name], plain[name]), difference(plain[name], drawn[name])) for name in plain
    }
    return {name: math.hypot(*both) for name, both in costs.items() if all(map(math.isfinite, both))}


# -- inputs that are moved by less than anybody can tell ---------------------------------------------------------------


def of_draws(setting: Setting, _: Floors, together: Together, values: Sequence[str]) -> dict[str, float]:
    """Return the largest errors of given draws of rounding to the format; see `drawn`."""
    return {name: largest(errors) for name, errors in drawn(setting, values, together[0].draws).items()}


def drawn(setting: Setting, names: Sequence[str], draws: int) -> dict[str, list[float]]:
    """Return the relative errors that rounding makes at outputs, on inputs moved by up to half a step of the format.

    The case keeps them: reports show the draws that the judge used.

    Raises:
        EngineError: When ONNX Runtime does not evaluate the model.
        ModelError: When the model cannot be rounded.
        UsageError: Likewise.
    """
    sources = setting.target, setting.model, setting.feed, list(names), draws, list(setting.kept)
    kept = setting.lab.derived(dict[str, list[float]], "the cost of rounding by chance", *sources)
    return kept.of(lambda: _drawn(setting, names, draws))


def _drawn(setting: Setting, names: Sequence[str], draws: int) -> dict[str, list[float]]:
    first = first_numbers(setting)
    errors: dict[str, list[float]] = {name: [] for name in names}
    if first is None:
        return errors
    rounded = round_results(setting.model, setting.precision, specs=setting.specs(), kept=setting.kept)
    wanted = whole(names, setting.parts)
    plain, narrow = (select_outputs(_fed_inside(setting, each, first), wanted) for each in (setting.model, rounded))
    rng, step = np.random.default_rng(0), float(setting.precision.dtype.finfo.eps)
    with setting.lab.session(PLAIN, plain) as exact, setting.lab.session(PLAIN, narrow) as narrowed:
        for _ in range(draws):
            moved = {
                name: (array * (1.0 + step / 2.0 * rng.uniform(-1.0, 1.0, array.shape))).astype(array.dtype)
                if array.dtype.kind == "f"
                else array
                for name, array in (first or setting.feed.tensors).items()
            }
            fed, inside = _moved_feed(setting.feed, first, moved)
            right, wrong = (with_parts(run(fed, injected=inside), setting.parts) for run in (exact, narrowed))
            for name in names:
                errors[name].append(difference(np.asarray(right[name]), np.asarray(wrong[name])))
    return errors


def of_moved_inputs(setting: Setting, _: Floors, together: Together, values: Sequence[str]) -> dict[str, float]:
    """Return how far each output of the reference moves at most when its floating-point inputs move by one ulp.

    Raises:
        EngineError: When the reference fails.
    """
    first, outputs = first_numbers(setting), setting.outputs
    errors: dict[str, list[float]] = {name: [] for name in setting.right if name in values}
    if first is None:
        return dict.fromkeys(errors, 0.0)
    model = select_outputs(_fed_inside(setting, setting.model, first), outputs) if first else setting.model
    with setting.lab.session(PLAIN if first else setting.reference, model) as outputs_of:
        for seed in range(together[0].draws):
            fed, inside = _moved_feed(setting.feed, first, jitter(first or setting.feed.tensors, seed=seed))
            results = with_parts(outputs_of(fed, injected=inside), setting.parts)
            for name, found in errors.items():
                if name in results and np.shape(results[name]) == setting.right[name].shape:
                    found.append(difference(setting.right[name], results[name]))
    return {name: largest(found) for name, found in errors.items()}


def of_ties(setting: Setting, _: Floors, __: Together, values: Sequence[str]) -> dict[str, float]:
    """Return the cost at outputs of all numbers beside a tie that fall on its other side, above and below.

    Raises:
        EngineError: When the reference fails.
    """
    shares = (BESIDE_A_TIE, -BESIDE_A_TIE)
    models = [model for share in shares if (model := beside_ties(setting.model, share)) is not None]
    each = [output_errors(setting, model) for model in models]
    return {name: sum(errors.get(name, 0.0) for errors in each) for name in values}


def largest(errors: Sequence[float]) -> float:
    """Return the largest of given errors, 0 of none; inf, which allows nothing, where one is NaN or Inf."""
    return max(errors, default=0.0) if all(map(math.isfinite, errors)) else math.inf


def first_numbers(setting: Setting) -> dict[str, np.ndarray] | None:
    """Return the golden values at which a model without floating-point inputs can be moved; empty if it has such.

    These are where numbers first appear: results of nodes that read integers and constants only, such as the embeddings
    of a language model. None where there are none.
    """
    if any(array.dtype in (np.float32, np.float64) for array in setting.feed.tensors.values()):
        return {}
    golden, graph = setting.golden(), setting.model.graph
    constant = graph.constants
    inside = {n for n in golden.names() if golden.spec(n).dtype in _FLOATS and n not in constant}
    # A Cast of integers is exact: 1 - mask is 0 in every engine, and one ulp of it times -10000 no rounding of any.
    exact = {value for node in graph.nodes if node.op_type == "Cast" for value in node.outputs}
    makers = [(node, value) for node in graph.nodes for value in node.outputs if value in inside - exact]
    return {value: np.asarray(golden[value]) for node, value in makers if not inside.intersection(node.uses)} or None


def _fed_inside(setting: Setting, model: Model, first: Arrays) -> Model:
    """Return a model whose earliest numbers can be fed, where it has no floating-point inputs."""
    return inject(model, list(first), specs=setting.specs()) if first else model


def _moved_feed(feed: Feed, first: Arrays, moved: Arrays) -> tuple[Feed, Arrays]:
    """Return a feed with moved inputs, or itself with the moved numbers that are injected into the model."""
    return (feed, moved) if first else (dataclasses.replace(feed, name=f"{feed.name} moved", tensors=moved), {})
