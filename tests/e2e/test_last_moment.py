"""What comes in the last moment of a command changes neither its document nor its exit code, nor adds a second one."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODEL, FEED = EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits.npz"
BROKEN = ["run", MODEL, "--target", "onnxruntime", "--target-model", EXAMPLES / "digits_cnn_broken.onnx",
          "--inputs", FEED, "--json"]  # fmt: skip
INSPECT = ["inspect", "model", EXAMPLES / "digits_vit.onnx", "--show", "layers", "attrs", "weights", "--json"]
MISSING = ["inspect", "model", "missing.onnx", "--json"]
PIPE_BYTES = 4096
PROGRAM = """
import atexit, os, signal
from tensortriage import cli
from tensortriage.cli import documents
def send(name):
    os.kill(os.getpid(), getattr(signal, name))
def around(module, function, before, after):
    plain = getattr(module, function)
    def changed(*args, **kwargs):
        before and send(before)
        told = plain(*args, **kwargs)
        after and send(after)
        return told
    setattr(module, function, changed)
{then}
cli.main()
"""

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the guard is for Linux"),
    pytest.mark.lengthy,
]


def start(words, folder, then="", unbuffered=""):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(then=then), *map(str, words)],
        cwd=folder, env=os.environ | {"PYTHONUNBUFFERED": unbuffered}, bufsize=0, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(words, folder, then):
    process = start(words, folder, then)
    out, err = process.communicate(timeout=120)
    assert b"Traceback" not in err, err
    assert b"Exception ignored" not in err, err
    return process.returncode, json.loads(out), err.decode()


def begun(folder, unbuffered=""):
    """Return a command whose document does not fit into the pipe, some of which was read, and that."""
    process = start(INSPECT, folder, unbuffered=unbuffered)
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return process, process.stdout.read(1)


@pytest.mark.parametrize(
    ("how", "to_all", "unbuffered"),
    [(signal.SIGTERM, False, "1"), (signal.SIGTERM, True, ""), (signal.SIGINT, True, "1"), (signal.SIGHUP, False, "")],
)
def test_a_document_that_is_begun_is_written_to_its_end(how, to_all, unbuffered, tmp_path):
    process, first = begun(tmp_path, unbuffered)
    os.killpg(process.pid, how) if to_all else process.send_signal(how)
    rest, err = process.communicate(timeout=60)
    assert len(rest) > PIPE_BYTES
    assert json.loads(first + rest)["format"] == "tensortriage.model-summary/1"
    assert (process.returncode, err) == (0, b"")


def test_a_reader_that_stands_still_holds_nobody_up(tmp_path):
    process, first = begun(tmp_path)
    time.sleep(0.5)  # the pipe is full
    process.terminate()
    process.wait(timeout=60)
    rest, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.startswith(b"triage: interrupted")
    assert (first + rest).count(b'"format"') == 1, "another document after a part of one"


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_before_the_document_or_after_it(how, tmp_path):
    code, told, _ = ended(BROKEN, tmp_path, f"around(documents, 'print_document', '{how}', '')")
    assert (code, told["slug"]) == (130, "interrupted")
    code, told, err = ended(BROKEN, tmp_path, f"around(documents, 'print_document', '', '{how}')")
    assert (code, told["format"], told["passed"]) == (1, "tensortriage.run/1", False)
    assert "interrupted" not in err


@pytest.mark.parametrize("where", ["(cli, 'tell'", "(documents, 'print_document'", "(cli, 'finish'"])
def test_a_signal_while_an_error_is_told(where, tmp_path):
    code, told, err = ended(MISSING, tmp_path, f"around{where}, 'SIGTERM', 'SIGINT')")
    assert (code, told["slug"]) == (2, "model-missing")
    assert err.count("error[") == 1


def test_native_code_that_crashes_when_all_is_told_changes_nothing(tmp_path):
    code, told, err = ended(BROKEN, tmp_path, "atexit.register(send, 'SIGSEGV')")
    assert (code, told["passed"]) == (1, False)
    assert "crashed" not in err


def test_native_code_that_crashes_behind_the_document_does_not_add_another(tmp_path):
    code, told, err = ended(BROKEN, tmp_path, "around(documents, 'print_document', '', 'SIGSEGV')")
    assert (code, told["format"]) == (2, "tensortriage.run/1")
    assert "error[crashed]: native code crashed after the answer" in err


def test_a_disk_that_takes_no_document_is_told_once(tmp_path):
    with open("/dev/full", "wb") as full:
        words = [sys.executable, "-c", PROGRAM.format(then=""), *map(str, INSPECT)]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "error[os-error]: No space left on device" in done.stderr
    assert "Exception ignored" not in done.stderr
