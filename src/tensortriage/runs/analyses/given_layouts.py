"""The layout of inputs and outputs in another tool's file, found by trial where names and shapes do not show it.

Which tensor is which, and in what order its axes lie, is one of a few readings. Each possible one is run on the same
feed. The reading that is far nearer to the reference's results than every other is right, whatever else is wrong with
the engine, for numbers in a wrong order give results of another input. Nothing is judged by it: the limits of the
engine's error come from elsewhere. Where no reading stands out, the user has to name it.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import certainly_fails, clearly_best, is_minor
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.capabilities import TranslatesFiles
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError, ModelError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import FLOAT64, Lab
from tensortriage.values.text import error_size

PRECISION = "precision"


@frozen_dataclass
class Arranged:
    """The layout in which a given file holds a model.

    Attributes:
        spec: The engine, its options saying so.
        words: Differences from the model, in words; empty where there are none.
        errors: The farthest output's relative error of every way that was tried, the first being the one of ``spec``;
            empty where only one is possible.
        weights: Number format of the file's weights, where it differs from the model's and no option names a format.
    """

    spec: EngineSpec
    words: str
    errors: tuple[float, ...] = ()
    weights: str = ""


def arranged(spec: EngineSpec, model: Model, feed: Feed, reference: EngineSpec, lab: Lab) -> Arranged | None:
    """Find out how a file given to an engine holds a model; None where none is given, or it does not load.

    Args:
        spec: The engine, with the file.
        model: The model.
        feed: The feed to run.
        reference: The engine whose results are assumed to be right.
        lab: The lab that asks engines.

    Raises:
        UsageError: When the layout cannot be determined (``layout-unknown``), or nothing predicts the cost of the
            file's format of weights (``weights-format``).
        EngineError: When the reference fails.
    """
    if not resolve(spec).arranges_file:
        return None
    engine = resolve(spec).engine
    try:
        reported = lab.query(spec, model, feed, "ways")[0]
    except EngineError:
        return None  # running it shows why
    weights, ways = str(reported["weights"]), reported["ways"]
    if weights and PRECISION not in spec.options and PRECISION in engine.options:
        spec = _in_format(spec, weights)
    else:
        weights = ""
    specs = [spec.with_options({**spec.options, **way["options"]}) for way in ways]
    if len(ways) == 1:
        return Arranged(specs[0], ways[0]["words"], weights=weights)
    right = lab.outputs(reference, model, feed)
    errors = [_farthest(each, model, feed, right, lab) for each in specs]
    order = sorted(range(len(errors)), key=errors.__getitem__)
    best, rest = order[0], [errors[number] for number in order[1:]]
    if clearly_best(errors[best], rest):
        return Arranged(specs[best], ways[best]["words"], (errors[best], *rest), weights)
    if ways[0]["evident"]:
        return Arranged(specs[0], ways[0]["words"], tuple(errors), weights)
    shown = " or ".join(_written(ways[number]["options"]) for number in order[:3])
    raise UsageError(
        f"names and shapes do not show how {spec} reads its inputs, and none of {len(ways)} layouts is clearly nearer "
        f"to {reference} than the others: the nearest are off by "
        f"{', '.join(error_size(errors[n]) for n in order[:3])}",
        slug="layout-unknown",
        cure=f"name it in the target: {shown}",
    )


@frozen_dataclass
class HeldNetwork:
    """The computation of a given file.

    Attributes:
        model: The network as an ONNX model with the inputs and outputs of the one it was made of; None where it is
            unknown.
        words: How it was made, or why that is unknown; empty for nothing.
    """

    model: Model | None
    words: str


def holds_network(spec: EngineSpec) -> bool:
    """Return whether an engine is given a file that it translates."""
    engine = resolve(spec).engine
    return isinstance(engine, TranslatesFiles) and engine.arranges(spec.options)


def held_network(spec: EngineSpec, model: Model, feed: Feed, reference: EngineSpec, lab: Lab) -> HeldNetwork | None:
    """Return the computation of a file given to an engine; None without a file, or if the engine reads none.

    The translation is believed if the engine's results on it equal those on the file, at least as far as neither is the
    reference's.

    Args:
        spec: The engine, with the file.
        model: The model that the file was made of, by the user's account.
        feed: The feed to run.
        reference: The engine whose results are assumed to be right.
        lab: The lab that asks engines.
    """
    engine = resolve(spec).engine
    if not isinstance(engine, TranslatesFiles) or not engine.arranges(spec.options):
        return None
    path = lab.remembering.case.runs / f"{resolve(spec).file.stem}.onnx"
    try:
        origin = engine.translated(spec.options, model, path)
        network = Model.load(path)
        built = resolve(spec).builder
        given, own = lab.outputs(spec, model, feed), lab.outputs(built, network, feed)
        right = lab.outputs(reference, model, feed)
        far, off = (_apart(each, given) for each in (right, own))
        doubtful = [name for name, error in off.items() if certainly_fails(error) and not is_minor(error, far[name])]
        if doubtful:  # roundings to integers that fall to the other side
            whole, unrounded = (
                lab.outputs(FLOAT64.with_options(given), network, feed)
                for given in ({"rounding": "results"}, {"quantizers": "unbounded"})
            )
            costs = _apart(whole, unrounded)
            doubtful = [name for name in doubtful if off[name] > costs[name]]
    except (EngineError, ModelError, UsageError) as error:
        return HeldNetwork(None, error.message)
    if doubtful:
        name = max(doubtful, key=lambda name: off[name])
        return HeldNetwork(
            None, f"output '{name}' of the translated file differs from the file's own by {error_size(off[name])}"
        )
    return HeldNetwork(network, origin)


def _apart(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the relative error of each output of the second; infinity where shapes differ."""
    return {
        name: error_of(measure(one[name], array)) if name in one and one[name].shape == array.shape else math.inf
        for name, array in other.items()
    }


def without_format(spec: EngineSpec) -> EngineSpec:
    """Return an engine that is judged as if its file's weights were in float32."""
    return spec.with_options({key: word for key, word in spec.options.items() if key != PRECISION})


def _in_format(spec: EngineSpec, weights: str) -> EngineSpec:
    """Return an engine that is judged in the format of its file's weights."""
    judged = spec.with_options({**spec.options, PRECISION: weights})
    try:
        assert resolve(judged).precision
    except UsageError as error:
        raise UsageError(
            f"the weights of the file given to {spec} are {weights}, and the cost of that is not predicted",
            slug="weights-format",
            cure=f"name the format to judge it in, e.g. {PRECISION}=int8 in the target; errors may be its own",
        ) from error
    return judged


def as_its_file_lies(
    spec: EngineSpec, model: Model, feed: Callable[[], Feed], reference: EngineSpec, lab: Lab
) -> EngineSpec:
    """Return an engine with options for the layout of the file given to it, if any; see `arranged`."""
    if not resolve(spec).arranges_file:
        return spec
    found = arranged(spec, model, feed(), reference, lab)
    return found.spec if found is not None else spec


def _farthest(spec: EngineSpec, model: Model, feed: Feed, right: Mapping[str, np.ndarray], lab: Lab) -> float:
    """Return the largest relative error of an output; infinity where the engine refuses."""
    try:
        found = lab.outputs(spec, model, feed, what=f"trying {spec}")
    except EngineError:
        return math.inf
    shared = [name for name in right if name in found and right[name].shape == found[name].shape]
    if len(shared) < len(right):
        return math.inf
    return max(error_of(measure(right[name], found[name])) for name in shared)


def _written(options: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in options.items())
