"""Device memory and streams on a stand-in of the CUDA runtime, whose memory is host memory; no GPU needed."""

import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from tensorrt_stand_in import Runtime
from tensortriage_engines.tensorrt.worker import memory
from tensortriage_engines.tensorrt.worker.memory import STICKY_EXIT, Buffers, Cuda
from tensortriage_worker.adapter import AdapterError, AdapterFailure


@pytest.fixture
def runtime(monkeypatch):
    found = Runtime(devices=2, memory=1 << 12)
    monkeypatch.setattr(memory, "_runtime", lambda: found)
    return found


def test_bytes_go_to_the_device_and_come_back(runtime):
    cuda = Cuda(1)
    assert (runtime.device, cuda.device, cuda.stream) == (1, 1, 7)
    data = np.arange(6, dtype=np.int16)
    address = cuda.allocate(data.nbytes)
    cuda.upload(address, data)
    assert cuda.download(address, data.nbytes).tobytes() == data.tobytes()
    assert cuda.download(address, 0).shape == (0,)
    cuda.upload(0, np.zeros(0, np.float32))
    cuda.free(address)
    assert not runtime.allocated


def test_downloads_wait_for_the_stream_that_is_named(runtime):
    waited = []
    runtime.cudaStreamSynchronize = lambda stream: waited.append(stream) or (Runtime.Error.cudaSuccess,)
    cuda = Cuda()
    address = cuda.allocate(8)
    cuda.download(address, 8)
    cuda.download(address, 8, stream=9)
    assert waited == [7, 9]


def test_a_stream_is_released_once(runtime):
    released = []
    runtime.cudaStreamDestroy = lambda stream: released.append(stream) or (Runtime.Error.cudaSuccess,)
    cuda = Cuda()
    cuda.close()
    cuda.close()
    assert released == [7]


@pytest.mark.parametrize("name", [b"NVIDIA H200", "NVIDIA H200"])
def test_what_a_device_is_called(runtime, name):
    properties = types.SimpleNamespace(name=name, major=9, minor=0)
    runtime.cudaGetDeviceProperties = lambda device: (Runtime.Error.cudaSuccess, properties)
    runtime.cudaDriverGetVersion = lambda: (Runtime.Error.cudaSuccess, 12080)
    assert Cuda().describe() == {"device": "NVIDIA H200", "compute": "9.0", "driver": "12.8"}


def test_an_allocation_that_fails_is_out_of_memory(runtime):
    with pytest.raises(AdapterError) as caught:
        Cuda().allocate(1 << 20)
    assert caught.value.kind is AdapterFailure.MEMORY


def test_another_error_is_a_failed_run(runtime):
    runtime.cudaFree = lambda address: (Runtime.Error.cudaErrorNoDevice,)
    with pytest.raises(AdapterError, match="CUDA failed: cudaErrorNoDevice") as caught:
        Cuda().free(0)
    assert caught.value.kind is AdapterFailure.RUN


def test_buffers_only_grow(runtime):
    buffers = Buffers(Cuda())
    first = buffers.get("x", 1000)
    assert buffers.get("x", 10) == buffers.get("x", 1000) == first
    buffers.get("y", 0)
    buffers.get("x", 2000)
    assert sorted(runtime.allocated.values()) == [256, 2000]
    with pytest.raises(AdapterError):
        buffers.get("x", 1 << 20)
    assert list(runtime.allocated.values()) == [256]
    for _ in range(2):
        buffers.close()
    assert not runtime.allocated


def test_a_device_that_does_not_exist(runtime):
    with pytest.raises(AdapterError, match="CUDA device 2") as caught:
        Cuda(2)
    assert (caught.value.kind, caught.value.slug, caught.value.cure) == (
        AdapterFailure.MISSING, "device-missing", "use one of: 0, 1",
    )  # fmt: skip


def test_a_machine_without_a_device_is_told(monkeypatch):
    monkeypatch.setattr(memory, "_runtime", lambda: Runtime(devices=0))
    with pytest.raises(AdapterError) as caught:
        Cuda()
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.MISSING, "device-missing")


@pytest.mark.parametrize(("stays", "code"), [(True, STICKY_EXIT), (False, 0)])
def test_an_error_that_stays_ends_the_process_and_another_does_not(stays, code):
    """After an illegal access every CUDA call of a process fails; after, say, a wrong argument it does not."""
    program = f"""
import sys
sys.path[:0] = {[str(Path(memory.__file__).parents[3]), str(Path(__file__).parents[4])]!r}
from tensorrt_stand_in import Runtime
from tensortriage_engines.tensorrt.worker import memory as tensorrt_memory
runtime = Runtime()
tensorrt_memory._runtime = lambda: runtime
cuda = tensorrt_memory.Cuda()
failed = (Runtime.Error.cudaErrorNoDevice,)
runtime.cudaMemcpyAsync = lambda *_: failed
if {stays}:
    runtime.cudaDeviceSynchronize = lambda: failed
try:
    cuda.download(0, 8)
except tensorrt_memory.AdapterError as error:
    assert "CUDA failed" in str(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert ("stays with this process" in done.stderr) is stays


def test_without_a_binding_the_cure_names_one(monkeypatch):
    for name in memory.RUNTIMES:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(AdapterError) as caught:
        Cuda()
    assert caught.value.slug == "cuda-bindings-missing"
    monkeypatch.setitem(sys.modules, memory.RUNTIMES[1], types.SimpleNamespace(cudaGetDeviceCount=lambda: (0, 0)))
    with pytest.raises(AdapterError, match="there is none"):
        Cuda()
