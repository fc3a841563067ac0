"""The border inside the worker: the interface of engine adapters, and their errors.

An adapter is a module of this package with two functions:

    probe(options) -> dict              the engine here: version, device, precision; cheap
    compile(model, options) -> session  a session with run, plan, close and the attributes inputs, outputs

They use plain types only, so that every answer can travel to a host running another Python.
"""

from __future__ import annotations

import contextlib
import enum
import os
import sys
import traceback
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Protocol

from tensortriage_worker.exchange import Item

Spec = Dict[str, Any]
"""A tensor's ``name``, ``dtype`` (label) and ``shape`` (list of int, str or None; or None). An input of an engine that
renames inputs also has ``names``: every name of its tensor."""


class AdapterFailure(enum.Enum):
    """Kinds of failure of adapters; the host turns each into its own error."""

    USAGE = "usage"
    MISSING = "missing"
    BUILD = "build"
    RUN = "run"
    MEMORY = "memory"
    DATA = "data"


class AdapterError(Exception):
    """A failure that the adapter understands.

    Args:
        kind: Which one.
        message: The mistake, one sentence without a final full stop.
        slug: Stable identifier of the problem; empty when it is the engine's own reason for refusing to build or run.
        cure: Advice to the user.
    """

    def __init__(self, kind: AdapterFailure, message: str, slug: str = "", cure: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.slug = slug
        self.cure = cure


def place_of(error: BaseException) -> str:
    """Return `` (FILE:LINE)`` of the innermost frame outside the host's code and installed packages."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((here, "<")) and "site-packages" not in f.filename]
    own = [f for f in own if not f.filename.startswith(sys.base_prefix)]
    return " ({}:{})".format(os.path.basename(own[-1].filename), own[-1].lineno) if own else ""


_MISTAKES = (AttributeError, TypeError, NameError, LookupError, AssertionError, ImportError)
"""Exceptions that Python raises for wrong calls; engines raise others when they refuse."""


def own_fault(error: BaseException) -> bool:
    """Return whether an adapter made a mistake: it called a function that a release of an engine lacks or has changed.

    Such an exception comes from a line of the host's packages; one that an engine raises comes from its own lines, or
    is of another kind, and one that a ``raise`` statement made is meant.
    """
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("<")]
    asked = os.path.join(here, "tensortriage_worker", "serve.py")  # sent by the host, if it exists
    ours = bool(frames) and frames[-1].filename.startswith(here) and frames[-1].filename != asked
    return ours and isinstance(error, _MISTAKES) and not raised_by_hand(error)


@contextlib.contextmanager
def refusals(kind: AdapterFailure, words: str = "{}") -> Iterator[None]:
    """Turn any exception of a Python library into its reason to refuse, but for mistakes of our own.

    Args:
        kind: The refused operation.
        words: Text of the error; ``{}`` is replaced by the reason.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, AdapterError) or own_fault(error):
            raise
        raise AdapterError(kind, words.format(" ".join(str(error).split()))) from error


def raised_by_hand(error: BaseException) -> bool:
    """Whether a ``raise`` statement of Python code made an error, instead of native code."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and (frames[-1].line or "").lstrip().startswith("raise")


class AdapterSession(Protocol):
    """A compiled model.

    Attributes:
        inputs: Specs in the model's order; None when the session does not know.
        outputs: Likewise.
        info: Facts for the host, e.g. the effective precision.
    """

    inputs: Optional[List[Spec]]
    outputs: Optional[List[Spec]]
    info: Dict[str, Any]

    def run(self, feed: Mapping[str, Item]) -> Iterable[Item]:
        """Run once; outputs may be yielded one by one."""
        ...

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Return the executed regions in order: name, nodes, kind, precision, implementation; None when unknown."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...
