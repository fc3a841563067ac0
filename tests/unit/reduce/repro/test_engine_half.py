"""What travels with a pack: the modules that a script imports from next to it, and the adapter's own."""

import numpy as np
import pytest

import models
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.reduce.repro.engine_half import engine_half, imported_names
from tensortriage.reduce.repro.repro_case import Repro, ReproSample

SCRIPT = """
import json, sibling
from package.inner import thing

class Engine:
    def compile(self, path, options):
        return self

    def run(self, feed):
        return {"y": 2 * feed["x"]}
"""


@pytest.fixture
def repro(tmp_path):
    models.write(tmp_path / "model.onnx", "g (float[3] x) => (float[3] y) { y = Add(x, x) }")
    feed = {"x": np.ones(3, np.float32)}
    return Repro(Model.load(tmp_path / "model.onnx"), (ReproSample(feed, {"y": 2 * feed["x"]}),))


def test_a_script_travels_with_what_it_imports_from_beside_it(tmp_path, repro):
    own = tmp_path / "own"
    (own / "package").mkdir(parents=True)
    for name, text in {
        "mine.py": SCRIPT, "sibling.py": "import second", "second.py": "", "unused.py": "",
        "package/__init__.py": "", "package/inner.py": "thing = 1", "table.csv": "1,2", "stray.csv": "",
    }.items():  # fmt: skip
        (own / name).write_text(text)
    half = engine_half(EngineSpec.parse(f"script:{own}/mine.py,table={own}/table.csv,n=3"), repro, Limits())
    carried = {name for name in half.files if not name.startswith("tensortriage_worker/")}
    assert carried == {"mine.py", "sibling.py", "second.py", "package/__init__.py", "package/inner.py", "table.csv"}
    assert str(own) not in half.code
    assert "'n': '3'" in half.code


def test_adapters_travel_with_the_modules_that_they_need_alone(repro):
    half = engine_half(EngineSpec.parse("onnxruntime:threads=1"), repro, Limits())
    assert "tensortriage_worker/onnxruntime/adapter.py" in half.files
    assert "tensortriage_worker/onnxruntime/__init__.py" in half.files
    assert not any(name.endswith(("supervisor.py", "function_adapter.py")) for name in half.files)
    assert half.any_model


def test_a_model_that_is_converted_first_travels_as_the_engine_got_it(repro):
    half = engine_half(EngineSpec.parse("onnxruntime:precision=fp16"), repro, Limits())
    assert half.files["model.onnx"] != repro.model.path.read_bytes()
    assert 'HERE / "engine" / "model.onnx"' in half.code


def test_engines_of_this_package_need_it(repro):
    assert not engine_half(EngineSpec.parse("emulate:precision=fp16"), repro, Limits()).files


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a.b, c", ["a.b", "c"]),
        ("def f():\n    from a import b", ["a", "a.b"]),
        ("from . import x\nfrom ..y import z", ["pack.age", "pack.age.x", "pack.y", "pack.y.z"]),
        ("not python", []),
    ],
)
def test_imports_are_found_wherever_they_are(source, names):
    assert [*imported_names(source, "pack.age")] == names
