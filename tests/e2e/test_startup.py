"""Start-up: pages of help must import nothing heavy, and a comparison only what it uses."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("onnx", "onnx_ir", "onnxruntime", "rich", "jinja2", "numpy", "execnet")
PROGRAM = """
import sys
from tensortriage.cli import main
try:
    main(%r)
finally:
    print("imported:", *sorted(name for name in %r if name in sys.modules), file=sys.stderr)
"""


NEEDLESS_FOR_HELP = {"click", "dataclasses", "inspect", "uuid", "datetime", "tempfile", "ctypes", "logging", "pathlib"}
NEEDLESS_FOR_RUN = {
    "jinja2",
    "rich",
    "execnet",
    "filelock",
    "openvino",
    "torch",
    "psutil",
    "numpy.ma",
    "onnx_ir.passes.common",
    "tensortriage.engines.process.isolated",
    "tensortriage.inputs.files.open_data",
    "tensortriage.model.similarity",
    "tensortriage.runs.scripts",
    "tensortriage.runs.task_metric",
    "tensortriage.envelope.unrounded_match",
    "tensortriage.diagnose.ladder",
    "tensortriage.diagnose.rungs",
    "tensortriage.diagnose.measurements.judging",
    "tensortriage.diagnose.measurements.evidence",
    "tensortriage.diagnose.measurements.local_errors",
    "tensortriage.workflows.comparison.rejudge",
    "tensortriage.workflows.comparison.saved_results",
}
MODEL = Path(__file__).parents[2] / "examples" / "digits_cnn.onnx"


def imported(*words):
    """Return standard output of a command, and the modules that its process imported after Python's start."""
    started = [sys.executable, "-X", "importtime", "-S", "-c", "pass"]
    command = [sys.executable, "-X", "importtime", "-m", "tensortriage", *words]
    done, idle = (subprocess.run(line, capture_output=True, text=True, check=True) for line in (command, started))
    names, before = (set(re.findall(r"\| +(\S+)$", run.stderr, re.MULTILINE)) for run in (done, idle))
    return done.stdout, names - before


def helped(*words):
    program = PROGRAM % ([*words, "--help"], HEAVY)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_help_imports_nothing_heavy():
    done = helped()
    assert done.returncode == 0
    assert "diagnose" in done.stdout
    assert done.stderr.strip() == "imported:"


def test_the_first_page_needs_no_command_line():
    page, names = imported("--help")
    assert page == helped().stdout
    assert names >= {"tensortriage.overview"}
    assert not names & NEEDLESS_FOR_HELP


def test_the_first_page_may_be_read_in_part():
    with subprocess.Popen(
        [sys.executable, "-m", "tensortriage", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()  # long before the process can write
        assert process.stderr.read() == b""
    assert process.returncode == 130


@pytest.mark.skipif(os.name != "posix", reason="closes a stream as a POSIX shell does")
def test_the_first_page_without_a_place_to_go_is_no_error():
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m tensortriage --help >&-"], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_comparison_imports_nothing_for_other_commands():
    target = "onnxruntime:optimization=all"
    page, names = imported("run", str(MODEL), "--target", target)
    assert "passed" in page
    assert names >= {"onnx", "numpy", "onnxruntime", "tensortriage.workflows.comparison.compare"}
    assert not names & NEEDLESS_FOR_RUN


@pytest.mark.parametrize(
    "command",
    ["diagnose", "run", "steps", "convert", "check accuracy", "debug reduce", "debug precision", "debug build"],
)
def test_nor_do_the_options_of_a_command(command):
    """They are fields of a request, which what a request holds must not be imported for."""
    done = helped(*command.split())
    assert (done.returncode, done.stderr.strip()) == (0, "imported:")
