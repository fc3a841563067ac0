"""ONNX Runtime, in this process.

Scripts that wrap this engine import `OnnxRuntimeEngine` from here; it is loaded on first use.
"""

from typing import TYPE_CHECKING

from tensortriage.values.first_use import on_first_use

if TYPE_CHECKING:
    from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine as OnnxRuntimeEngine

__getattr__ = on_first_use(__name__, __file__)
