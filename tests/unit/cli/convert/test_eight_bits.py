"""8 bits are written by whoever registers for them, and refused where nobody does."""

import subprocess
import sys

import pytest

from tensortriage.cli.convert.eight_bits import GROUP, NAME, NoConversion, conversion

ALONE = """
import sys
from tensortriage.values import registered

there = registered._registered
registered._registered = lambda group: () if group == "{group}" else there(group)
from tensortriage.__main__ import main

sys.argv = ["triage", "convert", *{words}]
main()
"""


def convert_alone(*words):
    """Run ``triage convert`` where no package beside the core writes 8 bits."""
    code = ALONE.format(group=GROUP, words=words)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_package_beside_the_core_has_the_options():
    assert conversion().__module__ == "tensortriage_quantize.options"


@pytest.mark.parametrize("format_of", ["--int8", "--fp8"])
def test_without_it_8_bits_are_refused(format_of):
    done = convert_alone("m.onnx", "-o", "o.onnx", format_of)
    assert done.returncode == 2
    first, cure = done.stderr.strip().splitlines()
    assert first.startswith("triage: error[convert-format-missing]: no package that writes models in")
    assert "reinstall tensortriage" in cure


def test_without_it_there_are_no_options_of_its_own():
    done = convert_alone("m.onnx", "-o", "o.onnx", "--fp16", "--sqnr", "30")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--sqnr" in done.stderr


def test_another_package_may_write_them(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert conversion() is NoConversion
    info = tmp_path / "mine-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{NAME} = builtins:dict\n")
    assert conversion() is dict
