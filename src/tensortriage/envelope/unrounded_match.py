"""Does a file represent a network, although it stores or computes rounded numbers? And what is the cost of rounding?

A quantized or narrow file is evaluated as it was before it was rounded: its quantizers pass numbers on unrounded, its
constants stay. That is the network it stands for, however its nodes were fused, folded or renamed, up to the rounding
of its constants. The effect of that is measured by moving each constant by up to half of its step at random: a right
file lies about as far from its network as two such draws lie from it, and a wrong weight, scale, zero point, axis or
attribute further. Nothing is matched for that, neither nodes nor names.

The effect of a Clip or Relu that lives in the range of a quantizer is kept by cutting off as quantizers do; where a
range is too narrow on purpose, cutting off is itself part of the cost of rounding. So a file stands for a network that
it comes near to in either way.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.thresholds import DRAWS_OF_STORED
from tensortriage.compare.judgement.within import within_limit
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope import limits
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED, FORMS
from tensortriage.envelope.limits import Limit
from tensortriage.errors import DataError, EngineError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.model.inspect.output_parts import OutputPart, output_parts, with_parts
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import is_quantized
from tensortriage.model.quantization.quantizer_tools import corrects_biases
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.model.transforms.widen import narrow_nodes, stores_narrow
from tensortriage.runs.lab import Lab

_BIASED = frozenset({"Conv", "ConvTranspose", "Gemm", "Add"})
"""Operators whose biases are corrected: not the gains and shifts of normalizations."""
_BIAS_KEPT = 1e-5
"""Relative difference up to which a bias is the original's: folding a normalization in float32 moves it by less."""

_ENOUGH_ELEMENTS = 1000
"""Elements of an output from which more samples sharpen a comparison by less than a dB: 26 / sqrt(n) dB are allowed for
chance."""

MOST_FEEDS = 4
"""Feeds on which a file is compared with a network at most, all together."""

Arrays = Mapping[str, np.ndarray]


def enough(network: Sequence[Arrays]) -> bool:
    """Return whether outputs on given feeds suffice to compare a file with: more add little, and cost as much.

    Args:
        network: The outputs of the network on each feed, by name.
    """
    if len(network) >= MOST_FEEDS:
        return True
    counts = (sum(int(np.size(each[name])) for each in network) for name in (network[0] if network else ()))
    return min(counts, default=0) >= _ENOUGH_ELEMENTS


def is_rounded(file: Model) -> bool:
    """Return whether a file stores or computes numbers rounded: quantized, or in fp16 or bf16."""
    return is_quantized(file.graph) or bool(narrow_nodes(file)) or stores_narrow(file.graph)


@frozen_dataclass
class Standing:
    """One output of a file compared with its presumed network; errors are relative to the network's RMS.

    Attributes:
        error: How far the unrounded file is from the network.
        noise: How far another rounding of the file's constants moves the unrounded file at most, in a few draws.
        limit: The largest error of a file that stands for the network.
        cost: Distance of the file, computed as it is, from its unrounded form.
        cutting: The part of the cost that is cutting off; 0 where the unrounded form cuts off as well.
        own_error: Distance of the file, computed as it is, from the network.
    """

    error: float
    noise: float
    limit: float
    cost: float
    cutting: float
    own_error: float

    @property
    def is_same(self) -> bool:
        """Whether the file represents the network, as far as this output shows."""
        return within_limit(self.error, self.limit)

    @property
    def is_of_network(self) -> bool:
        """Whether the values given as the network's are not the file's own, which would be nearer to the file."""
        return self.error < self.own_error

    @property
    def allowed(self) -> Limit:
        """The largest error of a healthy engine that runs the file, against the network."""
        return limits.of_engine_on_file(self.cost, self.noise, self.limit)


@frozen_dataclass
class UnroundedMatch:
    """A file compared with its presumed network.

    Attributes:
        outputs: By output of the network that holds floating-point numbers.
        unrounded: The evaluation of the unrounded form that is nearest to the network, of `FORMS`.
        lacking: Outputs of the network that the file does not have, or in another shape.
    """

    outputs: Mapping[str, Standing]
    unrounded: EngineSpec
    lacking: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Whether the file represents the network."""
        return bool(self.outputs) and not self.lacking and all(each.is_same for each in self.outputs.values())

    def with_costs_of(self, file: Self) -> Self:
        """Return it with the cost of corrected biases added: those of the file as it is.

        Args:
            file: The match of the file with its own biases.
        """
        found = {
            name: dataclasses.replace(each, cost=max(each.cost, file.outputs[name].own_error))
            for name, each in self.outputs.items()
        }
        return dataclasses.replace(self, outputs=found)

    @property
    def worst(self) -> str:
        """The output that is farthest from the network, by its limit."""
        return max(self.outputs, key=lambda name: self.outputs[name].error / max(self.outputs[name].limit, 1e-300))

    @classmethod
    def of(
        cls,
        lab: Lab,
        file: Model,
        network: Sequence[tuple[Feed, Arrays]],
        floors: Mapping[str, float],
        parts: Sequence[OutputPart] = (),
    ) -> Self:
        """Compare a file with a network.

        Args:
            lab: Evaluates the file, in float64.
            file: The file.
            network: Feeds, and the network's outputs on each by name.
            floors: Relative fp32 floors of the network's outputs.
            parts: Parts that the outputs are composed of.

        Raises:
            EngineError: When the file cannot be evaluated.
            DataError: When the feeds do not fit it.
            UsageError: When an operator of it has no arithmetic here.
        """
        right = _joined([with_parts(outputs, parts) for _, outputs in network])
        fed = [check_feed(feed, file.inputs, casting=Casting.ROUND) for feed, _ in network]

        shapes = [{name: np.shape(array) for name, array in outputs.items()} for _, outputs in network]
        lacking: set[str] = set()

        def evaluated(spec: EngineSpec, fed: Sequence[Feed] = fed) -> Arrays:
            found = [lab.outputs(spec, file, feed, what=f"evaluating {spec}") for feed in fed]
            for own, wanted in zip(found, shapes, strict=True):
                lacking.update(n for n, shape in wanted.items() if n not in own or own[n].shape != shape)
            return _joined([with_parts(own, parts) for own in found])

        forms = [evaluated(spec) for spec in FORMS]
        names = [name for name in right if right[name].dtype.kind == "f" and all(name in form for form in forms)]
        names = [name for name in names if name not in lacking]
        apart = [_errors(names, right, form) for form in forms]
        nearest = min(range(len(FORMS)), key=lambda index: max(apart[index].values(), default=math.inf))
        unrounded, centre, errors = FORMS[nearest], forms[nearest], apart[nearest]
        draws = []
        for number in range(1, DRAWS_OF_STORED + 1):
            moved_inputs = [_moved(each, given, number) for each, (given, _) in zip(fed, network, strict=True)]
            draws.append(evaluated(unrounded.with_options({**unrounded.options, "draw": str(number)}), moved_inputs))
        moved = [_errors(names, centre, draw, right) for draw in draws]
        rounded = evaluated(CORRECTLY_ROUNDED)
        costs, own = _errors(names, centre, rounded, right), _errors(names, right, rounded)
        cutting = _errors(names, centre, forms[0], right)
        outputs = {}
        for name in names:
            noise = max(draw[name] for draw in moved)
            limit = limits.of_file(noise, floors.get(name, 0.0), right[name].size)
            outputs[name] = Standing(errors[name], noise, limit, costs[name], cutting[name], own[name])
        return cls(outputs, unrounded, tuple(sorted(lacking)))


def match_of_file(
    lab: Lab, matched: Correspondence, network: Sequence[tuple[Feed, Arrays]], floors: Mapping[str, float]
) -> tuple[UnroundedMatch, int]:
    """Compare a file with a network, and once more with its original biases; return how many of these count.

    Raises:
        TriageError: As `UnroundedMatch.of`.
    """
    parts = output_parts(matched.original, network[0][0].tensors)
    match = UnroundedMatch.of(lab, matched.changed, network, floors, parts)
    if not match.is_same and (others := other_biases(matched)):
        restored = UnroundedMatch.of(lab, freeze(matched.changed, others), network, floors, parts)
        if restored.is_same:
            return restored.with_costs_of(match), len(others)
    return match, 0


def other_biases(matched: Correspondence) -> dict[str, np.ndarray]:
    """Return the original's biases where a file has others, by their names in the file; none where only one is another.

    Quantizers correct the biases of layer after layer for the mean shift by rounding (Nagel et al. 2019, "Data-Free
    Quantization Through Weight Equalization and Bias Correction"; NNCF by default). If one bias alone differs, that is
    a mistake, unless the tool declares that it corrects them.
    """
    found = {}
    for now, was in matched.constants.items():
        if now not in matched.changed.graph.constants:
            continue
        other, bias = matched.changed.graph.weight(now), matched.original.graph.weight(was)
        added = all(node.op_type in _BIASED for node in matched.original.graph.consumers(was))
        alike = added and other.shape == bias.shape and other.dtype == bias.dtype == np.float32 and _is_bias(bias)
        if alike and not np.allclose(other, bias, rtol=_BIAS_KEPT, atol=0.0):
            found[now] = bias
    return found if len(found) > 1 or corrects_biases(matched.changed) else {}


def _is_bias(array: np.ndarray) -> bool:
    """Return whether a constant has one number for each channel, whatever axes of size 1 it has besides."""
    return array.size > 1 and max(array.shape) == array.size


def _moved(fed: Feed, given: Feed, draw: int) -> Feed:
    """Return a feed whose narrowed inputs are rounded another way.

    An element moves by a spacing with a chance of 1/12, up or down: as much variance as rounding to nearest makes.
    """
    rng, moved = np.random.default_rng([draw, len(fed.tensors)]), {}
    for name, array in fed.tensors.items():
        if array.dtype.itemsize < given.tensors[name].dtype.itemsize and array.dtype.kind in "fV":
            chance = rng.uniform(0.0, 24.0, array.shape)
            way = np.where(chance < 1.0, -np.inf, np.inf).astype(array.dtype)
            moved[name] = np.where(chance < 2.0, np.nextafter(array, way), array)
    return dataclasses.replace(fed, name=f"{fed.name}, draw {draw}", tensors={**fed.tensors, **moved}) if moved else fed


def _joined(feeds: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """Return each output on all feeds, one after the other, as a vector."""
    names = [name for name in feeds[0] if all(name in each for each in feeds)]
    return {name: np.concatenate([np.asarray(each[name]).ravel() for each in feeds]) for name in names}


def _errors(names: Sequence[str], right: Arrays, found: Arrays, signal: Arrays | None = None) -> dict[str, float]:
    """Return relative RMS errors by name; inf for another number of elements.

    Args:
        names: Names of vectors.
        right: The values to compare with.
        found: They.
        signal: The scale of the errors; ``right`` when left out.
    """
    errors = {}
    for name in names:
        one, other = right[name].astype(np.float64), found[name].astype(np.float64)
        if one.shape != other.shape:
            errors[name] = math.inf
            continue
        figure = measure(one, other)
        error = math.inf if figure.nonfinite_mismatch else error_of(figure)
        if signal is not None and math.isfinite(error):
            whole = float(np.sqrt(np.mean(np.square(signal[name], dtype=np.float64))))
            error = figure.rms_error / whole if whole else (math.inf if figure.rms_error else 0.0)
        errors[name] = error
    return errors


class FileStanding:
    """Compares a file with results of its presumed network, feed after feed.

    A quantized or narrow file may be off by the cost of its own rounding, provided that it stands for the network at
    all. Neither enters the limit of a target's results.

    Args:
        file: The file.
        original: The network, where it is at hand.
        lab: The lab that evaluates it.

    Attributes:
        beside: The network and the file; the file twice where the network is not at hand.
    """

    def __init__(self, file: Model, original: Model | None = None, *, lab: Lab) -> None:
        self._file, self._lab = file, lab
        self.beside = Correspondence.of(original or file, file)
        self._seen: dict[str, tuple[Feed, Arrays]] = {}
        self._known: tuple[int, UnroundedMatch | None] = 0, None

    def limits(self, feed: Feed, network: Arrays, *, could_be_own: bool = False) -> dict[str, Limit]:
        """Return the largest error of each output; none where the file is another network's, or rounds nothing.

        All available feeds are compared with the network together, which reduces the effect of chance.

        Args:
            feed: A feed.
            network: The network's outputs on it.
            could_be_own: Whether they may be the file's own: then only those nearer to the network's have limits.
        """
        if not is_rounded(self._file):
            return {}
        if feed.name not in self._seen and not enough([outputs for _, outputs in self._seen.values()]):
            own = {spec.name for spec in self._file.outputs}
            self._seen[feed.name] = feed, {name: array for name, array in network.items() if name in own}
        match = self.match()
        if match is None or not match.is_same:
            return {}
        return {name: each.allowed for name, each in match.outputs.items() if each.is_of_network or not could_be_own}

    def match(self) -> UnroundedMatch | None:
        """Return the comparison on all feeds so far; None where it cannot be made."""
        if self._known[0] != len(self._seen):
            try:
                found = match_of_file(self._lab.remembering, self.beside, list(self._seen.values()), {})[0]
            except (EngineError, UsageError, DataError):
                found = None
            self._known = len(self._seen), found
        return self._known[1]
