"""ONNX Runtime on a message whose weights are mapped from the files where they are, which only this process can."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tensortriage.engines.capabilities import CompilesInPlace
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine, OnnxRuntimeSession, library
from tensortriage.engines.onnxruntime.plugin_providers import in_a_worker
from tensortriage.engines.onnxruntime.settings import CONVERTED, PRECISIONS, read_settings
from tensortriage.engines.options import read_options
from tensortriage.errors import UsageError
from tensortriage.values.dtype import Precision

if TYPE_CHECKING:
    from tensortriage.model.model_message import InPlace


class EmbeddedOnnxRuntime(OnnxRuntimeEngine, CompilesInPlace):
    """The engine ``onnxruntime`` as long as it has not brought this process down; see `tensortriage.engines.apart`."""

    def compile_in_place(self, model: "InPlace", options: Mapping[str, str]) -> OnnxRuntimeSession:
        """Build a session on a message whose weights are mapped from the files where they are, and used as they are.

        Weights are not rearranged for kernels, which may then add in another order: results may differ by rounding.

        Raises:
            UsageError: For options under which the model would be rewritten (slug ``engine-option-value``).
            EngineMissing: When ONNX Runtime or a requested provider is not usable here.
            BuildFailed: When ONNX Runtime refuses the model.
        """
        given = read_options(options, self.options)
        if in_a_worker(given):
            raise UsageError(
                "a worker cannot use this option", slug="engine-option-value", cure="leave out worker, ep and file"
            )
        given.precision("precision", [p for p in PRECISIONS if p not in CONVERTED], Precision.FP32)
        return OnnxRuntimeSession(model, read_settings(given, library()))
