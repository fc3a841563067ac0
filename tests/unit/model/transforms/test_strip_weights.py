import numpy as np
import onnx
import pytest
from onnx import helper

import models
from tensortriage.errors import ModelError, UsageError
from tensortriage.model.inspect.sparsity import dense_groups, pruned
from tensortriage.model.model import ExternalData, Model
from tensortriage.model.transforms.strip_weights import reconstruct_weights, strip_weights


def weights():
    rng = np.random.default_rng(0)
    arrays = {
        "conv": rng.standard_normal((3, 4, 3, 3)).astype(np.float32),
        "bias": rng.standard_normal(3).astype(np.float32),
        "turned": rng.standard_normal((5, 8)).astype(np.float32),
        "quantized": rng.standard_normal((8, 5)).astype(np.float32),
        "sparse": pruned(rng.standard_normal((8, 4)).astype(np.float32), 0),
        "table": rng.standard_normal((40, 30)).astype(np.float32),
        "little_table": rng.standard_normal((4, 3)).astype(np.float32),
        "added": rng.standard_normal((2, 5)).astype(np.float32),
    }
    return arrays | {"scale": np.array(0.1, np.float32), "ids": np.arange(1024) % 4}


def model():
    nodes = [
        helper.make_node("Conv", ["x", "conv", "bias"], ["a"]),
        helper.make_node("Transpose", ["turned"], ["t"]),
        helper.make_node("MatMul", ["m", "t"], ["b"]),
        helper.make_node("QuantizeLinear", ["quantized", "scale"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale"], ["d"]),
        helper.make_node("Gemm", ["m", "d", "added"], ["c"]),
        helper.make_node("MatMul", ["m", "sparse"], ["e"]),
        helper.make_node("Gather", ["table", "ids"], ["f"]),
        helper.make_node("Gather", ["little_table", "ids"], ["g"]),
    ]
    inputs = {"x": (1, 4, 9, 9), "m": (2, 8)}
    return models.of_nodes(nodes, inputs=inputs, outputs=dict.fromkeys("abcefg", ()), initializers=weights())


def test_weights_lose_their_numbers_and_say_so(tmp_path):
    stripped, names = strip_weights(model())
    assert set(names) == {"conv", "bias", "turned", "quantized", "added", "sparse", "table"}
    path = stripped.save(tmp_path / "stripped.onnx")
    message = onnx.load(path)
    marks = {t.name: t.doc_string for t in message.graph.initializer if t.doc_string}
    assert marks == dict.fromkeys(names, "TRT_WEIGHTLESS/") | {"sparse": "TRT_WEIGHTLESS/SPARSE_2_4"}
    assert all(not t.raw_data for t in message.graph.initializer if t.doc_string)
    assert message.doc_string == "TRT_WEIGHTLESS"
    assert path.stat().st_size < 10_000


def test_a_constant_in_the_place_of_the_activations_is_a_weight_too():
    nodes = [
        helper.make_node("QuantizeLinear", ["table", "scale"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale"], ["d"]),
        helper.make_node("MatMul", ["d", "m"], ["y"]),
    ]
    kept = {name: weights()[name] for name in ("table", "scale")}
    stripped = strip_weights(models.of_nodes(nodes, inputs={"m": (30, 2)}, outputs={"y": ()}, initializers=kept))
    assert stripped[1] == ("table",)


def test_excluded_weights_are_left_alone():
    _, names = strip_weights(model(), exclude=["conv", "scale"])
    assert "conv" not in names
    with pytest.raises(UsageError) as caught:
        strip_weights(model(), exclude=["convv"])
    assert caught.value.slug == "initializer-unknown"


def test_a_stripped_model_can_be_loaded_and_saved_but_has_no_numbers(tmp_path):
    path = strip_weights(model())[0].save(tmp_path / "stripped.onnx")
    loaded = Model.load(path)
    assert loaded.graph.initializers["conv"].shape == (3, 4, 3, 3)
    for mode in ExternalData:
        again = Model.load(loaded.save(tmp_path / mode.value / "m.onnx", external_data=mode))
        assert again.fingerprint == loaded.fingerprint
    with pytest.raises(ModelError) as caught:
        loaded.graph.weight("conv")
    assert caught.value.slug == "weight-stripped"


def test_a_tensor_without_numbers_and_without_the_mark_is_damaged(tmp_path):
    message = onnx.load(strip_weights(model())[0].save(tmp_path / "stripped.onnx"))
    next(t for t in message.graph.initializer if t.name == "conv").doc_string = "something else"
    with pytest.raises(ModelError) as caught:
        Model.load(models.write(tmp_path / "damaged.onnx", message))
    assert caught.value.slug == "tensor-invalid"


def test_reconstructed_weights_fit_and_are_reproducible(tmp_path):
    loaded = Model.load(strip_weights(model())[0].save(tmp_path / "stripped.onnx"))
    filled, names = reconstruct_weights(loaded)
    again = Model.load(filled.save(tmp_path / "filled.onnx"))
    assert len(names) == 7
    for name, array in weights().items():
        found = again.graph.weight(name)
        assert (found.dtype, found.shape) == (array.dtype, array.shape), name
        assert np.array_equal(found, array) == (name not in names)
    assert dense_groups(again.graph.weight("sparse"), 0) == 0
    # 1,200 draws of N(0, 1/30): the mean square is 1/30 within four of its standard deviations, sqrt(2/1200)/30.
    assert abs(np.square(again.graph.weight("table")).mean() * 30 - 1) < 4 * np.sqrt(2 / 1200)
    assert reconstruct_weights(loaded)[0].fingerprint == filled.fingerprint
    assert reconstruct_weights(loaded, seed=1)[0].fingerprint != filled.fingerprint


def test_nothing_to_do_is_an_error():
    with pytest.raises(UsageError) as caught:
        strip_weights(models.branchy())
    assert caught.value.slug == "nothing-to-strip"
    with pytest.raises(UsageError) as caught:
        reconstruct_weights(model())
    assert caught.value.slug == "nothing-stripped"


def test_weights_that_are_stored_quantized_are_stripped_too(tmp_path):
    nodes = [
        helper.make_node("DequantizeLinear", ["stored", "scale"], ["w"]),
        helper.make_node("Transpose", ["w"], ["t"]),
        helper.make_node("MatMul", ["m", "t"], ["a"]),
    ]
    stored = np.arange(-16, 16, dtype=np.int8).reshape(4, 8)
    arrays = {"stored": stored, "scale": np.array(0.1, np.float32)}
    whole = models.of_nodes(nodes, inputs={"m": (2, 8)}, outputs={"a": ()}, initializers=arrays)
    stripped, names = strip_weights(whole)
    assert names == ("stored",)
    filled, _ = reconstruct_weights(Model.load(stripped.save(tmp_path / "s.onnx")))
    made = filled.graph.weight("stored")
    assert (made.dtype, made.shape) == (np.int8, (4, 8))
