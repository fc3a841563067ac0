"""Commands without data: sizes that run are found and can be given back, or the user is asked."""

import onnx
import onnx.parser
import pytest

from running_cli import triage, verdict_in

pytestmark = pytest.mark.slow

VOICE = """<ir_version: 8, opset_import: ["" : 16]>
g (float[b, n] trace, int64 rate) => (float[b, m] energy)
<int64 high = {16000}, int64[4] pads = {0, 0, 0, PADS}> {
    wide = Equal(rate, high)
    scale = Cast <to: int = 1> (wide)
    padded = Pad <mode: string = "reflect"> (trace, pads)
    energy = Mul(padded, scale)
}"""


def saved(folder, pads):
    onnx.save(onnx.parser.parse_model(VOICE.replace("PADS", pads)), folder / "m.onnx")


def diagnosed(folder, pads, *options):
    saved(folder, pads)
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
    assert "trace [b, n]" in done.stderr


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["run", "m.onnx", "--target", "onnxruntime"], "--input-shapes"),
        (["convert", "m.onnx", "--fp16", "-o", "half.onnx", "--verify"], "--load-inputs"),
        (["debug", "precision", "m.onnx", "--target", "emulate:precision=fp16", "-o", "mixed.onnx"], "--input-shapes"),
    ],
)
def test_every_command_finds_them_and_takes_them_back(tmp_path, words, option):
    saved(tmp_path, "32")
    done = triage(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    said, shape = done.stderr.partition(f"{option} ")[::2]
    assert "made-up data that the model accepts: trace [1, " in said
    again = triage(*words, option, shape.split()[0], cwd=tmp_path)
    assert "made-up data that the model accepts" not in again.stderr
    assert again.returncode == 0, again.stdout + again.stderr


def test_run_asks_for_what_it_does_not_find(tmp_path):
    saved(tmp_path, "99999")
    done = triage("run", "m.onnx", "--target", "onnxruntime", cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "trace [b, n]" in done.stderr
