"""Known differences of meaning: runtimes and frameworks that compute an operator otherwise than ONNX defines it.

Each is a small rewrite of a model. Where the model, so changed, gives the other side's numbers, the difference is named
as the cause of a verdict.
"""
