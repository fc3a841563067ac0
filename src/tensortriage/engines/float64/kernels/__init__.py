"""Float64 arithmetic of the ONNX operators in numpy, for the engine ``float64``; these modules know no ONNX library.

Every real floating-point value of a model (float16, bfloat16, float32, float64) is a float64 array here, integers,
booleans and the formats below 16 bits keep the model's types. A kernel is a function from a `Call` to one array or a
tuple of arrays; `kernel_for` finds it by operator name. Kernels follow the operator specifications in
https://onnx.ai/onnx/operators/ and their changes from operator set 7 on.
"""

from tensortriage.engines.float64.kernels.call import ELEMENTWISE, Call, Kernel, kernel_for, kernel_names

__all__ = ["ELEMENTWISE", "Call", "Kernel", "kernel_for", "kernel_names"]
