"""Faults of decoders that go step by step: a cache that keeps an old row, a position one off, a mask one short."""

import numpy as np

from tensortriage.testing.fault_numbers import Site, unsupported


def stale_row(site: Site) -> np.ndarray:
    """Leave the newest row of a cache (the last along the last axis but one) what the row before it is.

    Raises:
        UsageError: For a value of fewer than two rows.
    """
    wrong = np.array(site.exact)
    if wrong.ndim < 2 or wrong.shape[-2] < 2:
        raise unsupported("stale-row", "the value has no row before the last")
    wrong[..., -1, :] = wrong[..., -2, :]
    return wrong


def row_before(site: Site) -> np.ndarray:
    """Let a Gather take the row before the one it is told to: a position that is one off; row 0 stays.

    Raises:
        UsageError: For a node that is no Gather.
    """
    if site.op_type != "Gather" or any(operand is None for operand in site.operands):
        raise unsupported("row-before", f"{site.op_type} is not a Gather")
    table, index = (np.asarray(operand) for operand in site.operands)
    axis = site.attributes.get("axis", 0)
    taken = np.take(table, np.maximum(index - 1, 0), axis=axis if isinstance(axis, int) else 0)
    return np.asarray(taken)


def mask_short(site: Site) -> np.ndarray:
    """Hide the newest position (the last element of the last axis) from all: a mask that is one short.

    Raises:
        UsageError: For a value of fewer than two positions.
    """
    wrong = np.array(site.exact)
    if not wrong.ndim or wrong.shape[-1] < 2:
        raise unsupported("mask-short", "the value has no more than one position")
    wrong[..., -1] = -1e9
    return wrong
