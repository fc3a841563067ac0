"""A model beside the one it was made from: quantized, typed narrower, or with its normalizations folded."""

import numpy as np
import onnx_ir as ir
import pytest

from models import parse
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import quantizers
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.model.transforms.folded_norms import with_folded_norms
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.values.dtype import Precision
from tensortriage_testing import conv_net, feed_for, mlp, quantized

NETWORK = mlp(layers=2, width=16, features=8, classes=4)


def model_of(message):
    return Model.from_ir(ir.from_proto(message))


def read(graph):
    """Return the pairs whose results something uses."""
    return [pair for pair in quantizers(graph) if graph.consumers(pair.result)]


def of_quantized(network=NETWORK):
    return Correspondence.of(model_of(network), model_of(quantized(network, feed_for(network))))


def test_a_quantized_model_is_its_original_without_pairs():
    found = of_quantized()
    assert read(found.changed.graph)
    assert not read(found.plain.graph)
    changed = {change.op_type for change in found.diff.changes if not change.kind.value.startswith("weight")}
    assert changed <= {"QuantizeLinear", "DequantizeLinear"}  # which nothing reads
    assert set(found.diff.pairs) == {node.name for node in found.original.graph.nodes}


def test_the_originals_of_quantized_weights_are_found():
    found = of_quantized()
    weights = found.weights()
    stored = {pair.result for pair in quantizers(found.changed.graph) if pair.of_weight}
    assert set(weights) == stored
    originals = [found.original.graph.weight(name) for name in found.original.graph.constants]
    for array in weights.values():
        assert any(array.shape == other.shape and np.array_equal(array, other) for other in originals)
    restored = found.unquantized(weights)
    assert not read(restored.graph)


def test_a_weight_that_has_nothing_to_do_with_the_original_is_not_its():
    found = of_quantized()
    rng = np.random.default_rng(0)
    name = next(name for name, spec in found.original.graph.constants.items() if spec.shape == (16, 16))
    other = freeze(found.original, {name: rng.standard_normal((16, 16)).astype(np.float32)})
    fewer = Correspondence.of(other, found.changed).weights()
    assert len(fewer) == len(found.weights()) - 1


def test_a_model_in_fp16_is_widened_and_says_what_is_typed_and_what_kept():
    original = model_of(NETWORK)
    kept = next(node.name for node in original.graph.nodes if node.op_type == "Relu")
    typed = convert(original, Precision.FP16, specs=value_specs(original), kept_nodes=[kept])
    found = Correspondence.of(original, typed)
    assert kept in found.kept
    assert set(found.typed.values()) == {Precision.FP16}
    assert set(found.typed) | set(found.kept) == {node.name for node in original.graph.nodes}
    restored = found.restored()
    for after, before in found.constants.items():
        assert np.array_equal(restored.graph.weight(after), original.graph.weight(before))


def test_normalizations_are_folded_where_they_were_folded_on_the_way():
    original = model_of(conv_net(blocks=1, channels=4))
    folded = with_folded_norms(original)
    found = Correspondence.of(original, folded)
    assert found.original.fingerprint == with_folded_norms(original).fingerprint
    assert {change.kind.value for change in found.diff.changes} <= {"weight-rounded"}
    same = Correspondence.of(original, original)
    assert (same.diff.is_equal, same.typed, same.relus) == (True, {}, frozenset())


@pytest.mark.parametrize(("zero_point", "missing"), [(0, set()), (128, {"relu"})])
def test_a_quantizer_takes_over_a_relu_only_if_its_range_begins_at_zero(zero_point, missing):
    weight = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    header = """g (float[2,4] x) => (float[2,4] y)
    <float[4,4] w = {W}, float s = {0.1}, uint8 z = {Z}> { [first] a = MatMul(x, w) """.replace(
        "{W}", "{" + ", ".join(map(str, weight.ravel())) + "}"
    ).replace("{Z}", f"{{{zero_point}}}")
    original = parse(header + "[relu] r = Relu(a) [second] y = MatMul(r, w) }")
    steps = "[q] b = QuantizeLinear(a, s, z) [d] r = DequantizeLinear(b, s, z) [second] y = MatMul(r, w) }"
    assert set(Correspondence.of(original, parse(header + steps)).diff.removed) == missing
