"""A stand-in for TensorRT's runtime and the CUDA runtime: what a session is handed, without a GPU.

It computes nothing of its own: an engine is a list of tensors and a Python function. Its methods have the names and
argument orders of the bindings (`test_contract.py` of the engine's tests holds those against the real ones), and device
memory is host memory at a real address, so that every copy is a real copy.
"""

import ctypes
import dataclasses
import enum
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

DataType = enum.Enum(
    "DataType",
    ["FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8", "FP8", "BF16", "INT64", "INT4", "FP4", "E8M0"],
    start=0,
)
TensorIOMode = enum.Enum("TensorIOMode", ["NONE", "INPUT", "OUTPUT"], start=0)
TensorLocation = enum.Enum("TensorLocation", ["DEVICE", "HOST"], start=0)
TensorFormat = enum.Enum("TensorFormat", ["LINEAR", "CHW2", "HWC8", "CHW4", "CHW16", "CHW32", "HWC"], start=0)
LayerInformationFormat = enum.Enum("LayerInformationFormat", ["ONELINE", "JSON"], start=0)


@dataclasses.dataclass
class Tensor:
    """An input or output of an engine.

    Attributes:
        name: Its name.
        dtype: Member name of ``DataType``.
        shape: Dimensions, -1 for open ones.
        output: Whether it is an output.
        host: Whether it lives in host memory.
        ranges: Per profile, the smallest, best and largest shape of an input with open dimensions.
        layout: Member name of ``TensorFormat``.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    output: bool = False
    host: bool = False
    ranges: Sequence[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = ()
    layout: str = "LINEAR"


Function = Callable[[Mapping[str, bytes], Mapping[str, tuple[int, ...]]], Mapping[str, tuple[tuple[int, ...], bytes]]]
"""From bytes and shapes of the inputs to shape and bytes of every output."""


class Engine:
    """Like ``ICudaEngine``.

    Args:
        tensors: Inputs and outputs.
        function: Computes the outputs.
        shown: Tensors that a debug listener is shown: name, dtype, shape, bytes.
        information: What the inspector tells.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        function: Function,
        shown: Sequence[tuple[str, str, tuple[int, ...], bytes]] = (),
        information: str = '{"Layers": []}',
    ) -> None:
        self.tensors = {tensor.name: tensor for tensor in tensors}
        self.function, self.shown, self.information = function, shown, information
        self.num_io_tensors = len(self.tensors)
        self.num_optimization_profiles = max([len(tensor.ranges) for tensor in tensors] + [1])
        self.contexts: list[Context] = []

    def get_tensor_name(self, index: int) -> str:
        return list(self.tensors)[index]

    def get_tensor_mode(self, name: str) -> Any:
        return TensorIOMode.OUTPUT if self.tensors[name].output else TensorIOMode.INPUT

    def get_tensor_dtype(self, name: str) -> Any:
        return DataType[self.tensors[name].dtype]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def get_tensor_format(self, name: str) -> Any:
        return TensorFormat[self.tensors[name].layout]

    def get_tensor_location(self, name: str) -> Any:
        return TensorLocation.HOST if self.tensors[name].host else TensorLocation.DEVICE

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[tuple[int, ...]]:
        return list(self.tensors[name].ranges[profile_index])

    def create_execution_context(self) -> "Context":
        self.contexts.append(Context(self))
        return self.contexts[-1]

    def create_engine_inspector(self) -> Any:
        return types.SimpleNamespace(get_engine_information=lambda format: self.information)


class Context:
    """Like ``IExecutionContext``; refuses what TensorRT refuses."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.profile = 0
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.addresses: dict[str, int] = {}
        self.allocators: dict[str, Any] = {}
        self.listener: Any = None
        self.watching = False
        self.unfused_tensors_debug_state = False

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        tensor = self._engine.tensors[name]
        if tensor.ranges:
            low, _, high = tensor.ranges[self.profile]
            if not all(a <= b <= c for a, b, c in zip(low, shape, high, strict=True)):
                return False
        self.shapes[name] = tuple(shape)
        return True

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        self.profile = profile_index
        return True

    def set_tensor_address(self, name: str, memory: int) -> bool:
        self.addresses[name] = memory
        return memory != 0

    def set_output_allocator(self, name: str, output_allocator: Any) -> bool:
        self.allocators[name] = output_allocator
        return True

    def infer_shapes(self) -> list[str]:
        inputs = [t for t in self._engine.tensors.values() if not t.output]
        return [t.name for t in inputs if -1 in t.shape and t.name not in self.shapes]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        tensor = self._engine.tensors[name]
        if name in self.shapes or not tensor.output or tensor.host:
            return self.shapes.get(name, tensor.shape)
        batch = next((shape[0] for shape in self.shapes.values()), -1)
        unknown = name in self.allocators or len(tensor.shape) == 0
        return (
            tensor.shape if unknown else tuple(batch if i == 0 and s == -1 else s for i, s in enumerate(tensor.shape))
        )

    def set_debug_listener(self, listener: Any) -> bool:
        self.listener = listener
        return True

    def set_all_tensors_debug_state(self, flag: bool) -> bool:
        self.watching = flag
        return True

    def execute_async_v3(self, stream_handle: int) -> bool:
        inputs, shapes = {}, {}
        for tensor in self._engine.tensors.values():
            if not tensor.output:
                shapes[tensor.name] = self.shapes.get(tensor.name, tensor.shape)
                size = byte_count(tensor.dtype, shapes[tensor.name])
                inputs[tensor.name] = ctypes.string_at(self.addresses[tensor.name], size)
        for name, dtype, shape, data in self._engine.shown if self.watching else ():
            memory = ctypes.create_string_buffer(data, max(len(data), 1))
            self.listener.process_debug_tensor(
                ctypes.addressof(memory), TensorLocation.DEVICE, DataType[dtype], shape, name, stream_handle
            )
            ctypes.memset(memory, 0xAB, len(data))  # the memory is TensorRT's again
        for name, (shape, data) in self._engine.function(inputs, shapes).items():
            address = self.addresses.get(name, 0)
            if name in self.allocators:
                address = self.allocators[name].reallocate_output(name, 0, len(data), 256)
                self.allocators[name].notify_shape(name, shape)
            ctypes.memmove(address, data, len(data))
        return True


def byte_count(dtype: str, shape: Sequence[int]) -> int:
    bits = {"FLOAT": 32, "INT32": 32, "INT64": 64, "HALF": 16, "BF16": 16, "INT4": 4, "FP4": 4}.get(dtype, 8)
    return (int(np.prod(shape, dtype=np.int64)) * bits + 7) // 8


def module() -> Any:
    """Return a stand-in for the TensorRT module: the base classes that the adapter subclasses."""
    plain = {name: type(name, (), {"__init__": lambda self: None}) for name in ("IOutputAllocator", "IDebugListener")}
    return types.SimpleNamespace(LayerInformationFormat=LayerInformationFormat, __version__="0", **plain)


class Runtime:
    """Like ``cuda.bindings.runtime``: functions that return ``(error, result...)``; memory is host memory.

    Attributes:
        allocated: Sizes of what is allocated, by address.
        device: Index of the current device.
    """

    cudaMemcpyKind = enum.IntEnum("cudaMemcpyKind", ["cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost"])  # noqa: N815 - CUDA's name

    class Error(enum.IntEnum):
        """The two errors that the adapter tells apart."""

        cudaSuccess = 0  # noqa: N815 - CUDA's name
        cudaErrorMemoryAllocation = 2  # noqa: N815 - likewise
        cudaErrorNoDevice = 100  # noqa: N815

    def __init__(self, *, devices: int = 1, memory: int = 1 << 30) -> None:
        self._devices, self._memory = devices, memory
        self.device = 0
        self._blocks: dict[int, Any] = {}

    @property
    def allocated(self) -> dict[int, int]:
        return {address: len(block) for address, block in self._blocks.items()}

    def cudaGetDeviceCount(self) -> tuple[Any, int]:  # noqa: N802
        return (self.Error.cudaSuccess if self._devices else self.Error.cudaErrorNoDevice), self._devices

    def cudaSetDevice(self, device: int) -> tuple[Any]:  # noqa: N802
        self.device = device
        return (self.Error.cudaSuccess,)

    def cudaStreamCreate(self) -> tuple[Any, int]:  # noqa: N802
        return self.Error.cudaSuccess, 7

    def cudaMalloc(self, size: int) -> tuple[Any, int]:  # noqa: N802
        if sum(self.allocated.values()) + size > self._memory:
            return self.Error.cudaErrorMemoryAllocation, 0
        block = ctypes.create_string_buffer(size)
        self._blocks[ctypes.addressof(block)] = block
        return self.Error.cudaSuccess, ctypes.addressof(block)

    def cudaFree(self, address: int) -> tuple[Any]:  # noqa: N802
        del self._blocks[address]
        return (self.Error.cudaSuccess,)

    def cudaMemcpyAsync(self, target: int, source: int, size: int, kind: Any, stream: int) -> tuple[Any]:  # noqa: N802
        ctypes.memmove(target, source, size)
        return (self.Error.cudaSuccess,)

    def cudaStreamSynchronize(self, stream: int) -> tuple[Any]:  # noqa: N802
        return (self.Error.cudaSuccess,)

    cudaStreamDestroy = cudaStreamSynchronize  # noqa: N815

    def cudaGetLastError(self) -> tuple[Any]:  # noqa: N802
        return (self.Error.cudaSuccess,)

    cudaDeviceSynchronize = cudaGetLastError  # noqa: N815
