"""What needs no worker runs where Python has no POSIX calls, as on Windows: the tests take them away."""

import subprocess
import sys

import pytest

import models

pytestmark = pytest.mark.lengthy

PROGRAM = """
import asyncio, multiprocessing, os, shutil, signal, subprocess, sys
import psutil
subprocess.Popen.kill = subprocess.Popen.terminate  # which are the same on Windows
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for module, names in (
    (os, "fork killpg setsid getpgid wait4 sched_getaffinity O_CLOEXEC O_NONBLOCK O_DIRECTORY O_NOFOLLOW O_NOCTTY"),
    (signal, "SIGKILL SIGHUP SIGBUS SIGCHLD SIGPIPE SIGALRM sigtimedwait sigwaitinfo pthread_sigmask"),
):
    for name in names.split():
        vars(module).pop(name, None)
from tensortriage.cli import main
main(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (["--version"], [0]),
        (["engines"], [0]),
        (["run", "m.onnx", "--target", "onnxruntime"], [0]),
        (["convert", "m.onnx", "--precision", "fp16", "-o", "o.onnx"], [0]),
        (["diagnose", "m.onnx", "--target", "emulate:precision=bf16", "--seed", "3"], [0, 1, 4]),
        (["engines", "install", "mnn"], [3]),
    ],
    ids=lambda words: " ".join(map(str, words[:1])),
)
def test_a_command(tmp_path, words, codes):
    models.mlp().save(tmp_path / "m.onnx")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in codes, done.stderr
    assert "internal" not in done.stderr
