"""The verdict about a changed model: which node, in words, on architectures and at places drawn at random."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from diagnosing import ask
from tensortriage.model.model import Model
from tensortriage_testing import conv_net, encoder, feed_for, mlp, residual_dag, save_model

PLAIN = "onnxruntime:optimization=none"
MODELS = {
    "mlp": lambda: mlp(),
    "encoder": lambda: encoder(layers=2, width=32, heads=2, tokens=8, batch=2),
    "conv_net": lambda: conv_net(blocks=3),
    "residual_dag": lambda: residual_dag(nodes=40),
}
MULTIPLIES = ("MatMul", "Gemm", "Conv")


def verdict_of(tmp_path, model, changed, feed=None, target=PLAIN):
    path = save_model(changed, tmp_path / "changed.onnx")
    return ask(
        tmp_path, save_model(model, tmp_path / "model.onnx"), feed or feed_for(model), target, target_model=path
    )[0]


def weights(model):
    """Return (node, initializer) of every node that multiplies by a weight."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    return [
        (node, tensors[name])
        for node in model.graph.node
        if node.op_type in MULTIPLIES
        for name in node.input[1:2]
        if name in tensors
    ]


def set_weight(tensor, array):
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), tensor.name))


def transpose(node, array, others):
    return array.T if array.ndim == 2 and array.shape[0] == array.shape[1] else None


def rescale(node, array, others):
    return array * np.float32(1.02)


def from_another(node, array, others):
    return next((other for other in others if other.shape == array.shape and (other != array).any()), None)


def one_eighth_off(node, array, others):
    array = array.copy()
    array[: max(1, array.shape[0] // 8)] *= np.float32(1.25)
    return array


CHANGES = {
    transpose: ("weight-transposed", "transposed"),
    rescale: ("weight-rescaled", "multiplied by 1.02"),
    from_another: ("weight-of-another-node", "has the weight of"),
    one_eighth_off: ("weight", "has another constant"),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(10))
def test_a_weight_that_was_changed_anywhere_is_the_first_culprit(tmp_path, seed):
    rng = np.random.default_rng(seed)
    name = list(MODELS)[seed % len(MODELS)]
    change = list(CHANGES)[int(rng.integers(len(CHANGES)))]
    model, changed = MODELS[name](), MODELS[name]()
    places = weights(changed)
    arrays = [numpy_helper.to_array(tensor) for _, tensor in places]
    for place in rng.permutation(len(places)):
        node, tensor = places[place]
        if (array := change(node, arrays[place], arrays)) is not None:
            break
    else:
        change, (node, tensor) = rescale, places[0]
        array = rescale(node, arrays[0], arrays)
    set_weight(tensor, array)
    verdict = verdict_of(tmp_path, model, changed)
    kind, words = CHANGES[change]
    first = verdict.culprits[0]
    assert (verdict.verdict, first.node, first.change) == ("model-changed", node.name, kind), verdict.summary
    assert words in first.reason
    assert first.floor_ratio > 10
    assert [culprit.node for culprit in verdict.culprits] == [node.name]  # what reads its result is innocent


@pytest.mark.parametrize("name", MODELS)
def test_a_renamed_model_with_one_weight_off_is_told_by_the_node_of_the_file_that_runs(tmp_path, name):
    model, changed = MODELS[name](), MODELS[name]()
    node, tensor = weights(changed)[-1]
    set_weight(tensor, numpy_helper.to_array(tensor) * np.float32(1.003))
    outputs = {value.name for value in changed.graph.output}
    new = {
        value: f"v{i}" for i, value in enumerate(v for n in changed.graph.node for v in n.output if v not in outputs)
    }
    for index, each in enumerate(changed.graph.node):
        each.name = f"n{index}"
        each.input[:] = [new.get(value, value) for value in each.input]
        each.output[:] = [new.get(value, value) for value in each.output]
    del changed.graph.value_info[:]
    verdict = verdict_of(tmp_path, model, changed)
    assert (verdict.verdict, [c.node for c in verdict.culprits]) == ("model-changed", [node.name]), verdict.summary
    assert "multiplied by 1.003" in verdict.summary


def test_a_layer_in_training_mode_is_named_in_words(tmp_path):
    from onnx import helper

    def net(mode):
        rng = np.random.default_rng(0)
        shapes = {"w0": (8, 3, 3, 3), "w1": (8, 8, 3, 3), "w2": (8, 8, 3, 3)}
        tensors = {name: rng.standard_normal(shape).astype(np.float32) / 5 for name, shape in shapes.items()}
        nodes, value = [], "x"
        for i in range(3):
            for word in "sbmv":
                tensors[f"{word}{i}"] = rng.uniform(0.5, 1.5, 8).astype(np.float32)
            nodes.append(helper.make_node("Conv", [value, f"w{i}"], [f"c{i}"], name=f"conv{i}", pads=[1] * 4))
            extra = [f"mean{i}", f"var{i}"] if mode and i == 1 else []
            nodes.append(
                helper.make_node("BatchNormalization", [f"c{i}", *(f"{word}{i}" for word in "sbmv")],
                                 [f"n{i}", *extra], name=f"norm{i}", training_mode=int(bool(extra)))
            )  # fmt: skip
            nodes.append(helper.make_node("Relu", [f"n{i}"], [f"r{i}" if i < 2 else "y"], name=f"relu{i}"))
            value = f"r{i}"
        graph = helper.make_graph(
            nodes, "g",
            [helper.make_tensor_value_info("x", 1, (2, 3, 8, 8))], [helper.make_tensor_value_info("y", 1, None)],
            [numpy_helper.from_array(array, name) for name, array in tensors.items()],
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)

    feed = {"x": np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)}
    verdict = verdict_of(tmp_path, net(0), net(1), feed)
    first = verdict.culprits[0]
    assert (first.node, first.change) == ("norm1", "training-mode"), verdict.summary
    assert "is in training mode: it normalizes by the mean and variance of the batch" in verdict.summary
    assert len(verdict.culprits) == 1
    folded = Model.load(save_model(net(0), tmp_path / "apart.onnx"))
    from tensortriage.model.transforms.folded_norms import with_folded_norms

    file = with_folded_norms(folded).save(tmp_path / "folded.onnx")
    assert not any(node.op_type == "BatchNormalization" for node in onnx.load(file).graph.node)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert verdict_of(elsewhere, net(0), onnx.load(file), feed).verdict == "match"


def stumps(thresholds, scaling="Mul", factor=1.0):
    """Return 12 trees of one question each about 4 numbers, times or by a factor."""
    trees, weights = np.arange(12), np.random.default_rng(1).standard_normal(24).astype(np.float32)
    node = helper.make_node(
        "TreeEnsembleRegressor", ["scaled"], ["sum"], "trees", domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=np.repeat(trees, 3).tolist(), nodes_nodeids=[0, 1, 2] * 12,
        nodes_featureids=np.stack([trees % 4, trees * 0, trees * 0], 1).ravel().tolist(),
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * 12,
        nodes_values=np.stack([thresholds, 0 * thresholds, 0 * thresholds], 1).ravel().tolist(),
        nodes_truenodeids=[1, 0, 0] * 12, nodes_falsenodeids=[2, 0, 0] * 12,
        target_treeids=np.repeat(trees, 2).tolist(),
        target_nodeids=[1, 2] * 12, target_ids=[0] * 24, target_weights=weights.tolist(),
    )  # fmt: skip
    nodes = [helper.make_node(scaling, ["x", "factor"], ["scaled"], "scale"), node]
    nodes.append(helper.make_node("Add", ["sum", "base"], ["y"], "base"))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, [40, 4])], [helper.make_tensor_value_info("y", 1, [40, 1])],
        [numpy_helper.from_array(np.float32(factor), "factor"), numpy_helper.from_array(np.float32(3), "base")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets)


THIRD = np.float32(1) / np.float32(3)
NUMBERS = np.array([5, 7, 10, 14, 17, 20, 23, 25, 28, 31, 34, 37], np.float32)
"""A third of each is, in float32, one step below its product with `THIRD`."""
TIES = {"x": np.random.default_rng(2).choice(NUMBERS, (40, 4))}


@pytest.mark.parametrize(
    ("model", "other", "named"),
    [
        (stumps(NUMBERS), stumps(np.nextafter(NUMBERS, np.float32(-1))), "'trees'"),
        (stumps(NUMBERS / 3, "Mul", THIRD), stumps(NUMBERS / 3, "Div", 3.0), "'scale'"),
    ],
    ids=["thresholds", "the same in another way"],
)
def test_a_floor_that_is_noise_excuses_and_blames_nothing(tmp_path, model, other, named):
    """One step of rounding decides, in the file that was changed and on any engine."""
    verdict = verdict_of(tmp_path, model, other, TIES)
    assert (verdict.verdict, verdict.exit_code, list(verdict.culprits)) == ("inconclusive", 4, []), verdict.summary
    assert named in verdict.summary
    assert "healthy engines differ by" in verdict.summary
