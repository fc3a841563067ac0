"""Feeds from a user's script: a function without arguments that yields dicts of arrays, as Polygraphy has it."""

import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tensortriage.errors import DataError
from tensortriage.inputs.conform import check_feed
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.syntax import Shape, parse_script
from tensortriage.values.spec import ValueSpec

DEFAULT_FUNCTION = "load_data"
_END = object()


class InputMetadata(NamedTuple):
    """What a loader that asks for it is told about one input: numpy dtype (None when unknown) and shape."""

    dtype: "np.dtype[Any] | None"
    shape: Shape | None


def script_feeds(script: str, specs: Sequence[ValueSpec]) -> Iterator[Feed]:
    """Yield the feeds of a loader script, each checked against the model.

    Args:
        script: ``FILE.py[:FUNCTION]``; the function (default ``load_data``) takes nothing and returns an iterable of
            dicts from input name to array (numpy, or anything numpy can convert, torch tensors included). If what it
            returns has an attribute ``input_metadata``, that is set to a dict from input name to `InputMetadata`.
        specs: The model's inputs.

    Raises:
        DataError: When the script cannot be loaded (``script-unusable``), raises (``script-failed``), yields something
            else (``script-not-feed``) or nothing (``feed-empty``), or a feed does not fit the model.
    """
    path, name = parse_script(script, DEFAULT_FUNCTION)
    samples = load_function(script, DEFAULT_FUNCTION)()
    if hasattr(samples, "input_metadata"):
        samples.input_metadata = {
            spec.name: InputMetadata(spec.dtype.numpy if spec.dtype else None, spec.shape) for spec in specs
        }
    if not isinstance(samples, Iterable) or isinstance(samples, (str, bytes, Mapping)):
        raise _not_feed(path, f"{name}() returned a {type(samples).__name__}")
    iterator = iter(samples)
    index = 0
    while (sample := _call(path, lambda: next(iterator, _END))) is not _END:
        yield check_feed(_feed(sample, f"{path.name}[{index}]", path), specs)
        index += 1
    if not index:
        raise DataError(f"{path}: {name}() yielded no sample", slug="feed-empty", cure="yield at least one dict")


def load_function(script: str, default: str) -> Callable[..., Any]:
    """Return a function of a user's script, whose exceptions become errors that name the script's line.

    Args:
        script: ``FILE.py[:FUNCTION]``.
        default: Name of the function when the script's argument does not say.

    Raises:
        DataError: When the script cannot be loaded (``script-unusable``) or raises while it is (``script-failed``);
            the function itself raises ``script-failed`` likewise.
    """
    path, name = parse_script(script, default)
    function = _call(path, lambda: _load(path, name))
    return lambda *arguments: _call(path, lambda: function(*arguments))


def _load(path: Path, name: str) -> Callable[[], Any]:
    if path.suffix != ".py" or not path.is_file():
        raise DataError(f"{path} is no Python script", slug="script-unusable", cure="give FILE.py[:FUNCTION]")
    spec = importlib.util.spec_from_file_location(f"tensortriage_loader_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))  # A loader may import its neighbours.
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    function = getattr(module, name, None)
    if not callable(function):
        raise DataError(
            f"{path} has no function '{name}'",
            slug="script-unusable",
            cure=f"define it, or name another one: {path}:FUNCTION",
        )
    return function  # type: ignore[no-any-return] # what a user's module holds has no static type


def _call(path: Path, action: Callable[[], Any]) -> Any:
    """Run the user's code; its exceptions become an error that names the line in the script.

    What it prints goes to stderr: stdout may be a document.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return action()
    except DataError:
        raise
    except (Exception, SystemExit) as error:
        own = path.resolve()
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == own]
        line = lines[-1] if lines else getattr(error, "lineno", None)
        raise DataError(
            f"{path}" + (f", line {line}" if line else "") + f": {type(error).__name__}: {error}",
            slug="script-failed",
            cure="mend the script; it runs alone with: python -c 'import runpy; runpy.run_path(FILE)'",
        ) from error


def _feed(sample: object, label: str, path: Path) -> Feed:
    if not isinstance(sample, Mapping) or not all(isinstance(name, str) for name in sample):
        raise _not_feed(path, f"it yielded a {type(sample).__name__}")
    return Feed(label, {name: _array(value, name, path) for name, value in sample.items()}, Origin.REAL)


def _array(value: Any, name: str, path: Path) -> np.ndarray:
    if hasattr(value, "detach"):  # A torch tensor: numpy cannot convert one that requires gradients or is on a GPU.
        value = _call(path, lambda: value.detach().cpu().numpy())
    array: np.ndarray = _call(path, lambda: np.array(value))  # a copy: many loaders fill one buffer again and again
    if array.dtype == object and not all(isinstance(item, (str, bytes)) for item in array.reshape(-1)):
        raise _not_feed(path, f"'{name}' is a {type(value).__name__}, no array")
    return array


def _not_feed(path: Path, found: str) -> DataError:
    return DataError(
        f"{path}: {found}", slug="script-not-feed", cure="yield dicts from input name to array, one per sample"
    )
