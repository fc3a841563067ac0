"""The package is built without a compiler, and says so; it then is a wheel for any platform."""

import os
import subprocess
import sys
import zipfile

import pytest

from running_cli import REPOSITORY
from tensortriage.compare.metrics import compiled_pass

pytestmark = [pytest.mark.subprocess, pytest.mark.lengthy]


def test_without_a_compiler_there_is_a_wheel_for_any_platform(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=REPOSITORY, env=os.environ | {"CC": "false"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "The metrics pass is not compiled, numpy's is used" in done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "tensortriage/compare/metrics/compiled_pass.py" in names
    assert [name for name in names if name.endswith((".c", ".h", ".so", ".pyd"))] == []


def test_the_compiled_pass_can_be_switched_off():
    code = "from tensortriage.compare.metrics.compiled_pass import is_used; print(is_used())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {compiled_pass.SWITCH: "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "False\n"
