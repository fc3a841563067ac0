"""Whose fault is it, the exporter's or the engine's? Planted faults of both kinds, where PyTorch is installed.

An exporter's faults are planted by changing the exported file, as a wrong translation would have written it.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from diagnosing import step
from engine_scripts import FAULTY
from running_cli import triage, verdict_in
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.report.document import Report
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.engines.source_network import export_network
from tensortriage.workflows.requests import DiagnoseRequest
from tensortriage_worker.shards import write_shard

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
    pytest.mark.lengthy,
]

FOLDER = Path(__file__).resolve().parents[1] / "data" / "torch"
TRANSFORMER = f"torch:{FOLDER / 'small_transformer.py'}:network"
NETWORKS = FOLDER / "small_networks.py"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Export each network once; return model and inputs."""
    known = {}

    def export(network, exporter="dynamo"):
        if (network, exporter) not in known:
            folder = tmp_path_factory.mktemp("exported") / "case"
            made = export_network(EngineSpec.parse(network), folder, exporter=exporter, limits=Limits())
            known[network, exporter] = made
        return known[network, exporter]

    return export


def judged(folder, network, model, inputs, target="onnxruntime:optimization=none", *, repro=False):
    request = DiagnoseRequest(
        model=model, target=target, network=network, case=folder / "case", feeding=FeedRequest(paths=(str(inputs),)),
        random_too=False, repro=repro,
    )  # fmt: skip
    return diagnose(request)


def planted(folder, model, change):
    proto = onnx.load(model)
    change(proto.graph)
    onnx.save(proto, folder / "planted.onnx")
    return folder / "planted.onnx"


def attribute(op_type, number, name, value):
    def change(graph):
        node = [node for node in graph.node if node.op_type == op_type][number]
        kept = [each for each in node.attribute if each.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])

    return change


def scale_of_attention(graph):
    node = next(node for node in graph.node if node.op_type == "Mul")
    factor = next(tensor for tensor in graph.initializer if tensor.name in node.input)
    factor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(factor) * np.float32(1.3), factor.name))


def another_weight(name):
    def change(graph):
        tensor = next(tensor for tensor in graph.initializer if tensor.name == name)
        tensor.CopyFrom(numpy_helper.from_array(np.roll(numpy_helper.to_array(tensor), 1), name))

    return change


def another_table(graph):
    node = next(node for node in graph.node if node.op_type == "Mul")
    another_weight(node.input[1])(graph)


def without_the_mean(graph):
    """As an exporter leaves out a branch that it did not see taken."""
    node = next(node for node in graph.node if node.op_type == "Sub")
    user = next(user for user in graph.node if node.output[0] in user.input)
    user.input[list(user.input).index(node.output[0])] = node.input[0]
    for each in [node, next(node for node in graph.node if node.op_type == "ReduceMean")]:
        graph.node.remove(each)


def test_a_finished_diagnosis_does_not_ask_the_network_again(tmp_path, exported):
    model, inputs = exported(TRANSFORMER)
    wrong = planted(tmp_path, model, attribute("Gelu", 1, "approximate", "tanh"))
    first, again = (judged(tmp_path, TRANSFORMER, wrong, inputs, repro=True) for _ in range(2))
    assert (first.verdict, first.culprits) == (again.verdict, again.culprits) != ("match", ())
    assert first.cost.checks > 0
    assert (again.cost.builds, again.cost.checks) == (0, 0)


@pytest.mark.parametrize(
    ("network", "change", "module", "words"),
    [
        (TRANSFORMER, attribute("LayerNormalization", 1, "epsilon", 0.05), "layers.0.mlp.0", "eps=1e-05"),
        (TRANSFORMER, attribute("Gelu", 1, "approximate", "tanh"), "layers.1.mlp.2", "approximate='none'"),
        (TRANSFORMER, scale_of_attention, "layers.0.attention", "aten.scaled_dot_product_attention became"),
        (TRANSFORMER, another_weight("layers.1.attention.o_proj.bias"), "layers.1.attention.o_proj", "aten.linear"),
        (f"torch:{NETWORKS}:pictures", another_weight("head.bias"), "head", "Conv"),
        (f"torch:{NETWORKS}:waves", another_table, "", "folded aten.arange"),
        (f"torch:{NETWORKS}:waves", without_the_mean, "mean", "leaves out aten.mean"),
    ],
    ids=[
        "epsilon",
        "gelu-form",
        "attention-scale",
        "another-weight",
        "another-bias",
        "folded",
        "branch",
    ],
)
def test_a_fault_of_the_exporter(tmp_path, exported, network, change, module, words):
    model, inputs = exported(network)
    verdict = judged(tmp_path, network, planted(tmp_path, model, change), inputs)
    assert verdict.verdict == "model-changed", verdict.summary
    culprit = verdict.culprits[0]
    assert culprit.origin.module == module
    assert culprit.origin.source.startswith(("small_transformer.py:", "small_networks.py:"))
    assert words in culprit.reason


def test_a_fault_of_the_exporter_is_cut_out_with_pytorch_s_values(tmp_path, exported):
    network = f"torch:{NETWORKS}:pictures"
    model, inputs = exported(network)
    wrong = planted(tmp_path, model, attribute("Resize", 0, "mode", "nearest"))
    verdict = judged(tmp_path, network, wrong, inputs, repro=True)
    assert (verdict.verdict, verdict.culprits[0].origin.module) == ("model-changed", "up")
    assert "mode='bilinear'" in verdict.culprits[0].reason
    assert verdict.repro is not None
    assert verdict.repro.confirmed
    folder = tmp_path / "case/repro"
    assert "differs from its PyTorch network" in (folder / "README.md").read_text()
    (node,) = onnx.load(folder / "model.onnx").graph.node
    assert node.op_type == "Resize"
    expected = onnx.load_tensor(folder / "test_data_set_0/output_0.pb")
    picture = numpy_helper.to_array(onnx.load_tensor(folder / "test_data_set_0/input_0.pb"))
    # Bilinear and not nearest: the middle of four pixels has 9/16, 3/16, 3/16 and 1/16 of them (half-pixel centres).
    near, right, below, across = (picture[0, 0, row, column] for row in (0, 1) for column in (0, 1))
    middle = (9 * near + 3 * right + 3 * below + across) / 16
    np.testing.assert_allclose(numpy_helper.to_array(expected)[0, 0, 1, 1], middle, rtol=1e-5, atol=1e-6)
    # The exporter here is right, the file was changed: nothing to tell its tracker, and the file is what is judged.
    assert (verdict.repro.module.partition(" ")[0], verdict.repro.anew) == ("up", False)
    assert not (folder / "issue.md").exists()
    assert "aten.upsample_bilinear2d.vec" in (folder / "module.py").read_text()
    assert repro_exits(folder) == 1
    report = Report.load(tmp_path / "case")  # how far the file is from PyTorch, where it was compared
    assert any(not row.within and row.relative_rms_error > 0 for row in report.outputs.rows)
    wrong = {row.node for row in report.layers.rows if row.in_context_error and row.in_context_error > 1e-3}
    assert verdict.culprits[0].node in wrong


def repro_exits(folder):
    done = subprocess.run([sys.executable, folder / "repro.py"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode


def test_whole_numbers_that_the_exporter_computes_in_float32(tmp_path, exported):
    """A fault of PyTorch 2.13's own exporter: exact up to 2^24, and the repro says so."""
    network = f"torch:{NETWORKS}:hashes"
    model, inputs = exported(network)
    verdict = judged(tmp_path, network, model, inputs, repro=True)
    assert (verdict.verdict, verdict.culprits[0].origin.module) == ("model-changed", "hash")
    assert "exact up to 2^24 only" in verdict.culprits[0].reason
    folder = tmp_path / "case/repro"
    assert verdict.repro.anew
    assert "aten.div.Tensor_mode" in (folder / "issue.md").read_text()
    assert repro_exits(folder) == 1
    write_shard(folder / "inputs.safetensors", {"mul": np.array([[1, 6, 7, 2**20]])})
    assert repro_exits(folder) == 0


def test_a_fault_of_the_engine_has_the_name_of_its_module(tmp_path, exported):
    model, inputs = exported(TRANSFORMER)
    (tmp_path / "faulty.py").write_text(FAULTY)
    target = f"script:{tmp_path / 'faulty.py'},kind=scale,node=node_linear_9,amount=1.05"
    verdict = judged(tmp_path, TRANSFORMER, model, inputs, target, repro=True)
    assert verdict.verdict == "local-fault", verdict.summary
    assert verdict.repro.module.startswith("layers.1.attention.o_proj (Linear")
    assert "aten.linear.default" in (tmp_path / "case/repro/module.py").read_text()
    assert repro_exits(tmp_path / "case/repro") == 1
    assert verdict.culprits[0].origin.module == "layers.1.attention.o_proj"
    asked = step(verdict, "does the exported model compute the same results as the network?")
    assert asked.answer.startswith("yes: ")
    assert asked.evidence["modules_compared"] >= 0.9 * asked.evidence["modules"]
    # float32 has 24 bits: a healthy network of four layers is within some units of its last place.
    assert asked.evidence["pytorch_fp32_against_fp64"] < 1e-5


def test_a_size_that_the_older_exporter_bakes_in(tmp_path):
    code = (
        "import torch, small_networks as n\n"
        "module, inputs = n.share()\n"
        "torch.onnx.export(module, (inputs['x'],), 'share.onnx', input_names=['x'], dynamo=False,\n"
        "                  dynamic_axes={'x': {0: 'batch'}})\n"
    )
    environment = {"PYTHONPATH": str(FOLDER), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, capture_output=True)
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    np.savez(tmp_path / "five.npz", x=x)
    verdict = judged(tmp_path, f"torch:{NETWORKS}:share", tmp_path / "share.onnx", tmp_path / "five.npz")
    assert (verdict.verdict, verdict.culprits[0].origin.module) == ("model-changed", "mean")


def test_a_model_that_was_left_in_training_mode(tmp_path, exported):
    network = f"torch:{NETWORKS}:pictures"
    model, inputs = exported(network)

    def drop(graph):
        node = next(node for node in graph.node if node.op_type == "Relu")
        graph.initializer.append(numpy_helper.from_array(np.float32(0.5), "ratio"))
        graph.initializer.append(numpy_helper.from_array(np.array(True), "training"))
        node.op_type = "Dropout"
        node.input.extend(["ratio", "training"])

    verdict = judged(tmp_path, network, planted(tmp_path, model, drop), inputs)
    assert (verdict.verdict, verdict.culprits[0].op_type) == ("model-changed", "Dropout")
    assert "though the network is in evaluation mode" in verdict.culprits[0].reason


def test_a_network_in_training_mode(tmp_path, exported):
    network = f"torch:{NETWORKS}:dropping"
    model, inputs = exported(network, "legacy")  # which exports in evaluation mode, whatever the network is in
    graph = Model.load(model).graph
    assert {graph.origin(node.name).source.partition(":")[0] for node in graph.nodes} >= {"small_networks.py"}
    verdict = judged(tmp_path, network, model, inputs)
    assert verdict.verdict == "comparison-unsound"
    assert "the network is in training mode" in verdict.summary
    assert "Cure: call .eval()" in verdict.summary


def test_from_the_network_alone(tmp_path):
    words = ["diagnose", "--torch", TRANSFORMER.removeprefix("torch:"), "--target", "onnxruntime", "-o", "case"]
    done = triage(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "exporting torch:" in done.stderr
    verdict = verdict_in(tmp_path / "case")
    assert (verdict["verdict"], verdict["inputs"]) == ("match", "random"), "torch.randn made the example"
    assert (tmp_path / "case/network/model.onnx").is_file()
    assert [entry.name for entry in tmp_path.iterdir()] == ["case"]


def test_a_network_that_cannot_be_exported_is_an_error(tmp_path):
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x if float(x.sum()) > 0 else torch.fft.fft(x).real.unique()\n"
        "def make():\n    return Net(), (torch.ones(3),)\n"
        "def bare():\n    return Net()\n"
    )
    done = triage("diagnose", "--torch", "net.py:bare", "--target", "onnxruntime", cwd=tmp_path)
    assert (done.returncode, "error[torch-examples]" in done.stderr) == (2, True), done.stderr
    done = triage("diagnose", "--torch", "net.py:make", "--target", "onnxruntime", cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert "error[torch-export]" in done.stderr
    assert "--exporter legacy" in done.stderr
