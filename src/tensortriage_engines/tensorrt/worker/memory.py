"""Device memory, streams and copies, through the CUDA runtime of ``cuda-bindings`` (or of the older ``cuda-python``).

A CUDA error may be sticky: after an illegal access every later call of the process fails. Such a process is of no more
use, so it ends at once, with its last words in the log; the host sees a crash and starts another.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Dict, List

import numpy as np

from tensortriage_engines.tensorrt.worker.library import DEVICE
from tensortriage_worker.adapter import AdapterError, AdapterFailure

RUNTIMES = ("cuda.bindings.runtime", "cuda.cudart")
STICKY_EXIT = 86
_ALIGNED = 256


class Cuda:
    """The CUDA runtime, a device and a stream.

    Args:
        device: Index of the device.

    Raises:
        AdapterError: When there is no driver, no such device, or no binding of the runtime.
    """

    def __init__(self, device: int = 0) -> None:
        self._api = _runtime()
        error, count = self._api.cudaGetDeviceCount()
        if self._failed(error) or not count:
            raise AdapterError(
                AdapterFailure.MISSING,
                "CUDA finds no device: {}".format(self._name(error) if self._failed(error) else "there is none"),
                "device-missing",
                DEVICE,
            )
        if device >= count:
            raise AdapterError(
                AdapterFailure.MISSING,
                "CUDA device {} does not exist".format(device),
                "device-missing",
                "use one of: {}".format(", ".join(map(str, range(count)))),
            )
        self.check(self._api.cudaSetDevice(device))
        self.device = device
        self._stream = self.check(self._api.cudaStreamCreate())
        self.stream = int(self._stream)

    def describe(self) -> Dict[str, Any]:
        """Return the ``device``'s name, ``compute`` capability and the ``driver`` version."""
        properties = self.check(self._api.cudaGetDeviceProperties(self.device))
        name = properties.name
        driver = self.check(self._api.cudaDriverGetVersion())
        return {
            "device": name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name),
            "compute": "{}.{}".format(properties.major, properties.minor),
            "driver": "{}.{}".format(driver // 1000, driver % 1000 // 10),
        }

    def allocate(self, size: int) -> int:
        """Return the address of at least one byte of new device memory."""
        return int(self.check(self._api.cudaMalloc(max(size, _ALIGNED))))

    def free(self, address: int) -> None:
        """Release device memory."""
        self.check(self._api.cudaFree(address))

    def upload(self, address: int, data: np.ndarray) -> None:
        """Copy contiguous host bytes to the device, on the stream; the array may go at once (the call waits).

        Args:
            address: On the device, with room for them.
            data: Contiguous, of any type.
        """
        if data.nbytes:
            kind = self._api.cudaMemcpyKind.cudaMemcpyHostToDevice
            self.check(self._api.cudaMemcpyAsync(address, data.ctypes.data, data.nbytes, kind, self.stream))
            self.synchronize()

    def download(self, address: int, size: int, stream: int = 0) -> np.ndarray:
        """Return a copy of device memory as flat uint8, after all pending work of a stream (default: our own)."""
        data = np.empty(size, np.uint8)
        if size:
            stream = stream or self.stream
            kind = self._api.cudaMemcpyKind.cudaMemcpyDeviceToHost
            self.check(self._api.cudaMemcpyAsync(data.ctypes.data, address, size, kind, stream))
            self.check(self._api.cudaStreamSynchronize(stream))
        return data

    def synchronize(self) -> None:
        """Wait for the stream."""
        self.check(self._api.cudaStreamSynchronize(self.stream))

    def close(self) -> None:
        """Release the stream."""
        if self._stream is not None:
            self.check(self._api.cudaStreamDestroy(self._stream))
            self._stream = None

    def check(self, answer: Any) -> Any:
        """Return the result of a runtime call ``(error, result...)``.

        Raises:
            AdapterError: When it failed; a sticky error ends this process.
        """
        error, rest = answer[0], answer[1:]
        if self._failed(error):
            name = self._name(error)
            if "MemoryAllocation" in name:
                self._api.cudaGetLastError()
                raise AdapterError(AdapterFailure.MEMORY, "out of device memory ({})".format(name))
            self.end_if_sticky(name)
            raise AdapterError(AdapterFailure.RUN, "CUDA failed: {}".format(name))
        return rest[0] if rest else None

    def end_if_sticky(self, doing: str) -> None:
        """End the process if CUDA is in a state in which every later call fails."""
        self._api.cudaGetLastError()
        error = self._api.cudaDeviceSynchronize()[0]
        if self._failed(error):
            sys.stderr.write("{}: CUDA error {} stays with this process\n".format(doing, self._name(error)))
            sys.stderr.flush()
            os._exit(STICKY_EXIT)

    def _failed(self, error: Any) -> bool:
        return int(error) != 0

    def _name(self, error: Any) -> str:
        return str(getattr(error, "name", error))


class Buffers:
    """Device memory by name, which only grows: a session's inputs and outputs from run to run.

    Args:
        cuda: The library that allocates.

    Attributes:
        cuda: Likewise.
    """

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self._held: Dict[str, List[int]] = {}  # name: [address, size]

    def get(self, name: str, size: int) -> int:
        """Return the address of at least ``size`` bytes; the content is lost when it has to grow."""
        address, held = self._held.get(name, [0, -1])
        if held >= size:
            return address
        if address:
            self.cuda.free(address)
            del self._held[name]
        address = self.cuda.allocate(size)
        self._held[name] = [address, size]
        return address

    def close(self) -> None:
        """Release everything."""
        held, self._held = self._held, {}
        for address, _ in held.values():
            self.cuda.free(address)


def _runtime() -> Any:
    for name in RUNTIMES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise AdapterError(
        AdapterFailure.MISSING,
        "the CUDA runtime cannot be called from this Python",
        "cuda-bindings-missing",
        "pip install cuda-bindings",
    )
