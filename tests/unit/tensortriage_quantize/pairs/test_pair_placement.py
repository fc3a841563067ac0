"""Where pairs stand: at operands alone, in whole runs of integer kernels, or everywhere."""

import pytest

import models
from quantizable_networks import ATTENTION, RESIDUAL
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage_quantize.pairs.engine_styles import STYLES, engine_style, style_word
from tensortriage_quantize.pairs.pair_placement import feeding, heavy_nodes, place_pairs

ORT = STYLES["onnxruntime"]


def placed(text, style=ORT, kept=()):
    model = models.parse(text)
    specs = value_specs(model)
    heavy = [name for name in heavy_nodes(model.graph, style, style.heavy, specs) if name not in kept]
    return place_pairs(model, style, heavy, specs, kept)


def readers(plan):
    """Return who reads every pair, by what is quantized; None for everybody."""
    return {pair.value: None if pair.readers is None else {node for node, _ in pair.readers} for pair in plan.pairs}


def test_a_run_of_integer_kernels_is_quantized_from_end_to_end():
    plan = placed(RESIDUAL)
    assert plan.lowered == {"first", "second", "third", "add", "pool"}
    # a Relu that alone reads its operand is the quantizer's: none before it
    assert readers(plan) == {"x": {"first"}, "r": None, "c": None, "e": None, "p": None, "f": None}
    assert {pair.value: pair.like for pair in plan.pairs}["p"] == "e"  # pooling makes none but its operand's numbers


def test_a_kept_node_breaks_the_run_and_its_neighbours_keep_theirs():
    """Behind a dequantizer ONNX Runtime would quantize the kept weights again: ``second`` reads what is not rounded."""
    plan = placed(RESIDUAL, kept=("second",))
    assert plan.lowered == {"first", "third"}
    assert readers(plan) == {"x": {"first"}, "p": {"third"}, "f": None}


def test_what_only_moves_numbers_on_to_a_kept_product_does_not_either():
    plan = placed(RESIDUAL, kept=("third",))
    assert plan.lowered == {"first", "second"}
    assert readers(plan) == {"x": {"first"}, "r": None, "c": None}


def test_engines_that_fuse_by_themselves_get_pairs_at_operands_alone():
    plan = placed(RESIDUAL, STYLES["tensorrt"])
    assert readers(plan) == {"x": {"first"}, "r": {"second"}, "p": {"third"}}
    assert [weight.bias for weight in plan.weights] == ["", "", ""]


def test_everything_is_quantized_for_engines_without_float():
    plan = placed(RESIDUAL, STYLES["qnn"])
    assert plan.lowered == {"first", "relu", "second", "add", "relu2", "pool", "third", "mean", "out"}
    assert all(readers(plan)[value] is None for value in ("r", "c", "e", "p", "f", "m", "y"))


def test_biases_are_those_of_the_operator_or_of_an_add_behind_a_product():
    (conv, *_) = placed(RESIDUAL).weights
    assert (conv.bias, conv.adds, conv.axis) == ("b", ("first", 2), 0)
    (product,) = placed(ATTENTION).weights
    assert (product.bias, product.adds, product.axis) == ("b", ("bias", 0), 1)


def test_products_of_two_activations_stay_float_where_that_is_faster():
    assert placed(ATTENTION).lowered == {"project"}
    everything = placed(ATTENTION, STYLES["tensorrt"])
    assert everything.lowered == {"project", "scores", "mix"}
    plan = placed(ATTENTION, STYLES["openvino"])
    assert {(pair.value, pair.right) for pair in plan.pairs} == {
        ("x", False), ("q", False), ("q", True), ("t", True), ("s", False),
    }  # fmt: skip


def test_what_hands_integers_on():
    graph = models.parse(RESIDUAL).graph
    assert feeding(graph, ("first", "second", "third")) == {"first", "second"}
    assert feeding(graph, ("third",)) == set()


def test_products_of_integers_are_no_matter_of_8_bits():
    text = "g (int32[2, 2] x) => (int32[2, 2] y) <int32[2, 2] w = {1, 2, 3, 4}> { y = MatMul(x, w) }"
    model = models.parse(text)
    assert heavy_nodes(model.graph, ORT, ORT.heavy, value_specs(model)) == ()


def test_every_engine_says_where_its_facts_are_from():
    for name, style in STYLES.items():
        assert (style.name, engine_style(name)) == (name, style)
        assert len(style.source) > 80
        assert style.closed <= style.heavy
    with pytest.raises(UsageError) as unknown:
        engine_style("onnxruntim")
    assert unknown.value.slug == "quantize-engine-unknown"
    assert "onnxruntime" in unknown.value.cure


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("onnxruntime", "onnxruntime"),
        ("onnxruntime:providers=cuda+cpu", "onnxruntime"),
        ("onnxruntime:providers=tensorrt+cuda", "tensorrt"),
        ("onnxruntime:providers=OpenVINOExecutionProvider", "openvino"),
        ("onnxruntime:ep=qnn", "qnn"),
        ("openvino:precision=fp32", "openvino"),
        ("tensorrt:precision=int8", "tensorrt"),
        ("emulate:precision=int8", "tensorrt"),
    ],
)
def test_a_target_has_the_row_of_who_computes(target, word):
    assert style_word(EngineSpec.parse(target)) == word
