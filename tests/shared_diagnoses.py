"""Diagnoses that many tests look at: each is made once for all processes of a test run, and every test has a copy."""

import dataclasses
import fcntl
import json
import os
import shutil
from pathlib import Path

import processor_time
from engine_scripts import FAULTY
from running_cli import EXAMPLES, triage, verdict_in

CULPRIT = "/block2/conv1/Conv"
CNN = (EXAMPLES / "digits_cnn.onnx", "--inputs", EXAMPLES / "digits.npz")
OVERFLOW = (EXAMPLES / "digits_vit_overflow.onnx", "--inputs", EXAMPLES / "digits_vit_overflow.npz")
WORDS = {
    "scaled-conv": ("diagnose", *CNN, "--target", f"script:faulty.py,node={CULPRIT},kind=scale,amount=1.05"),
    "overflow": ("diagnose", *OVERFLOW, "--target", "emulate:precision=fp16"),
}
"""The command of each diagnosis; it runs with ``--fix fixed.onnx --case case`` in the folder that is copied."""


@dataclasses.dataclass(frozen=True)
class Diagnosed:
    """A finished diagnosis.

    Attributes:
        folder: Where ``case`` is, and ``fixed.onnx`` if there is a remedy; the command can be given again there.
        words: The command, without ``--fix``.
        returncode: Its exit code.
        stdout: What it printed.
        stderr: What it printed as errors.
    """

    folder: Path
    words: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    @property
    def verdict(self):
        return verdict_in(self.folder / "case")


def diagnosed(name, folder, tmp_path_factory):
    """Copy a finished diagnosis into a folder; whoever needs it first makes it."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared-diagnoses"
    shared.mkdir(exist_ok=True)
    words = (*map(str, WORDS[name]), "--case", "case")
    made, record = shared / name, shared / f"{name}.json"
    with open(shared / f"{name}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not record.exists():
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            (made / "faulty.py").write_text(FAULTY)
            with processor_time.common():
                done = triage(*words, "--fix", "fixed.onnx", cwd=made)
            record.write_text(json.dumps([done.returncode, done.stdout, done.stderr]))
    shutil.copytree(made, folder, dirs_exist_ok=True)
    return Diagnosed(folder, words, *json.loads(record.read_text()))
