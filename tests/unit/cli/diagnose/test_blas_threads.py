"""Products of numpy take few threads where evaluations run side by side; nobody else's environment changes."""

import os
import subprocess
import sys

import pytest

from tensortriage.cli.diagnose.blas_threads import EVALUATIONS, VARIABLES, few_blas_threads, processors


def test_processors_are_shared_out_while_numpy_is_imported_and_not_after(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    with few_blas_threads():
        assert os.environ[VARIABLES[0]] == str(max(1, processors() // EVALUATIONS))
    assert dict(os.environ) == before


@pytest.mark.parametrize("name", VARIABLES)
def test_what_the_user_says_counts(monkeypatch, name):
    for each in VARIABLES:
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, "7")
    before = dict(os.environ)
    with few_blas_threads():
        assert dict(os.environ) == before


def test_the_module_of_the_command_leaves_numpy_to_be_imported_inside():
    code = (
        "import sys, tensortriage.cli.diagnose.command, tensortriage.cli.diagnose.demo, tensortriage.cli.run.command; "
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


SPY = """
import contextlib, sys
import tensortriage.cli.diagnose.blas_threads as threads
from tensortriage.cli import main

@contextlib.contextmanager
def spy():
    before = "numpy" in sys.modules
    yield
    print(before, "numpy" in sys.modules)

threads.few_blas_threads = spy
main([*sys.argv[1:], "missing.onnx", "--target", "onnxruntime", "--timeout", "3", "--atol", "1"])
"""


@pytest.mark.parametrize("command", ["diagnose", "run"])
def test_numpy_is_imported_inside_although_the_request_needs_it_too(command):
    done = subprocess.run([sys.executable, "-c", SPY, command], capture_output=True, text=True, check=False)
    assert done.stdout.split()[:2] == ["False", "True"], done.stderr
