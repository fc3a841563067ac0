"""Two files of inputs, or inputs and saved outputs: what differs, what it costs, and the exit code."""

import numpy as np
import pytest

import models
from tensortriage.cli.declared import parameters
from tensortriage.errors import DataError
from tensortriage_feeds.check.check import compare_feed_files
from tensortriage_feeds.check.request import FeedFilesRequest
from tensortriage_feeds.check.text import difference_lines

RNG = np.random.default_rng(1)
X = RNG.random((1, 3, 6, 6)).astype(np.float32)
W = ", ".join(f"{number:.3f}" for number in RNG.standard_normal(36))
NET = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,3,6,6] x) => (float[1,12,6,6] y)
<float[12,3,1,1] w = {WEIGHTS}> { [c] a = Conv(x, w) [t] y = Tanh(a) }""".replace("WEIGHTS", W)


@pytest.fixture
def files(tmp_path):
    models.write(tmp_path / "m.onnx", NET)
    np.savez(tmp_path / "mine.npz", x=X)

    def compare(seconds=np.inf, **theirs):
        np.savez(tmp_path / "theirs.npz", **theirs)
        given = tmp_path / "mine.npz", tmp_path / "theirs.npz", tmp_path / "m.onnx"
        return compare_feed_files(FeedFilesRequest(mine=given[0], theirs=given[1], model=given[2]), seconds=seconds)

    return compare


def outputs(x):
    weights = np.array([float(number) for number in W.split(",")]).reshape(12, 3)
    return np.tanh(np.einsum("oc,bchw->bohw", weights, x)).astype(np.float32)


def test_equal_files_are_the_same(files):
    found = files(x=X)
    assert (found.exit_code, found.same, found.costs) == (0, True, {})


def test_a_difference_has_kind_cure_and_cost(files):
    found = files(x=np.ascontiguousarray(X[:, ::-1]))
    assert (found.exit_code, found.transforms[0]["kind"], found.cure) == (1, "channels-reversed", "x = x[:, ::-1]")
    right, wrong = outputs(X).astype(np.float64), outputs(X[:, ::-1]).astype(np.float64)
    assert found.costs["y"] == pytest.approx(np.sqrt(np.mean((wrong - right) ** 2) / np.mean(right**2)), rel=1e-3)
    lines = list(difference_lines(found))
    assert lines[1] == "cure: x = x[:, ::-1]"
    assert lines[2].startswith("it costs ")


def test_what_is_not_known_is_told_as_such(files):
    found = files(x=RNG.standard_normal(X.shape).astype(np.float32))
    assert (found.exit_code, found.transforms) == (4, ())
    assert "in no known way" in found.summary


def test_single_arrays_belong_together_whatever_their_names(files):
    assert files(input=X / 255).transforms[0]["kind"] == "scale"


def test_files_with_nothing_in_common_are_an_error(files):
    with pytest.raises(DataError) as caught:
        files(a=X, b=X)
    assert caught.value.slug == "feeds-unpaired"


def test_a_shape_that_the_model_refuses_is_told_beside_the_difference(files):
    found = files(x=np.ascontiguousarray(X.transpose(0, 2, 3, 1)))
    assert found.transforms[0]["kind"] == "layout"
    assert found.refused


def test_saved_outputs_of_other_inputs_tell_which(files):
    found = files(y=outputs(X[:, ::-1] * 255))
    assert found.exit_code == 1
    assert [each["kind"] for each in found.transforms] == ["channels-reversed", "scale"]
    assert found.summary.startswith("the outputs are those of another input")


def test_saved_outputs_of_these_inputs_are_the_same(files):
    assert files(y=outputs(X)).exit_code == 0


def test_saved_outputs_of_another_network_are_those_of_nothing_that_is_known(files):
    found = files(seconds=0.5, y=np.clip(np.arctanh(outputs(X)), -1, 1).astype(np.float32))
    assert (found.exit_code, found.summary.endswith("no known difference of meaning gives them")) == (4, True)


def test_the_model_is_optional():
    options = {name for each in parameters(FeedFilesRequest) for name in getattr(each, "opts", ())}
    assert {"--model", "--reference"} <= options
