"""Sessions of compilers that know inputs and outputs by their place: what the model declares gives names and types."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.converters import one_line
from tensortriage_worker.exchange import Item


class SessionByPlace:
    """A compiled function; subclasses say how it is called. See `AdapterSession`.

    Args:
        declared: ``inputs`` and ``outputs`` of the model, each with name, dtype and shape.
        info: What is told about the build.
    """

    def __init__(self, declared: Mapping[str, Any], info: Dict[str, Any]) -> None:
        self.inputs = declared["inputs"]  # type: Optional[List[Dict[str, Any]]]
        self.outputs = declared["outputs"]  # type: Optional[List[Dict[str, Any]]]
        self.info = info

    def run(self, feed: Mapping[str, Item]) -> Iterable[Item]:
        """Run once.

        Raises:
            AdapterError: When the function fails, or gives another number of results than the model has outputs.
        """
        fed = [feed[spec["name"]].array for spec in self.inputs or ()]
        arrays = [np.ascontiguousarray(array).reshape(array.shape) for array in fed]  # scalars stay scalars
        try:
            found = self.call(arrays)
        except (RuntimeError, ValueError, TypeError) as error:
            raise AdapterError(AdapterFailure.RUN, one_line(error)) from error
        if len(found) != len(self.outputs or ()):
            message = "{} results came, for {} outputs of the model".format(len(found), len(self.outputs or ()))
            raise AdapterError(AdapterFailure.RUN, message)
        return [_as_declared(array, spec) for array, spec in zip(found, self.outputs or ())]  # noqa: B905 - Python 3.8

    def call(self, arrays: List[np.ndarray]) -> List[np.ndarray]:
        """Return the results of the function, in the order of the model's outputs.

        Args:
            arrays: In the order of the model's inputs, contiguous, in their declared types.
        """
        raise NotImplementedError

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Say that it is not known."""
        return None

    def close(self) -> None:
        """Release what the session holds."""


def check_types(declared: Mapping[str, Any], title: str) -> None:
    """Refuse models that take or give other types than numpy's own numbers.

    Raises:
        AdapterError: For such a model.
    """
    for spec in [*declared["inputs"], *declared["outputs"]]:
        label = spec["dtype"]
        if label is None or (label != "bool" and not hasattr(np, label)):  # numpy has no "string"
            message = "{} is not given '{}', whose type is {}".format(title, spec["name"], label)
            raise AdapterError(AdapterFailure.BUILD, message)


def _as_declared(array: np.ndarray, spec: Mapping[str, Any]) -> Item:
    label = spec["dtype"]
    if array.dtype.name != label:
        array = array.astype(label)
    return Item(spec["name"], array)
