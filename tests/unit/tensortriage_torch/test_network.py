"""A network is asked in words that a session or a lab may answer; here a function does, which knows modules alone."""

from pathlib import Path

import numpy as np
import pytest

from tensortriage.model.model import Model
from tensortriage_torch.network import TorchNetwork

MODEL = Path(__file__).resolve().parents[2] / "data" / "torch" / "small_transformer.onnx"


class Answers:
    """Answers as `tensortriage_torch.worker.adapter` does, and counts what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, question, **arguments):
        self.asked.append(question)
        if question == "program":
            return {"operations": [], "reason": "it cannot be exported"}, {}
        if question == "modules":
            return {"modules": {"head": "Linear(8, 16)"}, "training": True}, {}
        if question == "cut":
            return {"reason": f"no operation {arguments['nodes']}"}, {}
        found = {name: np.zeros(3) for name, place in arguments["wanted"].items() if place["module"] == "layers.0"}
        return {"reason": "only modules"}, found


@pytest.fixture
def answers():
    return Answers()


@pytest.fixture
def network(answers):
    return TorchNetwork(Model.load(MODEL), answers)


def test_values_of_modules_need_no_export(network, answers):
    found = dict(network.captured(list(Model.load(MODEL).graph.values), operations=False))
    assert answers.asked == ["values"]
    assert len(found) == 1
    assert network.reason == "only modules"


def test_a_network_that_cannot_be_exported_says_why(network, answers):
    assert network.trace().operations == {}
    assert network.reason == "it cannot be exported"
    assert network.cut({"nodes": ["linear"], "modules": []}) == "no operation ['linear']"
    assert network.modules() == ({"head": "Linear(8, 16)"}, True)
    assert answers.asked == ["program", "cut", "modules"]
