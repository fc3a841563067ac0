"""A folder with a Python of its own: locked while it is made, ours by its mark, and what was there comes back."""

import os
import signal
import threading
import time

import psutil
import pytest

from environment_stand_in import stand_in_python
from tensortriage.errors import EngineMissing, UsageError
from tensortriage_engines.install.virtual_environment import (
    MARK,
    PYTHON,
    call,
    check_ours,
    locked,
    make,
    remove,
    replacing,
    restore,
)

ENVIRONMENT_NOTE = "note.json"


def sh(script):
    """Run a script of the shell."""
    return call(["sh", "-c", script], "the script")


def test_a_folder_is_locked_by_one(tmp_path):
    folder = tmp_path / "a" / "b"
    with locked(folder):
        with pytest.raises(UsageError) as caught, locked(folder):
            pass
        assert caught.value.slug == "environment-busy"
    with pytest.raises(OSError, match="closed"), locked(folder):
        raise OSError("closed")
    with locked(folder):
        assert list(folder.iterdir()) == []


def test_what_was_there_comes_back_where_the_new_one_fails(tmp_path):
    folder = tmp_path / "environment"
    with replacing(folder, ENVIRONMENT_NOTE):
        assert [path.name for path in folder.iterdir()] == [MARK]
        (folder / ENVIRONMENT_NOTE).write_text("first")
    with pytest.raises(OSError, match="full"), replacing(folder, ENVIRONMENT_NOTE):
        raise OSError("full")
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [(ENVIRONMENT_NOTE, "first")]
    with replacing(folder, ENVIRONMENT_NOTE):
        (folder / ENVIRONMENT_NOTE).write_text("second")
    assert (folder / ENVIRONMENT_NOTE).read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["environment"]


@pytest.mark.parametrize("rest", [False, True])
def test_a_command_that_was_killed_leaves_the_one_that_was_there(tmp_path, rest):
    folder, aside = tmp_path / "environment", tmp_path / ".old-environment"
    aside.mkdir()
    (aside / ENVIRONMENT_NOTE).touch()
    if rest:
        folder.mkdir()
        (folder / MARK).touch()
    restore(folder, ENVIRONMENT_NOTE)
    assert [path.name for path in folder.iterdir()] == [ENVIRONMENT_NOTE]
    assert not aside.exists()


@pytest.mark.parametrize("mark", [MARK, ENVIRONMENT_NOTE])
def test_what_is_left_of_an_environment_is_removed_and_no_link_is_followed(tmp_path, mark):
    folder, mine = tmp_path / "environment", tmp_path / "mine"
    mine.mkdir()
    (mine / "file").touch()
    (folder / "lib" / "deep").mkdir(parents=True)
    (folder / mark).touch()
    (folder / "link").symlink_to(mine)
    check_ours(folder, ENVIRONMENT_NOTE)
    remove(folder)
    assert not folder.exists()
    assert (mine / "file").exists()
    remove(folder)  # nothing is there


def test_an_empty_folder_may_be_ours(tmp_path):
    (tmp_path / "empty").mkdir()
    check_ours(tmp_path / "empty", ENVIRONMENT_NOTE)
    with replacing(tmp_path / "empty", ENVIRONMENT_NOTE):
        pass
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("kind", ["folder", "file", "link", "dangling link"])
def test_what_is_not_ours_is_left_alone(tmp_path, kind):
    place = tmp_path / "place"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / MARK).touch()
    if kind == "folder":
        place.mkdir()
        (place / "thesis.txt").touch()
    elif kind == "file":
        place.touch()
    else:
        place.symlink_to(tmp_path / ("other" if kind == "link" else "nowhere"))
    with pytest.raises(UsageError) as caught, replacing(place, ENVIRONMENT_NOTE):
        pass
    assert caught.value.slug == "environment-foreign"
    assert os.path.lexists(place)
    assert (tmp_path / "other" / MARK).exists()


def test_a_program_gives_what_it_wrote_or_its_last_lines():
    assert sh("echo fine; echo odd >&2") == "fine\nodd\n"
    with pytest.raises(EngineMissing, match=r"the script ended with 3: b c d; ") as caught:
        sh("echo told; printf 'a\\nb\\nc\\n  d\\n' >&2; exit 3")
    assert caught.value.slug == "environment-failed"
    with pytest.raises(EngineMissing, match=r"ended with 1: told; "):
        sh("echo told; exit 1")


def test_a_program_reads_nothing_and_installs_nowhere_else(monkeypatch):
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "set")
    assert sh("cat; env | grep '^PIP_.*=set$'") == "PIP_INDEX_URL=set\n"


def test_what_stops_this_stops_a_program_and_all_that_it_started(tmp_path):
    ready = tmp_path / "ready"

    class Stopped(BaseException):
        """Comes while it is waited for."""

    class Stops(threading.Thread):
        def run(self):
            while not ready.exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGUSR1)

    def stop(*_):
        raise Stopped

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        thread = Stops()
        thread.start()
        with pytest.raises(Stopped):
            sh(f"sleep 600 & echo $! > {ready}.part; mv {ready}.part {ready}; wait")
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    pid = int(ready.read_text())
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)  # it is killed, and ends when the system gets round to it


def test_an_environment_is_made_step_by_step(tmp_path, monkeypatch):
    python, told = str(stand_in_python(tmp_path)), []
    made = make(tmp_path / "new", python, ["one==1", "two"], told.append, ["three==3"])
    assert made == tmp_path / "new" / PYTHON
    steps = [line.partition(" PIP_INDEX_URL= ")[2] for line in (tmp_path / "calls").read_text().splitlines()]
    pip = "-I -m pip install --disable-pip-version-check --quiet --only-binary=:all:"
    assert steps == [f"-I -m venv {tmp_path / 'new'}", f"{pip} one==1 two", f"{pip} --no-deps three==3"]
    assert len(told) == 3
