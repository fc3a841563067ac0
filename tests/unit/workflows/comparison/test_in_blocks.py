"""Does a comparison in blocks say what the comparison of the whole says, and in what it differs?"""

import dataclasses

import pytest

from engine_scripts import engine_file
from models import of_message
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.cutting.narrow_cuts import weights_bytes
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.runs.blocks import memory
from tensortriage.workflows.common.output_selection import OutputChoice
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage_testing.models import encoder

PLAIN = EngineSpec.parse("onnxruntime:optimization=none")


@pytest.fixture
def small(path, monkeypatch):
    """A machine of which the model would take more than there is; engines are not held to that."""
    size = weights_bytes(Model.load(path).graph.initializers.values())
    monkeypatch.setattr(memory, "BASE_BYTES", 0)
    monkeypatch.setattr(memory, "group_memory", lambda: None)
    monkeypatch.setattr(memory, "_available", lambda: size * 3 - 8)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return of_message(encoder()).save(tmp_path_factory.mktemp("model") / "model.onnx")


def softmax(path):
    return next(node for node in Model.load(path).graph.nodes if node.op_type == "Softmax")


def faulty(path, folder):
    file = engine_file()
    return EngineSpec.parse(f"script:{file},kind=scale,node={softmax(path).name},amount=1.5")


def rows(result):
    return {row.value: row for item in result.comparisons for row in item.comparison.rows}


@pytest.mark.lengthy
def test_every_tensor_is_compared_and_the_fault_is_where_it_was_planted(path, small, tmp_path):
    result = compare(
        CompareRequest(model=path, reference=PLAIN, targets=[faulty(path, tmp_path)], outputs=OutputChoice(("*",)))
    )
    assert result.cuts is not None
    assert result.cuts.blocks > 2
    assert rows(result).keys() == {*markable(Model.load(path))}
    (born,) = softmax(path).outputs
    assert rows(result)[born].metrics.relative_rms_error == pytest.approx(0.5, rel=1e-3)  # times 1.5
    assert not result.passed
    assert "a fusion across a cut" in result.cuts.in_words()


@pytest.mark.lengthy
def test_errors_are_not_inherited_by_later_blocks(path, small, tmp_path):
    """Each block gets the reference's values: behind the block of the fault all is right, in the whole it is not."""
    request = CompareRequest(model=path, reference=PLAIN, targets=[faulty(path, tmp_path)])
    assert list(rows(compare(request)).values())[-1].judgement.within
    assert not list(rows(compare(dataclasses.replace(request, in_blocks=False))).values())[-1].judgement.within


def test_what_is_recorded_is_what_was_wanted(path, small):
    seen = {}
    request = CompareRequest(model=path, reference=PLAIN, targets=[PLAIN])
    result = compare(request, record=lambda who, number, outputs: seen.setdefault(who, {}).update(outputs))
    assert result.passed
    assert result.cuts is not None
    assert [{*outputs} for outputs in seen.values()] == [{spec.name for spec in Model.load(path).outputs}] * 2
