"""Planted faults of batches, of decoders that go step by step, and of quantizers.

Rows of a batch (the first axis) are treated unequally, a cache keeps an old row, a position is one off, a mask one
short, the definition of QuantizeLinear or DequantizeLinear is misread in one place.
"""

from collections.abc import Callable

import numpy as np

from tensortriage.testing.sdk import Call, kernel_for
from tensortriage_testing.fault_numbers import Site, unsupported


def last_row(site: Site) -> np.ndarray:
    """Halve the last row behind the last full tile, of the amount (3) rows: the rest of a tile that is cut off."""
    height = max(2, int(site.amount_or(3)))
    rows = _rows(site, "last-row")
    if len(rows) % height == 0:
        return rows
    rows[-1] *= 0.5
    return rows


def rows_above(site: Site) -> np.ndarray:
    """Give every row from the amount (4) on the content of row 0, as a kernel for so many rows and no more."""
    rows, most = _rows(site, "rows-above"), max(1, int(site.amount_or(4)))
    rows[most:] = rows[0]
    return rows


def swapped_rows(site: Site) -> np.ndarray:
    """Swap the rows of index amount (2) and the one before it."""
    rows, index = _rows(site, "swapped-rows"), max(1, int(site.amount_or(2)))
    if index < len(rows):
        rows[[index - 1, index]] = rows[[index, index - 1]]
    return rows


def padding_leak(site: Site) -> np.ndarray:
    """Give every position of a Softmax the amount (0.02) of weight, hidden ones too; the others lose as much.

    Raises:
        UsageError: When the value or operator cannot have this fault (``fault-unsupported``).
    """
    if site.op_type != "Softmax":
        raise unsupported("padding-leak", f"{site.op_type} is not a Softmax")
    share = site.amount_or(0.02)
    return np.asarray((1.0 - share) * site.exact + share / max(1, site.right.shape[-1]))


def _rows(site: Site, kind: str) -> np.ndarray:
    if site.right.ndim < 2:
        raise unsupported(kind, "the value has no rows")
    return np.array(site.exact)


def stale_row(site: Site) -> np.ndarray:
    """Replace the newest row of a cache (the last along the last axis but one) by the row before it.

    Raises:
        UsageError: For a value of fewer than two rows.
    """
    wrong = np.array(site.exact)
    if wrong.ndim < 2 or wrong.shape[-2] < 2:
        raise unsupported("stale-row", "the value has no row before the last")
    wrong[..., -1, :] = wrong[..., -2, :]
    return wrong


def row_before(site: Site) -> np.ndarray:
    """Let a Gather take the row before the requested one: a position that is one off; row 0 stays.

    Raises:
        UsageError: For a node that is no Gather.
    """
    table, index, axis = _gathered(site, "row-before")
    return np.asarray(np.take(table, np.maximum(index - 1, 0), axis=axis))


def _gathered(site: Site, kind: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Return a Gather's data, indices and axis."""
    if site.op_type != "Gather" or any(operand is None for operand in site.operands):
        raise unsupported(kind, f"{site.op_type} is not a Gather")
    table, index = (np.asarray(operand) for operand in site.operands)
    return table, index, int(str(site.attributes.get("axis", 0)))


def in_order(site: Site) -> np.ndarray:
    """Let a Gather take rows from the first on, in their order, for any indices: beams that are not reordered.

    Raises:
        UsageError: For a node that is no Gather.
    """
    table, index, axis = _gathered(site, "in-order")
    wrong: np.ndarray = np.take(table, np.arange(index.size).reshape(index.shape) % table.shape[axis], axis=axis)
    return wrong


def slot_after(site: Site) -> np.ndarray:
    """Let a ScatterElements write into the slot behind the requested one, behind the last one into the first.

    Raises:
        UsageError: For a node that is no ScatterElements.
    """
    if site.op_type != "ScatterElements" or any(operand is None for operand in site.operands):
        raise unsupported("slot-after", f"{site.op_type} is not a ScatterElements")
    held, slots, rows = (np.asarray(operand) for operand in site.operands)
    axis, wrong = int(str(site.attributes.get("axis", 0))), held.copy()
    np.put_along_axis(wrong, (slots + 1) % held.shape[axis], rows, axis)
    return wrong


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


def zero_point(site: Site) -> np.ndarray:
    """Leave the zero point out."""
    return _computed(site, "zero-point", 2, lambda zero: np.zeros_like(zero))


def channel_scale(site: Site) -> np.ndarray:
    """Take the scale of the first channel for all."""
    return _computed(site, "channel-scale", 1, lambda scale: np.full_like(scale, scale.flat[0]))


def _computed(site: Site, kind: str, position: int, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Compute the operator with one operand changed."""
    kernel = kernel_for(site.op_type)
    operand = site.operands[position] if position < len(site.operands) else None
    if site.op_type not in ("QuantizeLinear", "DequantizeLinear") or operand is None or kernel is None:
        raise unsupported(kind, f"{site.op_type} is no quantizer with operand {position}")
    changed = change(operand)
    operands = tuple(changed if number == position else x for number, x in enumerate(site.operands))
    return np.asarray(kernel(Call(site.op_type, 21, operands, dict(site.attributes))))
