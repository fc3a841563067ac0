"""What is printed meanwhile is heard, in a process whose terminal is a file as a worker's is."""

import subprocess
import sys
from pathlib import Path

import tensortriage_worker

PROGRAM = """
import ctypes, os, sys
from tensortriage_worker.heard import hearing
os.write(2, b"before\\n")
with hearing() as printed:
    os.write(2, b"layer x not registered\\n\\n")
    print("  in Python")
    ctypes.CDLL(None).printf(b"in C\\n")
sys.stderr.write("after\\n")
sys.exit(sorted(printed) != ["in C", "in Python", "layer x not registered"])
"""


def run(**streams):
    where = Path(tensortriage_worker.__file__).parents[1]
    return subprocess.run([sys.executable, "-c", PROGRAM], cwd=where, check=False, **streams)


def test_the_end_of_the_log_is_what_was_said_meanwhile(tmp_path):
    with open(tmp_path / "engine.log", "ab") as log:
        assert run(stdout=log, stderr=log).returncode == 0
    assert (tmp_path / "engine.log").read_text().count("\n") == 6  # nothing was taken away


def test_a_terminal_that_is_no_file_says_nothing():
    done = run(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert (done.returncode, b"Traceback" in done.stderr) == (1, False)
