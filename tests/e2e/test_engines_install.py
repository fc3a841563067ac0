"""``triage engines install`` that is stopped leaves nothing, or what a rerun completes."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from environment_stand_in import stand_in_python

pytestmark = [
    pytest.mark.lengthy,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes end with their parents on Linux"),
]
PROGRAM = "import sys; {first}; from tensortriage.cli import main; main()"


@pytest.fixture
def start(tmp_path):
    """Return what starts a command in which a stand-in takes the place of venv and pip."""
    first = (
        f"sys.executable = {str(stand_in_python(tmp_path))!r}; "
        "from tensortriage_engines.install import environments; environments.try_out = lambda *words: None"
    )
    for name in ("work", "tmp", "home"):
        (tmp_path / name).mkdir()
    env = {"TMPDIR": str(tmp_path / "tmp"), "HOME": str(tmp_path / "home"), "XDG_DATA_HOME": str(tmp_path / "data")}

    def started(*words, first=first, **more):
        return subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM.format(first=first), "engines", *words, "--json"],
            cwd=tmp_path / "work", env=os.environ | env | more, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return started


def answer(process):
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, json.loads(out)


def pip_of(folder):
    """Return the processes of a pip that does not end."""
    deadline = time.monotonic() + 60
    while not (folder / "calls.pid").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    pip = psutil.Process(int((folder / "calls.pid").read_text()))
    return [pip, *pip.children()]


def left(folder):
    return sorted(str(path.relative_to(folder / "data")) for path in (folder / "data").rglob("[!.]*") if path.is_file())


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_what_is_interrupted_while_pip_hangs_leaves_nothing(how, start, tmp_path):
    process = start("install", "torch==9")
    processes = pip_of(tmp_path)
    os.killpg(process.pid, how) if how == signal.SIGINT else process.send_signal(how)
    code, told = answer(process)
    assert (code, told["slug"]) == (130, "interrupted")
    assert [one for one in psutil.wait_procs(processes, timeout=10)[1] if one.is_running()] == []
    assert left(tmp_path) == []
    assert list((tmp_path / "tmp").iterdir()) == []


def test_what_was_killed_is_completed_by_a_rerun(start, tmp_path):
    process = start("install", "torch==9")
    processes = pip_of(tmp_path)
    assert answer(start("install", "torch"))[1]["slug"] == "environment-busy"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    psutil.wait_procs(processes, timeout=30)  # the watchdog ends them
    (tmp_path / "stand-in-python").write_text((tmp_path / "stand-in-python").read_text().replace("==9", "==8"))
    code, told = answer(start("install", "torch==9"))
    assert (code, told["version"]) == (0, "2026.4.1")
    assert left(tmp_path) == [
        f"tensortriage/engines/torch-9/{name}"
        for name in ("bin/python", "pyvenv.cfg", "tensortriage-environment.json")
    ]  # fmt: skip
    code, told = answer(start("list"))
    assert [row["environments"][0]["name"] for row in told["engines"] if row["environments"]] == ["torch-9"]
    assert not list((tmp_path / "home").iterdir())


def test_a_user_without_a_home(start):
    first = "import os, pwd; os.environ.pop('HOME'); pwd.getpwuid = lambda number: {}[number]"
    code, told = answer(start("install", "openvino", first=first, XDG_DATA_HOME="relative"))
    assert (code, told["slug"]) == (2, "home-missing")
    code, told = answer(start("list", first=first, XDG_DATA_HOME=""))
    assert (code, told["folder"]) == (0, "")
