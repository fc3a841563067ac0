"""Environments are made from PyPI when asked for; here without it: pip is a script that says what it was asked."""

import dataclasses
import importlib
import importlib.metadata
import os
import sys

import pytest

from environment_stand_in import stand_in_python
from tensortriage.engines.base import Availability
from tensortriage.engines.process.workers import close_idle
from tensortriage.errors import EngineMissing, UsageError
from tensortriage.values.serial import dump
from tensortriage_engines.install import environments
from tensortriage_engines.install.environments import ENVIRONMENT_NOTE, Environment, install, list_engines
from tensortriage_engines.install.recipes import RECIPES
from tensortriage_engines.install.virtual_environment import MARK, PYTHON, locked
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.converters import imported


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "tensortriage" / "engines"


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Return what is called instead of this Python: a script that notes its words; see `stand_in_python`."""
    monkeypatch.setattr(sys, "executable", str(stand_in_python(tmp_path)))
    monkeypatch.setattr(environments, "try_out", lambda *words: None)
    return tmp_path / "calls"


def words(calls):
    return calls.read_text().splitlines() if calls.exists() else []


def test_an_environment_is_pinned_and_made_once(data, calls):
    made = install("openvino")
    assert words(calls)[1].endswith(" " + " ".join(RECIPES["openvino"].of().requirements))
    assert made.target == f"openvino:worker={data / 'openvino' / 'bin' / 'python'}"
    count = len(words(calls))
    assert install("openvino") == made
    assert len(words(calls)) == count
    assert sorted(path.name for path in (data / "openvino").iterdir()) == ["bin", "pyvenv.cfg", ENVIRONMENT_NOTE]


def test_another_version_is_an_environment_of_its_own(data, calls):
    install("openvino")
    install("openvino==2024.0.0")
    assert sorted(path.parent.name for path in data.glob(f"*/{ENVIRONMENT_NOTE}")) == ["openvino", "openvino-2024.0.0"]


def test_what_pip_refuses_leaves_nothing(data, calls):
    with pytest.raises(EngineMissing, match="no such version") as caught:
        install("openvino==9000")
    assert caught.value.slug == "environment-failed"
    assert list(data.iterdir()) == []


@pytest.mark.parametrize(
    ("word", "slug"),
    [
        ("no-such-engine", "environment-unknown"),
        ("openvino==../../..", "environment-version"),
        ("openvino==", "environment-version"),
        ("../openvino", "environment-unknown"),
        ("", "environment-unknown"),
        ("openvino==1 --index-url=x", "environment-version"),
        ("ncnn==1.0.20240820", "environment-version"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(data, calls, word, slug):
    with pytest.raises(UsageError) as caught:
        install(word)
    assert caught.value.slug == slug
    assert words(calls) == []


@pytest.mark.parametrize("name", ["mine.txt", "pyvenv.cfg"])
def test_a_folder_that_is_none_of_ours_is_left_alone(data, calls, name):
    (data / "openvino").mkdir(parents=True)
    (data / "openvino" / name).write_text("mine")
    with pytest.raises(UsageError) as caught:
        install("openvino")
    assert caught.value.slug == "environment-foreign"
    assert (data / "openvino" / name).read_text() == "mine"


@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_what_is_no_folder_is_left_alone(data, calls, tmp_path, kind):
    data.mkdir(parents=True)
    there = tmp_path / "there"
    if kind == "link":
        there.mkdir()
        (there / ENVIRONMENT_NOTE).write_text("{}")
    if kind == "file":
        (data / "openvino").write_text("mine")
    else:
        (data / "openvino").symlink_to(there)
    with pytest.raises(UsageError) as caught:
        install("openvino")
    assert caught.value.slug == "environment-foreign"
    assert not (there / "bin").exists()
    assert [path.name for path in data.iterdir()] == ["openvino"]


def test_links_in_what_was_left_are_not_followed(data, calls, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kept.txt").write_text("mine")
    (data / "openvino").mkdir(parents=True)
    (data / "openvino" / MARK).touch()
    (data / "openvino" / "lib").symlink_to(mine)
    install("openvino")
    assert (mine / "kept.txt").read_text() == "mine"


def test_an_environment_that_has_lost_its_python_is_made_again(data, calls):
    made = install("openvino")
    (data / "openvino" / PYTHON).unlink()
    assert install("openvino") == made
    assert (data / "openvino" / PYTHON).exists()


def test_a_folder_that_no_spec_can_name(tmp_path, monkeypatch, calls):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "one,two"))
    with pytest.raises(UsageError) as caught:
        install("openvino")
    assert caught.value.slug == "environment-path"
    assert words(calls) == []


@pytest.mark.parametrize("place", ["file", "file/under"])
def test_a_place_that_is_no_folder(tmp_path, monkeypatch, calls, place):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / place))
    assert {row.environments for row in list_engines().engines} == {()}
    with pytest.raises(EngineMissing, match="file"):
        install("openvino")


def test_only_one_makes_environments_at_a_time(data, calls):
    with locked(data), pytest.raises(UsageError) as caught:
        install("openvino")
    assert caught.value.slug == "environment-busy"
    install("openvino")


def test_pip_may_say_anything(data, calls):
    with pytest.raises(EngineMissing) as caught:
        install("openvino==9000.1")
    assert caught.value.slug == "environment-failed"
    assert "\ufffd" in caught.value.message
    assert list(data.iterdir()) == []


def test_nothing_is_imported_from_the_current_folder(data, calls):
    install("openvino")
    assert [line.split()[2] for line in words(calls)] == ["-I", "-I", "-I"]


def test_pip_installs_nowhere_else(data, calls, monkeypatch):
    monkeypatch.setenv("PIP_TARGET", "/there")
    monkeypatch.setenv("PIP_INDEX_URL", "kept")
    install("openvino")
    assert words(calls)[1].startswith("PIP_TARGET= PIP_INDEX_URL=kept ")


def test_every_engine_is_listed_with_the_command_that_makes_it_usable(data, monkeypatch):
    known = {
        "onnxruntime": Availability(usable=True, version="1.2"),
        "openvino": Availability(usable=False, reason="not installed", cure="pip install openvino"),
        "tensorrt": Availability(usable=False, reason="no driver", cure="run on a machine with one"),
    }
    monkeypatch.setattr(environments, "availabilities", lambda: known)
    commands = {row.name: row.command for row in list_engines().engines}
    assert commands == {
        "onnxruntime": "",
        "openvino": "triage engines install openvino",
        "tensorrt": "run on a machine with one",
        "nv_tensorrt_rtx": "triage engines install nv_tensorrt_rtx",
        "qnn": "triage engines install qnn",
    }
    for name in ("openvino-1", "openvino"):
        (data / name).mkdir(parents=True)
        dump(
            Environment("openvino", name, f"/{name}/bin/python", ("openvino==1",), "1"), data / name / ENVIRONMENT_NOTE
        )
        row = next(row for row in list_engines().engines if row.name == "openvino")
        if name == "openvino-1":  # another version is used when its Python is named
            assert (row.usable, row.command) == (False, "--target openvino:worker=/openvino-1/bin/python")
        else:
            assert (row.usable, row.version, row.command) == (True, "1", "")


@pytest.mark.parametrize("kind", ["{}", "[" * 2000, "fifo", "folder"])
def test_a_note_of_another_kind_is_no_environment(data, kind):
    (data / "openvino").mkdir(parents=True)
    note = data / "openvino" / ENVIRONMENT_NOTE
    if kind in ("fifo", "folder"):
        os.mkfifo(note) if kind == "fifo" else note.mkdir()
    else:
        note.write_text(kind)
    assert environments.environments() == ()


def test_every_requirement_of_a_recipe_is_pinned():
    made_of = [recipe.of() for recipe in RECIPES.values()]
    assert [r for each in made_of for r in (*each.requirements, *each.bare) if "==" not in r] == []


def test_what_is_installed_bare_brings_nothing_along(data, calls):
    made = install("ncnn")
    assert words(calls)[2].endswith(" --no-deps pnnx==20261020")
    assert "pnnx" not in words(calls)[1]
    assert made.requirements[-1] == "pnnx==20261020"


def test_another_version_of_what_is_installed_bare_is_installed_bare(data, calls):
    made = install("rknn==2.3.2")
    assert words(calls)[2].endswith(" --no-deps rknn-toolkit2==2.3.2")
    assert "rknn-toolkit2" not in words(calls)[1]
    assert "onnx==1.18.0" in made.requirements


def test_a_release_has_beside_it_what_was_released_with_it(data, calls):
    """TVM 0.25 takes any later apache-tvm-ffi, and ends in an undefined symbol with those after 0.1.12."""
    beside = {version: install(f"tvm=={version}").requirements for version in ("0.25.0", "0.25.0.post1", "0.26.0")}
    assert ["apache-tvm-ffi==0.1.12" in each for each in beside.values()] == [True, True, False]


def test_a_provider_has_an_environment_that_its_engine_uses(data, calls):
    made = install("qnn")
    assert made.target == f"onnxruntime:ep=qnn,worker={data / 'qnn' / 'bin' / 'python'}"
    assert install("qnn==2.6.0").requirements[0] == "onnxruntime-qnn==2.6.0"


def test_packages_that_want_a_newer_python_get_one_from_the_path(data, calls, tmp_path, monkeypatch):
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "python3.13").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "version_info", (3, 11, 7))
    monkeypatch.setenv("PATH", str(newer), prepend=os.pathsep)
    assert install("litert").target == f"litert:worker={data / 'litert' / 'bin' / 'python'}"


def test_without_a_newer_python_nothing_is_made(data, calls, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 11, 7))
    monkeypatch.setenv("PATH", "/no/such/folder")
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    monkeypatch.setenv("HOME", "/no/such/folder")
    with pytest.raises(EngineMissing, match=r"takes Python 3\.12 to 3\.13: this is 3\.11") as caught:
        install("litert")
    assert caught.value.slug == "environment-failed"
    assert words(calls) == []


@pytest.fixture
def working(tmp_path, monkeypatch, data):
    """Return where a file says that what is installed from now on does not work; real engines run in what is made."""
    monkeypatch.setattr(sys, "executable", str(stand_in_python(tmp_path, working=True)))
    return tmp_path / "calls.broken"


def kept(data):
    return sorted(path.name for path in data.iterdir())


@pytest.mark.lengthy
def test_an_environment_counts_once_its_engine_has_run_a_network(data, working):
    made = install("onnxruntime")
    assert made.version
    assert made == install("onnxruntime")
    working.touch()
    with pytest.raises(EngineMissing, match="no engine here") as caught:
        install("onnxruntime==1.30.0")
    assert caught.value.cure == f"triage engines install onnxruntime, which is {RECIPES['onnxruntime'].version}"
    assert kept(data) == ["onnxruntime"]


def test_one_of_other_packages_stays_until_the_new_one_works(data, working):
    made = install("onnxruntime")
    old = dataclasses.replace(made, requirements=("onnxruntime==1.0",))
    dump(old, data / "onnxruntime" / ENVIRONMENT_NOTE)
    (data / "onnxruntime" / "kept").touch()
    working.touch()
    with pytest.raises(EngineMissing):
        install("onnxruntime")
    assert environments.environments() == (old,)
    assert (data / "onnxruntime" / "kept").exists()
    working.unlink()
    assert install("onnxruntime") == made
    assert not (data / "onnxruntime" / "kept").exists()
    assert kept(data) == ["onnxruntime"]


@pytest.mark.lengthy
def test_one_that_works_no_longer_is_made_again(data, working):
    made = install("onnxruntime")
    (data / "onnxruntime" / "bin" / "broken").touch()
    close_idle()  # another command would start its own
    said = []
    assert install("onnxruntime", say=said.append) == made
    assert "no longer works" in said[0]
    assert not (data / "onnxruntime" / "bin" / "broken").exists()


@pytest.mark.lengthy
def test_a_command_that_was_killed_between_old_and_new_leaves_the_old(data, working):
    made = install("onnxruntime")
    (data / "onnxruntime").rename(data / ".old-onnxruntime")
    count = len(words(working.with_suffix("")))
    assert environments.environments() == ()
    assert install("onnxruntime") == made
    assert [line for line in words(working.with_suffix(""))[count:] if "-m pip" in line] == []


@pytest.mark.parametrize("name", ["iree", "litert", "mnn", "ncnn", "openvino", "rknn", "tvm"])
def test_adapters_refuse_what_is_older_than_recipes_offer(name, monkeypatch):
    module = {
        "openvino": "tensortriage_engines.openvino.worker.adapter",
        "rknn": "tensortriage_engines.rknn.worker.toolkit",
    }.get(name, f"tensortriage_engines.{name}.worker.adapter")
    library = importlib.import_module(module)._LIBRARY
    assert (library.distribution, library.oldest) == (RECIPES[name].distribution, RECIPES[name].oldest)
    monkeypatch.setattr(importlib.metadata, "version", lambda package: {library.distribution: "0.9"}[package])
    with pytest.raises(
        AdapterError, match=rf"0\.9 is older than the oldest supported release, {library.oldest}"
    ) as caught:
        imported(library)
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.MISSING, "engine-too-old")


def test_what_belongs_to_a_release_is_installed_with_it(data, calls):
    assert install("iree==3.7.1").requirements[:2] == ("iree-base-compiler[onnx]==3.7.1", "iree-base-runtime==3.7.0")
    assert "iree-base-runtime==3.9.0" in install("iree==3.9.0").requirements
    assert "pnnx==20250912" in install("ncnn==1.0.20251231").requirements
    assert "numpy<2" in install("onnxruntime==1.17.3").requirements
    assert "numpy<2" not in install("onnxruntime==1.20.0").requirements
