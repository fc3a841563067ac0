"""What a TensorRT log tells; samples are lines of real logs, their source next to them."""

import pytest

from tensortriage_engines.tensorrt.worker.logs import LogMiner, plain

WEIGHTS = """\
Weights [name=(Unnamed Layer* 1893) [Constant] + (Unnamed Layer* 1895) [Shuffle]] had the following issues when converted to FP16:
 - Finite FP32 values which would overflow in FP16 detected.  Converting to closest finite FP16 value.
If this is not the desired behavior, please modify the weights or retrain with regularization to reduce the magnitude of the weights.
Weights [name=Conv_616 + PWN(PWN(Sigmoid_617), Mul_618).weight] had the following issues when converted to FP16:
 - Subnormal FP16 values detected.
If this is not the desired behavior, please modify the weights or retrain with regularization to reduce the magnitude of the weights."""  # noqa: E501 - TensorRT's line
"""TensorRT 8.4 and 8.5: a log of 2022-10-31 on a BERT embedding, and TensorRT-For-YOLO-Series issue 56."""

LAYERNORM = (
    "Running layernorm after self-attention in FP16 may cause overflow. Exporting the model to the latest available "
    "ONNX opset (later than opset 17) to use the INormalizationLayer, or forcing layernorm layers to run in FP32 "
    "precision can help with preserving accuracy."
)
"""NVIDIA/TensorRT issue 3692, release 8.6."""


def mined(text: str, severity: str = "WARNING") -> LogMiner:
    miner = LogMiner(echo=False)
    for line in text.splitlines():
        miner(severity, line)
    return miner


def test_weights_that_do_not_fit_are_named():
    findings = mined(WEIGHTS).findings
    overflow, subnormal = findings["weights-overflow"], findings["weights-subnormal"]
    assert (overflow["count"], subnormal["count"]) == (1, 1)
    assert overflow["lines"][0].startswith(
        "(Unnamed Layer* 1893) [Constant] + (Unnamed Layer* 1895) [Shuffle]: Finite FP32"
    )
    assert subnormal["lines"] == ["Conv_616 + PWN(PWN(Sigmoid_617), Mul_618).weight: Subnormal FP16 values detected."]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (LAYERNORM, "layernorm-fp16"),
        ("Detected layernorm nodes in FP16: /neck/neck.1/Sqrt, /neck/neck.1/Pow", "layernorm-fp16"),  # issue 3692
        # TensorRT 8.x on every model exported with int64 shape constants
        (
            "onnx2trt_utils.cpp:374: Your ONNX model has been generated with INT64 weights, while TensorRT does not "
            "natively support INT64. Attempting to cast down to INT32.",
            "weights-narrowed",
        ),
        ("Missing scale and zero-point for tensor (Unnamed Layer* 6) [Shuffle]_output", "calibration-missing"),
        ("Skipping tactic 0x0000000000000000 due to exception Unexpected type", "tactic-memory"),  # issue 3748
    ],
)
def test_what_a_line_says(line, kind):
    assert list(mined(line).findings) == [kind]


def test_the_same_line_many_times_is_counted_and_kept_once():
    found = mined("\n".join([LAYERNORM] * 7)).findings["layernorm-fp16"]
    assert found["count"] == 7
    assert len(found["lines"]) == 1


def test_information_is_no_finding_and_verbose_lines_are_not_kept():
    miner = mined(WEIGHTS, "VERBOSE")
    assert not miner.findings
    assert miner.reason() == ""
    assert miner.summary()["lines"] == {"VERBOSE": 6}


def test_the_reason_is_what_the_errors_say_without_numbers_and_places():
    miner = mined("a warning")
    miner("ERROR", "10: [optimizer.cpp::computeCosts::3728] Error Code 10: Internal Error (Could not find any "
                   "implementation for node {ForeignNode[a...b]}.)")  # fmt: skip
    miner("ERROR", "2: [builder.cpp::buildSerializedNetwork::751] Error Code 2: Internal Error (Assertion failed)")
    assert miner.reason() == (
        "Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[a...b]}.); "
        "Error Code 2: Internal Error (Assertion failed)"
    )
    miner.clear_tail()
    assert miner.reason() == ""


def test_without_an_error_the_last_warning_is_the_reason():
    miner = mined("first\nCUDA initialization failure with error: 35.")
    assert miner.reason() == "CUDA initialization failure with error: 35"


def test_every_line_is_handed_on_to_who_reads_tactics():
    heard: list[str] = []
    miner = LogMiner(echo=False)
    miner.also = heard.append
    miner("VERBOSE", "Autotuning op")
    assert heard == ["Autotuning op"]


def test_only_warnings_and_errors_go_to_the_log_of_the_process(capsys):
    miner = LogMiner()
    miner("INFO", "quiet")
    miner("WARNING", "loud")
    assert capsys.readouterr().err == "[TensorRT warning] loud\n"


def test_plain_words():
    assert (
        plain("IBuilder::buildSerializedNetwork: Error Code 4: API Usage Error (x)")
        == "Error Code 4: API Usage Error (x)"
    )
