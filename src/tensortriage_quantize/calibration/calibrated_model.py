"""8-bit models with explicit Q/DQ pairs, scales from samples: calibrated once, written for any choice of nodes.

Calibration is ONNX Runtime's; the choice of values that get a pair, and of their types, follows the engine that will
run the model (`tensortriage_quantize.pairs.engine_styles`). The ranges are measured once and reused, so that a search
may try many choices of nodes at the cost of writing the pairs alone.
"""

import contextlib
import copy
import dataclasses
import enum
import functools
import io
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from tensortriage.api import Feed, Model
from tensortriage.precision.sdk import PLAIN, ExternalData, Lab, Precision
from tensortriage.sdk import ModelError, UsageError, value_specs
from tensortriage_quantize.calibration.work_shares import shares
from tensortriage_quantize.pairs.engine_styles import PairPlaces, engine_style
from tensortriage_quantize.pairs.pair_insertion import PairOptions, insert_pairs
from tensortriage_quantize.pairs.pair_placement import PairPlan, feeding, heavy_nodes, place_pairs

_CHEAP_SHARE = 0.01
"""Share of a model's multiplications below which a product stays float where no integer kernel needs it: it takes
hardly any time, and in 8 bits its rounding reaches the output like any other's. Left float, the classifier of a small
ResNet and the last Conv of a U-Net (0.1 and 0.3 %) take 10 and 45 % off the output error, and no run is slower."""

OP_TYPES = ("Conv", "ConvTranspose", "Gemm", "MatMul")
"""Operators whose operands are quantized by default: those with enough arithmetic to gain from it."""

_EXTERNAL_BYTES = 1 << 30
_BINS = 2048
"""Bins of the histograms that percentile ranges are read from."""

_ENTROPY_BINS, _LEVELS = 512, 128
"""Bins of the histograms that entropy cuts, and the levels of one sign it weighs a cut by (Migacz, 8-bit Inference with
TensorRT, GTC 2017). ONNX Runtime's own defaults have as many bins as levels, which leaves nothing to cut; its time
grows with the square of the bins."""


class Calibration(enum.Enum):
    """The choice of a tensor's range from the values seen; the value is the word on the command line."""

    MINMAX = "minmax"
    ENTROPY = "entropy"
    PERCENTILE = "percentile"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeOptions:
    """Settings of quantization.

    Attributes:
        precision: int8 or fp8e4m3.
        calibration: How ranges are chosen.
        percentile: Share of the values, in percent, that a percentile range covers.
        per_channel: Whether weights have a scale per output channel.
        float_weights: Whether weights stay float with a Q/DQ pair of their own; else they are stored in 8 bits.
        reduce_range: Whether int8 weights use 7 bits, so that sums of two products fit in the int16 of kernels for x86
            without VNNI.
        op_types: Operators whose operands are quantized, as far as the engine can; TensorRT-Model-Optimizer chooses by
            itself.
        engine: The engine that will run the model, by a word of `engine_styles`.
    """

    precision: Precision = Precision.INT8
    calibration: Calibration = Calibration.MINMAX
    percentile: float = 99.99
    per_channel: bool = True
    float_weights: bool = False
    reduce_range: bool = False
    op_types: Sequence[str] = OP_TYPES
    engine: str = "tensorrt"

    def __post_init__(self) -> None:
        if self.precision not in (Precision.INT8, Precision.FP8E4M3):
            raise UsageError(
                f"{self.precision.value} is not a format for quantization by scales",
                slug="quantize-precision",
                cure="use int8 or fp8e4m3",
            )


class ModelQuantizer:
    """Quantizes one model by one calibration of ONNX Runtime.

    Args:
        model: The float model; it is not changed.
        feeds: Calibration samples, at least one.
        options: How.
        folder: An existing folder for the files this needs; quantized models read their weights from there.
        lab: Keeps the ranges, so that they are measured once in a case.
    """

    def __init__(
        self, model: Model, feeds: Sequence[Feed], options: QuantizeOptions, *, folder: Path, lab: Lab
    ) -> None:
        self._lab = lab
        self._feeds = feeds
        self._folder = folder
        self._options = options
        self._model = model
        float8 = options.precision is Precision.FP8E4M3  # which is symmetric and for GPUs
        self._style = engine_style("tensorrt" if float8 else options.engine)
        self._specs = value_specs(model)
        found = heavy_nodes(model.graph, self._style, options.op_types, self._specs)
        cheap = self._cheap(found) if self._style.places is PairPlaces.RUNS else frozenset()
        self.nodes = tuple(name for name in found if name not in cheap) or found
        self._source = folder / "float.onnx"
        model.save(self._source, external_data=ExternalData.KEEP)
        weights = [value.const_value for value in model.ir.graph.initializers.values()]
        self._large = sum(weight.nbytes for weight in weights if weight is not None) > _EXTERNAL_BYTES
        if not self.nodes:
            raise ModelError(
                f"the model has no {', '.join(options.op_types)} to quantize",
                slug="quantize-nothing",
                cure="8 bits would gain nothing in this model",
            )
        self._whole = self._plan(())
        self._always: frozenset[str] = frozenset()

    @property
    def choices(self) -> Collection[str] | None:
        """The nodes to choose from; None for all.

        An operator between integer kernels is none: it reads integers as long as those make some.
        """
        return frozenset(self.nodes) if self._style.places is PairPlaces.RUNS else None

    def quantized(self, kept: Collection[str] = (), *, float_weights: bool | None = None) -> Model:
        """Return the model with Q/DQ pairs at the operands of every node that can be quantized, but those kept.

        Args:
            kept: Names of nodes that stay as they are.
            float_weights: Another choice than that of the options.

        Raises:
            ModelError: When ONNX Runtime's calibration refuses the model (``quantize-failed``).
        """
        options = self._options
        float8 = options.precision is Precision.FP8E4M3
        given = PairOptions.of(
            self._style,
            per_channel=options.per_channel and not float8,
            float_weights=options.float_weights if float_weights is None else float_weights,
            seven_bits=options.reduce_range,
        )
        if float8:
            kind = options.precision.dtype
            given = dataclasses.replace(given, activation=kind, right=kind, weight=kind, symmetric=True)
        return insert_pairs(self._model, self._plan({*self._always, *kept}), self.ranges, given)

    def keeping(self, kept: Collection[str]) -> Self:
        """Return the same quantizer, with given nodes left float in any case."""
        other = copy.copy(self)
        other._always = frozenset(kept)
        return other

    def _cheap(self, nodes: Sequence[str]) -> frozenset[str]:
        """Return the nodes that gain nothing in 8 bits, and still cost a rounding: see `_CHEAP_SHARE`."""
        graph = self._model.graph
        found = {name for name, share in shares(graph, self._specs, nodes).items() if share < _CHEAP_SHARE}
        kernels = {name for name in nodes if graph.node(name).op_type in self._style.closed}
        ends = kernels.difference(feeding(graph, kernels))
        return frozenset(found.difference(kernels - ends))

    def _plan(self, kept: Collection[str]) -> PairPlan:
        left = set(self.nodes).difference(kept)
        return place_pairs(self._model, self._style, left, self._specs, kept)

    @functools.cached_property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """The calibrated range of every value that is quantized, weights aside: lowest and highest number by name."""
        wanted = {pair.like for pair in self._whole.pairs} | {pair.value for pair in self._whole.pairs}
        try:
            with _quiet():
                found = self._calibrated(self._options.calibration)
                if self._options.calibration is not Calibration.MINMAX and not self._style.symmetric:
                    seen = self._calibrated(Calibration.MINMAX)
                    found = {name: _common(found[name], seen.get(name, found[name])) for name in found}
        except Exception as error:  # calibrators raise exceptions of any of their libraries
            raise ModelError(
                f"ONNX Runtime's calibration refuses the model: {error}",
                slug="quantize-failed",
                cure="fold and clean it first: triage surgeon sanitize MODEL --fold-constants -o clean.onnx",
            ) from error
        graph = self._model.graph
        constant = {name: graph.weight(name) for name in wanted if name in graph.constants}
        spans = {name: (float(array.min()), float(array.max())) for name, array in constant.items() if array.size}
        return {name: found[name] for name in found if name in wanted} | spans

    def _calibrated(self, calibration: Calibration) -> dict[str, tuple[float, float]]:
        """Calibrate, or read the ranges of an earlier calibration."""
        from onnxruntime.quantization import load_tensors_data

        cache = self._folder / f"ranges-{calibration.value}.json"
        words = (self._words(calibration), self._op_types, [feed.digest for feed in self._feeds])
        found = self._lab.derived(str, f"ranges by {calibration.value}", PLAIN, self._model, *words)
        cache.write_text(found.of(functools.partial(self._measured, calibration)))
        return {
            name: (float(np.min(data.range_value[0])), float(np.max(data.range_value[1])))
            for name, data in load_tensors_data(cache).items()
        }

    @functools.cached_property
    def _op_types(self) -> list[str]:
        """Operators whose operands and results all get a pair."""
        graph = self._model.graph
        found = set()
        for pair in self._whole.pairs:
            maker = graph.producer(pair.like)
            found |= {maker.op_type} if maker is not None else {user.op_type for user in graph.consumers(pair.like)}
        return sorted(found)

    def _measured(self, calibration: Calibration) -> str:
        """Return the ranges of ONNX Runtime's calibrator, in its own format."""
        from onnxruntime.quantization import create_calibrator, save_tensors_data

        calibrator = create_calibrator(
            str(self._source),
            self._op_types,
            str(self._folder / "calibrating.onnx"),
            calibrate_method=_method(calibration),
            use_external_data_format=self._large,
            extra_options=self._words(calibration),
        )
        calibrator.collect_data(_Reader(self._feeds))
        made = self._folder / "measured.json"
        save_tensors_data(calibrator.compute_data(), made)
        return made.read_text()

    def _words(self, calibration: Calibration) -> dict[str, Any]:
        options, symmetric = self._options, self._style.symmetric
        if calibration is Calibration.MINMAX:
            return {}
        if calibration is Calibration.ENTROPY:
            return {"num_bins": _ENTROPY_BINS, "num_quantized_bins": _LEVELS, "symmetric": True}
        return {"num_bins": _BINS, "percentile": options.percentile, "symmetric": symmetric}


def _common(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return the intersection of two ranges, 0 included."""
    return min(max(one[0], other[0]), 0.0), max(min(one[1], other[1]), 0.0)


def _method(calibration: Calibration) -> Any:
    from onnxruntime.quantization import CalibrationMethod

    return {
        Calibration.MINMAX: CalibrationMethod.MinMax,
        Calibration.ENTROPY: CalibrationMethod.Entropy,
        Calibration.PERCENTILE: CalibrationMethod.Percentile,
    }[calibration]


class _Reader:
    """Hands samples to ONNX Runtime's calibrators, one at a time (``CalibrationDataReader`` by shape, not by base)."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._rest = iter(feeds)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next sample, None when there is none left."""
        feed = next(self._rest, None)
        return None if feed is None else dict(feed.tensors)

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        return (dict(feed.tensors) for feed in self._rest)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the quantizer's advice out of the log: its caller has done that pre-processing or need not do it."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        root.setLevel(level)
