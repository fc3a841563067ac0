"""PyTorch as an engine, where it is installed. Expected values are those of the network itself, or of float64."""

import functools
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError, TriageError, UsageError
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.common.output_selection import OutputChoice
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage_torch.network import TorchNetwork

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

FOLDER = Path(__file__).resolve().parents[1] / "data" / "torch"
MODEL = FOLDER / "small_transformer.onnx"
SPEC = f"torch:{FOLDER / 'small_transformer.py'}:network"
FEED = {"ids": np.array([[3, 1, 4, 1, 5, 9]], np.int64)}
WRITES_IN_PLACE = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        torch.nn.init.ones_(self.first.weight)
    def forward(self, x, *, scale=None):
        y = self.first(x)
        y.mul_(0)
        return {"a": y, "b": [x * 2, y + 1]}
def make():
    return Net().eval(), (torch.zeros(2, 4),)
def numbers():
    return 1, 2
def fails():
    raise RuntimeError("no weights here")
"""


def opened(text, model=MODEL):
    spec = EngineSpec.parse(text)
    return create(spec).compile(model, spec.options)


def test_the_recorded_network_and_its_inner_values(tmp_path):
    loaded = Model.load(MODEL)
    session = opened(SPEC)
    right = np.asarray(opened("onnxruntime:optimization=none").run(FEED)["scores"])
    np.testing.assert_allclose(session.run(FEED)["scores"], right, rtol=1e-4, atol=1e-5)
    values = [output for node in loaded.graph.nodes for output in node.outputs]
    found = dict(session.captured(FEED, values))
    session.close()
    marked = mark_outputs(loaded, list(found)).save(tmp_path / "marked.onnx")
    expected = opened("onnxruntime:optimization=none", marked).run(FEED)
    assert len(found) >= 0.5 * len(values)
    for name, array in found.items():
        assert array.shape == expected[name].shape, name
        np.testing.assert_allclose(array, expected[name], rtol=1e-3, atol=1e-5, err_msg=name)
    with_inner = opened(SPEC, marked)
    assert set(with_inner.run(FEED)) == {"scores", *found}
    with_inner.close()


def test_everything_is_compared_that_the_network_knows(tmp_path):
    np.savez(tmp_path / "feed.npz", **FEED)
    request = CompareRequest(
        model=MODEL,
        reference=EngineSpec.parse(SPEC),
        targets=(EngineSpec.parse("onnxruntime:optimization=none"),),
        feeding=FeedRequest(paths=(str(tmp_path / "feed.npz"),)),
        outputs=OutputChoice(mark=("mark", "all")),
    )
    (found,) = compare(request).comparisons
    values = {value for node in Model.load(MODEL).graph.nodes for value in node.outputs}
    known = {row.value for row in found.comparison.rows}
    assert all(row.judgement.within for row in found.comparison.rows)
    assert len(known) >= 0.5 * len(values)  # the inside of an operation that became several nodes is not the network's
    assert known.isdisjoint(found.comparison.unmatched)
    assert known.union(found.comparison.unmatched) == values


def test_formats_are_told_apart():
    exact = opened(f"{SPEC},dtype=fp64")
    coarse = opened(f"{SPEC},dtype=bf16")
    double, half = exact.run(FEED)["scores"], coarse.run(FEED)["scores"]
    exact.close()
    coarse.close()
    assert double.dtype == np.float64
    # bfloat16 has 8 significant bits: an error of some thousandths, never that of float32.
    error = np.sqrt(np.mean((half - double) ** 2) / np.mean(double**2))
    assert 1e-4 < error < 1e-1


def test_values_are_copied_before_they_are_overwritten(tmp_path):
    (tmp_path / "net.py").write_text(WRITES_IN_PLACE)
    spec = EngineSpec.parse(f"torch:{tmp_path / 'net.py'}:make")
    session = create(spec).compile(three_outputs(tmp_path, inside="first"), spec.options)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    outputs = session.run({"x": x})
    np.testing.assert_array_equal(outputs["a"], np.zeros((2, 4)))
    np.testing.assert_array_equal(outputs["b"], x * 2)
    np.testing.assert_array_equal(outputs["c"], np.ones((2, 4)))
    inner = dict(session.captured({"x": x}, ["inner"]))["inner"]
    assert np.abs(inner).max() > 1  # the sum of the row; zero once the next line has run
    session.close()


@pytest.mark.parametrize(
    ("function", "slug", "words"),
    [
        ("numbers", "torch-network", "returned a tuple"),
        ("absent", "script-attribute-missing", "has no function"),
        ("fails", "torch-network", "fails() of net.py raises RuntimeError: no weights here (net.py:"),
    ],
)
def test_what_is_no_network(tmp_path, function, slug, words):
    (tmp_path / "net.py").write_text(WRITES_IN_PLACE)
    with pytest.raises(TriageError) as caught:
        opened(f"torch:{tmp_path / 'net.py'}:{function}", three_outputs(tmp_path))
    assert (type(caught.value), caught.value.slug) == (UsageError, slug)
    assert words in caught.value.message


def test_another_number_of_outputs_is_refused(tmp_path):
    (tmp_path / "net.py").write_text(WRITES_IN_PLACE)
    session = opened(f"torch:{tmp_path / 'net.py'}:make", three_outputs(tmp_path, "ab"))
    with pytest.raises(EngineError) as caught:
        session.run({"x": np.zeros((2, 4), np.float32)})
    session.close()
    assert "3 tensors, the ONNX model 2 outputs" in caught.value.message


def three_outputs(folder, names="abc", *, inside=""):
    from onnx import helper

    import models

    nodes = [helper.make_node("Neg", ["inner" if inside else "x"], [name], name=f"make_{name}") for name in names]
    if inside:
        nodes.insert(0, helper.make_node("Abs", ["x"], ["inner"], name=f"/{inside}/Abs"))
    model = models.of_nodes(nodes, inputs={"x": (2, 4)}, outputs=dict.fromkeys(names, (2, 4)))
    return model.save(folder / "three.onnx")


NETWORKS = FOLDER / "small_networks.py"


@pytest.fixture(scope="module")
def two_products(tmp_path_factory):
    """Return an ONNX file that stands for the network of two products."""
    from onnx import helper

    import models

    shape = (4, 8)
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="stands_for_it")]
    made = models.of_nodes(nodes, inputs={"x": shape}, outputs={"y": shape})
    return made.save(tmp_path_factory.mktemp("products") / "model.onnx")


@pytest.mark.slow
def test_a_compiled_network_and_a_wrong_pass_of_its_compiler(two_products):
    x = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    right = opened(f"torch:{NETWORKS}:two_products", two_products)
    expected = right.run({"x": x})["y"]
    right.close()
    wrong = opened(f"torch:{NETWORKS}:two_products_with_a_wrong_pass,compile=inductor", two_products)
    found = wrong.run({"x": x})["y"]
    wrong.close()
    healthy = opened(f"torch:{NETWORKS}:two_products,compile=inductor", two_products)
    np.testing.assert_allclose(healthy.run({"x": x})["y"], expected, rtol=1e-5, atol=1e-6)
    healthy.close()
    assert np.abs(found - expected).max() > 0.1  # the first weight is not transposed


@pytest.mark.slow
def test_a_compiler_that_is_missing_is_said(two_products, tmp_path, monkeypatch, fresh_processes):
    (tmp_path / "net.py").write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return torch.sin(x) + 1\n"
        "def make():\n    return Net().eval(), torch.ones(4, 8)\n"
    )
    monkeypatch.setenv("CXX", str(tmp_path / "absent"))
    with pytest.raises(TriageError) as caught:
        opened(f"torch:{tmp_path / 'net.py'}:make,compile=inductor", two_products)
    assert caught.value.slug == "torch-compiler"
    assert "g++" in caught.value.cure


COUNTS_EXPORTS = """
import pathlib, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4, bias=False)
        torch.nn.init.constant_(self.inner.weight, 1 / 3)
    def forward(self, x):
        if torch.compiler.is_exporting():
            with open(pathlib.Path(__file__).parent / "exports", "a") as file:
                file.write("x")
        return torch.relu(self.inner(x))
def make():
    return Net().eval(), (torch.ones(2, 4),)
"""


def test_a_network_that_was_just_exported_is_not_exported_again(tmp_path):
    (tmp_path / "net.py").write_text(COUNTS_EXPORTS)
    spec = EngineSpec.parse(f"torch:{tmp_path / 'net.py'}:make")
    create(spec).export_file(spec.options, tmp_path / "net.onnx", exporter="dynamo")
    count = len((tmp_path / "exports").read_text())
    assert count
    session = opened(str(spec), tmp_path / "net.onnx")
    feed = {"x": np.full((2, 4), 2.0, np.float32)}
    assert dict(session.captured(feed, ["linear"])).keys() == {"linear"}
    assert len((tmp_path / "exports").read_text()) == count
    # 4 * 2 * (1/3 in float32), which float64 does not round again
    np.testing.assert_array_equal(
        session.query("float64", feed)[1]["relu"], np.full((2, 4), 8 * float(np.float32(1 / 3)))
    )
    assert session.run(feed)["relu"].dtype == np.float32
    session.close()
    # what was taken is gone: the network is exported again, for these shapes
    again = opened(str(spec), tmp_path / "net.onnx")
    asked = TorchNetwork(Model.load(tmp_path / "net.onnx"), functools.partial(again.query, feed=feed))
    assert asked.trace().operations.keys() == {"linear", "relu"}
    assert len((tmp_path / "exports").read_text()) > count
    again.close()
