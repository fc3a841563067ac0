"""Machines that lack something: each command does its work, or says what is missing and leaves nothing half done."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys

import pytest

from reducing import dag

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and paths as Linux has them"),
    pytest.mark.lengthy,
]
MAIN = "from tensortriage.cli import main; main()"
JUMPING_CLOCK = f"""
import random, time
real, rng = time.time, random.Random(0)
time.time = lambda: real() + rng.choice([-1e9, -3600, 0, 3600, 1e9])
{MAIN}"""
COMMANDS = {
    "run": ["run", "m.onnx", "--target", "onnxruntime", "--save-outputs", "o.json", "--inputs", "m.npz"],
    "script": ["run", "m.onnx", "--target", "script:faulty.py", "--inputs", "m.npz"],
    "convert": ["convert", "m.onnx", "--precision", "fp16", "-o", "o.onnx", "--load-inputs", "m.npz"],
    "diagnose": ["diagnose", "m.onnx", "--target", "emulate:precision=fp16", "--inputs", "m.npz"],
    "reduce": ["debug", "reduce", "m.onnx", "-o", "r.onnx", "--check", *[sys.executable, "-S", "looking.py", "NODE"]],
}  # fmt: skip
LONGER = {
    "precision": [
        "debug", "precision", "m.onnx", "-o", "p.onnx", "--sqnr", "60", "--target", "emulate:precision=bf16",
        "--inputs", "m.npz",
    ],
    "build": [
        "debug", "build", "m.onnx", "--until", "4", "--inputs", "m.npz", "--target",
        "script:varying.py,node=NODE,kind=scale,tactics=2,draws=draws",
    ],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a model, a feed, a check and an engine, and a place for temporary files."""
    names = dag(tmp_path, 24)
    (tmp_path / "looking.py").write_text(
        "import sys; data = open('polygraphy_debug.onnx', 'rb').read(); sys.exit(sys.argv[1].encode() in data)"
    )
    (tmp_path / "varying.py").write_text("from tensortriage_testing import VaryingEngine as Engine\n")
    (tmp_path / "node").write_text(names[4])
    (tmp_path / "tmp").mkdir()
    return tmp_path


def triage(folder, words, *, program=MAIN, limit=None, env=None):
    node = (folder / "node").read_text()
    words = [word.replace("NODE", node) if isinstance(word, str) else word for word in words]
    # Python 3.11 keeps half a bytecode file that did not fit (cpython issue 126606), for all later processes.
    variables = os.environ | {"TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"} | (env or {})
    return subprocess.run(
        [sys.executable, "-c", program, *words], cwd=folder, env=variables,
        preexec_fn=limit and (lambda: resource.setrlimit(limit[0], (limit[1], limit[1]))), stdin=subprocess.DEVNULL,
        capture_output=True, check=False,
    )  # fmt: skip


def succeeded(done):
    assert done.returncode == 0, done.stderr.decode(errors="replace")


def refused(done, *slugs):
    said = done.stderr.decode(errors="replace")
    found = re.search(r"^triage: error\[([a-z0-9-]+)\]: \S.*\n  cure: \S", said, re.MULTILINE)
    assert done.returncode == 2, said
    assert found is not None, said
    assert found[1] in slugs, said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_that_takes_no_more(folder, name):
    """A limit on the size of files stands for a full disk: the same calls fail, without root's help to mount one."""
    before = set(folder.rglob("*"))
    done = triage(folder, COMMANDS[name], limit=(resource.RLIMIT_FSIZE, 1024))
    refused(done, "model-unwritable", "check-cache-unusable", "exchange-full", "store-unwritable")
    left = {path.relative_to(folder).parts[0] for path in set(folder.rglob("*")) - before}
    assert left <= {"triage-case"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.parametrize("name", ["convert", "diagnose"])
def test_a_file_system_that_is_full(folder, name):
    small = folder / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", small], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        where = {"convert": ["-o", "small/o.onnx"], "diagnose": ["--case", "small/case"]}[name]
        done = triage(folder, [*COMMANDS[name], *where])
        refused(done, "model-unwritable", "check-cache-unusable", "store-unwritable", "os-error", "case-unwritable")
        assert not (small / "o.onnx").exists()
        refused(triage(folder, COMMANDS[name], env={"TMPDIR": str(small)}), "model-unwritable")
        assert list(small.glob("triage-*")) == []
    finally:
        subprocess.run(["umount", "-l", small], check=True)


@pytest.mark.parametrize("place", ["m.npz/x", "/proc/x"])
@pytest.mark.parametrize("words", [COMMANDS["convert"][:-4], COMMANDS["run"][:-4], COMMANDS["diagnose"]])
def test_a_place_that_cannot_be_written_is_refused_at_once(folder, words, place):
    option = {"convert": "-o", "run": "--save-outputs", "diagnose": "--case"}[words[0]]
    refused(triage(folder, [*words, option, place + (".json" if words[0] == "run" else "")]), "output-unwritable")


def test_a_folder_that_is_read_only(folder):
    (folder / "locked").mkdir(mode=0o500)
    if os.access(folder / "locked", os.W_OK):
        pytest.skip("nothing is read-only to root")
    refused(triage(folder, [*COMMANDS["convert"], "-o", "locked/o.onnx"]), "output-unwritable")


@pytest.mark.parametrize("name", [*COMMANDS, *LONGER])
def test_few_file_handles(folder, name):
    succeeded(triage(folder, {**COMMANDS, **LONGER}[name], limit=(resource.RLIMIT_NOFILE, 32)))


@pytest.mark.parametrize("name", ["script", "diagnose"])
def test_no_folder_for_temporary_files(folder, name):
    succeeded(triage(folder, COMMANDS[name], env={"TMPDIR": str(folder / "missing")}))
    assert not (folder / "missing").exists()


@pytest.mark.parametrize("name", ["script", "diagnose", "reduce"])
def test_an_environment_of_almost_nothing(folder, name):
    """No HOME, no USER, and a locale without letters."""
    poor = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    program = f"import os\nfor name in ('HOME', 'USER', 'LOGNAME'): os.environ.pop(name, None)\n{MAIN}"
    succeeded(triage(folder, COMMANDS[name], env=poor, program=program))


@pytest.mark.parametrize("name", ["script", "diagnose", "reduce"])
def test_a_clock_that_jumps(folder, name):
    """Back and forth by an hour and by thirty years, at every look."""
    succeeded(triage(folder, COMMANDS[name], program=JUMPING_CLOCK))
    succeeded(triage(folder, COMMANDS[name], program=JUMPING_CLOCK))


@pytest.mark.parametrize("name", LONGER)
def test_a_clock_that_jumps_in_a_long_command(folder, name):
    succeeded(triage(folder, LONGER[name], program=JUMPING_CLOCK))


@pytest.mark.parametrize("words", [COMMANDS["run"][:4], COMMANDS["diagnose"], COMMANDS["convert"][:4]])
def test_paths_of_any_bytes(folder, words):
    place = os.fsencode(folder) + b"/\xe4\xff"
    os.mkdir(place)
    for name in ("m.onnx", "m.npz"):
        shutil.copy(folder / name, place + b"/\x80" + name.encode())
    option = {"run": "--save-outputs", "diagnose": "--case", "convert": "-o"}[words[0]]
    ending = {"run": ".json", "diagnose": "", "convert": ".onnx"}[words[0]]
    feeds = "--load-inputs" if words[0] == "convert" else "--inputs"
    words = [place + b"/\x80m.onnx" if word == "m.onnx" else word for word in words]
    words = words[: words.index("--inputs")] if "--inputs" in words else words
    done = triage(folder, [*words, feeds, place + b"/\x80m.npz", option, place + b"/out" + ending.encode(), "--json"])
    succeeded(done)
    json.loads(done.stdout)
    assert os.path.exists(place + b"/out" + ending.encode())
    assert list((folder / "tmp").iterdir()) == []


def test_paths_as_long_as_the_system_takes(folder):
    place = str(folder)
    while len(place) < 3800:
        place += "/" + "d" * 150
    os.makedirs(place)
    for name in ("m.onnx", "m.npz"):
        shutil.copy(folder / name, place)
    succeeded(triage(folder, ["convert", f"{place}/m.onnx", "--opset", "20", "-o", f"{place}/o.onnx"]))
    succeeded(triage(folder, ["run", f"{place}/m.onnx", "--target", "onnxruntime", "--inputs", f"{place}/m.npz"]))
    refused(triage(folder, [*COMMANDS["diagnose"], "--case", f"{place}/case"]), "case-path-too-long")
    refused(
        triage(folder, ["inspect", "model", f"{place}/{'x' * 300}"]), "os-error", "model-missing", "model-unreadable"
    )


def test_the_longest_path_of_a_case(folder):
    longest = 511 - len("/checks.sqlite-journal")
    place = str(folder)
    while len(place) < longest - 100:
        place += "/" + "d" * 80
    place += "/" + "e" * (longest - len(place) - 1)
    os.makedirs(os.path.dirname(place))
    succeeded(triage(folder, [*COMMANDS["diagnose"], "--case", place]))
    refused(triage(folder, [*COMMANDS["diagnose"], "--case", place + "e"]), "case-path-too-long")
