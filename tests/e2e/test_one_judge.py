"""One tolerance, one answer: the same wrong model under the same ``--atol`` and ``--rtol`` in several commands."""

import numpy as np
import pytest

from models import write
from running_cli import triage, verdict_in

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[3] x) => (float[3] y) {
  [half] h = Div(x, two)
  [sum] y = Add(h, h)
}"""
ENGINE = """
import numpy as np
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine

class Session:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def run(self, feed):
        outputs = dict(self.inner.run(feed))
        if "y" in outputs:
            y = outputs["y"]
            outputs["y"] = np.where(abs(y) > 1.0, y * np.float32(1.0005), y + np.float32(5e-4))
        return outputs

class Engine:
    def compile(self, model, options):
        return Session(OnnxRuntimeEngine().compile(model, {}))
"""


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "m.onnx", MODEL.replace("=> (float[3] y)", "=> (float[3] y) <float two = {2.0}>"))
    np.savez(tmp_path / "x.npz", x=np.float32([1000.0, 1e-4, 1.0]))
    (tmp_path / "off.py").write_text(ENGINE)
    return tmp_path


def asked(folder, limit):
    words = ["m.onnx", "--inputs", "x.npz", "--target", "script:off.py", "--atol", limit, "--rtol", limit]
    case = ["--case", f"case{limit}"]
    run = triage("run", *words, cwd=folder)
    diagnosed = triage("diagnose", *words, *case, "--no-repro", cwd=folder)
    reduced = triage("debug", "reduce", *words, "-o", "r.onnx", "--case", f"reduce{limit}", cwd=folder)
    return run, diagnosed, reduced, verdict_in(folder / f"case{limit}")


def test_elements_within_one_limit_or_the_other_pass_in_every_command(folder):
    # 0.5 of 1000 is within rtol and not atol, 5e-4 of 1e-4 the other way round; so it is on made-up data.
    run, diagnosed, reduced, verdict = asked(folder, "1e-3")
    assert run.returncode == 0, run.stdout + run.stderr
    assert (verdict["verdict"], diagnosed.returncode) == ("match", 0), diagnosed.stdout + diagnosed.stderr
    assert "is within its limit" in reduced.stderr, reduced.stdout + reduced.stderr
    assert not (folder / "r.onnx").exists()


@pytest.mark.lengthy
def test_beyond_both_limits_they_fail_in_every_command(folder):
    run, diagnosed, reduced, verdict = asked(folder, "1e-4")
    assert run.returncode == 1, run.stdout + run.stderr
    assert verdict["verdict"] != "match", diagnosed.stdout + diagnosed.stderr
    assert diagnosed.returncode in (1, 4)
    assert "is within its limit" not in reduced.stderr
