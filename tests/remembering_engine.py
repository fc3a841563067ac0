"""An engine whose results depend on what its session ran before, as its option says; registered by tests."""

from typing import ClassVar

import numpy as np

from tensortriage.engines.base import Availability
from wrongly_fed import WronglyFedSession


class RememberingEngine:
    """ONNX Runtime that keeps something between runs."""

    name = "remembering"
    options: ClassVar = {"keeps": "bound, first, first-two, part, shape, rows, before, last-row, count or nothing"}

    def __init__(self, *, limits=None):
        self.limits = limits

    def availability(self):
        return Availability(usable=True, version="1.0", device="CPU")

    def compile(self, model, options):
        return _Session(model, options["keeps"])


class _Session(WronglyFedSession):
    def __init__(self, path, keeps):
        super().__init__(path, lambda x: x)
        self._keeps, self._runs, self._shape, self._before, self._bound = keeps, 0, None, None, None
        self._first = None

    def run(self, feed):
        if self._keeps == "bound":
            self._bound = self._bound or {name: array.copy() for name, array in feed.items()}
            return super().run(self._bound)
        right = super().run(feed)
        before, self._before = self._before or right, right
        shape, self._shape = self._shape, [array.shape for array in feed.values()]
        self._runs += 1
        self._first = self._first or right
        if self._keeps == "part" and all(self._first[name].shape == array.shape for name, array in right.items()):
            return {name: np.append(self._first[name][..., :1], a[..., 1:], axis=-1) for name, a in right.items()}
        wrong = {"first": self._runs == 1, "first-two": self._runs <= 2, "shape": shape != self._shape}
        if wrong.get(self._keeps):
            return {name: array * np.float32(0.5) for name, array in right.items()}
        if self._keeps == "count":
            return {name: array * np.float32(1 + 0.1 * self._runs) for name, array in right.items()}
        alike = all(before[name].shape == array.shape for name, array in right.items())
        if self._keeps == "rows" and not alike:
            self._before = {name: np.concatenate([before[name][-1:], array[1:]]) for name, array in right.items()}
            return self._before
        if self._keeps == "before" and alike:
            return before
        if self._keeps == "last-row" and alike:
            return {name: np.concatenate([array[:-1], before[name][-1:]]) for name, array in right.items()}
        return right
