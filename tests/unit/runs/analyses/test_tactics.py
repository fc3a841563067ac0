"""Files of tactics: ours, Polygraphy's, and the log of a build with an editable timing cache.

The replay has the fields of Polygraphy 0.46 and later; the log lines have the form that TensorRT's own
sampleEditableTimingCache parses (10.8 and later).
"""

import json

import pytest

from tensortriage.engines.base import Choice, Plan, Region
from tensortriage.errors import DataError
from tensortriage.runs.analyses.tactics import TacticRecord, features, load_record, save_record

REPLAY = {
    "replay": {
        "conv1": {
            "implementation": 2147483657,
            "tactic": -3855385237722507464,
            "inputs": [
                {"dtype": "DataType.HALF", "strides": [64, 1], "vectorized_dim": 1, "components_per_element": 8,
                 "polygraphy_class": "TensorInfo"},
            ],
            "outputs": [
                {"dtype": "DataType.FLOAT", "strides": [64, 1], "vectorized_dim": None, "components_per_element": None,
                 "polygraphy_class": "TensorInfo"},
            ],
            "polygraphy_class": "Algorithm",
        },
    },
    "polygraphy_class": "TacticReplayData",
}  # fmt: skip
LOG = """\
[V] [TRT] Autotuning op matMul1(key: 0x1814870c44ff0f8574df6e3dda04cbd7):
[V] [TRT] Sorted table of all evaluated tactics:
[V] [TRT] tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter
[V] [TRT]    3, 0.0112640, 1.00000, 0.50673, sm80_xmma_gemm_f32f32_tn, 0x665ded9abbf88,
[V] [TRT]    7, 0.0122880, 1.09091, 0.50673, sm80_xmma_gemm_f16f16_nn, 0xa5ed9abbf8811,
[V] [TRT] The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264
[V] [TRT] Writing the best tactic (0x665ded9abbf88) to cache
"""


def test_a_record_comes_back_as_it_was(tmp_path):
    choice = Choice("conv", "0x1", "0x2", ("half:1",), ("half:1",), ("/Conv",), 0.5, "0x3")
    record = TacticRecord("tensorrt:precision=fp16", (choice,))
    save_record(record, tmp_path / "deep" / "t.json")
    assert load_record(tmp_path / "deep" / "t.json") == record


def test_a_replay_of_polygraphy_is_in_the_words_of_the_adapter(tmp_path):
    (tmp_path / "replay.json").write_text(json.dumps(REPLAY))
    (choice,) = load_record(tmp_path / "replay.json").choices
    assert choice.layer == "conv1"
    assert choice.implementation == "0x80000009"
    assert int(choice.tactic, 16) == (1 << 64) - 3855385237722507464
    assert (choice.inputs, choice.outputs) == (("half:64x1:1:8",), ("float:64x1",))


def test_a_log_gives_keys_hashes_and_kernels(tmp_path):
    (tmp_path / "build.log").write_text(LOG)
    (choice,) = load_record(tmp_path / "build.log").choices
    assert (choice.layer, choice.key) == ("matMul1", "0x1814870c44ff0f8574df6e3dda04cbd7")
    assert (choice.tactic, choice.implementation) == ("0x665ded9abbf88", "sm80_xmma_gemm_f32f32_tn")
    assert choice.milliseconds == 0.011264


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x80\x81cache", "binary"),
        (b"nothing of interest\n", "no tactics"),
        (b'{"format": "tensortriage.case/1"}', "another kind"),
        (b'{"polygraphy_class": "TacticReplayData", "replay": {"a": {}}}', "damaged"),
        (b"{", "damaged"),
        (b'{"a":' * 20000 + b"1" + b"}" * 20000, "damaged"),
        (b'{"format": "tensortriage.tactics/1", "engine": "x"}', "^(?!.*damaged.*damaged).*choices"),
        (
            b'{"polygraphy_class": "TacticReplayData", "replay": {"a": {"tactic": 1e400, "implementation": 1, '
            b'"inputs": [], "outputs": []}}}',
            "damaged",
        ),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, content, said):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataError, match=said) as caught:
        load_record(tmp_path / "x")
    assert caught.value.slug == "tactics-unreadable"


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        load_record(tmp_path / "none.json")


def test_features_are_of_tactics_else_of_the_plan():
    plan = Plan((Region("k1", ("/a", "/b"), "Fused", "float16", "xmma"), Region("k2", ())))
    assert features((), plan) == (("/a, /b", "xmma float16"), ("k2", ""))
    assert features((Choice("conv", "0x1", "0x2", ("half",), ("float",)),), plan) == (
        ("conv", "0x2 0x1 (half -> float)"),
    )
    assert features((), None) == ()


def test_a_log_of_odd_lines_is_read_in_no_time(tmp_path):
    """A pattern for such lines took minutes for 5,000 blanks, and a number that is none ended the program."""
    odd = ["1,1,k," + " " * 200_000 + "x", "1,0.0e,1,1,kernel,0x1,", "1,1," + " ," * 100_000]
    odd += ["[V] The selected tactic is (tactic hash, cost(in ms)):0x1, e"]
    lines = LOG.splitlines()
    (tmp_path / "build.log").write_text("\n".join([lines[0], *odd, *lines[1:]]))
    (choice,) = load_record(tmp_path / "build.log").choices
    assert (choice.tactic, choice.implementation) == ("0x665ded9abbf88", "sm80_xmma_gemm_f32f32_tn")
