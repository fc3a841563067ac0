"""Inputs that lie otherwise hold the same numbers, and streams run at the same time."""

import itertools
import time

import numpy as np
import pytest

from tensortriage_worker.exchange import Item
from tensortriage_worker.feeding import (
    ALIGNMENT,
    KEPT,
    LAYOUTS,
    MISALIGNED,
    STRIDED,
    InputBuffers,
    held,
    shared,
    side_by_side,
)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3), np.array(3, np.int64), np.zeros((0, 2)), np.array(["a"])]
)
def test_they_hold_the_same_numbers_and_may_be_written_to(layout, array):
    found = InputBuffers().laid_out("x", array, layout)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tolist() == array.tolist()
    assert found.flags.writeable
    assert not np.shares_memory(found, array)


def test_they_lie_as_their_names_say():
    array = np.arange(8, dtype=np.float32)
    assert InputBuffers().laid_out("x", array, MISALIGNED).ctypes.data % ALIGNMENT == 4
    assert InputBuffers().laid_out("x", array, STRIDED).strides == (8,)


def test_a_buffer_is_filled_anew_for_other_numbers_only():
    buffers, array = InputBuffers(), np.arange(4.0)
    first = buffers.laid_out("x", array, KEPT)
    first *= 2.0  # the engine writes into its inputs
    assert buffers.laid_out("x", array, KEPT) is first
    assert first.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert buffers.laid_out("x", array + 1.0, KEPT) is first
    assert first.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert buffers.laid_out("x", np.arange(3.0), KEPT) is not first


@pytest.mark.parametrize("array", [np.array([1.0, 2.0, 3.0], np.float32), np.array([1, 2, 3])])
def test_a_result_that_is_kept_is_read_after_a_run_of_other_numbers(array):
    buffer = np.zeros_like(array)

    def shared(feed):
        np.copyto(buffer, feed["x"].array)
        return [Item("y", buffer)]

    def own(feed):
        return [Item("y", feed["x"].array.copy())]

    feed = {"x": Item("x", array)}
    assert held(own, feed)[0].array.tolist() == [1, 2, 3]
    assert held(shared, feed)[0].array.tolist() != [1, 2, 3]
    assert buffer.max() <= 3  # indices remain indices


def test_streams_run_at_the_same_time_and_tell_each_result_once():
    running, seen = [], []

    def stream(name, numbers):
        def run():
            running.append(name)
            time.sleep(0.01)
            seen.append(len(running))
            running.remove(name)
            return {"y": np.array(next(numbers))}

        return run

    same, alternating = side_by_side([stream("a", itertools.repeat(0)), stream("b", itertools.cycle([0, 1]))], 4)
    assert seen.count(2) >= 4
    assert [int(result["y"]) for result in same] == [0]
    assert [int(result["y"]) for result in alternating] == [0, 1]


def test_a_stream_that_fails_is_told():
    def fails():
        raise ValueError("no memory for two")

    with pytest.raises(ValueError, match="no memory for two"):
        side_by_side([fails, dict], 2)


def test_results_in_one_memory_come_back_with_their_bits_inverted():
    buffer = np.arange(8, dtype=np.float32)
    alone = np.ones(3, np.float32)
    items = [Item("head", buffer[:4]), Item("tail", buffer[4:]), Item("whole", buffer), Item("alone", alone)]
    found = {item.name: item.array for item in shared(lambda feed: items, {})}
    assert np.array_equal(found["alone"], alone)
    assert all(
        found[name].tobytes() != item.array.tobytes()
        for name, item in zip(found, items, strict=True)
        if name != "alone"
    )
    apart = {item.name: item.array for item in shared(lambda feed: [items[0], items[1]], {})}
    assert np.array_equal(apart["head"], buffer[:4])
