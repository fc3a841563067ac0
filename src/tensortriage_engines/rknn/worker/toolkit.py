"""rknn-toolkit2, imported without PyTorch, and called in a folder that takes its leftovers.

The package requires PyTorch 1.10 to 2.4, gigabytes that ONNX files do not need: of its modules two import torch, and
both touch ``torch.no_grad``, ``torch.nn.Module`` and, before 2.5, ``torch.Tensor`` while they are imported. Where
PyTorch is not installed they find these and nothing else, and only until they are imported: a later import of PyTorch,
as by quantization with ``gdq`` and by the optimizer on a small GPT-2, fails as for a missing package.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
import tempfile
import threading
import types
from pathlib import Path
from typing import Any, Callable, Iterator

from tensortriage_worker.adapter import AdapterError, AdapterFailure, own_fault
from tensortriage_worker.converters import Library, imported

_LIBRARY = Library(
    "rknn", "rknn-toolkit2", slug="rknn-missing", modules=("rknn.api",), distribution="rknn-toolkit2", oldest="2.3"
)
_SAID_LINES = 3
_COLOURS = re.compile(r"\x1b\[[\d;]*m")


def toolkit() -> Any:
    """Return the class ``RKNN``.

    Raises:
        AdapterError: When the package is not installed here.
    """
    with _names_of_torch():
        return imported(_LIBRARY)[0].RKNN


@contextlib.contextmanager
def _names_of_torch() -> Iterator[None]:
    if "torch" in sys.modules or importlib.util.find_spec("torch") is not None:
        yield
        return
    torch, layers = types.ModuleType("torch"), types.ModuleType("torch.nn")
    torch.no_grad = _decorator  # type: ignore[attr-defined]
    torch.Tensor = type("Tensor", (), {})  # type: ignore[attr-defined]
    torch.nn = layers  # type: ignore[attr-defined]
    layers.Module = type("Module", (), {})  # type: ignore[attr-defined]
    torch.__getattr__ = _absent  # type: ignore[method-assign]
    sys.modules.update({"torch": torch, "torch.nn": layers})
    try:
        yield
    finally:
        del sys.modules["torch"], sys.modules["torch.nn"]


def _absent(name: str) -> Any:
    message = "the toolkit needs torch.{} here, and PyTorch is not installed next to it (it takes 1.10 to 2.4)"
    raise AttributeError(message.format(name))


def _decorator() -> Callable[[Any], Any]:
    return lambda function: function


_ONE_AT_A_TIME = threading.Lock()
"""The folder that a process works in and where it prints to are one for all of its sessions."""


class ToolkitFolder:
    """A working folder of the toolkit, and the toolkit's output there, from Python and native code."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="triage-rknn-")
        self.path = Path(self._folder.name)
        self._said = self.path / "said.txt"

    def asked(self, function: Callable[..., Any], *arguments: Any, **words: Any) -> Any:
        """Return the result of a function of the toolkit, called in the folder.

        Raises:
            AdapterError: When it fails; most do by an exception whose last line has the reason, some by a number.
        """
        with _ONE_AT_A_TIME:
            return self._asked(function, *arguments, **words)

    def _asked(self, function: Callable[..., Any], *arguments: Any, **words: Any) -> Any:
        here = os.getcwd()
        os.chdir(str(self.path))
        try:
            with _heard(self._said):
                found = function(*arguments, **words)
        except (Exception, SystemExit) as error:  # any exception of a converter in Python is its reason
            if own_fault(error):
                raise
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            words_said = lines[-1] if lines else type(error).__name__
            raise AdapterError(AdapterFailure.BUILD, "{}: {}".format(function.__name__, words_said)) from error
        finally:
            os.chdir(here)
        if found is None or (isinstance(found, int) and found != 0):
            raise AdapterError(AdapterFailure.BUILD, "{}: {}".format(function.__name__, self._last_words()))
        return found

    def said(self) -> str:
        """Return the output of the last call."""
        return _COLOURS.sub("", self._said.read_text("utf-8", "replace")) if self._said.is_file() else ""

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()

    def _last_words(self) -> str:
        lines = [line.strip() for line in self.said().splitlines() if line.strip()]
        telling = [line for line in lines if line.startswith("E ") or "error" in line.lower()]
        return " | ".join((telling or lines)[-_SAID_LINES:]) or "it gave no reason"


@contextlib.contextmanager
def _heard(path: Path) -> Iterator[None]:
    """Redirect the output of Python and native code to a file for a while."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    with open(str(path), "wb") as file:
        try:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, copy in zip((1, 2), kept):  # noqa: B905 - Python 3.8
                os.dup2(copy, number)
                os.close(copy)
