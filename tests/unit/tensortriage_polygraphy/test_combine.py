import numpy as np
import pytest

from tensortriage.errors import DataError, UsageError
from tensortriage.inputs.files.data_file import Iteration, Kind
from tensortriage.inputs.files.open_data import open_data
from tensortriage.inputs.files.polygraphy_write import write_inputs, write_outputs
from tensortriage_polygraphy.combine import concat, merge


@pytest.fixture
def make(tmp_path):
    def write(name, *series):
        """Write iterations of {tensor: number}; outputs when the series have runners."""
        runs = [(runner, [Iteration({k: np.array(v) for k, v in it.items()}) for it in its]) for runner, its in series]
        if runs[0][0]:
            write_outputs(tmp_path / name, runs)
        else:
            write_inputs(tmp_path / name, runs[0][1])
        return open_data(tmp_path / name)

    return write


def values(combined):
    return [
        (runner, [{name: array.item() for name, array in it.tensors.items()} for it in iterations])
        for runner, iterations in combined.series
    ]


def test_every_iteration_is_merged_with_its_own(make):
    # Polygraphy 0.53.6 gives both iterations the values of the last one here.
    inputs = make("in.json", ("", [{"x": 1}, {"x": 2}]))
    outputs = make("out.json", ("r", [{"y": 10}, {"y": 20}]))
    combined = merge([inputs, outputs])
    assert values(combined) == [("", [{"x": 1, "y": 10}, {"x": 2, "y": 20}])]
    assert (combined.kind, combined.notices) == (Kind.INPUTS, ())


def test_the_last_of_equal_names_wins_with_a_notice(make):
    first, second = make("a.json", ("", [{"x": 1, "z": 3}])), make("b.json", ("", [{"x": 2}]))
    combined = merge([first, second])
    assert values(combined) == [("", [{"x": 2, "z": 3}])]
    assert "'x' of" in combined.notices[0]
    assert "b.json" in combined.notices[0]


def test_iterations_must_correspond(make):
    with pytest.raises(DataError) as caught:
        merge([make("a.json", ("", [{"x": 1}, {"x": 2}])), make("b.json", ("r", [{"y": 2}]))])
    assert caught.value.slug == "merge-lengths"


def test_one_runner_must_be_chosen(make):
    inputs = make("in.json", ("", [{"x": 1}]))
    outputs = make("out.json", ("r0", [{"y": 1}]), ("r1", [{"y": 2}]))
    with pytest.raises(DataError) as caught:
        merge([inputs, outputs])
    assert caught.value.slug == "several-runners"
    assert "'r0', 'r1'" in caught.value.cure
    assert values(merge([inputs, outputs], runner="r1")) == [("", [{"x": 1, "y": 2}])]
    with pytest.raises(UsageError) as unknown:
        merge([inputs, outputs], runner="r2")
    assert unknown.value.slug == "runner-unknown"


def test_inputs_are_appended(make):
    combined = concat([make("a.json", ("", [{"x": 1}, {"x": 2}])), make("b", ("", [{"x": 3}]))])
    assert values(combined) == [("", [{"x": 1}, {"x": 2}, {"x": 3}])]
    assert combined.notices == ()


def test_outputs_are_appended_by_runner(make):
    first = make("a.json", ("r", [{"y": 1}]), ("s", [{"y": 2}]), ("r", [{"y": 3}]))
    second = make("b.json", ("s", [{"y": 4}]), ("r", [{"y": 5}]))
    combined = concat([first, second])
    assert combined.kind is Kind.OUTPUTS
    assert values(combined) == [("r", [{"y": 1}, {"y": 5}]), ("s", [{"y": 2}, {"y": 4}]), ("r", [{"y": 3}])]


def test_other_names_are_appended_with_a_notice(make):
    combined = concat([make("a.json", ("", [{"x": 1}])), make("b.json", ("", [{"z": 3}]))])
    assert "b.json" in combined.notices[0]


def test_inputs_and_outputs_do_not_mix(make):
    with pytest.raises(DataError) as caught:
        concat([make("a.json", ("", [{"x": 1}])), make("b.json", ("r", [{"y": 3}]))])
    assert caught.value.slug == "concat-kinds"
