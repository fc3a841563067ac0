"""Sessions of compilers that know inputs and outputs by their place."""

import numpy as np
import pytest

from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.declared import SessionByPlace, check_types
from tensortriage_worker.exchange import Item


def spec(name, dtype="float32"):
    return {"name": name, "dtype": dtype, "shape": None}


class Compiled(SessionByPlace):
    """Returns what it is told to, and remembers what it was given."""

    def __init__(self, results, outputs):
        super().__init__({"inputs": [spec("x"), spec("n", "int64")], "outputs": outputs}, {"version": "1"})
        self._results = results

    def call(self, arrays):
        self.given = arrays
        if isinstance(self._results, Exception):
            raise self._results
        return self._results


FEED = {"n": Item("n", np.array(3, np.int64)), "x": Item("x", np.arange(6.0, dtype=np.float32).reshape(2, 3).T)}


def test_inputs_come_in_the_order_of_the_model_contiguous_and_scalars_as_scalars():
    session = Compiled([np.zeros(1, np.float32)], [spec("y")])
    session.run(FEED)
    assert [array.shape for array in session.given] == [(3, 2), ()]
    assert all(array.flags.c_contiguous for array in session.given)
    assert session.given[0].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_outputs_get_the_names_and_types_that_the_model_declares():
    session = Compiled([np.array([1, 0], np.int32), np.ones(2, np.float16)], [spec("mask", "bool"), spec("y")])
    found = [(item.name, item.array.dtype.name, item.array.tolist()) for item in session.run(FEED)]
    assert found == [("mask", "bool", [True, False]), ("y", "float32", [1.0, 1.0])]


def test_weights_that_can_be_read_are_handed_over_and_the_others_counted():
    class Integers(Compiled):
        def weights(self):
            return [(np.ones((2, 2)).T, np.ones((1, 1))), None], [0]

    class Spill(list):
        add = list.append

    spill = Spill()
    told, _ = Integers([], []).answer("weights", {}, {}, spill)
    assert told == {"readable": 1, "unreadable": 1, "narrow": [0]}
    assert [(item.name, item.array.shape) for item in spill] == [("0/numbers", (2, 2)), ("0/step", (1, 1))]
    assert Compiled([], []).answer("weights", {}, {}, Spill())[0] == {"readable": 0, "unreadable": 0, "narrow": None}


@pytest.mark.parametrize("results", [[], [np.zeros(1), np.zeros(1)]])
def test_another_number_of_results_is_a_failed_run(results):
    with pytest.raises(AdapterError) as found:
        Compiled(results, [spec("y")]).run(FEED)
    assert found.value.kind is AdapterFailure.RUN
    assert found.value.message == f"{len(results)} results came, for 1 outputs of the model"


@pytest.mark.parametrize("error", [RuntimeError, ValueError, TypeError])
def test_what_the_compiled_function_raises_is_told_on_one_line(error):
    with pytest.raises(AdapterError) as found:
        Compiled(error("no\n  such  kernel"), [spec("y")]).run(FEED)
    assert (found.value.kind, found.value.message) == (AdapterFailure.RUN, "no such kernel")


@pytest.mark.parametrize("label", [None, "string", "bfloat16", "int4"])
@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_types_that_numpy_lacks_are_refused_by_name(label, side):
    declared = {"inputs": [spec("x")], "outputs": [spec("y", "bool")]}
    check_types(declared, "IREE")
    declared[side].append(spec("odd", label))
    with pytest.raises(AdapterError) as found:
        check_types(declared, "IREE")
    assert found.value.message == f"IREE is not given 'odd', whose type is {label}"
