"""Functions of users, called in this process: loaders, metrics, and what is done to outputs."""

import sys
import types

import numpy as np
import pytest

from tensortriage_worker import function_adapter, script_adapter
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item
from tensortriage_worker.function_adapter import PRINTED_CHARACTERS

INPUTS = [{"name": "x", "dtype": "float32", "shape": [None, 2]}, {"name": "n", "dtype": None, "shape": None}]


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Return what opens the function ``f`` of a script."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, script_adapter.MODULE_NAME, types.ModuleType("none"))

    def opened(text, function="f"):
        (tmp_path / "mine.py").write_text("import numpy as np\n" + text)
        return function_adapter.compile(tmp_path / "mine.py", {"function": function, "shown": "SHOWN"})

    return opened


def call(session, wanted, *arguments, **arrays):
    """Call the function; arrays are handed over by place, and a list of names is a dict of them."""
    items = {str(place): Item(str(place), array) for place, array in enumerate(arrays.values())}
    places = {name: place for place, name in enumerate(arrays)}
    given = [[[n, places[n]] for n in a] if isinstance(a, list) else places.get(a, a) for a in arguments]
    return session.answer("call", items, {"arguments": given, "wanted": wanted}, None)


def arrays_of(answer):
    info, items = answer
    return dict(zip(info["names"], [item.array.tolist() for item in items], strict=True))


def refused(slug, action):
    with pytest.raises(AdapterError) as caught:
        action()
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.DATA, slug)
    return caught.value.message


def test_arguments_are_words_arrays_and_dicts_of_arrays(opened):
    session = opened("def f(word, nothing, array, named):\n array += 1\n return {'a': array, word: named['m'] * 2}")
    fixed = np.arange(2)
    fixed.flags.writeable = False
    answer = call(session, "arrays", "w", None, "k", ["m"], k=fixed, m=np.ones(1))
    assert arrays_of(answer) == {"a": [1, 2], "w": [2]}
    assert [item.name for item in answer[1]] == ["0", "1"]


@pytest.mark.parametrize(
    ("result", "wanted", "value"),
    [("[]", "truth", False), ("[0]", "truth", True), ("np.float32(0.5)", "number", ["0.5"]),
     ("True", "number", ["1.0"]), ("np.array([1, 0])", "number", ["1.0", "0.0"])],
)  # fmt: skip
def test_truths_and_numbers(opened, result, wanted, value):
    answer = call(opened(f"def f(): return {result}"), wanted)[0]
    assert answer["value" if wanted == "truth" else "values"] == value


@pytest.mark.parametrize(
    ("parameters", "taken"),
    [
        ("", ()), ("outputs, feed", ()), ("outputs, feed, *more", ()), ("outputs, feed, threshold=0.5", ()),
        ("outputs, feed, labels", ("labels",)), ("o, f, truth, golden", ("labels", "reference")),
        ("o, f, reference", ("reference",)), ("o, f, labels=None, reference=None", ("labels=", "reference=")),
        ("o, f, truth, threshold=0.5", ("labels",)),
    ],
)  # fmt: skip
def test_a_metric_takes_labels_by_place_and_what_has_a_default_by_name(opened, parameters, taken):
    assert opened(f"def f({parameters}): return 1").info["takes"] == taken


@pytest.mark.parametrize("result", ["'3'", "b'3'", "None", "np.zeros((2, 2))", "[]"])
def test_what_is_no_number(opened, result):
    refused("script-not-number", lambda: call(opened(f"def f(): return {result}"), "number"))


@pytest.mark.parametrize("result", ["3", "{1: 2}", "{'a': object()}", "{'a': np.array(['x', 3], object)}"])
def test_what_is_no_dict_of_arrays(opened, result):
    refused("script-not-outputs", lambda: call(opened(f"def f(): return {result}"), "arrays"))


def test_tensors_and_words_are_arrays(opened):
    session = opened("""
class Tensor:
    def detach(self): return self
    cpu = detach
    def numpy(self): return np.ones(2)
def f(): return {'t': Tensor(), 'w': np.array(['a', b'b'], object)}
""")
    assert arrays_of(call(session, "arrays")) == {"t": [1, 1], "w": ["a", b"b"]}


def samples(session, inputs=INPUTS):
    session.answer("begin", {}, {"inputs": inputs}, None)
    while (answer := session.answer("next", {}, {}, None))[0]["names"] is not None:
        yield arrays_of(answer)


@pytest.mark.parametrize(
    "sample",
    ["{'x': [1, 2], 'n': 3}", "([1, 2], 3)", "[[1, 2], 3, 'label']", "(np.array([1, 2]), np.array(3))"],
)
def test_a_loader_yields_dicts_or_tuples(opened, sample):
    found = list(samples(opened(f"def f():\n for _ in range(2): yield {sample}")))
    assert found == [{"x": [1, 2], "n": 3}] * 2


def test_one_array_is_a_sample_of_a_model_with_one_input(opened):
    session = opened("def f(): return [np.array([1, 2])]")
    assert list(samples(session, INPUTS[:1])) == [{"x": [1, 2]}]
    refused("script-not-feed", lambda: list(samples(session)))


@pytest.mark.parametrize("made", ["3", "'text'", "b'text'", "{'x': 1}"])
def test_what_is_no_loader(opened, made):
    refused("script-not-feed", lambda: list(samples(opened(f"def f(): return {made}"))))


def test_a_tuple_without_inputs_is_no_sample(opened):
    refused("script-not-feed", lambda: list(samples(opened("def f(): yield ()"), [])))


def test_a_loader_that_asks_is_told_the_inputs(opened):
    text = """
class Loader(list):
    input_metadata = None
made = Loader()
def f(): return made
"""
    assert list(samples(opened(text))) == []
    told = sys.modules[script_adapter.MODULE_NAME].made.input_metadata
    assert told == {"x": (np.dtype("float32"), (None, 2)), "n": (None, None)}


def test_what_is_printed_comes_back_and_is_cut(opened):
    before = sys.stdout, sys.stderr
    session = opened(
        "import sys\nprint('hello')\ndef f(n):\n print('x' * int(n), file=sys.stderr, flush=True)\n return 1"
    )
    assert session.info == {"printed": "hello\n", "takes": ()}
    assert call(session, "truth", "3")[0]["printed"] == "xxx\n"
    printed = call(session, "truth", str(2 * PRINTED_CHARACTERS))[0]["printed"]
    assert printed == "x" * PRINTED_CHARACTERS + "\n...\n"
    assert (sys.stdout, sys.stderr) == before


def test_what_a_script_raises_names_its_line(opened):
    def loud():
        call(opened("def f():\n raise ValueError('lost')"), "truth")

    assert refused("script-failed", loud) == "SHOWN, line 3: ValueError: lost"
    assert refused("script-failed", lambda: opened("def f(:")).startswith("SHOWN, line 2: SyntaxError")
    assert refused("script-failed", lambda: call(opened("f = int"), "truth", "a")).startswith("SHOWN: ValueError")
    assert refused("script-failed", lambda: opened("raise SystemExit(3)")) == "SHOWN, line 2: SystemExit: 3"


def test_a_script_without_the_function(opened):
    refused("script-unusable", lambda: opened("g = 1"))
    refused("script-unusable", lambda: opened("f = 1"))


def test_a_closed_session_calls_nothing(opened):
    session = opened("def f(): return [{'x': 1}]")
    session.answer("begin", {}, {"inputs": INPUTS}, None)
    session.close()
    assert session.answer("next", {}, {}, None)[0]["names"] is None
    assert "closed" in refused("script-failed", lambda: call(session, "truth"))
