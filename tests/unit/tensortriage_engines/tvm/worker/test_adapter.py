"""What TVM's adapter makes of models, results and refusals; a stand-in for TVM's package, none of TVM."""

import contextlib
import json
import sys
import types

import numpy as np
import pytest

from models import write
from tensortriage_engines.tvm.worker import adapter
from tensortriage_engines.tvm.worker.adapter import TvmSession
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item

X, Y = ({"name": name, "dtype": "float32", "shape": [2]} for name in "xy")
DECLARED = {"inputs": [X], "outputs": [Y]}
OPTIONS = {"declared": json.dumps(DECLARED), "optimize": "2", "left_out": "FuseOps+FoldConstant"}
FEED = {"x": Item("x", np.float32([1, 2]))}


class Tensor:
    """An array of the runtime."""

    def __init__(self, array):
        self.array = array

    def numpy(self):
        return self.array


class Tvm(types.ModuleType):
    """The package: a machine of a module gives what the module makes of its first input."""

    def __init__(self, function=lambda array: Tensor(array * 2), refusal=None):
        super().__init__("tvm")
        self.__version__, self.refusal, self.asked = "0", refusal, []
        self.runtime = types.SimpleNamespace(tensor=Tensor)
        self.transform = types.SimpleNamespace(PassContext=self.context)
        self.relax = types.SimpleNamespace(VirtualMachine=lambda built, device: self.machine(built))
        self.function = function

    def context(self, **words):
        self.asked.append(words)
        return contextlib.nullcontext()

    def compile(self, module, target):
        if self.refusal:
            raise self.refusal
        return module

    def cpu(self):
        return "cpu"

    def machine(self, built):
        return {"main": lambda *given: built(given[0].array)}

    def from_onnx(self, model, *, keep_params_in_input):
        self.asked.append((model, keep_params_in_input))
        if self.refusal:
            raise self.refusal
        return self.function


@pytest.fixture
def installed(monkeypatch):
    """Return what puts a stand-in in the place of the package."""

    def install(*given, **words):
        tvm = Tvm(*given, **words)
        frontend = types.SimpleNamespace(from_onnx=tvm.from_onnx)
        modules = {"tvm": tvm, "tvm.relax": tvm.relax, "tvm.relax.frontend": types.ModuleType("frontend")}
        for name, module in {**modules, "tvm.relax.frontend.onnx": frontend}.items():
            monkeypatch.setitem(sys.modules, name, module)
        return tvm

    return install


def model(tmp_path):
    return write(tmp_path / "m.onnx", "g (float[2] x) => (float[2] y) { a = Exp(x)  y = Relu(a) }")


def test_a_model_is_imported_compiled_and_run(installed, tmp_path):
    tvm = installed()
    assert adapter.probe({}) == {"version": "0"}
    session = adapter.compile(model(tmp_path), OPTIONS)
    (item,) = session.run(FEED)
    assert (item.name, item.array.tolist()) == ("y", [2, 4])
    (imported, apart), passes = tvm.asked
    assert (apart, [value.name for value in imported.graph.output]) == (False, ["y"])
    assert passes == {"opt_level": 2, "disabled_pass": ["FuseOps", "FoldConstant"]}
    assert session.info["conversion_seconds"] >= 0
    assert list(session.seen(FEED, ("a",))) == []  # of a model that was imported no values are known
    session.close()
    session.close()


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (RuntimeError("no\n such op"), "RuntimeError: no such op"),
        (KeyError("x"), "KeyError: 'x'"),
        (AdapterError(AdapterFailure.BUILD, "no such op"), "no such op"),
    ],
)
def test_a_refusal_is_told_in_its_words(installed, tmp_path, refusal, words):
    installed(refusal=refusal)
    with pytest.raises(AdapterError) as caught:
        adapter.compile(model(tmp_path), OPTIONS)
    assert (caught.value.kind, caught.value.message) == (AdapterFailure.BUILD, words)


def test_no_tvm_is_told(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tvm", None)
    with pytest.raises(AdapterError) as caught:
        adapter.compile(model(tmp_path), OPTIONS)
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.MISSING, "tvm-missing")


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (Tensor(np.ones(2)), [[1, 1]]),
        ([Tensor(np.ones(1)), (3, 4)], [[1], [3, 4]]),  # a shape is a tuple of its own
        ((3, 4), [[3, 4]]),
        ((Tensor(np.ones(1)),), [[1]]),
        (5, [5]),  # a size of a shape is a number, by TVM 0.25
        ([Tensor(np.ones(1)), 5], [[1], 5]),
    ],
)
def test_results_are_one_or_several_tensors_or_shapes(result, found):
    tvm = Tvm()
    session = TvmSession(tvm, lambda array: result, DECLARED, {})
    assert [array.tolist() for array in session.call([np.ones(2)])] == found


def test_another_session_runs_what_is_compiled(installed):
    session = TvmSession(installed(refusal=RuntimeError("no")), lambda array: Tensor(array * 2), DECLARED, {})
    (item,) = session.another().run(FEED)
    assert item.array.tolist() == [2, 4]
