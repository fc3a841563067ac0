"""What a parent learns of its child's end: one process guards a child for each way, and tells."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tensortriage.cli import guard

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the guard is for Linux")

GUARDS = """
import atexit, ctypes, dataclasses, json, os, signal, sys, threading, time
from pathlib import Path

from tensortriage.cli import guard

signal.signal(signal.SIGINT, signal.default_int_handler)  # what starts the tests may ignore them
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
guard.GRACE_SECONDS = 0.2


def settles():
    guard.settle(0)
    os.kill(os.getpid(), signal.SIGABRT)


class Held:
    def __del__(self):
        Path("freed").write_text("")


def is_done():
    global held
    held = Held()
    atexit.register(Path("handled").write_text, "")
    threading.Thread(target=lambda: (time.sleep(0.2), Path("worked").write_text(""))).start()
    guard.settle(3)
    sys.exit(7)


def tells():
    guard.about_to(guard.TELLING)
    guard.about_to(guard.ANSWERING)
    os._exit(1)


def grows():
    held = bytearray(os.urandom(1 << 20) * 64)
    time.sleep(60)


def passes_on(number):
    os.kill(os.getppid(), number)
    time.sleep(60)


def is_stubborn():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    passes_on(signal.SIGTERM)


def leaves(event):
    guard.about_to(event)
    signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), os._exit(8)))
    passes_on(signal.SIGTERM)


def says_its_folder():
    folder = Path(os.environ["TMPDIR"])
    (folder / "left").mkdir()
    Path("seen").write_text(json.dumps([str(folder.parent), folder.name, oct(folder.stat().st_mode), guard.is_child()]))
    os._exit(0)


WAYS = {
    "exits": (lambda: os._exit(5), None),
    "settles": (settles, None),
    "is done": (is_done, None),
    "tells": (tells, None),
    "crashes": (lambda: os.kill(os.getpid(), signal.SIGSEGV), None),
    "grows": (grows, 48 << 20),
    "fits": (lambda: (time.sleep(0.3), os._exit(4)), 1 << 40),
    "kills itself": (lambda: os.kill(os.getpid(), signal.SIGTERM), None),
    "hears": (lambda: passes_on(signal.SIGHUP), None),
    "is stubborn": (is_stubborn, None),
    "leaves a cluster": (lambda: leaves(guard.CLUSTER), None),
    "leaves a file": (lambda: leaves(guard.WRITES), None),
    "says its folder": (says_its_folder, None),
}
found = {}
for name, (work, memory) in WAYS.items():
    ending = guard.start(memory)
    if ending is None:
        work()
    found[name] = {**dataclasses.asdict(ending), "crashed": ending.crashed}
mask = signal.pthread_sigmask(signal.SIG_BLOCK, set())
found["after"] = [os.listdir(os.environ["TMPDIR"]), len(mask), guard.is_child()]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return what the process learnt, by the way in which its child ended."""
    folder = tmp_path_factory.mktemp("guards")
    (folder / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", GUARDS],
        capture_output=True, text=True, check=False, timeout=600, cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "folder": folder}


def ended(found, name):
    """Return exit code, name of the signal, cause and whether it crashed."""
    end = found[name]
    return end["code"], signal.Signals(end["signal"]).name if end["signal"] else "", end["cause"], end["crashed"]


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("exits", (5, "", "", False)),
        ("fits", (4, "", "", False)),
        ("crashes", (None, "SIGSEGV", "", True)),
        ("grows", (None, "SIGKILL", "memory", False)),
        ("kills itself", (None, "SIGTERM", "", False)),
        ("hears", (None, "SIGHUP", "interrupted", False)),
        ("is stubborn", (None, "SIGKILL", "interrupted", False)),
        ("leaves a cluster", (8, "", "", False)),
        ("leaves a file", (8, "", "", False)),
    ],
)
def test_how_a_child_ended(found, name, end):
    assert ended(found, name) == end


def test_an_exit_code_that_was_settled_stands_whatever_follows(found):
    assert ended(found, "settles")[:2] == (0, "SIGABRT")


def test_a_child_that_is_done_ends_threads_and_handlers_and_frees_nothing(found):
    assert ended(found, "is done") == (3, "", "", False)
    assert [(found["folder"] / name).exists() for name in ("handled", "worked", "freed")] == [True, True, False]


def test_what_a_child_said_is_known(found):
    assert [found[name][key] for name in ("tells", "exits") for key in ("told", "answered")] == [
        True,
        True,
        False,
        False,
    ]


def test_a_child_has_a_private_folder_for_temporary_files_which_is_removed(found):
    parent, name, mode, child = json.loads((found["folder"] / "seen").read_text())
    assert (parent, name.startswith(guard.SCRATCH), mode, child) == (
        str(found["folder"] / "tmp"),
        True,
        "0o40700",
        True,
    )
    assert found["after"] == [[], 0, False]


@pytest.mark.parametrize(
    ("words", "guarded"),
    [("run m.onnx", True), ("", False), ("run --help", False), ("run -h", False), ("--version", False)],
)
def test_what_only_prints_is_not_guarded(words, guarded):
    assert guard.possible(words.split()) is guarded


def test_memory_that_belongs_to_files_does_not_count():
    mine = guard.anonymous_bytes(os.getpid())
    whole = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    assert 1 << 20 < mine < whole
    assert guard.anonymous_bytes(2**22 + 1) == 0  # beyond the largest number of a process


def test_folders_of_commands_that_are_no_more_are_removed_and_others_are_not(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    living = guard._Scratch()
    old = time.time() - 2 * guard.STALE_SECONDS
    for name, age in (("dead", old), ("unlocked", old), ("new", time.time())):
        (tmp_path / f"{guard.SCRATCH}{name}").mkdir()
        if name == "dead":
            (tmp_path / f"{guard.SCRATCH}{name}" / ".lock").touch()
        os.utime(tmp_path / f"{guard.SCRATCH}{name}", (age, age))
    os.utime(living.folder, (old, old))
    (tmp_path / "other").mkdir()
    os.utime(tmp_path / "other", (old, old))
    (tmp_path / f"{guard.SCRATCH}file").touch()
    os.utime(tmp_path / f"{guard.SCRATCH}file", (old, old))
    latest = guard._Scratch()
    left = {Path(living.folder).name, Path(latest.folder).name, "other", f"{guard.SCRATCH}new", f"{guard.SCRATCH}file"}
    assert {path.name for path in tmp_path.iterdir()} == left
    for scratch in (living, latest):
        scratch.remove()
        scratch._lock.close()


def test_where_no_folder_can_be_made_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    scratch = guard._Scratch()
    assert scratch.folder == ""
    scratch.remove()
