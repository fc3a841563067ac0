"""The generated models: right size, deterministic, and numbers that neither vanish nor explode.

Bounds on the activations come from the promise of the module (root mean square of order one), values from ONNX Runtime.
"""

from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest

from tensortriage_testing.models import conv_net, encoder, feed_for, mlp, residual_dag, save_model

BUILDERS = {
    "encoder": lambda seed=0: encoder(layers=12, seed=seed),
    "encoder, fused": lambda seed=0: encoder(layers=2, decomposed_layernorm=False, seed=seed),
    "conv_net": lambda seed=0: conv_net(seed=seed),
    "mlp": lambda seed=0: mlp(layers=8, seed=seed),
    "residual_dag": lambda seed=0: residual_dag(150, seed=seed),
}


def run(model: onnx.ModelProto, feed: dict[str, np.ndarray], *values: str) -> dict[str, np.ndarray]:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    if values:
        del copy.graph.output[:]
        copy.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in values)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_every_activation_is_of_order_one(build):
    model = build()
    # the additive mask (-10000) and the softmax over 64 tokens are of other orders by their nature
    nodes = [n for n in model.graph.node if n.op_type != "Softmax" and "mask" not in n.name]
    values = [n.output[0] for n in nodes if not n.name.endswith("attention/Add")]
    results = run(model, feed_for(model), *values)
    sizes = {name: np.sqrt(np.mean(np.square(value, dtype=np.float64))) for name, value in results.items()}
    assert min(sizes.values()) > 0.02
    assert max(sizes.values()) < 30  # queries times keys, before they are divided by sqrt(depth)


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_outputs_depend_on_the_feed(build):
    model = build()
    first, second = (run(model, feed_for(model, seed=seed)) for seed in (0, 1))
    for name, value in first.items():
        assert np.abs(value - second[name]).max() > 0.1 * np.abs(value).max(), name


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_a_seed_gives_one_model(build):
    assert build() == build()
    assert build(seed=1) != build()


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_node_and_value_names_are_unique_and_related(build):
    graph = build().graph
    assert len({node.name for node in graph.node}) == len(graph.node)
    outputs = {value.name for value in graph.output}
    assert all(node.output[0] in {f"{node.name}_output_0", *outputs} for node in graph.node)
    assert outputs <= {node.output[0] for node in graph.node}


def test_encoder_has_the_documented_size_and_operators():
    model = encoder(layers=12)
    counts = Counter(node.op_type for node in model.graph.node)
    assert counts.total() == 12 * 50 + 18
    common = {"Add", "Cast", "Div", "Erf", "Gather", "Gemm", "MatMul", "Mul", "Reshape", "Softmax", "Sub", "Tanh"}
    common |= {"Transpose", "Unsqueeze"}
    assert set(counts) == common | {"Pow", "ReduceMean", "Sqrt"}
    fused = Counter(node.op_type for node in encoder(layers=12, decomposed_layernorm=False).graph.node)
    assert fused.total() == 12 * 34 + 10
    assert set(fused) == common | {"LayerNormalization"}


def test_both_layernorms_compute_the_same():
    plain, fused = encoder(layers=2), encoder(layers=2, decomposed_layernorm=False)
    feed = feed_for(plain)
    expected = run(plain, feed)
    for name, value in run(fused, feed).items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=2e-5)


def test_tokens_still_differ_after_twelve_layers():
    model = encoder(layers=12)
    hidden = run(model, feed_for(model))["last_hidden_state"]
    assert hidden.std(axis=1).mean() > 0.4 * hidden.std()


def test_padding_is_ignored():
    model = encoder(layers=1)
    feed = feed_for(model)
    other = dict(feed, input_ids=np.where(feed["attention_mask"] == 1, feed["input_ids"], 7))
    pooled = [run(model, f)["pooler_output"] for f in (feed, other)]
    np.testing.assert_array_equal(*pooled)


def test_encoder_refuses_heads_that_do_not_divide_the_width():
    with pytest.raises(ValueError, match="multiple"):
        encoder(width=30, heads=4)


def test_symbolic_batch_is_filled_by_the_feed():
    model = encoder(layers=1, batch="batch")
    feed = feed_for(model, batch=3)
    assert run(model, feed)["pooler_output"].shape == (3, 64)


def test_token_feed_is_in_range_with_padding_at_the_end():
    model = encoder(layers=1, batch=16, tokens=20, vocabulary=50)
    feed = feed_for(model)
    ids, mask = feed["input_ids"], feed["attention_mask"]
    assert ids.shape == mask.shape == (16, 20)
    assert ids.dtype == mask.dtype == np.int64
    assert ids.min() == 0
    assert 30 < ids.max() < 50
    assert (np.diff(mask, axis=1) <= 0).all()
    assert 10 <= mask.sum(axis=1).min() < mask.sum(axis=1).max() <= 20
    assert ((ids == 0) == (mask == 0)).all()


@pytest.mark.parametrize("nodes", [1, 2, 3, 7, 50, 500])
@pytest.mark.parametrize("seed", range(3))
def test_residual_dag_has_exactly_the_nodes_asked_for_and_none_is_dead(nodes, seed):
    model = residual_dag(nodes, seed=seed)
    assert len(model.graph.node) == nodes
    read = {name for node in model.graph.node for name in node.input}
    unread = [node.output[0] for node in model.graph.node if node.output[0] not in read]
    assert unread == ["y"]


def test_residual_dag_has_skips_and_branches():
    graph = residual_dag(200).graph
    readers = Counter(name for node in graph.node for name in node.input)
    assert sum(count > 1 for name, count in readers.items() if name.endswith("_output_0")) > 20


def test_residual_dag_refuses_no_nodes():
    with pytest.raises(ValueError, match="at least one"):
        residual_dag(0)


def test_save_keeps_the_model_and_can_put_weights_beside_it(tmp_path):
    model = mlp()
    whole = save_model(model, tmp_path / "a.onnx")
    split = save_model(model, tmp_path / "b.onnx", external_data=True)
    assert onnx.load(whole) == model
    assert split.stat().st_size < 0.2 * whole.stat().st_size
    assert (tmp_path / "b.onnx.data").exists()
    restored = {w.name: onnx.numpy_helper.to_array(w) for w in onnx.load(split).graph.initializer}
    for weight in model.graph.initializer:
        np.testing.assert_array_equal(restored[weight.name], onnx.numpy_helper.to_array(weight))
