"""A package from outside whose engine works in a worker: its half travels there, and nothing else of it does."""

import numpy as np
import pytest

from models import chain
from tensortriage.engines.sdk import BuildFailed, IsolatedEngine, Limits

ADAPTER = """
import outside_plugin.worker.arithmetic as arithmetic
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item

def compile(model, options):
    if options.get("refuse"):
        raise AdapterError(AdapterFailure.BUILD, "not today")
    return Session()

class Session:
    inputs = [{"name": "x", "dtype": "float32", "shape": [2]}]
    outputs = [{"name": "y", "dtype": "float32", "shape": [2]}]
    info = {}

    def run(self, feed):
        return [Item("y", arithmetic.doubled(feed["x"].array))]

    def close(self):
        pass
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    worker = tmp_path / "outside_plugin" / "worker"
    worker.mkdir(parents=True)
    (worker.parent / "__init__.py").write_text("import tensortriage  # which a worker's Python may lack\n")
    (worker / "__init__.py").write_text("")
    (worker / "adapter.py").write_text(ADAPTER)
    (worker / "arithmetic.py").write_text("def doubled(array):\n    return array * 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    return IsolatedEngine("outside_plugin.worker.adapter", title="Mine", limits=Limits())


def test_its_adapter_runs_there(engine, tmp_path):
    session = engine.compile(chain(1).save(tmp_path / "m.onnx"), {})
    np.testing.assert_array_equal(session.run({"x": np.float32([1, 3])})["y"], np.float32([2, 6]))
    session.close()


def test_its_refusal_is_told(engine, tmp_path):
    with pytest.raises(BuildFailed, match="not today"):
        engine.compile(chain(1).save(tmp_path / "m.onnx"), {"refuse": "1"})
