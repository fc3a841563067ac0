"""What must hold for every graph, cut and grouping; ONNX Runtime without optimizations computes both sides."""

import ml_dtypes
import numpy as np
import onnx_ir as ir
from hypothesis import given, settings
from hypothesis import strategies as st

import running
from property.graphs import random_graphs
from tensortriage.model.cutting.explode import explode
from tensortriage.model.cutting.extract import extract
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.similarity.diff import diff
from tensortriage.model.transforms.mark_outputs import inject, mark_outputs, markable
from tensortriage.values.dtype import Precision

QUICK = settings(max_examples=25, deadline=None)
FORMATS = {
    Precision.FP16: np.float16,
    Precision.BF16: ml_dtypes.bfloat16,
    Precision.FP8E5M2: ml_dtypes.float8_e5m2,
    Precision.FP8E4M3: ml_dtypes.float8_e4m3fn,
}


def assert_golden(outputs, golden):
    for name, array in outputs.items():
        np.testing.assert_array_equal(array, golden[name], strict=True, err_msg=name)


@QUICK
@given(random_graphs(), st.data())
def test_any_set_of_nodes_computes_what_it_computes_in_the_full_model(graph, data):
    golden, specs = running.record(graph.model, graph.feed)
    picked = data.draw(st.sets(st.sampled_from(graph.nodes), min_size=1))
    cut = extract(graph.model, picked, specs=specs)
    names = {node.name for node in cut.graph.nodes if node.op_type != "Constant"}
    assert names == {n.name for n in graph.model.graph.nodes if n.name in picked and n.op_type != "Constant"}
    constants = {name: graph.model.graph.weight(name) for name in graph.model.graph.constants}
    assert_golden(running.run(mark_outputs(cut, markable(cut)), golden), golden | constants)


@QUICK
@given(random_graphs())
def test_extracting_everything_gives_the_model_back(graph):
    cut = extract(graph.model, graph.nodes, specs=value_specs(graph.model))
    outputs = [spec.name for spec in graph.model.outputs]
    assert [spec.name for spec in cut.outputs] == outputs
    assert diff(graph.model, cut).changes == ()
    assert_golden(running.run(cut, graph.feed), running.run(graph.model, graph.feed))


@QUICK
@given(random_graphs(), st.data())
def test_any_grouping_exploded_gives_the_golden_values(graph, data):
    golden, specs = running.record(graph.model, graph.feed)
    groups = data.draw(st.lists(st.integers(0, 3), min_size=len(graph.nodes), max_size=len(graph.nodes)))
    units = [[n for n, g in zip(graph.nodes, groups, strict=True) if g == group] for group in sorted(set(groups))]
    shapes = {name: golden[name] for name in graph.model.graph.shape_like if name in golden}
    for given_units in (units, None):
        exploded = explode(graph.model, given_units, specs=specs, shape_values=shapes)
        assert set(exploded.feeds.values()) <= set(golden)
        outputs = running.run(exploded.model, {name: golden[value] for name, value in exploded.feeds.items()})
        assert set(outputs) == set(exploded.outputs)
        assert_golden(outputs, golden)
    assert set(exploded.outputs) == set(markable(graph.model))


@QUICK
@given(random_graphs(), st.data())
def test_injection_does_nothing_until_used_and_then_replaces_exactly_one_value(graph, data):
    golden, specs = running.record(graph.model, graph.feed)
    values = data.draw(st.lists(st.sampled_from(markable(graph.model)), min_size=1, unique=True))
    edited = inject(graph.model, values, specs=specs)
    idle = {f"inject::{v}": np.zeros((1,) * golden[v].ndim, golden[v].dtype) for v in values}
    idle |= {f"use::{v}": np.array(False) for v in values}
    assert_golden(running.run(edited, {**graph.feed, **idle}), golden)
    on = {f"inject::{v}": golden[v] for v in values} | {f"use::{v}": np.array(True) for v in values}
    assert_golden(running.run(edited, {**graph.feed, **on}), golden)


@QUICK
@given(random_graphs(), st.sampled_from(sorted(FORMATS, key=str)), st.data())
def test_rounding_equals_rounding_by_hand_after_every_node(graph, precision, data):
    """The oracle runs one node at a time on rounded operands and rounds its results with ml_dtypes."""
    kept = data.draw(st.sets(st.sampled_from(graph.nodes), max_size=2))
    kept -= {node.name for node in graph.model.graph.nodes if node.has_body}
    _, specs = running.record(graph.model, graph.feed)
    edited = round_results(graph.model, precision, specs=specs, kept=kept)
    values = [name for name in markable(graph.model) if graph.model.graph.producer(name).op_type != "If"]
    outputs = running.run(mark_outputs(edited, values), graph.feed)

    def rounded(array):
        if array.dtype != np.float32:
            return array
        with np.errstate(all="ignore"):
            return array.astype(FORMATS[precision]).astype(np.float32)

    by_hand = dict(graph.feed)
    for node in graph.model.graph.nodes:
        if node.op_type == "Constant":
            continue
        one = extract(graph.model, [node.name], specs=specs, outputs=[n for n in node.outputs if n])
        if node.name in kept:
            by_hand |= running.run(one, by_hand)
            continue
        one = _with_rounded_constants(one, rounded)
        made = running.run(one, {name: rounded(array) for name, array in by_hand.items()})
        by_hand |= {name: rounded(array) for name, array in made.items()}
    for name in values:
        np.testing.assert_array_equal(outputs[name], by_hand[name], err_msg=name)


def _with_rounded_constants(model, rounded):
    clone = model.clone()
    for value in clone.ir.graph.initializers.values():
        value.const_value = ir.tensor(rounded(value.const_value.numpy()), name=value.name)
    for node in clone.ir.graph:
        if node.op_type == "Constant":
            array = rounded(node.attributes["value"].as_tensor().numpy())
            node.attributes.add(ir.AttrTensor("value", ir.tensor(array)))
    return Model.from_ir(clone.ir)


@QUICK
@given(random_graphs(), st.data())
def test_a_typed_model_builds_and_is_near(graph, data):
    kept = data.draw(st.sets(st.sampled_from(graph.nodes), max_size=3))
    keep_io = data.draw(st.booleans())
    converted = convert(
        graph.model, Precision.FP16, specs=value_specs(graph.model), kept_nodes=kept, keep_io_types=keep_io
    )
    casts = [(n.inputs[0], n.attributes["to"]) for n in converted.graph.nodes if n.op_type == "Cast"]
    assert len(casts) == len(set(casts))
    feed = graph.feed if keep_io else {name: array.astype(np.float16) for name, array in graph.feed.items()}
    session = running.build(converted)
    assert {value.type for value in session.get_outputs()} == {"tensor(float)" if keep_io else "tensor(float16)"}
    golden = running.run(graph.model, graph.feed)
    for name, array in running.run(converted, feed).items():
        scale = max(1.0, float(np.abs(golden[name]).max()))
        if scale < 1e3 and "If" not in {node.op_type for node in graph.model.graph.nodes}:
            np.testing.assert_allclose(array.astype(np.float32), golden[name], atol=0.1 * scale)
