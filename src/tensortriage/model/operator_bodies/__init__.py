"""Composite operators step by step: their nodes replaced by bodies of plain ONNX operators.

An evaluation in exact or rounded arithmetic has kernels for operators of one step. Attention is two products and a
Softmax, and an engine that computes it in a narrow format rounds in between. ONNX gives bodies for its own composite
operators; for those of ONNX Runtime (domain com.microsoft), which its optimizers and quantizers write, they are here.
"""
