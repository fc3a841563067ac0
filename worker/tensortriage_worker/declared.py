"""Sessions of engines that lose a model's declarations: the host passes them, and results get their form."""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, List, Mapping, Optional, Tuple

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure, own_fault
from tensortriage_worker.converters import one_line
from tensortriage_worker.exchange import Item


class DeclaredSession:
    """A model as a converter or a compiler made it; subclasses run it. See `AdapterSession`.

    Args:
        declared: ``inputs`` and ``outputs`` of the model, each with name, dtype and shape.
        info: Report about the build.
        packed: The conversion, for the host's cache; empty where it cannot be cached.
    """

    def __init__(self, declared: Mapping[str, Any], info: Dict[str, Any], packed: bytes = b"") -> None:
        self.inputs = declared["inputs"]  # type: Optional[List[Dict[str, Any]]]
        self.outputs = declared["outputs"]  # type: Optional[List[Dict[str, Any]]]
        self.info = info
        self._packed = packed

    def answer(
        self, question: str, feed: Mapping[str, Item], arguments: Mapping[str, Any], spill: Any
    ) -> Tuple[Dict[str, Any], List[Item]]:
        """Answer with the conversion (``converted``), a file's ``weights``, or those of ``wanted`` values that show."""
        if question == "converted":
            return {}, [Item("converted", np.frombuffer(self._packed, np.uint8))]
        if question == "weights":
            held, narrow = self.weights()
            readable = [each for each in held if each is not None]
            for number, arrays in enumerate(readable):
                for name, array in zip(("numbers", "step"), arrays):  # noqa: B905 - Python 3.8
                    spill.add(Item("{}/{}".format(number, name), np.ascontiguousarray(array)))
            return {"readable": len(readable), "unreadable": len(held) - len(readable), "narrow": narrow}, []
        for item in self.seen(feed, tuple(arguments["wanted"])):
            spill.add(item)
        return {}, []

    def seen(self, feed: Mapping[str, Item], wanted: Tuple[str, ...]) -> Iterable[Item]:
        """Run once and return the visible inner values: none."""
        return ()

    def weights(self) -> Tuple[List[Optional[Tuple[np.ndarray, np.ndarray]]], Optional[List[int]]]:
        """Return the weights that the file keeps as integers, and the places of those that are met by integers.

        Each holds the real numbers of its integers, in float64, and the distance between neighbours, which broadcasts
        to it; None for one that cannot be read. The places are None where everything may be computed in integers.
        """
        return [], None

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Return None: it is unknown."""
        return None

    def close(self) -> None:
        """Release the session's resources."""


class SessionByPlace(DeclaredSession):
    """A compiled function with inputs and outputs by position; subclasses define the call."""

    def run(self, feed: Mapping[str, Item]) -> Iterable[Item]:
        """Run once.

        Raises:
            AdapterError: When the function fails, or gives another number of results than the model has outputs.
        """
        try:
            found = self.call(self.fed(feed))
        except (RuntimeError, ValueError, TypeError) as error:
            if own_fault(error):
                raise
            raise AdapterError(AdapterFailure.RUN, one_line(error)) from error
        if len(found) != len(self.outputs or ()):
            message = "{} results came, for {} outputs of the model".format(len(found), len(self.outputs or ()))
            raise AdapterError(AdapterFailure.RUN, message)
        pairs = zip(found, self.outputs or ())  # noqa: B905 - Python 3.8
        return [Item(spec["name"], array.astype(spec["dtype"], copy=False)) for array, spec in pairs]

    def fed(self, feed: Mapping[str, Item]) -> List[np.ndarray]:
        """Return the inputs in the order of the model, contiguous, scalars as scalars."""
        arrays = [feed[spec["name"]].array for spec in self.inputs or ()]
        return [np.ascontiguousarray(array).reshape(array.shape) for array in arrays]

    def call(self, arrays: List[np.ndarray]) -> List[np.ndarray]:
        """Return the results of the function, in the order of the model's outputs.

        Args:
            arrays: In the order of the model's inputs, contiguous, in their declared types.
        """
        raise NotImplementedError


def as_declared(array: np.ndarray, spec: Mapping[str, Any], types: Collection[str]) -> Item:
    """Return a result under the name of an output: a scalar where one is declared, in its type where that is lost.

    Args:
        array: As the engine gave it.
        spec: The model's declaration.
        types: Labels of the types that the engine turns into others.
    """
    if spec["shape"] == [] and array.size == 1:
        array = array.reshape(())
    return Item(spec["name"], array.astype(spec["dtype"], copy=False) if spec["dtype"] in types else array)


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
