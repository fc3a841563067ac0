"""Operators of ONNX Runtime's own, as plain operators, which the core evaluates and rounds step by step."""

from tensortriage_operators import attention as attention
from tensortriage_operators import convolutions as convolutions
from tensortriage_operators import fused_layers as fused_layers
from tensortriage_operators import fused_products as fused_products
from tensortriage_operators import grouped_attention as grouped_attention
from tensortriage_operators import products as products
from tensortriage_operators import quantized as quantized
from tensortriage_operators import quantized_layers as quantized_layers
from tensortriage_operators import standard_names as standard_names
