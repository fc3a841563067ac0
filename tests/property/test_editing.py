"""What must hold for every graph: folding, cleaning and converting change no name and no answer that they must not."""

import contextlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import running
from property.graphs import random_graphs
from tensortriage.errors import ModelError
from tensortriage.model.cutting.extract import extract
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.model import ExternalData, ExternalLayout, Model
from tensortriage.model.shape_inference.annotate import with_inferred_shapes
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.constant_folding import fold_constants
from tensortriage.model.transforms.mark_outputs import freeze, markable
from tensortriage.model.transforms.unused_removal import clean
from tensortriage.values.dtype import Precision
from tensortriage.workflows.edits.convert import format_proof
from tensortriage.workflows.edits.requests import ProofRequest
from tensortriage.workflows.edits.verify_edit import EditStage, prove
from tensortriage_surgeon.nodes_between import nodes_between

QUICK = settings(max_examples=15, deadline=None)
# The folder computes with numpy what ONNX Runtime computes with its own kernels: a few steps of float32 apart, which
# a chain of eight operations may amplify.
NEAR = {"rtol": 1e-3, "atol": 1e-4}


def known_names(model):
    return {*model.graph.values, *model.graph.initializers, *(node.name for node in model.graph.nodes)}


@QUICK
@given(random_graphs(), st.sampled_from(["x0", "x1", ""]))
def test_folding_keeps_names_and_answers(graph, frozen):
    model = freeze(graph.model, {frozen: graph.feed[frozen]}) if frozen else graph.model
    folded = fold_constants(model)
    assert known_names(folded) <= known_names(model)
    assert [spec.name for spec in folded.outputs] == [spec.name for spec in model.outputs]
    assert [spec.name for spec in folded.inputs] == [spec.name for spec in model.inputs]
    before, after = running.run(model, graph.feed), running.run(folded, graph.feed)
    for name, array in before.items():
        if np.abs(array[np.isfinite(array)]).max(initial=0) < 1e3:
            np.testing.assert_allclose(after[name], array, err_msg=name, **NEAR)


@QUICK
@given(random_graphs())
def test_cleaning_and_declaring_shapes_change_no_bit(graph):
    before = running.run(graph.model, graph.feed)
    for edited in (clean(graph.model), with_inferred_shapes(graph.model)):
        assert known_names(edited) <= known_names(graph.model)
        after = running.run(edited, graph.feed)
        for name, array in before.items():
            np.testing.assert_array_equal(after[name], array, err_msg=name)


@QUICK
@given(random_graphs(), st.data())
def test_what_lies_between_values_gives_the_golden_outputs(graph, data):
    golden, specs = running.record(graph.model, graph.feed)
    names = list(markable(graph.model))
    ends = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    starts = data.draw(st.lists(st.sampled_from([*names, "x0", "x1"]), min_size=1, max_size=3, unique=True))
    starts = [name for name in starts if name not in ends]
    nodes, dangling = nodes_between(graph.model.graph, starts, ends)
    while dangling:  # what the message tells the user to do
        starts += [branch.value for branch in dangling if branch.value not in starts]
        ends = [name for name in ends if name not in starts]
        nodes, dangling = nodes_between(graph.model.graph, starts, ends)
    if not nodes:
        return
    cut = extract(graph.model, nodes, specs=specs, outputs=ends)
    assert {spec.name for spec in cut.inputs} <= set(starts)
    for name, array in running.run(cut, golden).items():
        np.testing.assert_array_equal(array, golden[name], err_msg=name)


@QUICK
@given(random_graphs(max_steps=6), st.sampled_from([Precision.FP16, Precision.BF16]))
def test_a_converted_model_stays_within_the_emulated_format(graph, precision):
    """bf16 runs on the float64 engine, fp16 on ONNX Runtime, as `triage convert` does it."""
    model = graph.model
    converted = convert(model, precision, specs=value_specs(model))
    stages = [EditStage("load", model), EditStage(precision.value, converted)]
    with contextlib.suppress(Lost):
        proof = proven(stages, format_proof(ProofRequest(), precision))
        assert proof.verified or "NaN or Inf" in proof.reason


class Lost(Exception):
    """The format cannot hold what the model computes, which is no fault of the conversion."""


def proven(stages, request):
    try:
        return prove(stages, request)
    except ModelError as error:
        if "the format cannot hold" in error.message:
            raise Lost from error
        raise


@QUICK
@given(random_graphs(), st.data())
def test_every_external_layout_holds_the_same_model(tmp_path_factory, graph, data):
    folder = tmp_path_factory.mktemp("layout")
    layout = data.draw(
        st.one_of(
            st.sampled_from(ExternalData),
            st.builds(
                ExternalLayout,
                location=st.sampled_from(["", "w.bin", "sub/w.bin"]),
                threshold_bytes=st.sampled_from([0, 1, 64, 1 << 20]),
                one_file=st.booleans(),
            ),
        )
    )
    saved = Model.load(graph.model.save(folder / "m.onnx", external_data=layout))
    assert saved.fingerprint == graph.model.fingerprint
    again = Model.load(saved.save(folder / "again.onnx", external_data=ExternalData.LEAVE))
    assert again.fingerprint == graph.model.fingerprint
