"""Faults that treat the rows of a batch (the first axis) unequally, and what is hidden as if it were not."""

import numpy as np

from tensortriage.testing.fault_numbers import Site, unsupported


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
