"""``triage debug reduce`` end to end, in processes of their own; the workflow has its own tests in this process."""

import json
import random
import shlex
import signal
import subprocess
import sys
import time

import pytest

from reducing import dag, looking_for, nodes_of, seen
from running_cli import triage

pytestmark = pytest.mark.slow

TRIAGE = [sys.executable, "-c", "from tensortriage.cli import main; main()"]
COMMAND = [*TRIAGE, "debug", "reduce", "m.onnx", "-o", "r.onnx"]


def reduce(folder, *words):
    return triage("debug", "reduce", "m.onnx", "-o", "r.onnx", *words, cwd=folder)


def test_a_planted_fault_is_found_shrunk_and_packed(tmp_path):
    names = dag(tmp_path)
    done = reduce(tmp_path, "--json", "--inputs", "m.npz", "--target", f"script:faulty.py,kind=scale,node={names[9]}")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["format"] == "tensortriage.reduction/1"
    assert [node["name"] for node in result["kept"]] == [names[9]]
    assert "the result failed again in a fresh process" in done.stderr
    assert any(item["what"] == "sizes" and item["done"] for item in result["shrunk"])
    ran = subprocess.run(
        [sys.executable, "r_repro/repro.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1, ran.stderr
    again = triage(
        "run", "r_repro/model.onnx", "--inputs", "r_repro/test_data_set_0", "--target", "onnxruntime", cwd=tmp_path
    )
    assert again.returncode == 0, again.stderr


@pytest.mark.lengthy
def test_polygraphys_words(tmp_path):
    names = dag(tmp_path)
    words = ["--mode", "bisect", "--min-good", "good.onnx", "--fail-code", "1", "2", "--artifacts"]
    words += ["polygraphy_debug.onnx", "--artifacts-dir", "sorted", "--check", *looking_for(names[7])]
    done = reduce(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert names[7] in nodes_of(tmp_path / "r.onnx")
    assert names[7] not in nodes_of(tmp_path / "good.onnx")
    for verdict, expected in (("good", False), ("bad", True)):
        found = list((tmp_path / "sorted" / verdict).iterdir())
        assert found
        assert all((names[7] in nodes_of(path)) is expected for path in found)


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["--no-reduce-inputs", "--no-reduce-outputs", "--check", "false"], "reduce-nothing-left"),
        (["--check", "true"], "premise-not-failing"),
    ],
)
def test_errors(tmp_path, words, slug):
    dag(tmp_path, 8)
    done = reduce(tmp_path, *words)
    assert done.returncode == 2, done.stdout
    assert f"error[{slug}]" in done.stderr
    assert "Traceback" not in done.stderr


HOSTILE = """
import os, shutil, signal, subprocess, sys, time
from pathlib import Path

def misbehave(way, fails):
    if way == 0:
        sys.stdout.write("x" * 100_000_000)
    elif way == 1:
        subprocess.Popen(["sleep", "300"])  # holds the output, and outlives the check
    elif way == 2:
        os.remove("polygraphy_debug.onnx")
        os.mkdir("polygraphy_debug.onnx")
    elif way == 3 and not fails:
        os.kill(os.getpid(), signal.SIGSEGV)
    elif way == 4 and not fails:
        time.sleep(300)
    elif way == 5 and DELETES:
        shutil.rmtree(os.getcwd())

with open(COUNT, "a") as file:
    file.write("x")
    number = file.tell()
data = Path("polygraphy_debug.onnx").read_bytes()
fails = all(b"\\x1a" + bytes([len(name)]) + name.encode() in data for name in sys.argv[1:])
if number > 3:  # the whole must fail first
    misbehave(number % 6, fails)
    sys.stdout.flush()
os._exit(fails)
"""
"""Prints 100 MB, leaves children, puts a folder in place of the model, crashes, hangs, deletes where it is."""


@pytest.mark.lengthy
@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_that_a_check_does_ends_the_search(tmp_path, jobs):
    folder = tmp_path / "work"
    folder.mkdir()
    names = dag(folder)
    setting = f"COUNT = {str(tmp_path / 'count')!r}\nDELETES = {jobs > 1}\n"
    (folder / "hostile.py").write_text(setting + HOSTILE)
    check = ["--check", sys.executable, "-S", "-E", "hostile.py", names[2], names[8]]
    done = reduce(folder, "--jobs", jobs, "--check-timeout", "2", *check)
    assert done.returncode in (0, 4), done.stderr  # 4: the last look at the result met a hostile mood
    assert nodes_of(folder / "r.onnx") == [names[2], names[8]]
    assert len((tmp_path / "count").read_text()) > 8


@pytest.mark.lengthy
def test_ten_kills_then_resume(tmp_path):
    """Every answer that was written is used again: what ten runs that were killed asked about makes one search.

    Each kill repeats at most the check that had answered when its searcher was killed before it could write that.
    """
    names = dag(tmp_path)
    check = ["--check", *looking_for(names[3], names[18])]
    moments = random.Random(0)
    for _ in range(10):
        running = subprocess.Popen([*COMMAND, *check], cwd=tmp_path, stdout=subprocess.DEVNULL)
        before = len(seen(tmp_path))
        while len(seen(tmp_path)) < before + 2 and running.poll() is None:
            time.sleep(0.005)
        time.sleep(moments.uniform(0.0, 0.1))
        running.kill()
        running.wait()
    done = reduce(tmp_path, "--json", *check)
    assert done.returncode == 0, done.stderr
    assert nodes_of(tmp_path / "r.onnx") == [names[3], names[18]]
    result = json.loads(done.stdout)
    asked = seen(tmp_path)[:-1]  # without the last look at the result
    assert len(asked) <= len(set(asked)) + 2 + 10 + result["repeats"]  # the whole is asked about three times
    (tmp_path / "log.txt").unlink()
    fresh = json.loads(reduce(tmp_path, "--json", "--case", "another", *check).stdout)
    assert {key: result[key] for key in ("kept", "checks", "candidates")} == {
        key: fresh[key] for key in ("kept", "checks", "candidates")
    }
    assert result["cache_hits"] >= min(10, fresh["checks"] - 1)


@pytest.mark.lengthy
def test_ctrl_c_writes_the_smallest_so_far(tmp_path):
    names = dag(tmp_path)
    slowly = shlex.join(looking_for(names[3], names[18])) + "; code=$?; sleep 0.1; exit $code"
    running = subprocess.Popen(
        [*COMMAND, "--check", slowly],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    while len(seen(tmp_path)) < 5 and running.poll() is None:
        time.sleep(0.005)
    running.send_signal(signal.SIGINT)
    text, _ = running.communicate(timeout=60)
    assert running.returncode == 130, text
    assert {names[3], names[18]} <= set(nodes_of(tmp_path / "r.onnx"))
    assert "not shown to be minimal" in text


@pytest.mark.lengthy
def test_without_engine_and_check_a_person_is_asked(tmp_path):
    names = dag(tmp_path, 2)
    done = subprocess.run(
        COMMAND, cwd=tmp_path, input="f\np\nu\nf\n", capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Did 'polygraphy_debug.onnx' (2 nodes) [p]ass, [f]ail, [s]kip, [u]ndo, [q]uit?" in done.stderr
    assert nodes_of(tmp_path / "r.onnx") in ([names[0]], [names[1]])
