"""Rounding to a format, drawn repeatedly: the model on inputs that the format cannot distinguish, rounded and not.

The cost of rounding is predicted by one evaluation, which is one draw; the roundings of a healthy engine are others.
Where few numbers decide all of an output, or where states carry an error on, draws differ much. Each draw moves the
model's inputs by less than the format resolves, and for models that take token ids the tables in which these are looked
up.
"""

import contextlib
import zlib
from collections.abc import Collection, Mapping
from typing import Self

import numpy as np

from tensortriage.api import Model
from tensortriage.envelope.sdk import PLAIN, Lab, Precision, ValueSpec, feed_tables, round_results, tables
from tensortriage.sdk import value_specs

Arrays = Mapping[str, np.ndarray]


class Draws:
    """A model whose rounding is drawn, feed after feed; a context manager.

    Args:
        lab: The lab that runs it, on ONNX Runtime.
        model: The model.
        precision: The format.
        feed: A feed of the model, for its types and shapes.
        kept: Nodes that compute in fp32 in any format.

    Raises:
        ModelError: When the model cannot be rounded.
        UsageError: Likewise.
    """

    def __init__(
        self, lab: Lab, model: Model, precision: Precision, *, feed: Arrays, kept: Collection[str] = ()
    ) -> None:
        self._step, self._tables = float(precision.dtype.finfo.eps), tables(model)
        plain = feed_tables(model, self._tables) if self._tables else model
        given = {name: ValueSpec.of(name, array) for name, array in {**feed, **self._tables}.items()}
        rounded = round_results(plain, precision, specs=value_specs(plain, given), kept=kept)
        self._open = contextlib.ExitStack()
        self._exact, self._rounded = (
            self._open.enter_context(lab.session(PLAIN, each, sequence=True)) for each in (plain, rounded)
        )

    def moved(self, draw: int, feed: Arrays) -> dict[str, np.ndarray]:
        """Return a feed with every float32 number moved by up to half a step of the format, alike for one draw."""
        return {name: self._moved(draw, name, np.asarray(array)) for name, array in feed.items()}

    def exact(self, draw: int, feed: Arrays) -> Arrays:
        """Return the model's results on a feed, unrounded, in one draw.

        Raises:
            EngineError: When ONNX Runtime does not evaluate it.
        """
        return self._exact({**feed, **self.moved(draw, self._tables)})

    def rounded(self, draw: int, feed: Arrays) -> Arrays:
        """Return the same with every result rounded to the format; see `exact`."""
        return self._rounded({**feed, **self.moved(draw, self._tables)})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _moved(self, draw: int, name: str, array: np.ndarray) -> np.ndarray:
        if array.dtype != np.float32:
            return array
        rng = np.random.default_rng([draw, zlib.crc32(name.encode())])
        return (array * (1.0 + self._step / 2.0 * rng.uniform(-1.0, 1.0, array.shape))).astype(array.dtype)
