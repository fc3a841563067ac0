"""Exporter, engine, network, or how they are compared: who is to blame? Asked of PyTorch, by both exporters."""

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from running_cli import triage
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.engines.source_network import export_network
from tensortriage.workflows.requests import DiagnoseRequest

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
    pytest.mark.lengthy,
]

NETWORKS = f"torch:{Path(__file__).resolve().parents[1] / 'data' / 'torch' / 'mistaken_networks.py'}"
PLAIN = "onnxruntime:optimization=none"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Export each network once; return model and inputs."""
    known = {}

    def export(function, exporter):
        if (function, exporter) not in known:
            folder = tmp_path_factory.mktemp("exported") / "case"
            spec = EngineSpec.parse(f"{NETWORKS}:{function}")
            known[function, exporter] = export_network(spec, folder, exporter=exporter, limits=Limits())
        return known[function, exporter]

    return export


def edited(folder, model, change):
    proto = onnx.load(model)
    change(proto.graph)
    onnx.save(proto, folder / "edited.onnx")
    return folder / "edited.onnx"


def attribute(op_type, name, value):
    def change(graph):
        node = next(node for node in graph.node if node.op_type == op_type)
        kept = [each for each in node.attribute if each.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])

    return change


def scaled(name, factor):
    def change(graph):
        tensor = next(tensor for tensor in graph.initializer if tensor.name == name)
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(factor), name))

    return change


def judged(folder, model, inputs, **given):
    request = DiagnoseRequest(
        model=model, target=PLAIN, case=folder / "case", feeding=FeedRequest(paths=(str(inputs),)), random_too=False,
        repro=False, **given,
    )  # fmt: skip
    return diagnose(request)


@pytest.mark.parametrize("option", ["network", "reference"])
def test_a_network_is_asked_about_the_export_whatever_option_named_it(tmp_path, exported, option):
    model, inputs = exported("larger", "dynamo")
    wrong = edited(tmp_path, model, attribute("Resize", "cubic_coeff_a", -0.5))
    verdict = judged(tmp_path, wrong, inputs, **{option: f"{NETWORKS}:larger"})
    assert (verdict.verdict, verdict.culprits[0].op_type) == ("model-changed", "Resize"), verdict.summary
    assert "cubic_coeff_a=-0.5" in verdict.culprits[0].reason
    assert f"--reference {NETWORKS}:larger --target {PLAIN}" in verdict.next[0]


def test_a_comparison_with_a_network_that_fails_tells_who_else_may_be_wrong(tmp_path, exported):
    model, inputs = exported("larger", "dynamo")
    wrong = edited(tmp_path, model, attribute("Resize", "cubic_coeff_a", -0.5))
    done = triage(
        "run", wrong, "--reference", f"{NETWORKS}:larger", "--target", PLAIN, "--inputs", inputs, cwd=tmp_path
    )
    assert done.returncode == 1
    command = f"triage diagnose {wrong} --torch {NETWORKS.removeprefix('torch:')}:larger --target {PLAIN} --inputs"
    assert command in done.stdout


def of_node(name, place, factor):
    """Return a change of an operand of a node, as in a file whose exporter renamed what it multiplied into it."""

    def change(graph):
        node = next(node for node in graph.node if node.name == name)
        scaled(node.input[place], factor)(graph)

    return change


@pytest.mark.parametrize(
    ("change", "module", "printed"),
    [
        (scaled("head.weight", 1.2), "head", "Linear("),
        (of_node("/conv2/Conv", 1, 1.2), "conv2", "BatchNorm2d(8"),
        (of_node("/conv1/Conv", 2, 1.5), "conv1", "bias=False), then BatchNorm2d(8"),
    ],
    ids=["behind", "folded-weight", "folded-bias"],
)
def test_a_norm_that_was_folded_into_a_convolution_makes_no_convolution_wrong(
    tmp_path, exported, change, module, printed
):
    model, inputs = exported("pictures", "legacy")
    verdict = judged(tmp_path, edited(tmp_path, model, change), inputs, network=f"{NETWORKS}:pictures")
    assert (verdict.verdict, verdict.culprits[0].origin.module) == ("model-changed", module), verdict.summary
    assert printed in verdict.culprits[0].reason


def test_a_norm_that_was_folded_is_right(tmp_path, exported):
    model, inputs = exported("pictures", "legacy")
    assert judged(tmp_path, model, inputs, network=f"{NETWORKS}:pictures").verdict == "match"


MISTAKES = {
    "other-weights-each-time": (
        "words", "words_without_a_seed", "gives other weights at every call", "call torch.manual_seed"),
    "another-checkpoint": (
        "words", "words_of_another_checkpoint", "weights differ in 11 of 11 modules", "load the checkpoint"),
    "trained-on": ("words", "words_trained_on", "is of another checkpoint", "load the checkpoint"),
    "training-mode": ("words", "words_in_training", "the network is in training mode", "call .eval()"),
    "exchanged-inputs": ("words", "words_exchanged", "fed with 'kinds' as 'ids', 'ids' as 'kinds'", "the order of"),
    "prepared-in-forward": ("pictures", "prepared", "forward prepares 'x' before 'conv1'", "leave it out of forward"),
    "prepared-in-the-file": ("prepared", "pictures", "the file prepares 'x' (Sub", "export the network without it"),
    "ends-in-forward": ("pictures", "shares", "is the result of 'head' in PyTorch", "the steps that follow"),
    "ends-in-the-file": ("shares", "pictures", "Softmax 'node_softmax' follows", "export the network without it"),
    "state": ("remembers", "remembers_more", "keeps state between calls: calls change 'seen'", "reset it there"),
    "noise-in-the-file": ("noisy", "noisy", "the model draws random numbers: RandomNormalLike", "an input of forward"),
    "noise-in-the-network": ("quiet", "drawing", "the network draws random numbers in 2", "an input of forward"),
    "another-network": ("words", "pictures", "0 of its 17 modules", "name the function that makes the network"),
}  # fmt: skip
"""What was exported, what it is compared with, and words of the verdict: what is the case, and its cure."""


@pytest.mark.parametrize(("file", "network", "what", "cure"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_of_the_users_is_said_with_its_cure(tmp_path, exported, file, network, what, cure):
    model, inputs = exported(file, "dynamo")
    verdict = judged(tmp_path, model, inputs, network=f"{NETWORKS}:{network}")
    assert (verdict.verdict, verdict.culprits) == ("comparison-unsound", ()), verdict.summary
    assert what in verdict.summary, verdict.summary
    assert cure in verdict.summary.partition("Cure: ")[2], verdict.summary


@pytest.mark.parametrize("exporter", ["dynamo", "legacy"])
def test_a_recurrent_layer_is_named_as_such(tmp_path, exported, exporter):
    model, inputs = exported("recurrent", exporter)
    node = next(node for node in onnx.load(model).graph.node if node.op_type == "LSTM")
    wrong = edited(tmp_path, model, of_node(node.name, 2, 1.5))
    verdict = judged(tmp_path, wrong, inputs, network=f"{NETWORKS}:recurrent")
    culprit = verdict.culprits[0]
    assert (verdict.verdict, culprit.op_type, culprit.origin.module) == ("model-changed", "LSTM", "lstm")
    assert f"LSTM '{node.name}'" in culprit.reason
    assert "weights differ in 1 of 3 modules, 'lstm'" in verdict.summary


def test_what_the_network_itself_raises_is_no_fault_of_its_exporter(tmp_path):
    words = ["--torch", f"{NETWORKS.removeprefix('torch:')}:not_square", "--target", PLAIN]
    done = triage("diagnose", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "error[torch-network]: forward of mistaken_networks.py:not_square raises RuntimeError: " in done.stderr
    assert "(2x3 and 2x3) (mistaken_networks.py:" in done.stderr


def test_on_inputs_that_the_network_cannot_take_the_feed_is_what_is_wrong(tmp_path, exported):
    model, _ = exported("product", "dynamo")
    proto = onnx.load(model)
    for name in (proto.graph.input[0], proto.graph.output[0]):
        for place, size in enumerate((2, 3)):
            name.type.tensor_type.shape.dim[place].dim_value = size
    onnx.save(proto, tmp_path / "not_square.onnx")
    np.savez(tmp_path / "feed.npz", **{proto.graph.input[0].name: np.ones((2, 3), np.float32)})
    verdict = judged(tmp_path, tmp_path / "not_square.onnx", tmp_path / "feed.npz", network=f"{NETWORKS}:product")
    assert verdict.verdict == "comparison-unsound"
    assert "PyTorch failed to run: RuntimeError: " in verdict.summary


def test_pytorch_s_reason_is_what_is_quoted_of_a_failed_export(tmp_path):
    words = ["--torch", f"{NETWORKS.removeprefix('torch:')}:branches", "--target", PLAIN]
    done = triage("diagnose", *words, cwd=tmp_path)
    assert "error[torch-export]: torch.onnx.export refuses mistaken_networks.py:branches: Guard" in done.stderr
    assert "in forward if x.sum() > 0" in done.stderr


def test_a_network_in_bfloat16_is_compared_as_what_it_is(tmp_path, exported):
    model, inputs = exported("in_bfloat16", "dynamo")
    verdict = judged(tmp_path, model, inputs, network=f"{NETWORKS}:in_bfloat16")
    answers = {step.question: step.answer for step in verdict.steps}
    assert answers["does the exported model compute the same results as the network?"].startswith("yes: ")
