"""An oracle that was taken apart, sent, and put together again gives the answers of the first."""

import gc
import pickle
import tempfile
from pathlib import Path

import pytest

from reducing import NEEDS, Deaf, dag
from tensortriage.model.model import Model
from tensortriage.reduce.engines.portable_oracle import parts_of, put_together
from tensortriage.reduce.pieces.polygraphy_modes import Phases
from tensortriage.runs.case import Case
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows import reduce as workflow


@pytest.mark.slow
def test_the_same_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = dag(tmp_path)
    (tmp_path / "needs.py").write_text(NEEDS.format(needed=(names[4], names[15])))
    request = workflow.ReduceRequest(
        model=Path("m.onnx"), output=Path("r.onnx"), target="script:needs.py:Engine",
        feeding=FeedRequest(paths=("m.npz",)),
    )  # fmt: skip
    with Case(tmp_path / "case") as case:
        model = Model.load("m.onnx")
        asking = workflow._asking(request, model, case, Deaf(), Phases("auto", apart=False), None)
        whole = asking.pieces.items
        asking.oracle.expected = expected = asking.oracle.failure(asking.pieces.nodes(whole))
        sent = pickle.dumps(parts_of(asking.oracle, expected))
        for name in ("elsewhere", "temporary"):
            (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        there = put_together(pickle.loads(sent))
        candidates = [whole, whole[:16], whole[:12], whole[16:], (names[4], names[15])]
        answers = [there(tuple(candidate), 0) for candidate in candidates]
        monkeypatch.chdir(tmp_path)
        assert answers == [asking.oracle(tuple(candidate), 0) for candidate in candidates]
        assert [answer.same for answer in answers][:4] == [True, True, False, False]
        asking.close()
        del there
        gc.collect()
        assert list((tmp_path / "temporary").iterdir()) == []
