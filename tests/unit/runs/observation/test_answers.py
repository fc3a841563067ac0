"""What a case keeps of answers: what was put in comes out, in another process as well, and nothing else does."""

import numpy as np
import pytest

from tensortriage.compare.measured import Measured
from tensortriage.engines.base import Limits, Plan, Region
from tensortriage.errors import BuildFailed, EngineHung
from tensortriage.runs.case import Case
from tensortriage.runs.observation import answers
from tensortriage.runs.observation.answers import AnswerStore
from tensortriage.runs.observation.experiment import Measurement
from tensortriage.values.store import MemoryStore

LIMITS = Limits(run_seconds=5.0)


@pytest.fixture
def case(tmp_path):
    with Case(tmp_path / "case") as case:
        yield case


def test_an_answer_is_known_with_all_that_was_seen(case):
    plan = Plan((Region("fused", ("a", "b")),))
    given = Measurement(MemoryStore({"y": np.arange(3, dtype=np.float32)}), Measured({}), plan=plan, seconds=0.5)
    AnswerStore(case).keep("key", "engine", given)
    found = AnswerStore(case).known("key", LIMITS)
    assert np.array_equal(found.tensors["y"], [0, 1, 2])
    assert (found.plan, found.seconds, found.unseen) == (plan, 0.5, given.unseen)


def test_what_is_too_large_is_asked_again(case, monkeypatch):
    monkeypatch.setattr(answers, "KEPT_BYTES", 8)
    store = AnswerStore(case)
    store.keep("key", "engine", Measurement(MemoryStore({"y": np.zeros(3, np.float32)})))
    assert store.known("key", LIMITS) is None


def test_tensors_that_are_gone_are_asked_for_again(case):
    store = AnswerStore(case)
    store.keep("key", "engine", Measurement(MemoryStore({"y": np.zeros(3, np.float32)})))
    for file in (case.runs / "key").iterdir():
        file.unlink()
    assert store.known("key", LIMITS) is None


def test_a_failure_is_the_answer_under_the_same_limits_alone(case):
    AnswerStore(case).failed("key", "engine", EngineHung("too slow", slug="engine-hang", cure="wait"), LIMITS)
    store = AnswerStore(case)
    with pytest.raises(EngineHung, match="too slow") as raised:
        store.known("key", LIMITS)
    assert (raised.value.slug, raised.value.cure) == ("engine-hang", "wait")
    assert store.known("key", Limits(run_seconds=50.0)) is None


def test_a_failure_of_a_kind_that_is_none_is_no_answer(case):
    """A file may say anything: it must not choose what is called."""
    store = AnswerStore(case)
    store.failed("key", "engine", BuildFailed("no", slug="build-failed"), LIMITS)
    key = answers._failure_key("key", LIMITS)
    kept = case.checks.get(key, answers._Failed)
    fields = {name: getattr(kept, name) for name in ("message", "slug", "cure")}
    for kind in ("did_you_mean", "nonsense", "__name__"):
        case.checks.put(key, "changed", {"kind": kind, **fields}, seconds=0.0)
        assert store.known("key", LIMITS) is None


def test_answers_of_an_earlier_command_are_counted_once(case):
    AnswerStore(case).keep("old", "engine", Measurement(seconds=1.0))
    store = AnswerStore(case)
    store.keep("new", "engine", Measurement(seconds=1.0))
    for key in ("old", "old", "new"):
        assert store.known(key, LIMITS) is not None
    assert store.earlier == 1
