"""Cutting a part out of a model: it computes what the whole does there, is typed, and its data come along."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import models
from running import run
from tensortriage.errors import DataError, ModelError, TriageError
from tensortriage.model.cutting.node_selection import NodeChoice
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage.workflows.edits.requests import Source, Target, Verify
from tensortriage_surgeon.extract import extract
from tensortriage_surgeon.requests import ExtractRequest

FLOAT = DType.FLOAT
FEED = {"x": np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)}
UNTYPED = """
    g (float[N, 3] x, float[N, 3] unused) => (float[N, 3] y) {
        [hidden] h = custom.Unknown(x)
        [last] y = Neg(h)
    }"""


@pytest.fixture
def cut(tmp_path):
    """Return a function that cuts a part out of a model, and gives the result, the part, and its folder."""

    def extracted(model, *, feed=FEED, **given):
        if isinstance(model, Model):
            model.save(tmp_path / "whole.onnx")
        else:
            models.write(tmp_path / "whole.onnx", model)
        paths = ()
        if feed is not None:
            np.savez(tmp_path / "feed.npz", **feed)
            paths = (str(tmp_path / "feed.npz"),)
        out = tmp_path / "cut" / "part.onnx"
        given = {"nodes": NodeChoice(), "feeding": FeedRequest(paths=paths), **given}
        request = ExtractRequest(source=Source(tmp_path / "whole.onnx"), target=Target(out), **given)
        result = extract(request)
        return result, Model.load(out), out.parent

    return extracted


def between(*, inputs=(), outputs=()):
    """Return the ends of a cut, of which nothing but the names is said."""
    return {
        "inputs": {name: ValueSpec(name, None, None) for name in inputs} or None,
        "outputs": dict.fromkeys(outputs) or None,
    }


def ends(model):
    """Return names, types and shapes of what a model takes and gives."""
    return [(spec.name, spec.dtype, spec.shape) for spec in (*model.inputs, *model.outputs)]


def test_a_part_between_values_computes_what_the_whole_does_there(cut):
    result, part, folder = cut(models.branchy(), **between(inputs=("a",), outputs=("b", "c")))
    assert ends(part) == [(name, FLOAT, (2, 3)) for name in ("a", "b", "c")]
    assert [node.name for node in part.graph.nodes] == ["left", "right"]
    a = np.abs(FEED["x"])
    found = run(part, {"a": a})
    np.testing.assert_allclose(found["b"], np.exp(a), rtol=1e-6)
    np.testing.assert_array_equal(found["c"], -a)
    proof = result.proof
    assert (proof.verified, proof.inputs, [output.name for output in proof.outputs]) == (True, "real", ["b", "c"])
    assert (result.files, [path.name for path in folder.iterdir()]) == ((), ["part.onnx"])


def test_chosen_nodes_are_cut_out(cut):
    _, part, _ = cut(models.branchy(), nodes=NodeChoice(op_types=("Exp", "Abs")))
    assert ([s.name for s in part.inputs], [s.name for s in part.outputs]) == (["x"], ["a", "b"])


def test_the_data_that_lead_to_a_part_are_written_beside_it(cut):
    result, _, folder = cut(models.branchy(), **between(inputs=("a",), outputs=("b",)), keep_data=True)
    data = folder / "test_data_set_0"
    assert result.files == (str(data),)
    given, wanted = (numpy_helper.to_array(onnx.load_tensor(data / f"{end}_0.pb")) for end in ("input", "output"))
    np.testing.assert_array_equal(given, np.abs(FEED["x"]))
    np.testing.assert_allclose(wanted, np.exp(given), rtol=1e-6)
    with pytest.raises(DataError) as caught:
        cut(models.branchy(), **between(inputs=("a",), outputs=("b",)), keep_data=True)
    assert caught.value.slug == "output-not-empty"


def test_made_up_data_prove_a_part_too_and_what_is_not_asked_for_is_not_proven(cut):
    result, _, _ = cut(models.branchy(), feed=None, **between(outputs=("z",)))
    assert (result.proof.verified, result.proof.inputs) == (True, "random")
    result, part, _ = cut(models.branchy(), feed=None, **between(outputs=("z",)), verify=Verify.NEVER)
    assert (result.proof.verified, result.proof.reason) == (False, "not asked for")
    assert [node.name for node in part.graph.nodes] == ["start", "side"]


def test_a_type_that_nobody_says_is_found_by_running(cut):
    text = """g (float[N, 3] x) => (float[N, 3] y) {
        [a] a = Abs(x) [b] b = com.microsoft.Gelu(a) [c] y = Neg(b) }"""
    text = f'<ir_version: 10, opset_import: ["": 18, "com.microsoft": 1]> {text}'
    result, part, _ = cut(text, **between(inputs=("b",), outputs=("y",)))
    assert ends(part)[0] == ("b", FLOAT, (None, None))
    assert [notice for notice in result.notices if "'b'" in notice]
    result, part, _ = cut(text, **between(inputs=("b",), outputs=("y",)), run_for_shapes=True)
    assert ends(part) == [(name, FLOAT, (2, 3)) for name in ("b", "y")]
    assert not [notice for notice in result.notices if "'b'" in notice]
    said = {"b": ValueSpec("b", FLOAT, ("N", 3))}
    result, part, _ = cut(text, inputs=said, outputs={"y": None})
    assert ends(part)[0] == ("b", FLOAT, ("N", 3))


def test_shapes_are_inferred_where_that_is_asked_for(cut):
    text = "g (float[N, 3] x) => (float[A, B] y) { [a] a = Abs(x) [c] y = Neg(a) }"
    assert ends(cut(text, **between(inputs=("a",)))[1])[1][2] == ("A", "B")
    assert ends(cut(text, **between(inputs=("a",)), infer_shapes=True)[1])[1][2] == ("A", 3)


def test_a_model_that_does_not_run_is_cut_unproven_unless_one_insists(cut):
    text = f'<ir_version: 10, opset_import: ["": 18, "custom": 1]> {UNTYPED}'
    inputs = {"h": ValueSpec("h", FLOAT, ("N", 3))}
    result, part, _ = cut(text, feed=None, inputs=inputs, outputs={"y": None})
    assert not result.proof.verified
    assert [node.name for node in part.graph.nodes] == ["last"]
    with pytest.raises(TriageError):
        cut(text, feed=None, inputs=inputs, outputs={"y": None}, verify=Verify.ALWAYS)
    with pytest.raises(TriageError):
        cut(text, feed=None, inputs=inputs, outputs={"y": None}, keep_data=True)


@pytest.mark.parametrize("body", ["loop", "loop:body"])
def test_the_body_of_a_loop_is_a_model_whose_data_are_those_of_its_first_turn(cut, body):
    x = np.float32([1, -2])
    _, part, folder = cut(models.with_loop(), feed={"x": x}, body=body, keep_data=True)
    assert [node.name for node in part.graph.nodes] == ["again", "sum"]
    data = folder / "test_data_set_0"
    given = {spec.name: numpy_helper.to_array(onnx.load_tensor(data / f"input_{place}.pb"))
             for place, spec in enumerate(part.inputs)}  # fmt: skip
    np.testing.assert_array_equal(given["state"], x)
    np.testing.assert_array_equal(given["step"], np.abs(x))
    np.testing.assert_array_equal(run(part, given)["next"], x + np.abs(x))


def test_a_branch_of_an_if_is_named_behind_a_colon(cut):
    feed = {"c": np.array(True), "x": np.float32([1, 4])}
    _, part, _ = cut(models.with_if(), feed=feed, body="choice:else_branch")
    assert [node.name for node in part.graph.nodes] == ["rooted"]
    _, part, _ = cut(models.with_if(), feed=feed, body="choice:then_branch")
    np.testing.assert_array_equal(run(part, {"a": np.float32([1, 4])})["t"], [1, 8])


def test_a_part_that_does_not_compute_what_the_whole_does_is_not_written(cut, tmp_path):
    """Numbers of a generator differ from run to run, so that no part that draws them gives what the whole gave."""
    text = """g (float[2, 3] x) => (float[2, 3] y) {
        [a] a = Abs(x) [noise] n = RandomNormalLike(a) [add] y = Add(a, n) }"""
    with pytest.raises(ModelError) as caught:
        cut(text, **between(inputs=("a",)))
    assert caught.value.slug == "verify-failed"
    assert not Path(tmp_path / "cut" / "part.onnx").exists()


@pytest.mark.parametrize("body", ["loop:0", "loop:0:body"])
def test_a_colon_may_be_part_of_the_name_of_a_node(cut, body):
    whole = models.with_loop()
    whole.ir.graph.node("loop").name = "loop:0"
    _, part, _ = cut(Model.from_ir(whole.ir), feed={"x": np.float32([1, -2])}, body=body)
    assert [node.name for node in part.graph.nodes] == ["again", "sum"]
