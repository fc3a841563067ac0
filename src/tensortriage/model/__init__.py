"""The one door to onnx and onnx_ir: nothing above this package knows how an ONNX file is made.

A `Model` is loaded (or built from an onnx_ir model), looked at through its `Graph` index, and saved; every
transformation takes a Model and returns another one, sharing the weights.
"""

from tensortriage.model.lazy_import import import_without

import_without("onnx_ir", "sympy")
