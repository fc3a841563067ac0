"""Fixtures: investigations of small models, all of whose engines run in this process, and what comes of them."""

import contextlib
import tempfile
from pathlib import Path

import pytest

from models import proto
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.rungs.premises.comparable_outputs import compare_outputs
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.runs.case import Case
from tensortriage.runs.questions.question import Question
from tensortriage_testing import save_model

ENTRY_POINTS = """[tensortriage.engines]
faulty = tensortriage_testing:FaultyEngine
saturating = tensortriage_testing:SaturatingEngine
varying = tensortriage_testing:VaryingEngine
"""


@pytest.fixture
def investigate(tmp_path, monkeypatch):
    """Return a function that opens an investigation of a model (ONNX text or message), fed with dictionaries of arrays.

    The targets ``faulty:...``, ``varying:...`` and ``saturating:...`` are a `FaultyEngine`, a `VaryingEngine` and a
    `SaturatingEngine`, registered as an installed package registers its engines: a script engine would start a process.
    """
    package = tmp_path / "installed" / "faulty-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(package.parent)
    with contextlib.ExitStack() as opened:

        def open_one(model, *feeds, target="onnxruntime:optimization=none", reference=PLAIN, **question):
            message = proto(model) if isinstance(model, str) else model
            asked = Question(
                model=Model.load(save_model(message, tmp_path / "model.onnx")),
                feeds=[Feed(f"feed-{number}", feed, Origin.REAL) for number, feed in enumerate(feeds)],
                reference=reference,
                target=EngineSpec.parse(target),
                **question,
            )
            folder = tempfile.mkdtemp(prefix="case-", dir=tmp_path)
            inv = Investigation.begin(asked, opened.enter_context(Case(Path(folder))))
            opened.callback(inv.lab.close)
            return inv

        yield open_one


@pytest.fixture
def compared():
    """Return a function that gives the evidence of an investigation once its outputs are compared."""

    def compare(inv):
        return Evidence(results=compare_outputs(inv, Evidence()).findings["results"])

    return compare


@pytest.fixture
def last_step():
    """Return a function that gives the step that an investigation recorded last."""
    return lambda inv: inv.record.steps[-1]
