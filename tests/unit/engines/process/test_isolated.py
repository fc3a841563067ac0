"""Engines in processes of their own: an adapter of a package from outside in a worker, and sessions next to it."""

import sys
import types

import ml_dtypes
import numpy as np
import pytest

from models import chain
from tensortriage.engines.base import Choice, Limits, Plan, Region
from tensortriage.engines.process.isolated import IsolatedEngine, IsolatedSession, installed
from tensortriage.engines.process.model_terms import ModelTerms, SessionEnds
from tensortriage.errors import BuildFailed, DataError, RunFailed, TriageError
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_worker.exchange import Item

ADAPTER = """
import os
import outside_plugin.worker.arithmetic as arithmetic
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item

def probe(options):
    return {"seen": options}

def answer(question, model, options):
    told = {"question": question, "model": str(model), "options": options}
    return told, [Item("a", arithmetic.doubled(arithmetic.ONE))]

def compile(model, options):
    if options.get("refuse"):
        raise AdapterError(AdapterFailure.BUILD, "not today")
    return Session(options)

class Session:
    def __init__(self, options):
        told = options.get("tells", "all")
        self.inputs = None if told == "nothing" else [{"name": "p0", "dtype": "float32", "shape": [2, None]}]
        self.outputs = None if told != "all" else [{"name": "y", "dtype": None, "shape": None}]
        self.info = {"pid": os.getpid(), "options": options}

    def run(self, feed):
        (item,) = feed.values()
        return [Item("y", arithmetic.doubled(item.array))]

    def plan(self):
        return [{"name": "r", "nodes": ["a"]}]

    def answer(self, question, feed, arguments, spill):
        return {"question": question, "fed": sorted(feed), **arguments}, []

    def close(self):
        pass
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Write a package whose engine works in a worker: its half travels there, and nothing else of it does."""
    folder = tmp_path_factory.mktemp("package")
    worker = folder / "outside_plugin" / "worker"
    worker.mkdir(parents=True)
    (worker.parent / "__init__.py").write_text("import tensortriage  # which a worker's Python may lack\n")
    (worker / "__init__.py").write_text("")
    (worker / "adapter.py").write_text(ADAPTER)
    (worker / "arithmetic.py").write_text(
        "import numpy\nONE = numpy.ones(1)\ndef doubled(array):\n    return array * 2\n"
    )
    return folder


@pytest.fixture
def engine(package, monkeypatch):
    monkeypatch.syspath_prepend(package)
    return IsolatedEngine("outside_plugin.worker.adapter", title="Mine", limits=Limits())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return chain(1).save(tmp_path_factory.mktemp("model") / "m.onnx")


X = ValueSpec("x", DType.FLOAT, (2, 1))
Y = ValueSpec("y", DType.FLOAT, (2, 1))
FEED = {"x": np.float32([[1], [3]])}


def test_an_adapter_runs_in_a_worker_that_is_kept_for_its_affinity(engine, model):
    pids = []
    for affinity in ("", "", "b"):
        session = engine.compile(model, {}, affinity=affinity)
        np.testing.assert_array_equal(session.run({"p0": FEED["x"]})["y"], [[2], [6]])
        assert (session.inputs[0].shape, session.outputs[0].dtype) == ((2, None), None)
        pids.append(session.pid)
        assert session.info["pid"] == session.pid
        session.close()
    assert pids[0] == pids[1] != pids[2]


def test_its_refusal_is_told_and_the_worker_goes_on(engine, model):
    session = engine.compile(model, {})
    session.close()
    with pytest.raises(BuildFailed, match="not today"):
        engine.compile(model, {"refuse": "1"})
    again = engine.compile(model, {})
    again.close()
    assert again.pid == session.pid


def test_options_reach_the_adapter_without_the_word_of_the_worker(engine, model, tmp_path):
    assert engine.probe({"a": "1", "worker": sys.executable}) == {"seen": {"a": "1"}}
    (tmp_path / "f").touch()
    told, arrays = engine.answer("why", model, {"file": str(tmp_path / "f")}, files=("file",))
    assert told == {"question": "why", "model": str(model), "options": {"file": str(tmp_path / "f")}}
    assert arrays["a"].tolist() == [2]


@pytest.mark.parametrize(
    ("tells", "inputs", "outputs"),
    [("all", ["p0"], [None]), ("inputs", ["p0"], [(2, 1)]), ("nothing", ["x"], [(2, 1)])],
)
def test_what_the_adapter_does_not_tell_the_model_declares(engine, model, tells, inputs, outputs):
    session = engine.compile(model, {"tells": tells}, terms=ModelTerms(lambda path: ((X,), (Y,))))
    assert [spec.name for spec in session.inputs] == inputs
    assert [spec.shape for spec in session.outputs] == outputs
    session.close()


def test_inputs_are_fed_under_the_names_that_the_model_declares(engine, model):
    session = engine.compile(
        model,
        {},
        terms=ModelTerms(
            declared_inputs=lambda path: (X,),
            translate=lambda plan, path: Plan((*plan.regions, Region(path.name, ()))),
        ),
    )
    assert session.inputs == (ValueSpec("x", DType.FLOAT, (2, None)),)
    np.testing.assert_array_equal(session.run(FEED)["y"], FEED["x"] * 2)
    assert session.plan() == Plan((Region("r", ("a",)), Region("m.onnx", ())))
    assert session.answer("why", FEED, n=3)[0] == {"question": "why", "fed": ["p0"], "n": 3}
    assert session.answer("why")[0]["fed"] == []
    session.close()


class Conversation:
    """A worker that has answered already."""

    title = "Mine"

    def __init__(self, results=(), *, ml_dtypes=True, plan=None):
        closed = self.closed = []
        self.worker = types.SimpleNamespace(
            hello={"pid": 7, "ml_dtypes": ml_dtypes}, close=lambda: closed.append("worker")
        )
        self.limits, self.results, self.rows, self.fed = Limits(), results, plan, []

    def run(self, items, layout=""):
        self.fed += items
        return self.results

    def ask(self, operation):
        return {operation: self.rows}

    def end(self):
        self.closed.append("conversation")


def opened(conversation, *, inputs=(X,), outputs=(Y,), fed_as=None, info=None):
    ends = SessionEnds(inputs, outputs, {"x": "x"} if fed_as is None else fed_as)
    return IsolatedSession(conversation, ends, info or {}, lambda plan: plan)


def results(**arrays):
    return [Item(name, np.asarray(array)) for name, array in arrays.items()]


@pytest.mark.parametrize(
    ("declared", "given", "expected"),
    [
        (DType.FLOAT, np.float32, np.float32),
        (DType.FLOAT, np.float16, np.float16),
        (DType.FLOAT, ml_dtypes.bfloat16, ml_dtypes.bfloat16),
        (DType.FLOAT, np.float64, np.float64),
        (DType.INT64, np.int32, np.int32),
        (None, np.int8, np.int8),
        (DType.FLOAT16, np.float32, np.float32),
        (DType.FLOAT, np.int8, np.int8),
        (DType.FLOAT, bool, bool),
        (DType.INT32, np.int64, np.int64),
        (DType.INT64, np.float64, np.float64),
        (DType.STRING, np.float32, None),
        (DType.BFLOAT16, np.uint16, np.uint16),
    ],
)
def test_outputs_of_another_type_are_left_for_the_judge(declared, given, expected):
    conversation = Conversation(results(y=np.ones((2, 1), given)))
    session = opened(conversation, outputs=(ValueSpec("y", declared, None),))
    if expected is None:
        with pytest.raises(RunFailed) as caught:
            session.run(FEED)
        assert caught.value.slug == "engine-outputs-wrong"
    else:
        found = session.run(FEED)["y"]
        assert (found.dtype, found.tolist()) == (np.dtype(expected), [[1], [1]])
    session.close()


@pytest.mark.parametrize(
    ("declared", "given", "fits"),
    [
        (DType.BFLOAT16, np.uint16(0x3F80), True),
        (DType.INT4, np.int8(3), True),
        (DType.BFLOAT16, np.uint8(1), False),
        (DType.INT32, np.uint32(1), False),
    ],
)
def test_a_worker_without_ml_dtypes_gives_raw_integers(declared, given, fits):
    session = opened(Conversation(results(y=given), ml_dtypes=False), outputs=(ValueSpec("y", declared, ()),))
    if fits:
        found = session.run(FEED)["y"]
        assert (found.dtype, found.tobytes()) == (declared.numpy, given.tobytes())
    else:
        assert session.run(FEED)["y"].dtype == given.dtype
    session.close()


def test_outputs_come_in_the_order_of_the_model_and_all_of_them():
    session = opened(Conversation(results(z=1.0, y=2.0)), outputs=(Y, ValueSpec("z", DType.DOUBLE, ())))
    assert list(session.run(FEED)) == ["y", "z"]
    session.close()
    for wrong in (results(), results(y=1.0, odd=2.0)):
        session = opened(Conversation(wrong))
        with pytest.raises(RunFailed) as caught:
            session.run(FEED)
        assert caught.value.slug == "engine-outputs-wrong"
        session.close()


def test_inputs_that_the_engine_dropped_are_checked_and_not_fed():
    conversation = Conversation(results(y=np.ones((2, 1), "f4")))
    session = opened(conversation, inputs=(X, ValueSpec("unused", DType.INT64, (1,))), fed_as={"x": "p0"})
    session.run({**FEED, "unused": np.zeros(1, np.int64)})
    assert [item.name for item in conversation.fed] == ["p0"]
    with pytest.raises(DataError):
        session.run(FEED)
    session.close()


def test_a_session_ends_once_and_one_that_is_forgotten_ends_its_worker():
    conversation = Conversation()
    session = opened(conversation)
    assert session.plan() is None
    session.allow(3.0)
    assert conversation.limits == Limits(run_seconds=3.0)
    session.close()
    session.close()
    assert conversation.closed == ["conversation"]
    for ask in (lambda: session.run(FEED), session.plan, lambda: session.allow(1), lambda: session.answer("why")):
        with pytest.raises(TriageError) as caught:
            ask()
        assert caught.value.slug == "session-closed"
    forgotten = Conversation()
    opened(forgotten)
    assert forgotten.closed == ["worker"]


def test_plans_and_tactics_are_told_with_what_is_known():
    rows = [{"name": "r", "nodes": ["a", "b"], "kind": "k", "inputs": ["x"]}, {"name": "s"}]
    tactics = [
        {"layer": "l", "tactic": 7, "inputs": ["f"], "milliseconds": 0.5},
        {"layer": "m", "tactic": "t", "key": "k"},
    ]
    session = opened(Conversation(plan=rows), info={"tactics": tactics})
    assert session.plan() == Plan((Region("r", ("a", "b"), "k", inputs=("x",)), Region("s", ())))
    assert session.tactics() == (
        Choice("l", "7", inputs=("f",), milliseconds=0.5),
        Choice("m", "t", key="k"),
    )
    session.close()
    bare = opened(Conversation())
    assert bare.tactics() == ()
    bare.close()


def test_a_package_is_looked_for_without_importing_it(monkeypatch):
    found = installed("pytest", "Pytest", "install it")
    assert (found.usable, found.version, found.device) == (True, pytest.__version__, "CPU")
    monkeypatch.setitem(sys.modules, "half_made", types.ModuleType("half_made"))  # without a spec
    for name in ("half_made", "no_such_package"):
        found = installed(name, "Mine", "install it")
        assert (found.usable, found.reason, found.cure) == (False, "Mine is not installed", "install it")
