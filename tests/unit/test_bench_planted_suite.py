"""The planted-fault suite: what it promises of its cases, and a sample of them through a whole diagnosis."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.engines.base import Limits
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))  # where a script finds its siblings
from planted_suite import FAMILIES, HEALTHY_ERROR, VISIBLE, PlantedSubject, makers, off, planted_cases

sys.path.pop(0)
pytestmark = [pytest.mark.slow, pytest.mark.lengthy]


def test_the_suite_is_as_large_as_promised():
    assert len(makers()) >= 20
    assert len(FAMILIES) >= 4


def test_cases_name_verdicts_that_exist_and_nodes_that_are_there(tmp_path):
    cases = list(planted_cases(tmp_path, families=["conv_net"]))
    assert len({case.kind for case in cases}) >= 25
    known = {kind.value for kind in VerdictKind}
    for case in cases:
        assert {*case.verdicts} <= known
        assert case.feeds.exists()
        nodes = {node.name for path in (case.model, case.target_model) if path for node in onnx.load(path).graph.node}
        assert {*case.culprits} <= nodes, case.name


@pytest.mark.parametrize("kind", ["noise", "tile-tail", "flush"])
def test_a_fault_shows_at_the_outputs_where_it_is_planted(tmp_path, kind):
    (case,) = planted_cases(tmp_path, families=["residual_dag"], kinds=[kind])
    subject = PlantedSubject.written("residual_dag", tmp_path / "again", 0)
    right, wrong = subject.run(), subject.run(kind=kind, node=case.culprits[0])
    assert off(right["y"], wrong["y"]) > VISIBLE * HEALTHY_ERROR


@pytest.mark.parametrize("family", FAMILIES)
def test_healthy_engines_are_as_close_as_the_suite_assumes(tmp_path, family):
    import onnxruntime

    subject = PlantedSubject.written(family, tmp_path, 0)
    session = onnxruntime.InferenceSession(str(subject.model))
    names = [output.name for output in session.get_outputs()]
    optimized = dict(zip(names, session.run(None, subject.feed()), strict=True))
    if family != "quantized":  # one step of a quantizer is more than that
        assert max(off(right, optimized[name]) for name, right in subject.run().items()) < HEALTHY_ERROR


def test_the_same_seed_makes_the_same_cases(tmp_path):
    one, other = (
        [
            (case.name, case.culprits)
            for case in planted_cases(tmp_path / word, families=["mlp"], kinds=["scale", "sign"])
        ]
        for word in ("one", "other")
    )
    assert one == other
    elsewhere = planted_cases(tmp_path / "third", families=["mlp"], kinds=["scale", "sign"], seed=1)
    assert [case.culprits for case in elsewhere] != [culprits for _, culprits in one]


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        ("encoder", "scale"),
        ("quantized", "nan"),
        ("residual_dag", "fusion"),
        ("mlp", "wrong-reference"),
        ("mlp", "input-sensitive"),
        ("conv_net", "changed"),
    ],
)
def test_a_sample_of_the_suite_gets_its_right_verdicts(tmp_path, family, kind):
    (case,) = planted_cases(tmp_path, families=[family], kinds=[kind])
    verdict = diagnose(
        DiagnoseRequest(
            model=case.model,
            target=case.target,
            reference=case.reference,
            target_model=case.target_model,
            feeding=FeedRequest(paths=(str(case.feeds),)),
            case=tmp_path / "case",
            limits=Limits(),
            repro=False,
        )
    )
    assert verdict.verdict in case.verdicts, verdict.summary
    assert not case.culprits or verdict.culprits[0].node in case.culprits


def test_off_is_relative_and_infinite_for_what_is_not_finite():
    assert off(np.full(4, 2.0), np.full(4, 2.2)) == pytest.approx(0.1)
    assert off(np.ones(2), np.array([1.0, np.nan])) == float("inf")
