"""A user's Python function: a data loader, a metric, a postprocessing step or a comparison.

The file is executed as that of a `script:` engine is. A session answers two kinds of questions: ``call`` hands over
arrays and words and returns a number, a truth or arrays; ``begin`` and ``next`` go through a loader's samples, one at a
time. The function's output on the terminal comes back with the answer, so that it can be shown where it would have
been.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.encoding import memory_type
from tensortriage_worker.exchange import Item, Spill
from tensortriage_worker.script_adapter import load_script

RUNS_USERS_CODE = True
"""Errors here may be mistakes of the script's author."""
PRINTED_CHARACTERS = 1 << 16
"""Most characters of one call's prints that are returned."""


class InputMetadata(NamedTuple):
    """The metadata of one input for loaders that ask for it: numpy dtype (None when unknown) and shape."""

    dtype: Optional["np.dtype[Any]"]
    shape: Optional[Tuple[Any, ...]]


class Script(NamedTuple):
    """The user's name for the script, and its path."""

    shown: str
    file: str

    def __str__(self) -> str:
        return self.shown


def compile(model: Path, options: Mapping[str, str]) -> "FunctionSession":
    """Execute ``model``, which is a Python file here, and find ``function`` in it; messages call it ``shown``.

    Raises:
        AdapterError: When the file cannot be executed, or has no such function.
    """
    told, shown = _Printed(), Script(options["shown"], os.path.realpath(str(model)))
    with told:
        module = _call(shown, lambda: load_script(model))
    function = getattr(module, options["function"], None)
    if not callable(function):
        raise AdapterError(
            AdapterFailure.DATA,
            "{} has no function '{}'".format(shown, options["function"]),
            "script-unusable",
            "define it, or name another one: {}:FUNCTION".format(shown),
        )
    return FunctionSession(shown, options["function"], function, told.text())


class FunctionSession:
    """An open script; see `tensortriage_worker.adapter.AdapterSession`."""

    inputs = None
    outputs = None

    def __init__(self, script: Script, name: str, function: Callable[..., Any], printed: str) -> None:
        self.info = {"printed": printed, "takes": takes(function)}  # type: Dict[str, Any]
        self._script = script
        self._name = name
        self._function = function
        self._samples: Iterator[Any] = iter(())
        self._inputs: List[str] = []

    def answer(
        self, question: str, feed: Mapping[str, Item], arguments: Mapping[str, Any], spill: Spill
    ) -> Tuple[Dict[str, Any], List[Item]]:
        """Answer ``call``, ``begin`` or ``next``; arrays are named by their positions in the lists of names."""
        told = _Printed()
        with told:
            if question == "begin":
                info, arrays = self._begin(arguments["inputs"]), []  # type: Tuple[Dict[str, Any], List[np.ndarray]]
            elif question == "next":
                info, arrays = self._next()
            else:
                info, arrays = self._answered(arguments, feed)
        items = [Item(str(place), array) for place, array in enumerate(arrays)]
        return dict(info, printed=told.text()), items

    def close(self) -> None:
        """Drop the function and its iterator."""
        self._samples, self._function = iter(()), _gone

    def _begin(self, inputs: List[Dict[str, Any]]) -> Dict[str, Any]:
        self._inputs = [one["name"] for one in inputs]
        samples = _call(self._script, self._function)
        if hasattr(samples, "input_metadata"):
            told = {
                one["name"]: InputMetadata(
                    None if one["dtype"] is None else memory_type(one["dtype"]),
                    None if one["shape"] is None else tuple(one["shape"]),
                )
                for one in inputs
            }
            _call(self._script, lambda: setattr(samples, "input_metadata", told))
        if not isinstance(samples, Iterable) or isinstance(samples, (str, bytes, Mapping)):
            raise _not_feed(self._script, "{}() returned a {}".format(self._name, type(samples).__name__))
        self._samples = _call(self._script, lambda: iter(samples))
        return {}

    def _next(self) -> Tuple[Dict[str, Any], List[np.ndarray]]:
        sample = _call(self._script, lambda: next(self._samples, _END))
        if sample is _END:
            return {"names": None}, []
        return _named(
            by_name(sample, self._inputs), self._script, lambda kind: "it yielded a {}".format(kind), _not_feed
        )

    def _answered(
        self, arguments: Mapping[str, Any], feed: Mapping[str, Item]
    ) -> Tuple[Dict[str, Any], List[np.ndarray]]:
        given = [_argument(argument, feed) for argument in arguments["arguments"]]
        result = _call(self._script, lambda: self._function(*given))
        wanted = arguments["wanted"]
        if wanted == "truth":
            return {"value": _call(self._script, lambda: bool(result))}, []
        if wanted == "number":
            return {"values": [repr(value) for value in self._numbers(result)]}, []
        return _named(result, self._script, lambda kind: "{}() returned a {}".format(self._name, kind), _not_arrays)

    def _numbers(self, result: Any) -> List[float]:
        with contextlib.suppress(Exception):  # any exception of a foreign type's conversion: it is no number
            return numbers(result)
        raise AdapterError(
            AdapterFailure.DATA,
            "{}: {}() returned a {}, not a number".format(self._script, self._name, type(result).__name__),
            "script-not-number",
            "return one number, or one for each row, larger for better outputs",
        )


class _Printed:
    """Collects prints of Python code, and passes them on to their original stream."""

    def __init__(self) -> None:
        self._text = io.StringIO()
        self._restored = (sys.stdout, sys.stderr)

    def __enter__(self) -> "_Printed":  # noqa: PYI034 - typing.Self is newer than Python 3.8
        self._restored = (sys.stdout, sys.stderr)
        sys.stdout = sys.stderr = _Tee(self._text, sys.__stderr__ or io.StringIO())
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self._restored

    def text(self) -> str:
        """Return the prints, cut to `PRINTED_CHARACTERS`."""
        text = self._text.getvalue()
        return text if len(text) <= PRINTED_CHARACTERS else text[:PRINTED_CHARACTERS] + "\n...\n"


class _Tee(io.TextIOBase):
    def __init__(self, kept: io.StringIO, log: Any) -> None:
        self._kept = kept
        self._log = log

    def write(self, text: str) -> int:
        if self._kept.tell() <= PRINTED_CHARACTERS:
            self._kept.write(text)
        with contextlib.suppress(OSError, ValueError):
            self._log.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._log.flush()


_END = object()


EXTRAS = ("labels", "reference")
"""Parameters that a metric may take after outputs and feed: the true labels and the reference's outputs."""


def takes(function: Callable[..., Any]) -> Tuple[str, ...]:
    """Return which of `EXTRAS` a metric takes, in its order: by place, or by name where it has a default.

    The name of one that it can do without ends with ``=``.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some functions in C nothing is known
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = []  # type: List[str]
    for word, one in zip(EXTRAS, [one for one in parameters if one.kind in kinds][2:]):  # noqa: B905 - Python 3.8
        needed = one.default is inspect.Parameter.empty
        if one.name not in EXTRAS and not needed:
            break
        found.append((one.name if one.name in EXTRAS else word) + ("" if needed else "="))
    return tuple(found)


def numbers(result: Any) -> List[float]:
    """Return the result of a metric: one number, or one for each row.

    Raises:
        ValueError: When it is neither.
    """
    if not isinstance(result, (str, bytes)):
        with contextlib.suppress(Exception):  # arrays, and what only says that it is a number
            return [float(result)]
    found = as_array(result)
    if found.ndim > 1 or not found.size or found.dtype.kind not in "biuf":
        raise ValueError(result)
    return [float(value) for value in found.reshape(-1)]


def by_name(sample: Any, inputs: List[str]) -> Any:
    """Return a sample of a PyTorch DataLoader as a dict: a tensor, or a tuple in the order of the inputs.

    The item behind the inputs are the ``labels``, or a dict of them; what is no number there, and what comes behind, is
    left out.
    """
    if isinstance(sample, np.ndarray) or hasattr(sample, "detach"):
        sample = (sample,)
    if isinstance(sample, (tuple, list)) and len(sample) > 1 and isinstance(sample[0], Mapping):
        return dict(_labels(sample[1]), **sample[0])
    if isinstance(sample, (tuple, list)) and len(sample) >= len(inputs) > 0:
        labels = _labels(sample[len(inputs)]) if len(sample) > len(inputs) else {}
        return dict(labels, **dict(zip(inputs, sample)))  # noqa: B905 - Python 3.8
    return sample


def _labels(item: Any) -> Dict[str, Any]:
    """Return the numeric arrays that a loader yields after the inputs, by name."""
    if isinstance(item, (tuple, list)) and len(item) == 1 and isinstance(item[0], Mapping):
        item = item[0]  # as loaders of boxes do for a batch of one
    found = {}  # type: Dict[str, Any]
    for name, value in (item if isinstance(item, Mapping) else {"labels": item}).items():
        with contextlib.suppress(Exception):  # lists of unequal lengths, and what else is no array
            if as_array(value).dtype.kind in "biuf":
                found[str(name)] = value
    return found


def as_array(value: Any) -> np.ndarray:
    """Return an array from any numpy-convertible value or PyTorch tensor (also with gradients or on a GPU)."""
    return np.array(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def _gone(*_: Any) -> Any:
    raise RuntimeError("the script is closed")


def _argument(argument: Any, feed: Mapping[str, Item]) -> Any:
    """Return an argument: text, the array at a place, or a dict of arrays at places; arrays may be written to."""
    if argument is None or isinstance(argument, str):
        return argument
    if isinstance(argument, int):
        return np.array(feed[str(argument)].array)
    return {name: np.array(feed[str(place)].array) for name, place in argument}


def _named(
    value: Any, script: Script, told: Callable[[str], str], wrong: Callable[[Script, str], AdapterError]
) -> Tuple[Dict[str, Any], List[np.ndarray]]:
    if not isinstance(value, Mapping):
        raise wrong(script, told(type(value).__name__))
    found = _call(script, lambda: dict(value.items()))
    if not all(isinstance(name, str) for name in found):
        raise wrong(script, told(type(value).__name__ + " whose keys are no names"))
    return {"names": list(found)}, [_array(item, name, script, wrong) for name, item in found.items()]


def _array(value: Any, name: str, script: Script, wrong: Callable[[Script, str], AdapterError]) -> np.ndarray:
    array = _call(script, lambda: as_array(value))  # type: np.ndarray
    if array.dtype == object and not all(isinstance(item, (str, bytes)) for item in array.reshape(-1)):
        raise wrong(script, "'{}' is a {}, no array".format(name, type(value).__name__))
    return array


def _refusal(slug: str, cure: str) -> Callable[[Script, str], AdapterError]:
    return lambda script, found: AdapterError(AdapterFailure.DATA, "{}: {}".format(script, found), slug, cure)


_not_feed = _refusal(
    slug="script-not-feed",
    cure="yield dicts from input name to array, or tuples in the order of the inputs, one per sample",
)
_not_arrays = _refusal(slug="script-not-outputs", cure="return a dict from output name to array")


def _call(script: Script, action: Callable[[], Any]) -> Any:
    """Run the user's code; its exceptions become an error that names the line in the script."""
    try:
        return action()
    except AdapterError:
        raise
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if os.path.realpath(frame.filename) == script.file]
        line = lines[-1] if lines else getattr(error, "lineno", None)
        raise AdapterError(
            AdapterFailure.DATA,
            "{}{}: {}: {}".format(script, ", line {}".format(line) if line else "", type(error).__name__, error),
            "script-failed",
            "correct the script; it runs alone with: python -c 'import runpy; runpy.run_path(FILE)'",
        ) from error
