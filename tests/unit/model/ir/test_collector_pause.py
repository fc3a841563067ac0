import gc
import threading

import pytest

from tensortriage.model.ir.collector_pause import collector_paused


@pytest.fixture(autouse=True)
def collector():
    yield
    gc.enable()


def test_the_collector_stands_still_in_the_block_alone():
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error_and_after_a_function():
    @collector_paused()
    def fails():
        assert not gc.isenabled()
        raise ValueError("told")

    for _ in range(2):
        with pytest.raises(ValueError, match="told"):
            fails()
        assert gc.isenabled()


def test_where_it_was_off_it_stays_off():
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


def test_two_threads_leave_it_on():
    entered, leave = threading.Event(), threading.Event()

    def second():
        with collector_paused():
            entered.set()
            leave.wait(60)

    other = threading.Thread(target=second)
    with collector_paused():
        other.start()
        assert entered.wait(60)
    leave.set()
    other.join()
    assert gc.isenabled()
