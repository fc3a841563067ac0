"""Known differences of meaning: what runtimes and frameworks compute where ONNX's operator says something else.

Each is a small rewrite of a model. Where the model, so changed, gives the other side's numbers, the difference is named
as the cause of a verdict.
"""
