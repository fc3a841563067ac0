"""ONNX Runtime in a worker: it conforms as in this process does; plugins are asked for by name."""

import sys

import pytest

from tensortriage.engines.base import Limits
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.errors import EngineHung, EngineMissing, UsageError
from tensortriage.runs.engine_specs import usable
from tensortriage.testing import check_engine_conformance

ENGINE = OnnxRuntimeEngine()
HERE = {"worker": sys.executable}


def test_it_conforms_in_a_worker():
    report = check_engine_conformance(ENGINE, {**HERE, "optimization": "basic"})
    assert set(report.refused) <= {"model bfloat16"}


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"ep_option.soc_model": "60"}, "engine-option-value"),
        ({"fallback": "refuse"}, "engine-option-value"),
        ({"ep": "qnn", "providers": "cpu"}, "engine-option-value"),
        ({"ep": "qnn", "precision": "fp32"}, "engine-option-value"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, slug):
    with pytest.raises(UsageError) as caught:
        ENGINE.check({**options, **HERE})
    assert caught.value.slug == slug


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        ("no_such_provider", "no package here provides"),
        ("/no/such/library.so", "there is no provider library"),
        (__file__ + ".so", "there is no provider library"),
    ],
)
def test_a_plugin_that_is_not_there_is_missing(plugin, said):
    with pytest.raises(EngineMissing, match=said) as caught:
        ENGINE.check({"ep": plugin, **HERE})
    assert caught.value.slug == "provider-missing"


def test_a_library_that_is_no_provider_is_told():
    library = sys.modules["numpy._core._multiarray_umath"].__file__
    with pytest.raises(EngineMissing, match="is no provider library"):
        ENGINE.check({"ep": library, **HERE})


def test_formats_of_a_known_plugin_are_its_own():
    assert ENGINE.precision({"ep": "qnn"}) == "fp16"
    assert ENGINE.precision({"ep": "qnn", "precision": "int8"}) == "int8"
    assert ENGINE.precision({"ep": "/x/libmine.so"}) == "fp32"
    assert ENGINE.precision({"ep": "/x/libonnxruntime_providers_qnn.so", "ep_name": "QNNExecutionProvider"}) == "fp16"


def test_a_provider_that_hangs_when_it_is_asked_for(tmp_path):
    (tmp_path / "onnxruntime_hangs.py").write_text("import time\ntime.sleep(600)\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with pytest.raises(EngineHung, match="still starting after 5 s"):
        usable(f"onnxruntime:ep=hangs,worker={python}", limits=Limits(build_seconds=5.0))
