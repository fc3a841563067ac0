from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import models
from tensortriage.engines.cpu_features import sums_in_int16
from tensortriage.errors import DataError, ModelError
from tensortriage.model.cutting.node_selection import NodeChoice
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.edits.requests import Source, Target
from tensortriage_quantize.calibration.calibrated_model import Calibration
from tensortriage_quantize.quantize import QuantizeRequest, quantize
from tensortriage_quantize.search.on_engine import NothingQuantizedError

NET = """
    g (float[N, 4] x) => (float[N, 2] y) <float[4, 2] w = {1, -1, 0.5, 2, 0.25, 0.125, -3, 1}> {
        [first] y = MatMul(x, w)
    }"""

TWO = """
    g (float[N, 4] x) => (float[N, 2] y)
    <float[4, 2] w = {1, -1, 0.5, 2, 0.25, 0.125, -3, 1}, float[4, 2] v = {0.001, 0.002, 0, 0, 0.001, 0, 0, 0.001}> {
        [first] a = MatMul(x, w)
        [small] b = MatMul(x, v)
        [sum] y = Add(a, b)
    }"""


@pytest.fixture
def request_of(tmp_path):
    models.write(tmp_path / "m.onnx", NET)

    def make(samples, holdout=None, **more):
        for name, arrays in (("samples", samples), ("holdout", holdout)):
            if arrays is not None:
                np.savez(tmp_path / f"{name}.npz", x=np.asarray(arrays, np.float32))
        return QuantizeRequest(
            source=Source(tmp_path / "m.onnx"),
            target=Target(tmp_path / "q.onnx"),
            calibrations=more.pop("calibrations", (Calibration.MINMAX,)),
            feeding=FeedRequest(paths=[str(tmp_path / "samples.npz")]),
            holdout=None if holdout is None else FeedRequest(paths=[str(tmp_path / "holdout.npz")]),
            **more,
        )

    return make


def uniform(samples, largest, seed=0):
    return np.random.default_rng(seed).uniform(-largest, largest, (samples, 16, 4))


def test_every_fourth_sample_judges(request_of, tmp_path):
    found = quantize(request_of(uniform(8, 1.0)))
    assert (len(found.samples), len(found.held_out)) == (6, 2)
    assert not set(found.samples) & set(found.held_out)
    # int8 rounding of both operands, uniform: each leaves about (1/127)/sqrt(12)/(1/sqrt(3)) = 0.4 %.
    assert 0.001 < found.tried[0].worst < 0.02
    assert found.outgrown == ()
    onnx.checker.check_model(onnx.load(tmp_path / "q.onnx"))


def test_few_samples_judge_themselves_and_it_says_so(request_of):
    found = quantize(request_of(uniform(2, 1.0)))
    assert found.samples == found.held_out
    assert "judged by what calibrates it, 2 samples" in found.notices[0]


def test_samples_that_do_not_represent_the_task_are_the_named_cause(request_of, tmp_path):
    """Calibrated to 0.1, used at 1: nine tenths of the magnitudes are clipped away."""
    bad = request_of(uniform(1, 0.1), uniform(2, 1.0, seed=1))
    with pytest.raises(ModelError, match=r"'x' reaches 0\.99\d* but was calibrated to 0\.09") as lost:
        quantize(bad)
    assert lost.value.slug == "quantize-lossy"
    assert not (tmp_path / "q.onnx").exists()
    found = quantize(request_of(uniform(1, 0.1), uniform(2, 1.0, seed=1), accept_lost=True))
    (grown,) = found.outgrown
    assert (grown.value, round(grown.clipped_share, 1)) == ("x", 0.9)
    arrays = np.load(tmp_path / "holdout.npz")["x"]
    assert grown.sample == f"holdout.npz[{np.abs(arrays).max(axis=(1, 2)).argmax()}]"
    assert (tmp_path / "q.onnx").exists()


def test_the_best_calibration_is_the_first(request_of):
    """One outlier of 50 among values below 1 ruins the range of min-max; a percentile leaves it out."""
    samples = uniform(4, 1.0)
    samples[0, 0, 0] = 50.0
    ways = (Calibration.MINMAX, Calibration.PERCENTILE)
    request = request_of(samples, uniform(2, 1.0, seed=1), calibrations=ways)
    found = quantize(replace(request, options=replace(request.options, percentile=99.0)))
    assert [tried.calibration for tried in found.tried] == ["percentile", "minmax"]
    assert found.tried[0].worst < 0.2 * found.tried[1].worst
    assert found.calibration == "percentile"


def test_a_metric_decides_before_the_error(request_of):
    ways = (Calibration.MINMAX, Calibration.PERCENTILE)
    first: list[float] = []

    def metric(outputs, feed):
        first.append(float(np.abs(outputs["y"]).max()))
        return first[-1]  # the wider the range, the larger

    found = quantize(request_of(uniform(3, 1.0), uniform(1, 2.0, seed=1), calibrations=ways, metric=metric))
    assert found.metric_before == first[0]
    assert found.tried[0].metric >= found.tried[1].metric


def test_nodes_that_prevent_the_goal_stay_float(request_of, tmp_path):
    models.write(tmp_path / "m.onnx", TWO)
    found = quantize(request_of(uniform(4, 1.0), sqnr_db=60.0))
    assert found.sensitive == found.kept == ("first",)  # 8 bits leave about 45 dB of it; the other adds a thousandth
    assert found.quantized == ("small",)
    assert found.sqnr_db["y"] >= 60.0


def test_a_goal_that_leaves_nothing_in_8_bits_makes_no_model(request_of, tmp_path):
    with pytest.raises(NothingQuantizedError, match="SQNR >= 300 dB leaves none of 1 nodes in int8") as none:
        quantize(request_of(uniform(4, 1.0), sqnr_db=300.0))
    assert (none.value.slug, none.value.exit_code) == ("quantize-none-left", 4)
    with pytest.raises(ModelError, match="all 1 nodes") as kept:
        quantize(request_of(uniform(4, 1.0), kept=NodeChoice(op_types=["MatMul"])))
    assert kept.value.slug == "quantize-nothing"
    assert not (tmp_path / "q.onnx").exists()


@pytest.mark.parametrize("calibration", [*Calibration])
@pytest.mark.parametrize(("value", "named"), [(np.nan, "input 'x' holds nan"), (np.inf, "'x', which is to be")])
def test_samples_that_hold_no_numbers_are_named(request_of, calibration, value, named):
    samples = uniform(5, 1.0)
    samples[2, 3, 1] = value
    with pytest.raises(DataError, match=named) as wrong:
        quantize(request_of(samples, calibrations=(calibration,)))
    assert wrong.value.slug == "quantize-not-finite"
    assert "[3, 1] on samples.npz[2]" in wrong.value.message


def test_an_infinity_that_makes_the_outputs_nan_is_named_where_it_comes_in(request_of):
    samples = uniform(2, 1.0)
    samples[1, 0, 0] = np.inf
    samples[1, 0, 1] = -np.inf  # w[0] and w[1] have one sign in a column: Inf - Inf
    with pytest.raises(DataError, match=r"'x', which is to be quantized, holds inf at \[0, 0\] on samples.npz\[1\]"):
        quantize(request_of(samples))


def test_an_infinity_that_is_not_quantized_is_no_obstacle(request_of, tmp_path):
    """A mask of -Inf takes part in a Max that undoes it."""
    models.write(
        tmp_path / "m.onnx",
        NET.replace("x) =>", "x, float[N, 4] mask) =>")
        .replace("MatMul(x, w)", "MatMul(c, w)")
        .replace("[first]", "[cut] c = Max(x, mask)\n        [first]"),
    )
    samples = uniform(4, 1.0).astype(np.float32)
    request = request_of(samples)
    np.savez(tmp_path / "samples.npz", x=samples, mask=np.full(samples.shape, -np.inf, np.float32))
    assert quantize(request).quantized == ("first",)


def test_luck_on_the_judging_samples_is_no_merit(request_of):
    """The float model's metric is 1; a calibration that clips has 2, by chance, and twenty times the error."""
    samples = uniform(4, 1.0)
    ways = (Calibration.PERCENTILE, Calibration.MINMAX)

    def metric(outputs, feed):
        exact = feed["x"] @ np.array([[1, -1], [0.5, 2], [0.25, 0.125], [-3, 1]], np.float32)
        return 2.0 if np.abs(outputs["y"] - exact).max() > 0.1 else 1.0

    request = request_of(samples, uniform(2, 1.0, seed=1), calibrations=ways, metric=metric)
    found = quantize(replace(request, options=replace(request.options, percentile=80.0)))
    assert [(tried.calibration, tried.metric) for tried in found.tried] == [("minmax", 1.0), ("percentile", 2.0)]


def test_a_goal_that_the_float_model_does_not_reach(request_of):
    with pytest.raises(ModelError) as beyond:
        quantize(request_of(uniform(4, 1.0), metric=lambda outputs, feed: 0.5, metric_min=0.9))
    assert beyond.value.slug == "quantize-goal-unreachable"


def largest_weight(path):
    stored = (numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer)
    return max(np.abs(array.astype(int)).max() for array in stored if array.dtype == np.int8)


def test_weights_in_7_bits(request_of, tmp_path):
    """The largest weight of every column is 127 steps, or 63 or 64 of twice the length, for about twice the error."""
    request = request_of(uniform(4, 1.0))
    whole = quantize(request)
    assert largest_weight(tmp_path / "q.onnx") == 127
    narrow = quantize(replace(request, options=replace(request.options, reduce_range=True)))
    assert largest_weight(tmp_path / "q.onnx") in (63, 64)
    assert whole.tried[0].worst < narrow.tried[0].worst < 4 * whole.tried[0].worst


WIDE = """
    g (float[N, 64] x) => (float[N, 1] y) <float[64, 1] w = {WEIGHTS}> {
        [first] h = MatMul(x, w)
        y = Relu(h)
    }"""


@pytest.mark.skipif(not sums_in_int16(), reason="the processor has VNNI, or is none of x86")
def test_sums_that_onnx_runtime_cuts_off_here_are_told(request_of, tmp_path):
    """Numbers near the end of their range, all weights equal: every pair is 255 * 127 * 2."""
    models.write(tmp_path / "m.onnx", WIDE.replace("WEIGHTS", ", ".join(["1"] * 64)))
    samples = np.random.default_rng(0).uniform(0.9, 1.0, (4, 16, 64))
    request = request_of(samples)
    (notice,) = (line for line in quantize(request).notices if "VNNI" in line)
    assert "--reduce-range" in notice
    narrow = quantize(replace(request, options=replace(request.options, reduce_range=True)))
    assert not [line for line in narrow.notices if "VNNI" in line]


def test_ranges_come_from_the_samples_that_judged_as_well_unless_those_were_given_to_judge(request_of, tmp_path):
    samples = uniform(8, 1.0)
    samples[3] *= 1.2  # every fourth judges
    quantize(request_of(samples))
    (scale,) = activation_scales(tmp_path / "q.onnx")
    assert scale == pytest.approx(np.abs(samples).max() / 127, rel=1e-4)
    quantize(request_of(np.delete(samples, 3, 0), samples[3:4]))
    (scale,) = activation_scales(tmp_path / "q.onnx")
    assert scale == pytest.approx(np.abs(np.delete(samples, 3, 0)).max() / 127, rel=1e-4)


def activation_scales(path):
    graph = onnx.load(path).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    return [float(constants[node.input[1]]) for node in graph.node if node.op_type == "QuantizeLinear"]
