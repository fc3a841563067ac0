"""Messages and names as long as a stranger likes: looking into them takes no time, where patterns took minutes."""

import pytest

from tensortriage_engines.openvino.engine import _without_numbers
from tensortriage_polygraphy.lint.lint_report import _core
from tensortriage_worker.onnxruntime.values import reason

LENGTH = 200_000
UNITS = ["/", ".1", "Node (", ") Op (", "Node () Op () [x", "(", "/a.cc:1 ", " /a.cc:1 (("]


@pytest.mark.parametrize("unit", UNITS)
def test_long_texts(unit):
    """Each would run for hours if its time grew with the square of the length, or faster."""
    text = unit * (LENGTH // len(unit))
    for look in (_without_numbers, _core, lambda text: reason(ValueError(text))):
        assert len(look(text)) <= len(text)


def test_what_is_looked_for_is_found():
    place = "/onnxruntime_src/core/x.cc:12 virtual void onnxruntime::Foo(int, const char*) const "
    assert reason(RuntimeError(f"[ONNXRuntimeError] : 1 : FAIL : {place}it is odd")) == "it is odd"
    assert [_without_numbers(name) for name in ("a.1.2", "a.b", "a1", "a.1b.3")] == ["a", "a.b", "a1", "a.1b"]
    assert _core("Node (n) Op (Add) [ShapeInferenceError] it is odd") == " it is odd"
