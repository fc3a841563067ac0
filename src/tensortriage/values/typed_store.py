"""Values in the types that a model gives them, where they were computed in float64."""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


class TypedStore:
    """A store that rounds float64 values to the model's type when they are read.

    A reference that computes in float64 answers in float64; an engine that is fed with such a value, or a piece of the
    model that is cut out at it, is typed as the model is.
    """

    def __init__(self, store: TensorStore, types: Mapping[str, DType]) -> None:
        """Take a store, and the types of values that the model does not hold in float64."""
        self._store = store
        self._types = {name: types[name] for name in store.names() if name in types}

    def names(self) -> Sequence[str]:
        """Return every tensor name, in the order written."""
        return self._store.names()

    def spec(self, name: str) -> ValueSpec:
        """Return element type and shape; see `TensorStore`."""
        spec = self._store.spec(name)
        return ValueSpec(name, self._types.get(name, spec.dtype), spec.shape)

    def checksum(self, name: str) -> str:
        """Return the digest of a tensor; see `TensorStore`."""
        stored = self._store.checksum(name)
        return f"{stored} as {self._types[name].label}" if name in self._types else stored

    def __contains__(self, name: object) -> bool:
        return name in self._store

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._store[name]
        with np.errstate(over="ignore", under="ignore"):  # numbers beyond the type become Inf, as in the model
            return array.astype(self._types[name].numpy) if name in self._types else array


def typed_as(store: TensorStore, specs: Mapping[str, ValueSpec]) -> TensorStore:
    """Return a store whose float64 values have the types of the model.

    Args:
        store: Values as they were computed.
        specs: The model's types.
    """
    types = {
        name: dtype
        for name in store.names()
        if store.spec(name).dtype is DType.DOUBLE
        and name in specs
        and (dtype := specs[name].dtype) is not None
        and dtype.is_float
        and dtype is not DType.DOUBLE
    }
    return TypedStore(store, types) if types else store
