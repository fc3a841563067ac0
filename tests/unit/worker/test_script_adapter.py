"""Scripts as engines, called in this process: what they may define, declare and return, and what is said otherwise."""

import sys
import types

import numpy as np
import pytest

from tensortriage.values.dtype import DType
from tensortriage_worker import script_adapter
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item
from tensortriage_worker.script_adapter import ScriptSession

ENGINE = """
class Session:
    def run(self, feed):
        return {"y": feed["x"] * 2}
class Engine:
    def compile(self, model, options):
        self.given = model, options
        return Session()
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Return what writes a script and gives the options that name it; what executing leaves is taken back."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, script_adapter.MODULE_NAME, types.ModuleType("none"))

    def write(text, **options):
        (tmp_path / "mine.py").write_text(text)
        return {"file": str(tmp_path / "mine.py"), **options}

    return write


def run(options):
    return list(script_adapter.compile("model", options).run({"x": Item("x", np.float32([1, 2]))}))


def wrapped(**members):
    """Return the session of a script whose own session has the members."""
    return ScriptSession(types.SimpleNamespace(**members), "mine.py")


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        (ENGINE, ""),
        (ENGINE, "Engine"),
        (ENGINE + "class Other(Engine): pass\n", ""),  # two classes, one of which is Engine
        (ENGINE.replace("class Engine", "class Mine"), ""),
        (ENGINE + "def make(): return Engine()\n", "make"),
        (ENGINE + "made = Engine()\n", "made"),
        (ENGINE.replace("class Engine", "class Mine") + "class Other(Mine): pass\ndef Engine(): return Mine()\n", ""),
        (
            ENGINE.replace("class Engine:", "if True:").replace("self, model", "model").replace("self.given", "given"),
            "",
        ),
        (ENGINE + "from collections import OrderedDict\n", ""),
    ],
)
def test_what_an_engine_may_be(script, text, attribute):
    (item,) = run(script(text, **({"attribute": attribute} if attribute else {})))
    assert (item.name, item.array.tolist()) == ("y", [2, 4])


@pytest.mark.parametrize(
    ("text", "attribute", "slug"),
    [
        ("x = 1", "", "script-engine"),
        ("class A:\n def compile(self, m, o): ...\nclass B(A): ...", "", "script-engine"),
        ("x = 1", "x", "script-engine"),
        ("class A: ...", "A", "script-engine"),
        ("def make(): return 3", "make", "script-engine"),
        ("", "absent", "script-attribute-missing"),
        ("from pathlib import Path as Engine", "", "script-engine"),
    ],
)
def test_what_is_no_engine(script, text, attribute, slug):
    with pytest.raises(AdapterError) as caught:
        script_adapter.compile("model", script(text, attribute=attribute))
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.USAGE, slug)
    assert caught.value.cure


def test_the_names_of_a_script_are_listed_where_one_is_missing(script):
    for text, cure in (("a = 1\n_hidden = 2", "it has: a"), ("", "it has: nothing")):
        with pytest.raises(AdapterError) as caught:
            script_adapter.compile("model", script(text, attribute="absent"))
        assert caught.value.cure == cure


def test_own_options_and_the_model_reach_the_script(script, tmp_path):
    session = script_adapter.compile("model", script(ENGINE + "engine = Engine()", attribute="engine", gain="3"))
    given = sys.modules[script_adapter.MODULE_NAME].engine.given
    assert given == ("model", {"gain": "3"})
    told = {"tactics": [], "own_options": [], "strided": True}
    assert (session.inputs, session.outputs, session.info, session.plan()) == (None, None, told, None)
    assert sys.path[0] == str(tmp_path)
    session.close()


@pytest.mark.parametrize("made", ["None", "3"])
def test_a_session_that_cannot_run(script, made):
    with pytest.raises(AdapterError) as caught:
        script_adapter.compile("model", script(f"class A:\n def compile(self, m, o): return {made}"))
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.BUILD, "script-session")


def test_rungs_of_a_script(script):
    assert script_adapter.probe(script(ENGINE)) == {"ladder": []}
    text = ENGINE + "    def ladder(self, options): return [('safe', {'level': 0}), (1, options)]\n"
    assert script_adapter.probe(script(text, gain="3")) == {"ladder": [["safe", {"level": "0"}], ["1", {"gain": "3"}]]}


@pytest.mark.parametrize(
    "entry",
    [
        ("x", "float32", (None, "N", 3)),
        ["x", np.float32, [None, "N", np.int64(3)]],
        {"name": "x", "dtype": np.dtype("f4"), "shape": (None, "N", 3)},
        types.SimpleNamespace(name="x", dtype=DType.FLOAT, shape=(None, "N", 3)),
    ],
)
def test_specs_are_declared_in_several_ways(entry):
    session = wrapped(inputs=[entry], outputs=({"name": "y"},))
    assert session.inputs == [{"name": "x", "dtype": "float32", "shape": [None, "N", 3]}]
    assert session.outputs == [{"name": "y", "dtype": None, "shape": None}]


@pytest.mark.parametrize(
    "declared",
    [[("x", "float32")], [3], 3, "x", lambda: ["x"], [("x", "float7" * 2, ("N", 3.5, []))], [{"dtype": "f4"}]],
)
def test_specs_that_are_none(declared):
    with pytest.raises(AdapterError, match=r"mine\.py: session\.inputs") as caught:
        wrapped(inputs=declared)
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.USAGE, "script-session")
    assert "self.inputs = [('x', 'float32', [None, 3])]" in caught.value.cure


def test_plain_names_are_specs_of_any_type_and_shape():
    session = wrapped(outputs=["y", "z"], inputs={"x": 0})
    assert session.outputs == [{"name": name, "dtype": None, "shape": None} for name in ("y", "z")]
    assert [spec["name"] for spec in session.inputs] == ["x"]


def test_plans_and_tactics_become_plain():
    region = types.SimpleNamespace(name="r", nodes=("a", 2), kind="k")
    expected = {"name": "r", "kind": "k", "precision": "", "implementation": "", "nodes": ["a", "2"]}
    for plan in ([region], types.SimpleNamespace(regions=[region]), {"regions": [vars(region)]}):
        assert wrapped(plan=lambda plan=plan: plan).plan() == [expected]
    assert wrapped(plan=lambda: None).plan() is None
    with pytest.raises(AdapterError, match="plan"):
        wrapped(plan=lambda: 3).plan()
    (choice,) = wrapped(tactics=lambda: [{"layer": "l", "tactic": 7, "inputs": ["f"], "milliseconds": 0.5}]).info[
        "tactics"
    ]
    assert choice == {
        "layer": "l", "tactic": "7", "implementation": "", "key": "", "inputs": ["f"], "outputs": [], "nodes": [],
        "milliseconds": 0.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "None instead of a dict"),
        ([1], "a list instead of a dict"),
        ({1: 2}, "named by a int"),
        ({"y": object()}, "a object, not an array of numbers"),
        ({"y": [[1], [1, 2]]}, "'y' is not an array"),
        ({"y": np.array(["a", None], object)}, "not an array of numbers"),
    ],
)
def test_results_that_are_no_arrays(result, words):
    with pytest.raises(AdapterError, match=words) as caught:
        wrapped(run=lambda feed: result).run({})
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.RUN, "script-result")


def test_results_become_arrays_and_a_session_is_closed():
    words, closed = np.array(["a", b"b"], object), []
    session = wrapped(run=lambda feed: {"y": 2, "w": words}, close=lambda: closed.append(1))
    assert [(item.name, item.array.tolist()) for item in session.run({})] == [("y", 2), ("w", ["a", b"b"])]
    session.close()
    assert closed == [1]
