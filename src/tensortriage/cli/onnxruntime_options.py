"""Polygraphy's flags for ONNX Runtime, and the equivalent engine specs."""

from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.values.options import option, request

LEVELS = {
    "ORT_DISABLE_ALL": "none", "ORT_ENABLE_BASIC": "basic", "ORT_ENABLE_EXTENDED": "extended",
    "ORT_ENABLE_LAYOUT": "layout", "ORT_ENABLE_ALL": "all",
}  # fmt: skip


@request
class OnnxRuntimeOptions:
    """Polygraphy's flags for ONNX Runtime."""

    # fmt: off
    providers: tuple[str, ...] = option(
        "--providers --execution-providers", "NAME...", "Execution providers of ONNX Runtime, unless an engine's spec "
        "names them.", default=(), rare=True)
    level: str = option(
        "--graph-optimization-level", "LEVEL", "Optimization level of ONNX Runtime, e.g. ORT_DISABLE_ALL, unless a "
        "spec names it.",
        default="", rare=True)
    # fmt: on

    def engine(self) -> EngineSpec:
        """Return the engine.

        Raises:
            UsageError: For an unknown optimization level (``option-value-unknown``).
        """
        options = {"providers": "+".join(self.providers)} if self.providers else {}
        if self.level:
            if self.level not in LEVELS:
                raise UsageError(
                    f"'{self.level}' is not an optimization level", slug="option-value-unknown",
                    cure="use one of: " + ", ".join(LEVELS),
                )  # fmt: skip
            options["optimization"] = LEVELS[self.level]
        return EngineSpec("onnxruntime", options)
