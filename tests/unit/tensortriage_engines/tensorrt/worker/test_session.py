"""What a TensorRT session does with shapes, memory and the debug listener, on a stand-in (no GPU needed)."""

import ml_dtypes
import numpy as np
import pytest

from tensorrt_stand_in import Engine, Runtime, Tensor, module
from tensortriage_engines.tensorrt.worker import memory
from tensortriage_engines.tensorrt.worker.debug_tensors import watch
from tensortriage_engines.tensorrt.worker.logs import LogMiner
from tensortriage_engines.tensorrt.worker.memory import Cuda
from tensortriage_engines.tensorrt.worker.session import DeserializedEngine
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.encoding import label_of
from tensortriage_worker.exchange import Item


@pytest.fixture
def runtime(monkeypatch):
    found = Runtime()
    monkeypatch.setattr(memory, "_runtime", lambda: found)
    return found


def session(engine: Engine) -> DeserializedEngine:
    return DeserializedEngine(module(), engine, Cuda(), LogMiner(echo=False), {}, [])


def feed(**arrays: np.ndarray) -> dict[str, Item]:
    return {name: Item(name, array, label_of(array)) for name, array in arrays.items()}


def doubled(inputs, shapes):
    return {"y": (shapes["x"], (np.frombuffer(inputs["x"], np.float32) * 2).tobytes())}


def dynamic_engine(**more) -> Engine:
    ranges = [((1, 3), (2, 3), (4, 3)), ((5, 3), (6, 3), (8, 3))]
    return Engine(
        [Tensor("x", "FLOAT", (-1, 3), ranges=ranges), Tensor("y", "FLOAT", (-1, 3), output=True)], doubled, **more
    )


def test_values_go_to_the_device_and_back(runtime):
    opened = session(Engine([Tensor("x", "FLOAT", (2, 3)), Tensor("y", "FLOAT", (2, 3), output=True)], doubled))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for factor in (1, 3):  # the second run uses the same buffers
        (item,) = opened.run(feed(x=x * factor))
        np.testing.assert_array_equal(item.array, x * factor * 2)
    assert len(runtime.allocated) == 2
    opened.close()
    assert not runtime.allocated


def test_shapes_choose_the_profile(runtime):
    engine = dynamic_engine()
    opened = session(engine)
    for batch, profile in ((2, 0), (7, 1), (4, 0)):
        (item,) = opened.run(feed(x=np.ones((batch, 3), np.float32)))
        assert item.array.shape == (batch, 3)
        assert engine.contexts[0].profile == profile


def test_a_shape_outside_of_every_profile_is_told(runtime):
    with pytest.raises(AdapterError, match=r"\[9, 3\] is outside of the profile \[1, 3\]") as caught:
        session(dynamic_engine()).run(feed(x=np.ones((9, 3), np.float32)))
    assert caught.value.slug == "profile-exceeded"


@pytest.mark.parametrize("shape", [(4, 3), (1, 3), (3, 2), (6,)])
def test_an_engine_of_fixed_shapes_is_fed_no_other(runtime, shape):
    """The stand-in reads the bytes of the engine's shape, as TensorRT does: more are left, fewer are read beyond."""
    opened = session(Engine([Tensor("x", "FLOAT", (2, 3)), Tensor("y", "FLOAT", (2, 3), output=True)], doubled))
    with pytest.raises(AdapterError, match=r"takes \[2, 3\] alone") as caught:
        opened.run(feed(x=np.ones(shape, np.float32)))
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.USAGE, "profile-exceeded")


def test_an_engine_with_inputs_of_another_type_is_told_how_to_be_built(runtime):
    """``trtexec --inputIOFormats=fp16:chw`` makes such of a model in float32."""
    engine = Engine([Tensor("x", "HALF", (2,)), Tensor("y", "HALF", (2,), output=True)], doubled)
    with pytest.raises(AdapterError, match="takes float16, fed is float32") as caught:
        session(engine).run(feed(x=np.ones(2, np.float32)))
    assert "--inputIOFormats=fp32:chw" in caught.value.cure


@pytest.mark.parametrize("place", ["x", "y"])
def test_an_engine_with_channels_in_blocks_is_refused(runtime, place):
    """``trtexec --inputIOFormats=fp16:chw16`` makes such; its bytes are not those of a numpy array."""
    layouts = {"x": "LINEAR", "y": "LINEAR", place: "CHW16"}
    tensors = [Tensor("x", "FLOAT", (2, 3), layout=layouts["x"]),
               Tensor("y", "FLOAT", (2, 3), output=True, layout=layouts["y"])]  # fmt: skip
    with pytest.raises(AdapterError, match=f"'{place}' in the format CHW16") as caught:
        session(Engine(tensors, doubled))
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.USAGE, "tensor-format")


def test_an_output_whose_size_depends_on_data_is_allocated_when_it_is_known(runtime):
    def nonzero(inputs, shapes):
        (found,) = np.nonzero(np.frombuffer(inputs["x"], np.float32))
        return {"y": (found.shape, found.astype(np.int32).tobytes())}

    engine = Engine([Tensor("x", "FLOAT", (6,)), Tensor("y", "INT32", (-1,), output=True)], nonzero)
    opened = session(engine)
    for x in ([0, 1, 0, 2, 3, 0], [0, 0, 0, 0, 0, 9], [0] * 6):
        (item,) = opened.run(feed(x=np.array(x, np.float32)))
        np.testing.assert_array_equal(item.array, np.nonzero(x)[0])


def test_an_allocator_without_memory_says_so(monkeypatch):
    monkeypatch.setattr(memory, "_runtime", lambda: Runtime(memory=1000))
    engine = Engine([Tensor("x", "FLOAT", (2,)), Tensor("y", "INT8", (-1,), output=True)], doubled)
    opened = session(engine)

    def execute(stream):
        allocator = engine.contexts[0].allocators["y"]
        assert allocator.reallocate_output("y", 0, 5000, 256) == 0  # TensorRT gives up
        return True

    engine.contexts[0].execute_async_v3 = execute
    with pytest.raises(AdapterError, match="out of device memory") as caught:
        list(opened.run(feed(x=np.ones(2, np.float32))))
    assert caught.value.kind is AdapterFailure.MEMORY


def test_values_that_are_shapes_stay_on_the_host(runtime):
    seen = {}

    def reshaped(inputs, shapes):
        seen.update(inputs)
        return {"y": ((2,), np.array([7, 8], np.int32).tobytes())}

    engine = Engine(
        [Tensor("s", "INT32", (2,), host=True), Tensor("y", "INT32", (2,), output=True, host=True)], reshaped
    )
    (item,) = session(engine).run(feed(s=np.array([3, 4], np.int64)))
    assert np.frombuffer(seen["s"], np.int32).tolist() == [3, 4]
    assert item.array.tolist() == [7, 8]
    assert not runtime.allocated


def test_integers_that_do_not_fit_are_refused(runtime):
    engine = Engine([Tensor("x", "INT32", (1,)), Tensor("y", "INT32", (1,), output=True)], doubled)
    with pytest.raises(AdapterError, match="does not fit"):
        session(engine).run(feed(x=np.array([1 << 40])))


@pytest.mark.parametrize(
    ("dtype", "array"),
    [
        ("BF16", np.array([1.5, -2, np.inf], ml_dtypes.bfloat16)),
        ("FP8", np.array([0.5, -448, 3], ml_dtypes.float8_e4m3fn)),
        ("INT4", np.array([-8, 7, 1], ml_dtypes.int4)),
        ("FP4", np.array([6, -0.5, 1], ml_dtypes.float4_e2m1fn)),
        ("HALF", np.array([1, 2, 3], np.float16)),
        ("BOOL", np.array([True, False, True])),
        ("INT64", np.array([1 << 40, -1, 0])),
        ("E8M0", np.array([1, 2, 0.5], ml_dtypes.float8_e8m0fnu)),
    ],
)
def test_every_element_type_comes_back_bit_by_bit(runtime, dtype, array):
    """The stand-in hands the bytes through, so what comes back must be what went in."""
    engine = Engine(
        [Tensor("x", dtype, (3,)), Tensor("y", dtype, (3,), output=True)], lambda inputs, _: {"y": ((3,), inputs["x"])}
    )
    (item,) = session(engine).run(feed(x=array))
    assert item.label == label_of(array)
    codes = 15 if array.dtype.name in ("int4", "float4_e2m1fn") else 255
    np.testing.assert_array_equal(item.array.view(np.uint8) & codes, array.view(np.uint8) & codes)


def test_an_input_that_is_an_output_as_well_is_fed_by_its_own_name(runtime):
    """The parser of 8.5.3 calls such an input ``__x``: seen in the conformance suite on a GPU."""

    def copied(inputs, shapes):
        return {"x": (shapes["__x"], bytes(inputs["__x"]))}

    opened = session(Engine([Tensor("__x", "FLOAT", (2,)), Tensor("x", "FLOAT", (2,), output=True)], copied))
    (item,) = opened.run(feed(x=np.array([1.5, -2.0], np.float32)))
    np.testing.assert_array_equal(item.array, np.array([1.5, -2.0], np.float32))


def test_an_input_that_is_not_fed_is_named(runtime):
    with pytest.raises(AdapterError, match="'x' is not fed"):
        session(dynamic_engine()).run({})


class Kept(list):
    """Takes tensors as `exchange.Spill` does."""

    add = list.append


def test_the_listener_copies_what_it_is_shown_before_the_memory_is_gone(runtime):
    inner = np.array([[1, 2]], np.float32)
    engine = dynamic_engine(shown=[("inner", "FLOAT", (1, 2), inner.tobytes()), ("other", "HALF", (1,), b"\0\0")])
    opened = session(engine)
    x = feed(x=np.ones((2, 3), np.float32))
    kept = Kept()
    info, items = watch(opened, module(), opened._cuda, x, {"wanted": ["inner"]}, kept)
    assert info["shown"] == ["inner", "other"]
    assert ([item.name for item in kept], [item.name for item in items]) == (["inner"], ["output:y"])
    np.testing.assert_array_equal(kept[0].array, inner)
    assert not engine.contexts[0].watching
    assert [item.name for item in opened.run(x)] == ["y"]


def test_what_a_listener_meets_is_not_swallowed(runtime):
    opened = session(dynamic_engine(shown=[("inner", "FLOAT", (1,), bytes(4))]))
    opened._cuda.download = lambda *_: (_ for _ in ()).throw(AdapterError(AdapterFailure.RUN, "lost"))
    with pytest.raises(AdapterError, match="lost"):
        watch(opened, module(), opened._cuda, feed(x=np.ones((1, 3), np.float32)), {}, Kept())


def test_memory_that_is_not_there_is_out_of_memory(monkeypatch):
    monkeypatch.setattr(memory, "_runtime", lambda: Runtime(memory=100))
    with pytest.raises(AdapterError) as caught:
        session(dynamic_engine()).run(feed(x=np.ones((2, 3), np.float32)))
    assert caught.value.kind is AdapterFailure.MEMORY
