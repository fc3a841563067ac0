"""Programs of a few steps: what is kept, when values are let go, control flow as the ONNX operators define it."""

import numpy as np
import pytest

from tensortriage.engines.float64.arithmetic import Arithmetic
from tensortriage.engines.float64.interpreter import NodeFailed, Program, ProgramStep, run
from tensortriage.errors import EngineOutOfMemory


def step(outputs, inputs, kernel, *, op_type="Op", bodies=None, attributes=None, **more):
    return ProgramStep(
        f"/{outputs}", op_type, 17, tuple(inputs.split()), tuple(outputs.split()), attributes or {}, kernel,
        bodies or {}, **more,
    )  # fmt: skip


def add(call):
    return call[0] + call[1]


def double(call):
    return 2 * call[0]


def program(inputs, outputs, *steps, weights=None, empty=()):
    return Program.of(inputs.split(), outputs.split(), weights or {}, steps, empty)


def results(made, **feed):
    return {name: np.asarray(value).tolist() for name, value in run(made, {k: np.array(v) for k, v in feed.items()})}


def test_steps_that_no_output_needs_are_left_out():
    made = program("x", "y", step("unused", "x", None), step("y", "x", double), step("z", "y", None))
    assert [each.outputs for each in made.steps] == [("y",)]
    assert results(made, x=3) == {"y": 6}


def test_a_value_is_released_by_the_last_step_that_uses_it():
    made = program("x", "c", step("a", "x", double), step("b", "a", double), step("c", "a b", add))
    assert [set(each) for each in made.releases] == [{"x"}, set(), {"a", "b", "c"}]
    assert results(made, x=1) == {"c": 6}


def test_outputs_come_as_they_are_made_and_each_once():
    made = program("x", "late early early", step("early", "x", double), step("late", "early", double))
    assert [name for name, _ in run(made, {"x": np.array(1)})] == ["early", "late"]


def test_inputs_and_weights_are_handed_through():
    assert results(program("x", "x w", weights={"w": lambda: np.array(7)}), x=1) == {"x": 1, "w": 7}


def test_a_weight_is_fetched_when_it_is_used_and_once():
    fetched = []
    weights = {name: lambda name=name: fetched.append(name) or np.array(5) for name in ("used", "unused")}
    made = program("x", "z", step("y", "x used", add), step("z", "y used", add), weights=weights)
    assert results(made, x=1) == {"z": 11}
    assert fetched == ["used"]


def test_weights_in_float32_are_converted_where_they_are_computed_with():
    """A table of which elements are picked stays as it is stored; whoever computes with it sees float64."""
    seen = {}

    def noted(kernel):
        def call(call):
            seen[call.op_type] = call[0].dtype
            return kernel(call)

        return call

    made = program(
        "x", "row moved y",
        step("row", "w x", noted(lambda call: call[0][call[1]]), op_type="Gather"),
        step("moved", "w", noted(lambda call: call[0].T), op_type="Transpose"),
        step("y", "moved", noted(double), op_type="Mul"),
        weights={"w": lambda: np.array([[1, 2], [3, 4]], np.float32)},
    )  # fmt: skip
    found = dict(run(made, {"x": np.array(1)}))
    assert seen == {"Gather": np.float32, "Transpose": np.float32, "Mul": np.float64}
    assert [found[name].dtype for name in ("row", "moved", "y")] == [np.float32, np.float32, np.float64]
    assert found["y"].tolist() == [[2, 6], [4, 8]]


def test_a_body_sees_weights_around_it_in_float64():
    body = program("", "y", step("y", "w", double, op_type="Mul"))
    made = program(
        "x", "z", step("z", "x", None, op_type="If", bodies={"then_branch": body, "else_branch": body}),
        weights={"w": lambda: np.array([1.5], np.float32)},
    )  # fmt: skip
    assert next(iter(dict(run(made, {"x": np.array(True)})).values())).dtype == np.float64


def test_operands_and_results_are_changed_where_that_is_asked_for():
    made = program("a b", "y", step("y", "a b", add, operands=(lambda x: 10 * x, None), results=(lambda y: y + 1,)))
    assert results(made, a=1, b=2) == {"y": 13}


@pytest.mark.parametrize(("op_type", "against"), [("MatMul", 100), ("Relu", None)])
def test_a_louder_error_is_measured_against_what_is_exact_inside(op_type, against):
    """A kernel that errs inside is run once more exactly; one of the elementwise kind has no inside."""
    loud, seen = Arithmetic(amplify=10), []

    def kernel(call):
        return np.array(100 if call.arithmetic.amplify == 1 else 101)

    def change(y, exact=None):
        seen.append(None if exact is None else int(exact))
        return y

    results(program("x", "y", step("y", "x", kernel, op_type=op_type, arithmetic=loud, results=(change,))), x=1)
    assert seen == [against]


def test_what_a_kernel_raises_names_the_node():
    def fails(call):
        raise ValueError("shapes differ")

    with pytest.raises(NodeFailed, match=r"node '/y' \(Op\): shapes differ"):
        results(program("x", "y", step("y", "x", fails)), x=1)


def test_memory_that_is_not_there_is_an_error_of_its_own():
    def fails(call):
        raise MemoryError

    with pytest.raises(EngineOutOfMemory, match="at node '/y'"):
        results(program("x", "y", step("y", "x", fails)), x=1)


def test_a_branch_takes_values_from_around_it():
    bodies = {
        "then_branch": program("", "t", step("t", "x", double)),
        "else_branch": program("", "e", step("e", "x x", add), step("unused", "far", double)),
    }
    assert bodies["then_branch"].captures == ("x",)
    assert bodies["else_branch"].captures == ("x",)  # what is left out captures nothing
    made = program("c x", "y", step("y", "c", None, op_type="If", bodies=bodies))
    assert made.steps[0].uses == ("c", "x", "x")
    assert results(made, c=True, x=4) == {"y": 8}


LOOP = step(
    "last all", "trips going start", None, op_type="Loop",
    bodies={"body": program("i on state", "below next row", step("next", "state i", add), step("row", "next", double),
                            step("below", "next", lambda call: np.array(call[0] < 6)),
                            empty=(np.zeros(0), np.zeros(0), np.zeros((0,))))},
)  # fmt: skip


@pytest.mark.parametrize(
    ("trips", "going", "last", "rows"),
    [
        (2, True, 1, [0, 2]),  # 0 + 0, then + 1; rows are twice that
        (9, True, 6, [0, 2, 6, 12]),  # the body ends it: 0, 1, 3, 6 is no longer below 6
        (9, False, 0, []),
        (0, True, 0, []),
    ],
)
def test_a_loop_ends_by_its_count_or_its_condition(trips, going, last, rows):
    assert results(program("trips going start", "last all", LOOP), trips=trips, going=going, start=0) == {
        "last": last,
        "all": rows,
    }


@pytest.mark.parametrize(
    ("attributes", "sums"),
    [
        ({}, [1, 3, 6]),
        ({"scan_input_directions": (1,)}, [3, 5, 6]),
        ({"scan_output_directions": (1,)}, [6, 3, 1]),
    ],
)
def test_a_scan_goes_along_its_inputs(attributes, sums):
    body = program("state x", "next sum", step("next", "state x", add), step("sum", "next", lambda call: call[0]),
                   empty=(np.zeros(0), np.zeros(0)))  # fmt: skip
    scan = step(
        "last all",
        "start xs",
        None,
        op_type="Scan",
        bodies={"body": body},
        attributes={"num_scan_inputs": 1, **attributes},
    )
    assert results(program("start xs", "last all", scan), start=0, xs=[1, 2, 3]) == {"last": 6, "all": sums}
