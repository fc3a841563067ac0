"""Looking inside of a running engine with TensorRT's debug listener (10.0 and later).

The listener is called in the middle of a run, on memory that is gone when it returns; its result is ignored and its
exceptions are lost. So it copies at once, hands tensors on while the run goes on, keeps its own errors, and leaves
unwanted values alone.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np

from tensortriage_engines.tensorrt.worker.dtypes import byte_count, from_bytes, label_of, word
from tensortriage_engines.tensorrt.worker.memory import Cuda
from tensortriage_worker.exchange import Item


def make_listener(trt: Any, cuda: Cuda, wanted: Optional[Any], take: Callable[[Item], None]) -> Any:
    """Return an ``IDebugListener`` that forwards the tensors it receives.

    Args:
        trt: TensorRT's module.
        cuda: Copies from the device.
        wanted: Names to forward; None for all.
        take: Takes a tensor.
    """

    class Listener(trt.IDebugListener):  # type: ignore[misc] # TensorRT has no types here
        """All received names are in ``names``, an exception is in ``error``."""

        def __init__(self) -> None:
            trt.IDebugListener.__init__(self)
            self.names: List[str] = []
            self.error: Optional[BaseException] = None

        def process_debug_tensor(self, addr: Any, location: Any, type: Any, shape: Any, name: str, stream: Any) -> bool:
            try:
                again = name in self.names  # in a loop: only the first time, as a marked output would have one shape
                self.names.append(name)
                if not again and (wanted is None or name in wanted):
                    take(self._copied(addr, location, type, shape, name, stream))
            except BaseException as error:
                self.error = self.error or error
            return True

        def _copied(self, addr: Any, location: Any, type: Any, shape: Any, name: str, stream: Any) -> Item:
            label, dims = label_of(type), tuple(int(size) for size in shape)
            size = byte_count(label, dims)
            if word(location) == "HOST":
                data = np.frombuffer(ctypes.string_at(_address(addr), size), np.uint8)
            else:
                data = cuda.download(_address(addr), size, int(stream))
            return Item(name, from_bytes(data, label, dims), label)

    return Listener()


def watch(
    session: Any, trt: Any, cuda: Cuda, feed: Mapping[str, Item], arguments: Mapping[str, Any], spill: Any
) -> Tuple[Dict[str, Any], List[Item]]:
    """Run once; tensors of the listener go to the spill, the outputs are returned.

    Outputs come under their name behind ``output:``, so that an output that is also shown is not lost.

    Raises:
        Exception: Whatever the listener came upon while it was shown tensors; AdapterError when the run fails.
    """
    wanted = arguments.get("wanted")
    listener = make_listener(trt, cuda, None if wanted is None else frozenset(wanted), spill.add)
    outputs = session.watched(feed, listener)
    if listener.error is not None:
        raise listener.error
    return {"shown": listener.names}, [item._replace(name="output:" + item.name) for item in outputs]


def _address(pointer: Any) -> int:
    """Return an address that the binding hands over as an integer or as a capsule."""
    if isinstance(pointer, int):
        return pointer
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(pointer, None) or 0)
