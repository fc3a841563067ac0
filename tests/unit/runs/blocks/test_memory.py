import pytest

from tensortriage.runs.blocks.memory import (
    BASE_BYTES,
    HELD_OF_BLOCK,
    HELD_WHOLE,
    LOOKING_BYTES,
    block_bytes,
    fits,
    memory_bytes,
)

GB = 1 << 30


def test_a_limit_that_is_given_counts_whatever_the_machine_has():
    assert memory_bytes(1000) == 1000


def test_without_a_limit_the_machine_has_some_memory():
    """MemAvailable is below what any machine has; every system with /proc says it."""
    memory = memory_bytes(None)
    assert memory is None or 0 < memory < 1 << 50


def test_what_fits():
    assert fits(GB, None)
    assert fits(GB, BASE_BYTES + HELD_WHOLE * GB)
    assert not fits(GB + 1, BASE_BYTES + HELD_WHOLE * GB)


@pytest.mark.parametrize("memory", [64 << 20, 256 << 20, 6 * GB])
def test_a_block_leaves_room_for_all_that_is_held_of_it(memory):
    assert 0 < block_bytes(memory) * HELD_OF_BLOCK <= memory


def test_a_block_leaves_room_for_what_looking_into_it_loads():
    assert block_bytes(GB) * HELD_OF_BLOCK + LOOKING_BYTES <= GB
