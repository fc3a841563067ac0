"""Inputs of the adapter: the model file, converted where necessary, and the options of the build.

The way to reach a format is decided here, by the release's abilities; see `tensortriage_engines.tensorrt.engine`.
"""

import json
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortriage.engines.sdk import DType, ModelError, Precision, UsageError, ValueSpec, build_failed
from tensortriage_engines.tensorrt.options import AUTO, MIXED, BuildSettings, Range, kept_words, range_words

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Model

_CONVERTED = {"fp16": Precision.FP16, "bf16": Precision.BF16}
_QUANTIZED = ("fp8", "int8")
_QUANTIZERS = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
_LOW = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8E4M3FN, DType.FLOAT8E5M2, DType.FLOAT4E2M1})


class Prepared:
    """The file to build and the words for the adapter; a converted model lives as long as the context.

    Args:
        loaded: The model.
        model: Path of the model file.
        settings: Settings from the options.
        ranges: Shape ranges in addition to those of the options.
        features: Features of the installed release.
    """

    def __init__(
        self,
        loaded: "Model",
        model: Path,
        settings: BuildSettings,
        ranges: Mapping[str, Range],
        features: Callable[[BuildSettings], Mapping[str, Any]],
    ) -> None:
        self._loaded, self._model, self._settings = loaded, model, settings
        self._ranges, self._features = ranges, features
        self._folder = tempfile.TemporaryDirectory(prefix="triage-tensorrt-")

    def __enter__(self) -> tuple[Path, dict[str, str]]:
        try:
            return self._choose()
        except BaseException:
            self._folder.cleanup()
            raise

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def _choose(self) -> tuple[Path, dict[str, str]]:
        settings = self._settings
        words = {**settings.words, **range_words({**settings.ranges, **self._ranges})}
        if "load_engine" in words:
            return self._model, words
        weak = self._features(settings)["weak"] if settings.typing != "strong" else []
        precision = settings.precision
        if precision == AUTO:
            precision = MIXED if is_typed(self._loaded) else "tf32"
        words["precision"] = precision
        words["model_name"] = str(self._model)
        if words.get("observe") == "debug":
            words["observe"] = json.dumps(
                [value for node in self._loaded.graph.nodes for value in node.outputs if value]
            )
        if precision in weak or (precision in ("fp32", "tf32") and weak and not is_typed(self._loaded)):
            words["typing"] = "weak"
            if settings.kept:
                words["kept"] = kept_words(self._known(settings.kept), _makers(self._loaded))
            return self._model, words
        if settings.typing == "weak":
            raise no_weak(precision)
        words["typing"] = "strong"
        self._refuse_unkept(precision)
        if precision in _CONVERTED:
            words["model_name"] = f"{self._model.stem}.{precision}.onnx"
            return self._converted(_CONVERTED[precision]), words
        if precision in _QUANTIZED and not is_quantized(self._loaded):
            raise UsageError(
                f"this TensorRT computes in {precision} only where the model has Q/DQ pairs, and it has none",
                slug="quantizers-missing",
                cure="quantize the model first (QuantizeLinear and DequantizeLinear), or use TensorRT 8.5 to 10",
            )
        return self._model, words

    def _refuse_unkept(self, precision: str) -> None:
        """Refuse requests that only a builder with weak typing could meet.

        Raises:
            UsageError: For formats other than the one that the model has or is converted to, and for nodes to keep in
                float32 in a model that is built as it is typed: the build would go on without them.
        """
        refused = ""
        if "fallback" in self._settings.words:
            refused = f"layers in {self._settings.words['fallback'].replace('+', ' or ')} with {precision}"
        elif self._settings.kept and precision in (MIXED, *_QUANTIZED):
            refused = f"kept nodes in a model that is built as it is typed ({precision})"
        if refused:
            raise UsageError(
                f"this build is strongly typed and cannot have {refused}",
                slug="typing-unavailable",
                cure="set the types in the model: triage convert, --keep-nodes for fp32 nodes; then precision=mixed",
            )

    def _converted(self, precision: Precision) -> Path:
        from tensortriage.engines.sdk import convert, value_specs

        try:
            converted = convert(
                self._loaded,
                precision,
                specs=value_specs(self._loaded),
                kept_nodes=self._known(self._settings.kept),
            )
            return converted.save(Path(self._folder.name) / self._model.name)
        except ModelError as error:
            raise build_failed("TensorRT", error.message, cure=error.cure) from error

    def _known(self, names: Sequence[str]) -> Sequence[str]:
        unknown = [name for name in names if name not in self._loaded.graph]
        if unknown:
            raise UsageError(
                f"the model has no node '{unknown[0]}' to keep",
                slug="node-unknown",
                cure="triage inspect model MODEL --show layers lists its nodes",
            )
        return names


def is_typed(model: "Model") -> bool:
    """Return whether a model specifies lower precision itself: by low types, or by quantizers."""
    types = {spec.dtype for spec in (*model.inputs, *model.outputs, *model.graph.initializers.values())}
    casts = {node.attributes.get("to") for node in model.graph.nodes if node.op_type == "Cast"}
    return bool(types & _LOW) or bool({DType(to) for to in casts if isinstance(to, int)} & _LOW) or is_quantized(model)


def is_quantized(model: "Model") -> bool:
    """Return whether a model has quantizers of its own."""
    return any(node.op_type in _QUANTIZERS for node in model.graph.nodes)


def _makers(model: "Model") -> dict[str, str]:
    return {value: node.name for node in model.graph.nodes for value in node.outputs}


def converting(model: Path, settings: BuildSettings, words: Mapping[str, str]) -> str:
    """Return the command that makes the model that is really built; empty when that is the user's."""
    if words.get("model_name", str(model)) == str(model):
        return ""
    kept = ["--keep-nodes", *settings.kept] if settings.kept else []
    command = ["triage", "convert", str(model), "--precision", words["precision"], *kept, "-o", words["model_name"]]
    return shlex.join(command) + " && "


def no_weak(precision: str) -> UsageError:
    """Return the error for a format without weak typing."""
    return UsageError(
        f"this TensorRT cannot compute a weakly typed model in {precision}",
        slug="typing-unavailable",
        cure="leave out typing: the model is then converted",
    )


def open_inputs(model: "Model", settings: BuildSettings) -> tuple[str, ...]:
    """Return the inputs whose shapes have to come from a feed."""
    return tuple(spec.name for spec in _unranged(model, settings) if not spec.is_sized)


def shape_inputs(model: "Model", settings: BuildSettings) -> tuple[str, ...]:
    """Return the inputs whose values are shapes, which TensorRT has to know the range of."""
    shape_like = model.graph.shape_like
    return tuple(
        spec.name
        for spec in _unranged(model, settings)
        if spec.is_sized and spec.name in shape_like and spec.dtype is not None and spec.dtype.is_integer
    )


def _unranged(model: "Model", settings: BuildSettings) -> Sequence[ValueSpec]:
    if "load_engine" in settings.words:
        return ()
    return [spec for spec in model.inputs if spec.name not in settings.ranges]
