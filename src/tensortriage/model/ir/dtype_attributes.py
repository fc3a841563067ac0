"""Attributes that hold the number of an element type. Nothing of onnx_ir is needed to know them."""

DTYPE_ATTRIBUTES = {
    "Bernoulli": "dtype", "BlackmanWindow": "output_datatype", "Cast": "to", "DequantizeLinear": "output_dtype",
    "EyeLike": "dtype", "HammingWindow": "output_datatype", "HannWindow": "output_datatype", "Multinomial": "dtype",
    "MelWeightMatrix": "output_datatype", "QuantizeLinear": "output_dtype", "RandomNormal": "dtype",
    "RandomNormalLike": "dtype", "RandomUniform": "dtype", "RandomUniformLike": "dtype", "SequenceEmpty": "dtype",
}  # fmt: skip
"""Attributes that name the element type of an operator's output."""
