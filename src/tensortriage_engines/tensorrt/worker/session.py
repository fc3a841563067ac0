"""Running a TensorRT engine: shapes, buffers, outputs of data-dependent size, and the debug listener's tensors.

Inputs and outputs go by name (``execute_async_v3``). Output buffers are sized by the execution context once all input
shapes are set; an output of unknown shape is given an allocator that TensorRT calls when it knows. Tensors in host
memory (values that are shapes) are handed over as host addresses.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from tensortriage_engines.tensorrt.worker import inspector as tensorrt_inspector
from tensortriage_engines.tensorrt.worker.dtypes import byte_count, from_bytes, label_of, to_bytes, word
from tensortriage_engines.tensorrt.worker.logs import LogMiner
from tensortriage_engines.tensorrt.worker.memory import Buffers, Cuda
from tensortriage_worker.adapter import AdapterError, AdapterFailure, Spec
from tensortriage_worker.exchange import Item

_HOST_DIMENSIONS = 64
RENAMED = "__"
"""Prefix that the parser puts before the name of an input that is an output as well (seen with 8.5.3)."""
LINEAR = "LINEAR"
"""Member of ``trt.TensorFormat`` for rows of elements without gaps or blocks, as numpy has them."""


class DeserializedEngine:
    """A deserialised engine with one execution context; see `AdapterSession`.

    Args:
        trt: TensorRT's module.
        engine: The engine.
        cuda: Device memory.
        miner: Takes the log.
        info: Facts about the build.
        keep: Objects that must live as long, as the runtime that made the engine.
    """

    def __init__(
        self,
        trt: Any,
        engine: Any,
        cuda: Cuda,
        miner: LogMiner,
        info: Dict[str, Any],
        keep: Sequence[Any],
    ) -> None:
        self._trt, self._engine, self._cuda, self._miner = trt, engine, cuda, miner
        self._keep = list(keep)
        self.inputs: Optional[List[Spec]] = None  # the host knows the ONNX types, which TensorRT narrows
        self.outputs: Optional[List[Spec]] = None
        self.info = info
        self._context = engine.create_execution_context()
        if self._context is None:
            raise AdapterError(AdapterFailure.BUILD, "no execution context: " + (miner.reason() or "no reason given"))
        self._buffers = Buffers(cuda)
        names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
        self._ins = [name for name in names if word(engine.get_tensor_mode(name)) == "INPUT"]
        self._outs = [name for name in names if word(engine.get_tensor_mode(name)) == "OUTPUT"]
        self._profile = 0
        self._refuse_other_layouts()

    def run(self, feed: Mapping[str, Item]) -> Iterator[Item]:
        """Run once; outputs are copied one by one as the caller reads them.

        Raises:
            AdapterError: When TensorRT refuses or fails to run.
        """
        held: Dict[str, Any] = {}  # host memory that must live until the run is over
        self._set_inputs(feed, held)
        allocators = self._set_outputs(held)
        self._miner.clear_tail()
        if not self._context.execute_async_v3(self._cuda.stream):
            self._cuda.end_if_sticky("running")
            raise AdapterError(AdapterFailure.RUN, self._miner.reason() or "it gave no reason")
        self._cuda.synchronize()
        return self._results(held, allocators)

    def watched(self, feed: Mapping[str, Item], listener: Any) -> List[Item]:
        """Run once with a debug listener and return the outputs."""
        context = self._context
        context.set_debug_listener(listener)
        context.set_all_tensors_debug_state(True)
        if hasattr(context, "unfused_tensors_debug_state"):
            context.unfused_tensors_debug_state = True
        try:
            return list(self.run(feed))
        finally:
            context.set_all_tensors_debug_state(False)
            if hasattr(context, "unfused_tensors_debug_state"):
                context.unfused_tensors_debug_state = False

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Return the engine's layers in order."""
        return tensorrt_inspector.regions(self.inspect())

    def inspect(self) -> str:
        """Return the JSON of TensorRT's engine inspector."""
        inspector = self._engine.create_engine_inspector()
        inspector.execution_context = self._context
        return str(inspector.get_engine_information(self._trt.LayerInformationFormat.JSON))

    def close(self) -> None:
        """Release context, engine and memory, in this order."""
        self._context = None
        self._engine = None
        self._keep = []
        self._buffers.close()
        self._cuda.close()

    def _set_inputs(self, feed: Mapping[str, Item], held: Dict[str, Any]) -> None:
        feed = self._by_engine_names(feed)
        self._choose_profile(feed)
        for name in self._ins:
            item = feed.get(name)
            if item is None:
                raise AdapterError(AdapterFailure.USAGE, "input '{}' is not fed".format(name), "feed-mismatch")
            data = self._bytes_of(name, item)
            shape, built_for = tuple(item.array.shape), tuple(self._engine.get_tensor_shape(name))
            if any(size < 0 for size in built_for):
                self._set_shape(name, shape)
            elif shape != built_for:  # TensorRT reads as many bytes as it was built for, beyond the buffer
                raise _shape_refused(name, shape, built_for)
            if self._is_host(name):
                held[name] = np.append(data, np.zeros(8, np.uint8))  # never empty
                address = held[name].ctypes.data
            else:
                address = self._buffers.get(name, data.nbytes)
                self._cuda.upload(address, data)
            self._check(self._context.set_tensor_address(name, address), "takes no address for '{}'".format(name))

    def _refuse_other_layouts(self) -> None:
        """Check that inputs and outputs are plain arrays; engines of others may want channels last, or in blocks.

        Raises:
            AdapterError: When one has another layout: its bytes would be read as other elements.
        """
        for name in (*self._ins, *self._outs):
            layout = word(self._engine.get_tensor_format(name))
            if layout != LINEAR:
                raise AdapterError(
                    AdapterFailure.USAGE,
                    "the engine has '{}' in the format {}, and only {} can be fed and read".format(
                        name, layout, LINEAR
                    ),
                    "tensor-format",
                    "build the engine with linear inputs and outputs, as trtexec does with "
                    "--inputIOFormats=fp32:chw --outputIOFormats=fp32:chw",
                )

    def _by_engine_names(self, feed: Mapping[str, Item]) -> Dict[str, Item]:
        """Return a feed by the engine's names: the parser calls an input that is also an output ``__NAME``."""
        names = {name: name for name in self._ins if name in feed}
        names.update(
            (name, name[len(RENAMED) :]) for name in self._ins if name not in feed and name.startswith(RENAMED)
        )
        return {name: feed[own] for name, own in names.items() if own in feed}

    def _set_shape(self, name: str, shape: Tuple[int, ...]) -> None:
        if not self._context.set_input_shape(name, shape):
            raise AdapterError(
                AdapterFailure.USAGE,
                "input '{}' of shape {} is outside of the profile {}".format(name, list(shape), self._range(name)),
                "profile-exceeded",
                "give a range that holds it: profile.{}=MIN:OPT:MAX".format(name),
            )

    def _range(self, name: str) -> str:
        shapes = self._engine.get_tensor_profile_shape(name, self._profile)
        return " ... ".join(str(list(dims)) for dims in shapes)

    def _choose_profile(self, feed: Mapping[str, Item]) -> None:
        """Switch to the first profile that holds the shapes fed, where there are several."""
        for index in range(self._engine.num_optimization_profiles if self._several() else 0):
            if all(self._holds(index, name, feed[name].array.shape) for name in self._ins if name in feed):
                if index != self._profile:
                    self._check(
                        self._context.set_optimization_profile_async(index, self._cuda.stream), "takes no profile"
                    )
                    self._cuda.synchronize()
                    self._profile = index
                return

    def _several(self) -> bool:
        return int(getattr(self._engine, "num_optimization_profiles", 1)) > 1

    def _holds(self, index: int, name: str, shape: Sequence[int]) -> bool:
        if self._is_host(name):
            return True
        least, _, most = self._engine.get_tensor_profile_shape(name, index)
        return len(shape) == len(least) and all(least[axis] <= size <= most[axis] for axis, size in enumerate(shape))

    def _bytes_of(self, name: str, item: Item) -> np.ndarray:
        wanted = label_of(self._engine.get_tensor_dtype(name))
        try:
            return to_bytes(item.array, item.label, wanted)
        except (TypeError, OverflowError) as error:
            raise AdapterError(
                AdapterFailure.USAGE,
                "input '{}': {}".format(name, error),
                "feed-mismatch",
                "feed values that the engine's type holds, or build it with inputs and outputs of the model's types: "
                "trtexec --inputIOFormats=fp32:chw --outputIOFormats=fp32:chw",
            ) from error

    def _set_outputs(self, held: Dict[str, Any]) -> Dict[str, Any]:
        lacking = list(self._context.infer_shapes())
        if lacking:
            raise AdapterError(AdapterFailure.RUN, "shapes are unknown without {}".format(", ".join(map(str, lacking))))
        allocators: Dict[str, Any] = {}
        for name in self._outs:
            shape, label = self._output(name)
            if self._is_host(name):
                size = byte_count(label, [s if s >= 0 else _HOST_DIMENSIONS for s in shape])
                held[name] = np.zeros(size + 8, np.uint8)
                address = held[name].ctypes.data
            elif any(size < 0 for size in shape):
                allocators[name] = _make_allocator(self._trt, self._buffers, name)
                self._check(self._context.set_output_allocator(name, allocators[name]), "takes no allocator")
                continue
            else:
                address = self._buffers.get(name, byte_count(label, shape))
            self._check(self._context.set_tensor_address(name, address), "takes no address for '{}'".format(name))
        return allocators

    def _output(self, name: str) -> Tuple[Tuple[int, ...], str]:
        shape = tuple(int(size) for size in self._context.get_tensor_shape(name))
        return shape, label_of(self._engine.get_tensor_dtype(name))

    def _results(self, held: Mapping[str, Any], allocators: Mapping[str, Any]) -> Iterator[Item]:
        for name in self._outs:
            shape, label = self._output(name)
            allocator = allocators.get(name)
            if allocator is not None:
                if allocator.error is not None:
                    raise allocator.error
                shape = allocator.shape
            size = byte_count(label, shape)
            if name in held:
                data = held[name][:size]
            else:
                data = self._cuda.download(allocator.address if allocator else self._buffers.get(name, size), size)
            yield Item(name, from_bytes(data, label, shape), label)

    def _is_host(self, name: str) -> bool:
        return word(self._engine.get_tensor_location(name)) == "HOST"

    def _check(self, succeeded: Any, what: str) -> None:
        if not succeeded:
            raise AdapterError(AdapterFailure.RUN, "TensorRT {}: {}".format(what, self._miner.reason()))


def _shape_refused(name: str, shape: Sequence[int], built_for: Sequence[int]) -> AdapterError:
    return AdapterError(
        AdapterFailure.USAGE,
        "input '{}' of shape {} is fed to an engine that takes {} alone".format(name, list(shape), list(built_for)),
        "profile-exceeded",
        "feed that shape, or build the engine with a range that holds it: profile.{}=MIN:OPT:MAX".format(name),
    )


def _make_allocator(trt: Any, buffers: Buffers, name: str) -> Any:
    """Return an ``IOutputAllocator``: TensorRT gets memory from it during a run, and passes it the final shape."""

    class Allocator(trt.IOutputAllocator):  # type: ignore[misc] # TensorRT has no types here
        """Exceptions do not get through TensorRT: they are stored in ``error``."""

        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)
            self.address = 0
            self.shape: Tuple[int, ...] = ()
            self.error: Optional[BaseException] = None

        def reallocate_output(self, tensor_name: str, memory: Any, size: int, alignment: int) -> int:
            with self._kept():
                self.address = buffers.get(name, int(size))
            return self.address

        def reallocate_output_async(self, tensor_name: str, memory: Any, size: int, alignment: int, stream: Any) -> int:
            return self.reallocate_output(tensor_name, memory, size, alignment)

        def notify_shape(self, tensor_name: str, shape: Any) -> None:
            with self._kept():
                self.shape = tuple(int(dimension) for dimension in shape)

        @contextlib.contextmanager
        def _kept(self) -> Iterator[None]:
            try:
                yield
            except BaseException as error:
                self.error = self.error or error

    return Allocator()
