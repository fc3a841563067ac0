"""An engine as a user's program is one: right, but for what it feeds the network; registered by tests.

Its option ``change`` says what becomes of the input ``image``; ``whole``, a model's path, that it runs that alone,
whatever model it is given, and so shows nothing but outputs.
"""

from pathlib import Path
from typing import ClassVar

import numpy as np
import onnxruntime

from tensortriage.engines.base import Availability
from tensortriage.engines.spec import EngineSpec

RANDOM = np.random.default_rng()


def written(image, count):
    """Return a picture with its first numbers in memory drawn anew, as where its memory was freed."""
    image = image.copy()
    image.ravel()[:count] = RANDOM.standard_normal(image.ravel()[:count].shape)
    return image


CHANGES = {
    "none": lambda x: x,
    "bgr": lambda x: x[:, ::-1],
    "bgr-bytes": lambda x: x[:, ::-1] * 255,
    "own-means": lambda x: (x - np.float32([0.1, -0.2, 0.3]).reshape(1, 3, 1, 1)) / np.float32(0.8),
    "waves": lambda x: x + 0.3 * np.sin(9 * x),
    "freed": lambda x: written(x, 3),
    "unwritten": lambda x: written(x, None),
}


class WronglyFed:
    """ONNX Runtime behind a preprocessing of its own."""

    name = "fed"
    options: ClassVar = {
        "change": "a word of CHANGES",
        "whole": "the one model that it runs",
        "noise": "deviation of what is added to results",
    }

    def __init__(self, *, limits=None):
        self.limits = limits

    def availability(self):
        return Availability(usable=True, version="1.0", device="CPU")

    def compile(self, model, options):
        session = WronglyFedSession(options.get("whole") or model, CHANGES[options["change"]])
        session.noise = float(options.get("noise", 0.0))
        return session


class WronglyFedSession:
    """One model, and what is done to its input."""

    def __init__(self, path, change):
        self._session, self._change, self.noise = onnxruntime.InferenceSession(str(Path(path))), change, 0.0
        self.inputs = self.outputs = ()
        self._names = [each.name for each in self._session.get_outputs()]

    def run(self, feed):
        fed = {**feed}
        if "image" in fed:
            fed["image"] = np.ascontiguousarray(self._change(fed["image"]), np.float32)
        made = dict(zip(self._names, self._session.run(self._names, fed), strict=True))
        if self.noise:
            made = {n: x + self.noise * RANDOM.standard_normal(x.shape, np.float32) for n, x in made.items()}
        return made

    def plan(self):
        return None

    def close(self):
        self._session = None


def fed(change, whole=""):
    """Return the spec of the engine, which is registered as ``fed``."""
    return EngineSpec("fed", {"change": change, **({"whole": str(whole)} if whole else {})})
