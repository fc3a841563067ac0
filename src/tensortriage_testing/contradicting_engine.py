"""An engine that contradicts itself: a planted fault that shows under a condition, without a wrong reference.

The conditions are those under which kernels of real engines were wrong: a size of the batch, another stream, the number
of threads, the addresses of inputs, earlier runs. As a script engine::

    from tensortriage_testing import ContradictingEngine as Engine

    triage check consistency model.onnx --target script:engine.py,kind=scale,node=/fc/Gemm,when=misaligned
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Self

import numpy as np

from tensortriage.engines.sdk import Model, Options, Plan, Session, UsageError, ValueSpec
from tensortriage_testing.fault import Fault
from tensortriage_testing.faulty_engine import FaultyEngine
from tensortriage_worker.feeding import ALIGNMENT

Feed = Mapping[str, np.ndarray]


class ContradictingEngine(FaultyEngine):
    """ONNX Runtime, right but for a fault under the condition of option ``when``."""

    name: ClassVar[str] = "contradicting"
    options: ClassVar[Mapping[str, str]] = {
        **FaultyEngine.options,
        "when": "condition of the fault: odd-batch, batch-of=N, misaligned, strided, buffer-again, inputs-written, "
        "other-stream, threads=N or shape-again (default: always)",
        "threads": "number of its threads (default 2)",
    }

    def _open(self, original: Model, fault: Fault | None, specs: Mapping[str, ValueSpec], given: Options) -> Session:
        word, _, number = given.text("when", "").partition("=")
        wrong = super()._open(original, fault, specs, given)
        if fault is None or not word:
            return wrong
        if word not in _CONDITIONS:
            raise UsageError(
                f"'{word}' is not a condition", slug="fault-unknown", cure="use one of: " + ", ".join(_CONDITIONS)
            )
        threads = given.integer("threads", 2, minimum=1)
        right = super()._open(original, None, specs, given)
        return ContradictingSession(right, wrong, _CONDITIONS[word](int(number or 1), threads))


class ContradictingSession:
    """Two sessions, a right one and one with the fault; made by `ContradictingEngine.compile`."""

    def __init__(self, right: Session, wrong: Session, condition: "_Condition") -> None:
        self.inputs: Sequence[ValueSpec] = right.inputs
        self.outputs: Sequence[ValueSpec] = right.outputs
        self._right, self._wrong, self._condition = right, wrong, condition

    def run(self, feed: Feed) -> Feed:
        """Run once; wrong where the condition holds."""
        with _Beside() as stream:
            found = (self._wrong if self._condition.shows(feed) else self._right).run(feed)
        if isinstance(self._condition, _OtherStream) and stream.others:
            found = self._wrong.run(feed)
        self._condition.after(feed)
        return found

    def plan(self) -> Plan | None:
        """Return the plan of the faulty one."""
        return self._wrong.plan()

    def close(self) -> None:
        """Release both."""
        self._right.close()
        self._wrong.close()


class _Beside:
    """One run; knows afterwards whether others went on in this process at the same time."""

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _active: ClassVar[list["_Beside"]] = []

    def __init__(self) -> None:
        self.others = False

    def __enter__(self) -> Self:
        with self._lock:
            for run in self._active:
                run.others = self.others = True
            self._active.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._active.remove(self)


class _Condition:
    """When a fault shows; by default never."""

    def __init__(self, number: int, threads: int) -> None:
        self._number, self._threads = number, threads

    def shows(self, feed: Feed) -> bool:
        """Return whether the fault shows in this run."""
        return False

    def after(self, feed: Feed) -> None:
        """Apply the fault to the inputs."""


class _OtherStream(_Condition):
    """While another session runs."""


class _OddBatch(_Condition):
    def shows(self, feed: Feed) -> bool:
        return bool(_first(feed).shape[0] % 2 == 1)


class _BatchOf(_Condition):
    def shows(self, feed: Feed) -> bool:
        return bool(_first(feed).shape[0] == self._number)


class _Threads(_Condition):
    def shows(self, feed: Feed) -> bool:
        return self._threads == self._number


class _Misaligned(_Condition):
    def shows(self, feed: Feed) -> bool:
        return _first(feed).flags.writeable and _first(feed).ctypes.data % ALIGNMENT == _first(feed).itemsize


class _Strided(_Condition):
    def shows(self, feed: Feed) -> bool:
        return not _first(feed).flags.c_contiguous


class _BufferAgain(_Condition):
    """Where a buffer that was read before holds other numbers."""

    _read: tuple[int, bytes] = (0, b"")

    def shows(self, feed: Feed) -> bool:
        array, (place, numbers) = _first(feed), self._read
        self._read = array.ctypes.data, array.tobytes()
        return array.flags.writeable and place == self._read[0] and numbers != self._read[1]


class _InputsWritten(_Condition):
    """Never, but for memory that may be written to."""

    def after(self, feed: Feed) -> None:
        if (array := _first(feed)).flags.writeable and array.dtype.kind == "f":
            array *= 0.5


class _ShapeAgain(_Condition):
    """Where a shape comes back after another one."""

    _last: tuple[int, ...] = ()

    def __init__(self, number: int, threads: int) -> None:
        super().__init__(number, threads)
        self._seen: set[tuple[int, ...]] = set()

    def shows(self, feed: Feed) -> bool:
        shape, last = _first(feed).shape, self._last
        known, self._last = shape in self._seen, shape
        self._seen.add(shape)
        return known and shape != last


_CONDITIONS: Mapping[str, Callable[[int, int], _Condition]] = {
    "odd-batch": _OddBatch,
    "batch-of": _BatchOf,
    "misaligned": _Misaligned,
    "strided": _Strided,
    "buffer-again": _BufferAgain,
    "inputs-written": _InputsWritten,
    "other-stream": _OtherStream,
    "threads": _Threads,
    "shape-again": _ShapeAgain,
}


def _first(feed: Feed) -> np.ndarray:
    return next(iter(feed.values()))
