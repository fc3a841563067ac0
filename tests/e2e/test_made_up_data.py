"""``triage diagnose`` without data: sizes that run are found and can be given back, or the user is asked."""

import onnx
import onnx.parser
import pytest

from running_cli import triage, verdict_in

pytestmark = pytest.mark.slow

VOICE = """<ir_version: 8, opset_import: ["" : 16]>
g (float[b, n] audio, int64 rate) => (float[b, m] energy)
<int64 high = {16000}, int64[4] pads = {0, 0, 0, PADS}> {
    wide = Equal(rate, high)
    scale = Cast <to: int = 1> (wide)
    padded = Pad <mode: string = "reflect"> (audio, pads)
    energy = Mul(padded, scale)
}"""


def diagnosed(folder, pads, *options):
    onnx.save(onnx.parser.parse_model(VOICE.replace("PADS", pads)), folder / "m.onnx")
    return triage("diagnose", "m.onnx", "--target", "onnxruntime", "--case", "case", *options, cwd=folder)


def test_sizes_that_run_are_found_told_and_can_be_given_back(tmp_path):
    done = diagnosed(tmp_path, "32")
    verdict = verdict_in(tmp_path / "case")
    assert (done.returncode, verdict["verdict"]) == (0, "match"), done.stdout + done.stderr
    (shape,) = verdict["steps"][0]["evidence"]["shapes"]
    assert "rate = 16000" in verdict["steps"][0]["answer"]
    again = diagnosed(tmp_path, "32", "--fresh", "--input-shapes", shape)
    assert again.returncode == 0
    assert verdict_in(tmp_path / "case")["steps"][0]["answer"].startswith("yes")


def test_where_none_run_the_inputs_are_asked_for_by_name(tmp_path):
    done = diagnosed(tmp_path, "99999")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "error[made-up-data-fail]" in done.stderr
    assert "audio [b, n]" in done.stderr
