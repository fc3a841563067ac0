"""Feeding a session as programs do: from memory that lies otherwise, from buffers used again, two streams at once.

The inputs are equal, so the outputs must be, too. Used on both sides of the process border.
"""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

import numpy as np

MISALIGNED, STRIDED, KEPT = "misaligned", "strided", "kept"
LAYOUTS = (MISALIGNED, STRIDED, KEPT)
"""One element behind an address that vector loads like; every other element of a buffer; the buffer of the run before,
which is filled anew for other numbers only."""
HELD = "held"
"""A word next to these: results are kept as they were handed over, and read after a run of other numbers."""
SHARED = "shared"
"""Another: results that lie in the memory of another one come back with every bit inverted."""

ALIGNMENT = 64
KEPT_RESULTS = 4
"""Most different results of a stream that are reported."""
MOST_ROUNDS = 20
"""Times as many runs as are wanted, where threads of a busy machine seldom meet."""
SWITCH_SECONDS = 1e-5
"""How often threads of Python take turns in that time: at the usual 5 ms short runs would never overlap."""

Arrays = Mapping[str, np.ndarray]


class InputBuffers:
    """Memory layout of the inputs of one session."""

    def __init__(self) -> None:
        self._kept: Dict[str, np.ndarray] = {}
        self._filled: Dict[str, np.ndarray] = {}

    def laid_out(self, name: str, array: np.ndarray, layout: str) -> np.ndarray:
        """Return an array of the same numbers that may be written to, in one of `LAYOUTS`."""
        if layout == KEPT:
            return self._again(name, array)
        if layout == STRIDED and array.ndim:
            wide = np.empty((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
            wide[..., ::2] = array
            wide[..., 1::2] = np.roll(array.reshape(-1), 1).reshape(array.shape)
            return np.asarray(wide[..., ::2])
        return misaligned(array)

    def _again(self, name: str, array: np.ndarray) -> np.ndarray:
        before = self._filled.get(name)
        if before is not None and before.shape == array.shape and before.dtype == array.dtype:
            if before.tobytes() != array.tobytes():
                self._kept[name][...] = array
        else:
            self._kept[name] = np.array(array)
        self._filled[name] = np.array(array)
        return self._kept[name]


def held(run: Callable[[Mapping[str, Any]], Iterable[Any]], feed: Mapping[str, Any]) -> List[Any]:
    """Return the results of a feed as they are after the next run, which has other numbers.

    Args:
        run: Runs items by name, which hold an array each, and returns such.
        feed: The feed.
    """
    results = list(run(feed))
    list(run({name: item._replace(array=_other(item.array)) for name, item in feed.items()}))
    return results


def shared(run: Callable[[Mapping[str, Any]], Iterable[Any]], feed: Mapping[str, Any]) -> List[Any]:
    """Return the results of a feed, with every bit inverted of those that lie in the memory of another result.

    Args:
        run: Runs items by name, which hold an array each, and returns such.
        feed: The feed.
    """
    results = list(run(feed))
    return [
        item._replace(array=(~np.ascontiguousarray(item.array).view(np.uint8)).view(item.array.dtype))
        if item.array.ndim
        and not item.array.dtype.hasobject
        and any(np.may_share_memory(item.array, other.array) for other in results if other is not item)
        else item
        for item in results
    ]


def _other(array: np.ndarray) -> np.ndarray:
    """Return other numbers, from the range of the same; indices remain indices."""
    rolled = np.roll(array.reshape(-1), 1).reshape(array.shape)
    return np.asarray(rolled * array.dtype.type(0.5)) if array.dtype.kind == "f" else rolled


def misaligned(array: np.ndarray) -> np.ndarray:
    """Return a copy that starts one element behind a multiple of `ALIGNMENT` bytes."""
    if array.dtype.hasobject:
        return np.array(array)
    raw = np.empty(array.nbytes + 2 * ALIGNMENT + array.itemsize, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT + array.itemsize
    found = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def side_by_side(
    streams: Sequence[Callable[[], Arrays]], runs: int, over: Optional[Callable[[], bool]] = None
) -> List[List[Arrays]]:
    """Run streams in parallel, each again and again.

    Args:
        streams: Each runs once and returns arrays, which are copied.
        runs: How often all run at once; where one was over before the other began, that is not counted.
        over: Returns whether to stop earlier.

    Returns:
        For every stream its results that differ from each other, bit for bit, in order of occurrence.
    """
    rounds = _Rounds(len(streams), runs, over)
    switching = sys.getswitchinterval()

    def results(number: int, run: Callable[[], Arrays]) -> List[Arrays]:
        found: List[Arrays] = []
        try:
            while rounds.go_on():
                started = time.perf_counter()
                result = {name: np.array(array) for name, array in run().items()}
                rounds.spans[number] = started, time.perf_counter()
                if len(found) < KEPT_RESULTS and not any(_equal(result, known) for known in found):
                    found.append(result)
        except threading.BrokenBarrierError:
            pass  # another stream failed, and says why
        except BaseException:
            rounds.barrier.abort()
            raise
        return found

    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with ThreadPoolExecutor(len(streams)) as pool:
            futures = [pool.submit(results, number, run) for number, run in enumerate(streams)]
            return [future.result() for future in futures]
    finally:
        sys.setswitchinterval(switching)


class _Rounds:
    """In every round all streams begin together; counts the rounds in which they met."""

    def __init__(self, streams: int, wanted: int, over: Optional[Callable[[], bool]]) -> None:
        self.spans = [(0.0, 0.0)] * streams
        self.barrier = threading.Barrier(streams, action=self._between)
        self._wanted, self._over = wanted, over
        self._rounds, self._met, self._ended = -1, 0, False

    def go_on(self) -> bool:
        """Wait for the others; return whether there is another round."""
        self.barrier.wait()
        return not self._ended

    def _between(self) -> None:
        self._rounds += 1
        if self._rounds:
            self._met += max(start for start, _ in self.spans) <= min(end for _, end in self.spans)
        enough = self._met >= self._wanted or self._rounds >= MOST_ROUNDS * self._wanted
        self._ended = enough or (self._over is not None and self._over())


def _equal(one: Arrays, other: Arrays) -> bool:
    return one.keys() == other.keys() and all(
        one[name].shape == other[name].shape and one[name].tobytes() == other[name].tobytes() for name in one
    )
