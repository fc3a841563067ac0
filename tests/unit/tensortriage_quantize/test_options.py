"""Options of 8 bits: which need each other, what request they make, and how the result is told."""

import dataclasses
from pathlib import Path

import click
import pytest

from tensortriage.errors import TriageError, UsageError
from tensortriage.model.cutting.node_selection import NodeChoice
from tensortriage.model.model import ExternalData, ExternalLayout
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.dtype import Precision
from tensortriage.workflows.common.output_selection import OutputChoice
from tensortriage.workflows.edits.convert_request import ConvertRequest
from tensortriage.workflows.edits.requests import ProofRequest, Source, Target, Verify
from tensortriage_quantize.calibration.calibration_search import Tried
from tensortriage_quantize.calibration.operand_ranges import Outgrown
from tensortriage_quantize.options import MOST_NAMED, MOST_SHOWN, EightBitOptions, lines
from tensortriage_quantize.quantize import QuantizeResult

INT8, FP8 = Precision.INT8, Precision.FP8E4M3
FEEDING = FeedRequest(paths=("a.npz",))


def metric(outputs, feed):
    """Score anything alike."""
    return 1.0


def wanted(**given):
    """Return a conversion that changes formats and nothing else, unless it says otherwise."""
    usual = {
        "kept": NodeChoice(op_types=("Gemm",)),
        "outputs": OutputChoice(),
        "source": Source(Path("m.onnx")),
        "target": Target(Path("o.onnx"), ExternalData.LEAVE),
        "proof": ProofRequest(feeding=FEEDING),
    }
    return ConvertRequest(**usual | given)


ASKED = [
    {"metric": metric}, {"metric_min": 0.0}, {"sqnr": 0.0}, {"holdout": ("h.npz",)}, {"float_weights": True},
    {"per_tensor": True}, {"reduce_range": True}, {"engine": "qnn"},
]  # fmt: skip


@pytest.mark.parametrize("given", ASKED)
@pytest.mark.parametrize("precision", [None, Precision.FP16])
def test_options_of_eight_bits_need_eight_bits(given, precision):
    with pytest.raises(UsageError) as caught:
        EightBitOptions(**given).check(precision)
    assert caught.value.slug == "option-needs-another"
    EightBitOptions().check(precision)


def test_options_that_go_together_are_taken():
    EightBitOptions(metric=metric, metric_min=0.5, reduce_range=True, calibrate="minmax").check(INT8)
    EightBitOptions(per_tensor=True, calibrate="entropy", sqnr=30.0, holdout=("h.npz",)).check(FP8)


def test_seven_bits_are_for_whole_numbers():
    with pytest.raises(click.UsageError):
        EightBitOptions(reduce_range=True).check(FP8)


def test_a_smallest_mean_needs_a_metric():
    with pytest.raises(UsageError) as caught:
        EightBitOptions(metric_min=0.5).check(INT8)
    assert caught.value.slug == "option-needs-another"


@pytest.mark.parametrize(
    "given",
    [{"opset": 18}, {"infer_shapes": True}, {"keep_io_types": False}, {"outputs": OutputChoice(mark=("y",))}],
)
def test_a_conversion_to_eight_bits_edits_nothing_else(given):
    with pytest.raises(UsageError) as caught:
        EightBitOptions().convert_and_show(wanted(**given), INT8, as_json=True)
    assert caught.value.slug == "quantize-not-edited"


def test_what_is_no_edit_is_quantized(tmp_path):
    missing = wanted(source=Source(tmp_path / "missing.onnx"), target=Target(tmp_path / "o.onnx", ExternalData.AUTO))
    with pytest.raises(TriageError) as caught:
        EightBitOptions(calibrate="minmax").convert_and_show(missing, INT8, as_json=True)
    assert caught.value.slug == "model-missing"


def test_every_option_reaches_the_request():
    given = EightBitOptions(
        metric=metric, metric_min=0.5, sqnr=30.0, holdout=("h.npz",), float_weights=True, per_tensor=True,
        reduce_range=True, percentile=99.0, calibrate="entropy", engine="openvino",
    )  # fmt: skip
    made = given._request(wanted(), INT8)
    options = dataclasses.asdict(made.options)
    assert {name: options[name] for name in ("percentile", "per_channel", "float_weights", "reduce_range")} == {
        "percentile": 99.0, "per_channel": False, "float_weights": True, "reduce_range": True,
    }  # fmt: skip
    assert (made.options.engine, EightBitOptions()._request(wanted(), INT8).options.engine) == (
        "openvino", "onnxruntime",
    )  # fmt: skip
    assert (made.options.precision, [one.value for one in made.calibrations]) == (INT8, ["entropy"])
    assert (made.metric.function, made.metric_min, made.sqnr_db, made.kept) == (metric, 0.5, 30.0, wanted().kept)
    assert (made.feeding, made.holdout.paths, made.accept_lost) == (FEEDING, ("h.npz",), False)
    usual = EightBitOptions(calibrate="minmax")._request(wanted(proof=ProofRequest(verify=Verify.NEVER)), FP8)
    assert (usual.options.per_channel, usual.holdout, usual.accept_lost) == (True, None, True)


def test_weights_of_other_sizes_do_not_stay_in_the_files_of_the_model():
    """Those of the model cannot hold them."""
    assert EightBitOptions(calibrate="minmax")._request(wanted(), INT8).target.external_data is ExternalData.AUTO
    layout = ExternalLayout("w.bin")
    kept = EightBitOptions(calibrate="minmax")._request(wanted(target=Target(Path("o.onnx"), layout)), INT8)
    assert kept.target.external_data is layout


RESULT = QuantizeResult(
    model="m.onnx", output="o.onnx", precision="int8", calibration="entropy", quantized=("a", "b"), kept=(),
    sensitive=(), tried=(Tried("entropy", 2, {"y": 0.01}, None), Tried("minmax", 2, {"y": 0.02}, 0.5)),
    sqnr_db={"y": 40.0}, metric_before=None, metric_after=None, judged_on="onnxruntime", goal="", reached=None,
    samples=("s0", "s1"), held_out=("s0", "s1"), inputs="real", outgrown=(), notices=(),
)  # fmt: skip


def test_a_result_is_told_with_what_there_is():
    text = "\n".join(lines(RESULT))
    assert "2 nodes quantized; calibrated on 2 samples (real data), judged by the same" in text
    assert [line[:11] for line in lines(RESULT) if "worst output error" in line] == ["  * entropy", "    minmax "]
    assert "metric 0.5000" in text
    assert text.endswith("output 'y': 40.0 dB on onnxruntime")


def test_what_was_kept_scored_outgrown_and_noted_is_told_too():
    outgrown = tuple(Outgrown(f"v{n}", 1.0, 2.0, 0.1, 3.0, f"s{n % 5}") for n in range(MOST_SHOWN + 2))
    text = "\n".join(lines(dataclasses.replace(
        RESULT, kept=("c",), sensitive=("c", "d"), metric_before=0.9, metric_after=0.8, held_out=("s2",),
        outgrown=outgrown, notices=("odd",), goal="top1 >= 0.9", reached=False,
    )))  # fmt: skip
    assert "missed: the written file does not reach top1 >= 0.9 on onnxruntime" in text
    for words in ("1 kept in float", "judged by 1 held-out", ": c, d", "metric 0.9000", "metric 0.8000", "note: odd"):
        assert words in text
    assert text.count("calibrated to 1: 10 % clipped") == MOST_SHOWN
    (advice,) = [line for line in text.splitlines() if "recalibrate" in line]
    assert advice.count(",") == MOST_NAMED - 1
