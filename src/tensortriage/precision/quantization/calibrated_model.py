"""8-bit models with explicit Q/DQ pairs, scales taken from samples: calibrated once, written for any choice of nodes.

Calibration and the surgery are ONNX Runtime's quantizer; ours is how it is asked. Pairs stand as TensorRT and OpenVINO
want them: activations and weights symmetric, weights per output channel, biases and the results of weighted operators
left alone (whoever reads a result quantizes it). The ranges are measured once and reused, so that a search may try many
choices of nodes at the cost of the surgery alone.
"""

import contextlib
import dataclasses
import enum
import io
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tensortriage.engines.spec import PLAIN
from tensortriage.errors import ModelError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import ExternalData, Model
from tensortriage.model.quantization.qdq_pairs import quantized_only_for, with_own_weights
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision

OP_TYPES = ("Conv", "ConvTranspose", "Gemm", "MatMul")
"""Operators whose operands are quantized unless told otherwise: those with enough arithmetic to gain from it."""

_EXTERNAL_BYTES = 1 << 30
_OUTPUT_AXIS = 1
_BINS = 2048
"""Bins of the histograms that percentile ranges are read from."""

_ENTROPY_BINS, _LEVELS = 512, 128
"""Bins of the histograms that entropy cuts, and the levels of one sign it weighs a cut by (Migacz, 8-bit Inference with
TensorRT, GTC 2017). ONNX Runtime's own defaults have as many bins as levels, which leaves nothing to cut; its time
grows with the square of the bins."""


class Calibration(enum.Enum):
    """How a tensor's range is chosen from the values seen, and by whom; the value is the word on the command line."""

    MINMAX = "minmax"
    ENTROPY = "entropy"
    PERCENTILE = "percentile"
    MODELOPT = "modelopt"
    MODELOPT_MAX = "modelopt-max"


ALWAYS = (Calibration.MINMAX, Calibration.ENTROPY, Calibration.PERCENTILE)
"""What ONNX Runtime's quantizer knows, which is always there."""

MODELOPT_METHODS = {Calibration.MODELOPT: "entropy", Calibration.MODELOPT_MAX: "max"}
"""What TensorRT-Model-Optimizer knows, and its own word for it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeOptions:
    """How to quantize.

    Attributes:
        precision: int8 or fp8e4m3.
        calibration: How ranges are chosen.
        percentile: Share of the values, in percent, that a percentile range covers.
        per_channel: Whether weights have a scale per output channel.
        float_weights: Whether weights stay float with a Q/DQ pair of their own; else they are stored in 8 bits.
        reduce_range: Whether int8 weights use 7 bits, so that sums of two products fit in int16, which is what kernels
            for x86 without VNNI add them in.
        op_types: Operators whose operands are quantized; TensorRT-Model-Optimizer chooses by itself.
        modelopt_python: An interpreter that has TensorRT-Model-Optimizer; empty for the running one.
    """

    precision: Precision = Precision.INT8
    calibration: Calibration = Calibration.MINMAX
    percentile: float = 99.99
    per_channel: bool = True
    float_weights: bool = False
    reduce_range: bool = False
    op_types: Sequence[str] = OP_TYPES
    modelopt_python: str = ""

    def __post_init__(self) -> None:
        if self.precision not in (Precision.INT8, Precision.FP8E4M3):
            raise UsageError(
                f"{self.precision.value} is not a format for quantization by scales",
                slug="quantize-precision",
                cure="use int8 or fp8e4m3",
            )


class ModelQuantizer(Protocol):
    """Quantizes one model by one calibration, for any choice of nodes."""

    nodes: tuple[str, ...]
    """Nodes whose operands it can quantize, in topological order."""

    def quantized(self, kept: Collection[str] = (), *, float_weights: bool | None = None) -> Model:
        """Return the model with Q/DQ pairs at the operands of all its nodes but those kept."""
        ...

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """The calibrated range of every operand that is quantized, weights aside: lowest and highest value by name."""
        ...


class OnnxRuntimeQuantizer:
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
        self._count = 0
        self.nodes = tuple(node.name for node in model.graph.nodes if node.op_type in set(options.op_types))
        quantizable = set(self.nodes)
        self._operands = {name for n in model.graph.nodes if n.name in quantizable for name in n.inputs if name}
        self._model = model
        self._source = folder / "float.onnx"
        model.save(self._source, external_data=ExternalData.KEEP)
        weights = [value.const_value for value in model.ir.graph.initializers.values()]
        self._large = sum(weight.nbytes for weight in weights if weight is not None) > _EXTERNAL_BYTES
        self._cache = folder / f"ranges-{options.calibration.value}.json"
        if not self.nodes:
            raise ModelError(
                f"the model has no {', '.join(options.op_types)} to quantize",
                slug="quantize-nothing",
                cure="8 bits would gain nothing in this model",
            )

    def quantized(self, kept: Collection[str] = (), *, float_weights: bool | None = None) -> Model:
        """Return the model with Q/DQ pairs at the operands of every node that can be quantized, but those kept.

        Args:
            kept: Names of nodes that stay as they are.
            float_weights: Another choice than that of the options.

        Raises:
            ModelError: When ONNX Runtime's quantizer refuses the model (``quantize-failed``).
        """
        path = self._folder / f"quantized{self._count}.onnx"
        self._count += 1
        lowered = set(self.nodes).difference(kept)
        try:
            with _quiet():
                self._quantize(path, set(kept), self._options.float_weights if float_weights is None else float_weights)
        except Exception as error:  # the quantizer raises whatever its parts raise
            raise ModelError(
                f"ONNX Runtime's quantizer refuses the model: {error}",
                slug="quantize-failed",
                cure="fold and clean it first: triage surgeon sanitize MODEL --fold-constants -o clean.onnx",
            ) from error
        return quantized_only_for(Model.load(path), lowered)

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """The calibrated range of every operand that is quantized, weights aside: lowest and highest value by name."""
        with _quiet():
            return {name: found for name, found in self._calibrated().items() if name in self._operands}

    def _calibrated(self) -> dict[str, tuple[float, float]]:
        """Calibrate, or read what an earlier calibration found."""
        from onnxruntime.quantization import load_tensors_data

        if not self._cache.exists():
            options = self._options
            words = (self._calibration_words(), options.op_types, [feed.digest for feed in self._feeds])
            question = f"ranges by {options.calibration.value}"
            self._cache.write_text(
                self._lab.remember(str, PLAIN, self._model, None, question, self._measured_ranges, *words)
            )
        return {
            name: (float(np.min(data.range_value[0])), float(np.max(data.range_value[1])))
            for name, data in load_tensors_data(self._cache).items()
        }

    def _measured_ranges(self) -> str:
        """Return what ONNX Runtime's calibrator finds, as it writes it."""
        from onnxruntime.quantization import create_calibrator, save_tensors_data

        calibrator = create_calibrator(
            str(self._source),
            list(self._options.op_types),
            str(self._folder / "calibrating.onnx"),
            calibrate_method=_method(self._options.calibration),
            use_external_data_format=self._large,
            extra_options=self._calibration_words(),
        )
        calibrator.collect_data(_Reader(self._feeds))
        made = self._folder / "measured.json"
        save_tensors_data(calibrator.compute_data(), made)
        return made.read_text()

    def _calibration_words(self) -> dict[str, Any]:
        options = self._options
        if options.calibration is Calibration.MINMAX:
            return {}
        if options.calibration is Calibration.ENTROPY:
            return {"num_bins": _ENTROPY_BINS, "num_quantized_bins": _LEVELS, "symmetric": True}
        return {"num_bins": _BINS, "percentile": options.percentile, "symmetric": True}

    def _quantize(self, path: Path, kept: set[str], float_weights: bool) -> None:
        from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

        options = self._options
        float8 = options.precision is Precision.FP8E4M3
        kind = QuantType.QFLOAT8E4M3FN if float8 else QuantType.QInt8
        ranges = self._calibrated()
        extra: dict[str, Any] = {
            "ActivationSymmetric": True,
            "WeightSymmetric": True,
            "QuantizeBias": False,
            "AddQDQPairToWeight": float_weights,
            "OpTypesToExcludeOutputQuantization": list(options.op_types),
            "QDQOpTypePerChannelSupportToAxis": {"MatMul": _OUTPUT_AXIS},
        }
        if float8:
            extra["TensorQuantOverrides"] = self._float8_scales(ranges)
        quantize_static(
            str(self._source_for(kept)),
            str(path),
            quant_format=QuantFormat.QDQ,
            calibration_data_reader=None,
            op_types_to_quantize=list(options.op_types),
            per_channel=options.per_channel and not float8,
            reduce_range=options.reduce_range and not float8,
            activation_type=kind,
            weight_type=kind,
            nodes_to_exclude=sorted(kept),
            use_external_data_format=self._large,
            calibrate_method=CalibrationMethod.Distribution if float8 else _method(options.calibration),
            calibration_cache_path=str(self._float8_cache(ranges) if float8 else self._cache),
            extra_options=extra,
        )

    def _source_for(self, kept: set[str]) -> Path:
        """Return the float model to quantize; where kept nodes share weights with others, one in which they do not."""
        model = with_own_weights(self._model, set(self.nodes).difference(kept))
        if model is self._model:
            return self._source
        path = self._folder / f"float{self._count}.onnx"
        model.save(path, external_data=ExternalData.KEEP)
        return path

    def _float8_scales(self, ranges: Mapping[str, tuple[float, float]]) -> dict[str, list[dict[str, Any]]]:
        """Return the scales that put the largest magnitude of every tensor at the largest number of the format.

        ONNX Runtime scales fp8 by the standard deviation instead, which leaves most of the format's range unused.
        """
        largest = {name: max(-low, high) for name, (low, high) in ranges.items()}
        largest |= _largest_weights(self._model, frozenset(self.nodes))
        top = float(self._options.precision.dtype.finfo.max)
        zero = np.zeros((), self._options.precision.dtype.numpy)
        return {
            name: [{"scale": np.array(most / top if most > 0.0 else 1.0, np.float32), "zero_point": zero}]
            for name, most in largest.items()
        }

    def _float8_cache(self, ranges: Mapping[str, tuple[float, float]]) -> Path:
        """Write what the quantizer insists on for fp8, though every scale is given; return the file."""
        from onnxruntime.quantization import CalibrationMethod, TensorData, TensorsData, save_tensors_data

        one = {"avg": np.zeros((), np.float32), "std": np.ones((), np.float32)}
        data = {
            name: TensorData(lowest=np.float32(low), highest=np.float32(high), **one)
            for name, (low, high) in ranges.items()
        }
        path = self._folder / "ranges-float8.json"
        save_tensors_data(TensorsData(CalibrationMethod.Distribution, data), path)
        return path


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
    """Keep the quantizer's advice to itself: it warns of pre-processing that its caller has done or need not do."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        root.setLevel(level)


def _largest_weights(model: Model, nodes: Collection[str]) -> dict[str, float]:
    """Return the largest magnitude in every weight of two axes or more that some of the nodes read, by its name."""
    found = {}
    for name, value in model.ir.graph.initializers.items():
        weight = value.const_value
        if weight is not None and len(weight.shape) > 1 and any(use.node.name in nodes for use in value.uses()):
            found[name] = float(np.abs(weight.numpy()).max(initial=0.0))
    return found
