"""An engine of another release than its adapter was written for: refused before a model is, or told as what it is.

The stand-in for MNN lacks what each test says; everything around it, the worker above all, is real.
"""

import sys

import numpy as np
import pytest

from diagnosing import ask
from models import proto
from tensortriage.errors import EngineMissing
from tensortriage.runs.engine_specs import usable

pytestmark = pytest.mark.lengthy

RELU = '<ir_version: 8, opset_import: ["": 17]> g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }'


@pytest.fixture
def other(tmp_path):
    """Return what makes a Python in which MNN is another release; it returns its spec."""

    def made(text, version="3.6.1"):
        package = tmp_path / "packages" / "MNN"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(text)
        for name in ("expr", "nn"):
            (package / f"{name}.py").touch()
        info = tmp_path / "packages" / f"MNN-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: MNN\nVersion: {version}\n")
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "packages"} exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        return f"mnn:worker={python}"

    return made


def test_what_a_release_lacks_is_no_refusal(other):
    with pytest.raises(EngineMissing, match=r"AttributeError: module 'MNN' has no attribute 'version'") as caught:
        usable(other(""))
    assert (caught.value.slug, caught.value.exit_code) == ("adapter", 3)
    assert "adapter.py:" in caught.value.message


def test_what_a_build_comes_upon_blames_no_model(other, tmp_path):
    (tmp_path / "file.mnn").write_bytes(b"converted")
    target = other("def version(): return '3.6.1'") + f",file={tmp_path / 'file.mnn'}"  # nn makes no runtime there
    with pytest.raises(EngineMissing) as caught:
        ask(tmp_path, proto(RELU), {"x": np.ones((1, 3), np.float32)}, target)
    assert caught.value.slug == "adapter"


def test_a_release_older_than_all_that_is_known_is_refused_first(other):
    with pytest.raises(EngineMissing, match=r"MNN 2\.9\.0 is older than the oldest supported release, 3\.0") as caught:
        usable(other("def version(): return '2.9.0'", "2.9.0"))
    assert (caught.value.slug, caught.value.cure) == ("engine-too-old", "triage engines install mnn")
