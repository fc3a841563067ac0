"""Names for writing engines that are wrong on purpose, in addition to `tensortriage.engines.sdk`; they are stable.

Where such an engine is right it is ONNX Runtime; its own results come from kernels of the evaluator, and replace values
of the model.
"""

from tensortriage.engines.feed_checks import closed as closed
from tensortriage.engines.feed_checks import run_failed as run_failed
from tensortriage.engines.float64.kernels import Call as Call
from tensortriage.engines.float64.kernels import kernel_for as kernel_for
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine as OnnxRuntimeEngine
from tensortriage.engines.onnxruntime.engine import library as onnxruntime_library
from tensortriage.errors import EngineOutOfMemory as EngineOutOfMemory
from tensortriage.model.ir.graph import Node as Node
from tensortriage.model.mixed_precision.emulate_rounding import round_results as round_results
from tensortriage.model.quantization.int16_products import int16_products as int16_products
from tensortriage.model.transforms.inline_branch import ELSE as ELSE
from tensortriage.model.transforms.inline_branch import THEN as THEN
from tensortriage.model.transforms.inline_branch import holder_of as holder_of
from tensortriage.model.transforms.inline_branch import take_branch as take_branch
from tensortriage.model.transforms.mark_outputs import INJECT_PREFIX as INJECT_PREFIX
from tensortriage.model.transforms.mark_outputs import USE_PREFIX as USE_PREFIX
from tensortriage.model.transforms.mark_outputs import inject as inject
from tensortriage.model.transforms.mark_outputs import markable as markable
from tensortriage.model.transforms.mark_outputs import needed_for as needed_for

__all__ = [
    "ELSE", "INJECT_PREFIX", "THEN", "USE_PREFIX", "Call", "EngineOutOfMemory", "Node", "OnnxRuntimeEngine", "closed",
    "holder_of", "inject", "int16_products", "kernel_for", "markable", "needed_for", "onnxruntime_library",
    "round_results", "run_failed", "take_branch",
]  # fmt: skip
