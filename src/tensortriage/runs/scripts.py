"""Functions of users' scripts, in a process of their own: if that process dies, this one reports it and continues.

A loader, a metric or a comparing function may call ``os._exit``, crash in native code, hang, print, start threads or
set signals. None of that reaches this process: arrays go there and come back as with engines, its output goes to
stderr, and the end of its process is an error that names the script.
"""

import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from tensortriage.engines.base import Limits
from tensortriage.engines.process.conversation import Conversation
from tensortriage.engines.process.workers import lease
from tensortriage.errors import DataError, EngineCrashed, EngineError, EngineHung, EngineOutOfMemory
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.syntax import parse_script
from tensortriage.values.spec import ValueSpec
from tensortriage_worker.exchange import Item

LOADER, METRIC, POSTPROCESS, COMPARE = "load_data", "metric", "postprocess_outputs", "compare_outputs"
"""Names of the functions, for script arguments without one."""

Arrays = Mapping[str, np.ndarray]


class ScriptFunction:
    """A function of a user's script; from any thread, one call at a time.

    Args:
        script: ``FILE.py[:FUNCTION]``.
        default: Name of the function, for a script argument without one.
        limits: Bounds on every call: ``build_seconds`` of time, and memory.

    Attributes:
        path: The script.
        name: The function.
        limits: Bounds on every call.
        takes: Arguments after outputs and feed, if it is a metric; see `function_adapter.takes`.

    Raises:
        DataError: When there is no such script or function (``script-unusable``), or the script raises
            (``script-failed``), ends its process (``script-crashed``), hangs (``script-hung``) or eats its memory
            (``script-out-of-memory``); the calls raise the same.
    """

    def __init__(self, script: str, default: str, limits: Limits | None = None) -> None:
        self.path, self.name = parse_script(script, default)
        if self.path.suffix != ".py" or not self.path.is_file():
            raise DataError(
                f"{self.path} is not a Python script", slug="script-unusable", cure="give FILE.py[:FUNCTION]"
            )
        self._lock = threading.Lock()
        where = self.path.absolute()
        worker = lease(sys.executable, f"function {where}")
        self.limits = limits or Limits()
        self._conversation = Conversation(worker, str(self.path), self.limits)
        self._finalizer = weakref.finalize(self, worker.close)
        try:
            options = {"function": self.name, "shown": str(self.path)}
            answer = self._ask("compile", adapter="function", model=str(where), options=options)
        except BaseException:
            self.close()
            raise
        _show(answer["info"])
        self.takes: tuple[str, ...] = tuple(answer["info"]["takes"])

    def numbers(self, outputs: Arrays, feed: Arrays, *more: np.ndarray | Arrays | None) -> tuple[float, ...]:
        """Call it with outputs, feed and its further parameters; return one number, or one for each row.

        Args:
            outputs: The first argument.
            feed: The second.
            *more: The others, by ``takes``.

        Raises:
            DataError: When it returns none (``script-not-number``).
        """
        return tuple(map(float, self._called("number", outputs, feed, *more)[0]["values"]))

    def truth(self, name: str, reference: np.ndarray | None, target: np.ndarray | None) -> bool:
        """Call it with the name of an output and both arrays, and return whether its answer counts as true.

        Args:
            name: Name of the output.
            reference: The reference's output.
            target: The target's output.
        """
        return bool(self._called("truth", name, reference, target)[0]["value"])

    def arrays(self, outputs: Arrays, *more: str | np.ndarray | Arrays | None) -> dict[str, np.ndarray]:
        """Call it with outputs, and return its arrays (``script-not-outputs`` when it returns none).

        Args:
            outputs: The first argument.
            *more: The others.
        """
        return _in_order(*self._called("arrays", outputs, *more))

    def samples(self, specs: Sequence[ValueSpec]) -> Iterator[dict[str, np.ndarray]]:
        """Yield the samples of the function, a loader.

        Args:
            specs: Inputs of the model, for the loader.
        """
        inputs = [
            {"name": spec.name, "dtype": spec.dtype.label if spec.dtype else None, "shape": spec.shape}
            for spec in specs
        ]
        self._question("begin", (), inputs=inputs)
        while True:
            info, arrays = self._question("next", ())
            if info["names"] is None:
                return
            yield _in_order(info, arrays)

    def close(self) -> None:
        """End the session; calling it twice is harmless."""
        if self._finalizer.detach() is not None:
            self._conversation.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _called(self, wanted: str, *given: str | np.ndarray | Arrays | None) -> tuple[Mapping[str, Any], Arrays]:
        items: list[Item] = []
        arguments: list[Any] = []
        for argument in given:
            if argument is None or isinstance(argument, str):
                arguments.append(argument)
            elif isinstance(argument, Mapping):
                arguments.append([[name, len(items) + place] for place, name in enumerate(argument)])
                items += [Item(str(len(items) + place), array) for place, array in enumerate(argument.values())]
            else:
                arguments.append(len(items))
                items.append(Item(str(len(items)), argument))
        return self._question("call", items, wanted=wanted, arguments=arguments)

    def _question(self, question: str, items: Sequence[Item], **arguments: Any) -> tuple[Mapping[str, Any], Arrays]:
        with self._lock, self._translated():
            info, arrays = self._conversation.query(
                question, items, seconds=self.limits.build_seconds, arguments=arguments
            )
        _show(info)
        return info, arrays

    def _ask(self, operation: str, **fields: Any) -> Mapping[str, Any]:
        with self._translated():
            return self._conversation.ask(operation, **fields)

    def _translated(self) -> "_Translated":
        return _Translated(self.path)


class _Translated:
    """Turns failures of the script's process into errors of the script."""

    _SLUGS = (
        (EngineHung, "script-hung", "raise --timeout if it needs longer"),
        (EngineOutOfMemory, "script-out-of-memory", "raise --memory-limit, or let the script use less"),
        (EngineCrashed, "script-crashed", "correct the script: raise an exception instead of ending the process"),
    )

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if not isinstance(error, EngineError):
            return
        for ending, slug, cure in self._SLUGS:
            if isinstance(error, ending):
                raise DataError(error.message, slug=slug, cure=cure) from error
        raise DataError(f"{self._path}: {error.message}", slug="script-failed", cure="correct the script") from error


def script_feeds(script: str, specs: Sequence[ValueSpec], limits: Limits | None = None) -> Iterator[Feed]:
    """Yield the feeds of a loader script, as it gives them.

    Args:
        script: ``FILE.py[:FUNCTION]``; the function (default ``load_data``) has no parameters and returns an iterable
            of dicts from input name to array (numpy, or anything numpy can convert, torch tensors included). If the
            iterable has an attribute ``input_metadata``, that is set to a dict from input name to dtype and shape.
        specs: The model's inputs.
        limits: Bounds on every sample.

    Raises:
        DataError: As `ScriptFunction`, and when it yields something else (``script-not-feed``) or nothing
            (``feed-empty``).
    """
    with ScriptFunction(script, LOADER, limits) as loader:
        index = 0
        for tensors in loader.samples(specs):
            yield Feed(f"{loader.path.name}[{index}]", tensors, Origin.REAL)
            index += 1
        if not index:
            raise DataError(
                f"{loader.path}: {loader.name}() yielded no sample", slug="feed-empty", cure="yield at least one dict"
            )


def _in_order(info: Mapping[str, Any], arrays: Arrays) -> dict[str, np.ndarray]:
    return {name: arrays[str(place)] for place, name in enumerate(info["names"])}


def _show(info: Mapping[str, Any]) -> None:
    """Print the script's output: to stderr, because stdout may be a document."""
    if info["printed"]:
        sys.stderr.write(info["printed"])
        sys.stderr.flush()
