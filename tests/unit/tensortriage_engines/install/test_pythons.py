"""Which Python packages are installed into, and what is said where there is none."""

import sys

import pytest

from tensortriage.errors import EngineMissing
from tensortriage_engines.install import environments, pythons
from tensortriage_engines.install.environments import install
from tensortriage_engines.install.pythons import interpreter, lacking, needed

HERE = sys.version_info[:2]
INDEX = """#!/bin/sh
echo "$*" >> {calls}
case "$*" in
  *"index versions"*"--python-version 3.8"*|*"index versions"*"--python-version 3.11"*)
    echo "openvino (2026.4.1)"; echo "Available versions: 2026.4.1, 2024.1.0, 2024.0.0" ;;
  *"index versions"*) echo "openvino (2026.4.1)"; echo "Available versions: 2026.4.1, 2024.1.0" ;;
  *"-m venv "*) for folder; do :; done; mkdir -p "$folder/bin"; cp "{other}" "$folder/bin/python" ;;
  *"-m pip install"*) echo "ERROR: No matching distribution found for openvino==2024.0.0" >&2; exit 1 ;;
esac
"""
"""A Python without wheels of OpenVINO 2024.0.0, whose index knows that 3.8 and 3.11 have them."""


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_this_python_is_taken_where_packages_take_it(tmp_path, monkeypatch):
    assert interpreter((HERE, HERE)) == interpreter(((3, 8), (3, 99))) == sys.executable
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    others = ((3, 8), (3, 10))
    assert interpreter(others) == ""
    for minor, ends in ((8, 0), (9, 0), (10, 1), (14, 0)):
        program(tmp_path / f"python3.{minor}", f"#!/bin/sh\nexit {ends}\n")
    assert interpreter(others) == str(tmp_path / "python3.9")  # the newest that starts
    assert interpreter(others, [8]) == str(tmp_path / "python3.8")
    assert interpreter(((3, 8), (3, 99)), [8]) == str(tmp_path / "python3.8")


def test_pythons_of_pyenv_and_uv_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/no/such/folder")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    kept = {
        "pyenv/versions/3.9.2": 9, "pyenv/versions/3.9.18": 9, "pyenv/versions/3.10.1": 10,
        "uv/cpython-3.10.4-linux-x86_64-gnu": 10,
    }  # fmt: skip
    for place, minor in kept.items():
        (tmp_path / place / "bin").mkdir(parents=True)
        ends = int(place.startswith("pyenv/versions/3.10"))
        program(tmp_path / place / "bin" / f"python3.{minor}", f"#!/bin/sh\nexit {ends}\n")
    assert interpreter(((3, 8), (3, 9))) == str(tmp_path / "pyenv/versions/3.9.18/bin/python3.9")
    assert interpreter(((3, 8), (3, 10))) == str(tmp_path / "uv/cpython-3.10.4-linux-x86_64-gnu/bin/python3.10")


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("ERROR: No matching distribution found for openvino==2024.0.0", ("openvino", "2024.0.0")),
        ("found for iree-base-compiler==3.0 (from x)", ("", "")),
        ("No matching distribution found for iree-base-compiler[onnx]==3.0", ("iree-base-compiler", "3.0")),
        ("No matching distribution found for numpy<2", ("", "")),
        ("no network", ("", "")),
    ],
)
def test_what_pip_found_no_wheel_of(said, found):
    assert lacking(said) == found


def test_what_is_needed_is_said():
    told = needed("openvino 2024.0.0", ((3, 8), (3, 99)), [8, 9, 11])
    assert "openvino 2024.0.0 takes Python 3.8 to 3.11: this is" in told.message
    assert told.cure == "put python3.11 on the PATH"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Return the folder of the PATH; this Python is one without such wheels, 3.12."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "bin").mkdir()
    text = INDEX.format(calls=tmp_path / "calls", other=tmp_path / "here")
    monkeypatch.setattr(sys, "executable", str(program(tmp_path / "here", text)))
    monkeypatch.setattr(sys, "version_info", (3, 12, 1))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(environments, "try_out", lambda *words: None)
    monkeypatch.setattr(pythons.shutil, "which", lambda name: found if (found := found_in(tmp_path, name)) else None)
    return tmp_path / "bin"


def found_in(folder, name):
    path = folder / "bin" / name
    return str(path) if path.exists() else ""


def test_without_an_older_python_what_to_do_is_said(index):
    with pytest.raises(EngineMissing) as caught:
        install("openvino==2024.0.0")
    assert "openvino 2024.0.0 takes Python 3.8 to 3.11: this is 3.12" in caught.value.message
    assert caught.value.cure == "put python3.11 on the PATH"
    assert not list((index.parent / "tensortriage" / "engines").iterdir())


def test_an_older_python_is_found(index):
    text = INDEX.format(calls=index.parent / "calls", other=index / "python3.11")
    text = text.replace("exit 1 ;;", ";;").replace("esac", "  *) echo 2024.0.0 ;;\nesac")
    program(index / "python3.11", text)
    assert install("openvino==2024.0.0").version == "2024.0.0"


def test_a_release_that_there_is_none_of(index):
    here = index.parent / "here"
    here.write_text(here.read_text().replace("found for openvino==2024.0.0", "found for openvino==2024.0.1"))
    with pytest.raises(EngineMissing, match=r"there is no openvino 2024\.0\.1 for any Python"):
        install("openvino==2024.0.1")
