"""Iterators of which each computes its next item in a thread, while the last one is looked at."""

import threading

import pytest

from tensortriage.envelope.prefetched import prefetched


def test_items_come_in_order_and_all_of_them():
    for count in (0, 1, 2, 7):
        with prefetched([iter(range(count)), iter("abc")], size=lambda item: 1) as (numbers, letters):
            assert list(numbers) == list(range(count))
            assert list(letters) == ["a", "b", "c"]


def test_the_next_items_are_computed_while_one_is_read():
    """Two evaluations that wait for each other: one after the other they would never end."""
    meeting = threading.Barrier(2, timeout=60)

    def evaluation():
        yield 1
        meeting.wait()
        yield 2

    with prefetched([evaluation(), evaluation()], size=lambda item: 1) as (one, other):
        assert list(zip(one, other, strict=True)) == [(1, 1), (2, 2)]


@pytest.mark.parametrize(("room", "ahead"), [(1, 1), (4, 2), (7, 3)])
def test_each_is_as_far_ahead_as_there_is_room_and_begins_in_the_thread_of_its_reader(room, ahead):
    """Items of 3 bytes: the next one is computed while fewer than ``room`` bytes wait to be read, one in any case."""
    made, threads, waits = [], [], threading.Event()

    def evaluation():
        for number in range(9):
            threads.append(threading.current_thread())
            made.append(number)
            if number == ahead:
                waits.set()
            yield number

    with prefetched([evaluation()], size=lambda item: 3, room=room) as (items,):
        assert made == []
        assert next(items) == 0
        assert threads[0] is threading.current_thread()
        assert waits.wait(timeout=60)
    assert made == list(range(1 + ahead))
    assert threads[1] is not threading.current_thread()


def test_what_an_evaluation_raises_is_raised_where_its_item_is_read():
    def evaluation():
        yield 1
        raise ZeroDivisionError("in the second")

    with prefetched([evaluation(), iter("abc")], size=lambda item: 1) as (one, other):
        assert (next(one), next(other)) == (1, "a")
        with pytest.raises(ZeroDivisionError, match="in the second"):
            next(one)
