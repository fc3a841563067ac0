"""An engine that runs files of its own, with weights in integers: an .onnx of what they are, and an .npz of them."""

from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
from onnx import numpy_helper

from tensortriage.engines.base import Availability
from tensortriage.engines.capabilities import ArrangesFiles, ReportsPrecision
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.session_capabilities import AnswersQuestions


class StoredFile(ArrangesFiles, ReportsPrecision):
    """ONNX Runtime on the file that option ``file`` names, whatever the model."""

    name: ClassVar[str] = "stored"
    options: ClassVar[dict[str, str]] = {"file": "the .onnx", "precision": "fp32 or int8"}

    def __init__(self, *, limits=None):
        self.limits = limits

    def availability(self):
        return Availability(usable=True)

    def precision(self, options):
        return options.get("precision", "fp32")

    def arranges(self, options):
        return True

    def compile(self, model, options):
        return Session(Path(options["file"]))


class Session(AnswersQuestions):
    def __init__(self, file):
        self._session = OnnxRuntimeEngine().compile(file, {"optimization": "none"})
        self.inputs, self.outputs, self._file = self._session.inputs, self._session.outputs, file

    def query(self, question, feed=None, **arguments):
        assert question == "weights"
        with np.load(self._file.with_suffix(".npz")) as held:
            arrays = dict(held)
        narrow = arrays.pop("narrow", None)
        told = {"readable": len(arrays) // 2, "unreadable": 0, "narrow": None if narrow is None else narrow.tolist()}
        return told, arrays

    def run(self, feed):
        return self._session.run(feed)

    def plan(self):
        return None

    def close(self):
        self._session.close()


def stored(array, *, bits=8):
    """Return what a weight [in, out] stands for in integers with a scale for each column, and the steps."""
    step = np.abs(array.astype(np.float64)).max(axis=0, keepdims=True) / (2 ** (bits - 1) - 1)
    return np.rint(array / step) * step, step


def write_file(path, message, weights, *, narrow=(), computed=None):
    """Write a file of a network in which weights are as `stored` gave them; returns its path.

    Args:
        path: The .onnx.
        message: The network.
        weights: What weights stand for, and their steps, by the name of the initializer; kept transposed.
        narrow: Which of them are met by integers; None for all.
        computed: Weights that the engine computes with in their place.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(message)
    for tensor in changed.graph.initializer:
        if tensor.name in weights:
            numbers = {**{name: each[0] for name, each in weights.items()}, **(computed or {})}[tensor.name]
            tensor.CopyFrom(numpy_helper.from_array(numbers.astype(np.float32), tensor.name))
    onnx.save(changed, path)
    arrays = {
        f"{number}/{name}": array.T
        for number, each in enumerate(weights.values())
        for name, array in zip(("numbers", "step"), each, strict=True)
    }
    np.savez(path.with_suffix(".npz"), **arrays, **({} if narrow is None else {"narrow": np.array(narrow, int)}))
    return path
