"""The collector of cycles while a diagnosis imports its modules, and afterwards."""

import gc

import pytest

from tensortriage.cli.diagnose.cycle_collector import NEW_OBJECTS, rare_collections


@pytest.fixture
def collector():
    """Give the collector back as it was."""
    enabled, threshold = gc.isenabled(), gc.get_threshold()
    gc.enable()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
    (gc.enable if enabled else gc.disable)()


def test_what_is_made_inside_is_looked_at_no_more(collector):
    with rare_collections():
        assert not gc.isenabled()
        made = [[number] for number in range(100)]
    assert gc.isenabled()
    assert gc.get_threshold()[0] == NEW_OBJECTS
    assert gc.get_freeze_count() >= len(made)


def test_who_switched_it_off_keeps_it_off(collector):
    gc.disable()
    threshold = gc.get_threshold()
    with rare_collections():
        pass
    assert not gc.isenabled()
    assert gc.get_threshold() == threshold
