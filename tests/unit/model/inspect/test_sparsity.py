"""The oracle of pruning is a loop over groups of four, as in Polygraphy's pruner."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import models
from tensortriage.errors import ModelError
from tensortriage.model.inspect.sparsity import (
    SparseCandidate,
    check_sparsity,
    dense_groups,
    prune,
    pruned,
    sparse_candidates,
)


def by_hand(array, axis):
    result = np.array(array, dtype=array.dtype)
    moved = np.moveaxis(result, axis, -1)
    for index in np.ndindex(*moved.shape[:-1]):
        for start in range(0, moved.shape[-1], 4):
            group = moved[index][start : start + 4]
            for place in sorted(range(4), key=lambda k: (abs(float(group[k])), k))[:2]:
                group[place] = 0
    return result


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("shape", "axis"), [((8, 3), 0), ((3, 8), 1), ((2, 4, 3, 3), 1), ((4,), 0)])
def test_pruning_zeroes_the_two_smallest_of_every_four(dtype, shape, axis):
    array = np.random.default_rng(0).integers(-9, 10, shape).astype(dtype)
    result = pruned(array, axis)
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, by_hand(array, axis))
    assert dense_groups(result, axis) == 0


def test_groups_with_more_than_two_numbers_are_counted():
    array = np.array([[1, 2, 0, 0], [1, 2, 3, 0], [0, 0, 0, 0], [1, 1, 1, 1]], np.float32)
    assert dense_groups(array, 1) == 2
    assert dense_groups(array, 0) == 2  # columns (1 1 0 1) and (2 2 0 1), not (0 3 0 1) and (0 0 0 1)


def weights():
    rng = np.random.default_rng(1)
    return {
        "conv": rng.standard_normal((3, 4, 3, 3)).astype(np.float32),
        "few": rng.standard_normal((3, 3, 3, 3)).astype(np.float32),
        "gemm": rng.standard_normal((5, 8)).astype(np.float32),
        "batched": rng.standard_normal((2, 8, 5)).astype(np.float32),
        "turned": rng.standard_normal((5, 8)).astype(np.float32),
    }


def model():
    nodes = [
        helper.make_node("Conv", ["x", "conv"], ["a"], name="conv"),
        helper.make_node("Conv", ["x3", "few"], ["b"], name="few"),
        helper.make_node("Gemm", ["m", "gemm"], ["c"], name="gemm", transB=1),
        helper.make_node("MatMul", ["m", "batched"], ["d"], name="batched"),
        helper.make_node("Transpose", ["turned"], ["t"], name="turn", perm=[1, 0]),
        helper.make_node("MatMul", ["m", "t"], ["e"], name="turned"),
    ]
    inputs = {"x": (1, 4, 9, 9), "x3": (1, 3, 9, 9), "m": (2, 8)}
    outputs = dict.fromkeys("abcde", ())
    return models.of_nodes(nodes, inputs=inputs, outputs=outputs, initializers=weights())


def test_candidates_are_the_weights_whose_summed_axis_four_divides():
    assert sparse_candidates(model().graph) == (
        SparseCandidate("conv", 1, "conv"),
        SparseCandidate("gemm", 1, "gemm"),
        SparseCandidate("batched", 1, "batched"),
        SparseCandidate("turned", 1, "turned"),
    )


def test_pruning_a_model_changes_the_candidates_only(tmp_path):
    original = model()
    result, candidates = prune(original)
    saved = type(result).load(result.save(tmp_path / "pruned.onnx"))
    assert [c.weight for c in candidates] == ["conv", "gemm", "batched", "turned"]
    for name, array in weights().items():
        expected = by_hand(array, 1) if name in ("conv", "gemm", "batched", "turned") else array
        np.testing.assert_array_equal(saved.graph.weight(name), expected, err_msg=name)
        np.testing.assert_array_equal(original.graph.weight(name), array)


def test_weights_behind_quantizers_and_in_constant_nodes_count():
    message = models.proto("""
        g (float[2, 4] x) => (float[2, 4] y) <float s = {0.1}, int8 z = {0}> {
            [c] w = Constant <value = float[4, 4] {1,2,3,4, 5,6,7,8, 9,10,11,12, 13,14,15,16}> ()
            [q] q = QuantizeLinear(w, s, z) [d] d = DequantizeLinear(q, s, z) [mm] y = MatMul(x, d)
        }""")
    built = models.of_message(message)
    assert sparse_candidates(built.graph) == (SparseCandidate("w", 0, "mm"),)
    result, _ = prune(built)
    np.testing.assert_array_equal(result.graph.weight("w")[:2], np.zeros((2, 4)))


def test_integer_weights_are_no_candidates():
    built = models.of_nodes(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")],
        inputs={"x": (2, 4)}, outputs={"y": (2, 4)},
        initializers={"w": np.ones((4, 4), np.int32)}, dtype=onnx.TensorProto.INT32,
    )  # fmt: skip
    assert sparse_candidates(built.graph) == ()


SPARSE = np.array([[1, 0], [0, 0], [2, 3], [0, 4]], np.float32)  # two of four in each column at most


def matmul_model(weight):
    message = models.proto("g (float[2, 4] x) => (float[2, n] y) { [mm] y = MatMul(x, w) }")
    message.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return models.of_message(message)


def test_a_sparse_weight():
    report = check_sparsity(matmul_model(SPARSE))
    (weight,) = report.weights
    assert (weight.weight, weight.node, weight.axis, weight.groups, weight.dense_groups) == ("w", "mm", 0, 2, 0)
    assert report.is_sparse


def test_one_dense_group():
    weight = SPARSE.copy()
    weight[1, 1] = 1e-30  # small is not zero
    report = check_sparsity(matmul_model(weight))
    assert report.weights[0].dense_groups == 1
    assert not report.is_sparse


def test_nothing_to_check_is_an_error():
    with pytest.raises(ModelError) as caught:
        check_sparsity(models.chain(2))
    assert caught.value.slug == "no-sparse-candidates"
