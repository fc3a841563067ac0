"""Is an input named whose numbers change from run to run? Programs that write into its memory, and sound ones."""

import dataclasses

import numpy as np
import pytest

from investigations import compared, investigate  # noqa: F401 - fixtures
from models import proto
from registered_engines import register
from tensortriage.diagnose.state.confidence import OBSERVED
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage_feeds.changing_input import changing_input

NET = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,6] image) => (float[2,6] y) { [act] r = Tanh(image) [out] y = Sigmoid(r) }"""
IMAGE = {"image": np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)}


@pytest.fixture
def asked(investigate, compared, monkeypatch, tmp_path):  # noqa: F811
    register(monkeypatch, tmp_path, fed="wrongly_fed:WronglyFed")

    def ask(change, noise=0.0, kind=VerdictKind.NONDETERMINISTIC_RUN):
        inv = investigate(proto(NET), IMAGE)
        target = EngineSpec("fed", {"change": change, "noise": str(noise)})
        inv = inv.about(dataclasses.replace(inv.question, target=target))
        return changing_input(inv, compared(inv).with_(concluded=Conclusion(kind, OBSERVED, "so far"))).verdict

    return ask


@pytest.mark.parametrize(
    ("change", "which"),
    [("freed", "3 of 12, among the first 3 values of its memory"), ("unwritten", "all of its values")],
)
def test_memory_that_others_write_is_told_with_its_place(asked, change, which):
    verdict = asked(change)
    assert (verdict.kind, tuple(verdict.culprits)) == (VerdictKind.NONDETERMINISTIC_RUN, ())
    assert f"'image' has other numbers than it is given, and others in every run: {which}" in verdict.summary
    assert "keep the memory of the input alive" in verdict.summary


@pytest.mark.parametrize(("change", "noise"), [("none", 0.1), ("none", 0.0), ("bgr", 0.0)])
def test_a_program_whose_results_alone_vary_is_not_accused_of_its_input(asked, change, noise):
    assert asked(change, noise) is None


def test_another_verdict_is_left_as_it_is(asked):
    assert asked("freed", kind=VerdictKind.LOCAL_FAULT) is None
