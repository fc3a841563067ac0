"""Where inner golden values come from when the reference answers the model's outputs only.

The engine assumed to be right is often PyTorch behind a script, or a vendor's runtime, and shows nothing inside. Then
the target's outputs are compared with its outputs, and inner values come from the model's own centre: the model
computed as its types prescribe.
"""

from collections.abc import Sequence

import numpy as np

from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


def centre_spec() -> EngineSpec:
    """Return the engine that computes the model's centre."""
    return PLAIN


class Layered:
    """Tensors of one store, and those of another where the first has none; a `TensorStore`.

    Args:
        first: Goes before.
        second: The rest.
    """

    def __init__(self, first: TensorStore, second: TensorStore) -> None:
        self._first, self._second = first, second

    def names(self) -> Sequence[str]:
        """Return the names, those of the first store at the end, as outputs are."""
        return (*(name for name in self._second.names() if name not in self._first), *self._first.names())

    def spec(self, name: str) -> ValueSpec:
        """Return dtype and shape of a tensor."""
        return self._of(name).spec(name)

    def checksum(self, name: str) -> str:
        """Return the content key of a tensor."""
        return self._of(name).checksum(name)

    def __contains__(self, name: object) -> bool:
        return name in self._first or name in self._second

    def __getitem__(self, name: str) -> np.ndarray:
        return self._of(name)[name]

    def _of(self, name: str) -> TensorStore:
        return self._first if name in self._first else self._second
