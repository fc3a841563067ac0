"""The conformance suite against engines that are wrong on purpose, each in one thing."""

import dataclasses

import numpy as np
import pytest

from tensortriage.engines.base import Availability, Limits, Plan, Region
from tensortriage.engines.capabilities import RunsOnHardware
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.script import ScriptEngine
from tensortriage.errors import DataError, EngineMissing, UsageError
from tensortriage.testing import check_engine_conformance
from tensortriage.values.dtype import DType


class Wrapped:
    """ONNX Runtime with one thing changed."""

    options = OnnxRuntimeEngine.options

    def __init__(self, **changes):
        self.inner = OnnxRuntimeEngine()
        self.changes = changes
        self.name = changes.get("name", "wrapped")

    def availability(self):
        return self.changes.get("availability", self.inner.availability)()

    def compile(self, model, options):
        given = self.changes.get("options", lambda words: words)(options)
        return WrappedSession(self.inner.compile(model, given), self.changes)


class WrappedSession:
    def __init__(self, inner, changes):
        self.inner = inner
        self.changes = changes
        self.inputs = changes.get("inputs", lambda specs: specs)(inner.inputs)
        self.outputs = changes.get("outputs", lambda specs: specs)(inner.outputs)

    def run(self, feed):
        feed = self.changes.get("feed", lambda tensors: tensors)(feed)
        return self.changes.get("run", lambda tensors: tensors)(self.inner.run(feed))

    def plan(self):
        return self.changes["plan"] if "plan" in self.changes else self.inner.plan()

    def close(self):
        self.inner.close()


def only_floats(change):
    return lambda tensors: {n: change(a) if a.dtype == np.float32 else a for n, a in tensors.items()}


def in_place(tensors):
    for array in tensors.values():
        if array.dtype == np.float32 and array.flags.writeable:
            array += 1
    return tensors


SHARED = np.zeros((2, 3), np.float32)


def one_buffer(tensors):
    if set(tensors) != {"y"} or tensors["y"].shape != SHARED.shape:
        return tensors
    SHARED[...] = tensors["y"]
    return {"y": SHARED}


def without_strangers(tensors):
    return {name: array for name, array in tensors.items() if name != "not an input"}


def wordy(tensors):
    if not tensors:
        raise DataError("one line\nand another", slug="wordy")
    return tensors


def changed(tensors):
    """Give scalars an axis, and names other names."""
    return {name.strip("./"): array.reshape(array.shape or (1,)) for name, array in tensors.items()}


def doubled(specs):
    return [dataclasses.replace(s, dtype=DType.DOUBLE) if s.dtype is DType.FLOAT else s for s in specs]


def flat(specs):
    return [dataclasses.replace(spec, shape=()) for spec in specs]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"plan": None},
        {"run": only_floats(lambda a: np.asarray(a + np.float32(0.01)))},
        {"outputs": doubled, "run": only_floats(lambda a: a.astype(np.float64))},
        {"outputs": lambda specs: [dataclasses.replace(spec, shape=None) for spec in specs]},
    ],
)
def test_an_engine_may_be_a_little_off_wider_and_silent_about_plan_and_shapes(change):
    assert "plan" in check_engine_conformance(Wrapped(**change)).passed


def test_an_engine_that_gives_float32_for_float16_refuses_that_model():
    def widened(tensors):
        return {name: a.astype(np.float32) if a.dtype == np.float16 else a for name, a in tensors.items()}

    refused = check_engine_conformance(Wrapped(run=widened)).refused
    assert refused["model float16"] == "output 'y' is float32, the model declares float16"


@pytest.mark.parametrize(
    ("change", "complaints"),
    [
        ({"run": only_floats(lambda a: a + 1)}, ["model mlp: output 'y' is"]),
        ({"run": only_floats(lambda a: np.where(np.isfinite(a), np.float32(np.nan), a))},
         ["model conv: output 'y' is"]),
        ({"run": only_floats(lambda a: a.astype(np.float16)), "feed": wordy},
         ["session.outputs declares another type", "with a missing input is not one"]),
        ({"run": changed}, ["model scalars: output 'y' has shape (1,), not ()", "model hostile-names: run returned"]),
        ({"run": one_buffer}, ["runs repeat: a later run changed an output"]),
        ({"outputs": lambda specs: specs[::-1], "feed": in_place, "plan": Plan(())},
         ["model many-outputs: outputs are", "model mlp: run changed the input 'x'", "plan: the plan names no node"]),
        ({"inputs": doubled, "outputs": flat}, ["mlp: inputs: 'x' is", "strings: outputs: 'y' has shape ()"]),
        ({"name": "", "feed": without_strangers, "options": lambda words: {}, "plan": Plan((Region("r", ("odd",)),))},
         ["description: name is empty", "with an unknown input was accepted", "an unknown option was accepted",
          "names ['odd'], which the model does not have"]),
    ],
)  # fmt: skip
def test_suite_finds_what_is_wrong(change, complaints):
    with pytest.raises(AssertionError) as caught:
        check_engine_conformance(Wrapped(**change))
    assert [complaint for complaint in complaints if complaint not in str(caught.value)] == []


@pytest.mark.slow
def test_a_hang_ends_the_suite(tmp_path):
    text = "import time\nclass Engine:\n    def compile(self, model, options):\n        time.sleep(600)\n"
    (tmp_path / "hangs.py").write_text(text)
    engine = ScriptEngine(limits=Limits(build_seconds=1.0))
    with pytest.raises(AssertionError) as caught:
        check_engine_conformance(engine, {"file": str(tmp_path / "hangs.py")})
    assert len(str(caught.value).splitlines()) == 2, "one check is asked"
    assert "later checks were skipped" in str(caught.value)


def test_suite_needs_a_usable_engine():
    with pytest.raises(AssertionError, match="not usable here: no device"):
        check_engine_conformance(Wrapped(availability=lambda: Availability(usable=False, reason="no device")))


def test_availability_must_not_raise():
    def raises():
        raise EngineMissing("gone", slug="gone")

    with pytest.raises(AssertionError, match="it must never raise"):
        check_engine_conformance(Wrapped(availability=raises))


def test_options_reach_every_compile():
    with pytest.raises(AssertionError) as caught:
        check_engine_conformance(OnnxRuntimeEngine(), {"threads": "none"})
    assert str(caught.value).count(UsageError.__name__) > 10


@pytest.mark.parametrize(
    ("method", "bases", "complaint"),
    [
        ("precision", (), "does not inherit from ReportsPrecision"),
        ("hardware", (), "does not inherit from RunsOnHardware"),
        ("hardware", (RunsOnHardware,), "hardware() is 'abacus', not one of cpu, light, gpu, npu, any"),
    ],
)
def test_suite_checks_what_is_declared(method, bases, complaint):
    engine = type("Mine", (Wrapped, *bases), {method: lambda self, options: "abacus"})
    with pytest.raises(AssertionError) as caught:
        check_engine_conformance(engine())
    assert complaint in str(caught.value)
