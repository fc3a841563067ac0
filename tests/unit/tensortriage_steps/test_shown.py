"""A case of steps is rendered again, in a terminal, as a page, as text for an issue and as JSON."""

import json

from running_cli import triage
from tensortriage.values import serial
from tensortriage_steps.steps_report import StepRow, StepsReport, StepValue

WRONG = StepValue("logits", 0.25, 40.0, within=False, allowed=0.00625)
ROWS = (StepRow(0, 4, (StepValue("logits", 1e-7, 0.1, within=True, allowed=1e-6),)), StepRow(1, 5, (WRONG,)))
REPORT = StepsReport(
    "decoder.onnx", "onnxruntime", "openvino", "random", ("present=past",), "fault", "step 1 is wrong", ROWS,
    first=1, value="logits", next=("triage diagnose decoder.onnx",),
)  # fmt: skip


def test_every_format_says_what_was_found(tmp_path):
    case = tmp_path / "triage-case"
    case.mkdir()
    serial.dump(REPORT, case / "steps.json")
    shown = triage("report", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "fault: step 1 is wrong" in shown.stdout
    assert "next: triage diagnose decoder.onnx" in shown.stdout
    assert json.loads(triage("report", "--json", cwd=tmp_path).stdout) == json.loads((case / "steps.json").read_text())
    assert json.loads(triage("report", "-f", "json", cwd=tmp_path).stdout)["first"] == 1
    assert triage("report", "-f", "markdown", cwd=tmp_path).stdout.startswith("**fault: step 1 is wrong**\n")
    assert triage("report", "-f", "html", cwd=tmp_path).stdout.split() == ["wrote", "triage-case/report.html"]
    assert "step 1 is wrong" in (case / "report.html").read_text()
    refused = triage("report", "-f", "model-explorer", cwd=tmp_path)
    assert (refused.returncode, "error[report-format-steps]" in refused.stderr) == (2, True)
