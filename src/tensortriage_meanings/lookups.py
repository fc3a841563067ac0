"""Which rows of a table did the other side take? Embeddings of words, of positions, of kinds of tokens.

Rows are found by their numbers, to the last bit. What was looked up is then told with what the model looks up: moved
by a number, or, for positions, counted from the first place that a mask has on.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage_meanings.site import Meaning, MeantNode

_MOST_SHOWN = 6


def lookup_ways(site: MeantNode, result: np.ndarray, known: Mapping[str, np.ndarray]) -> Iterator[Meaning]:
    """Yield a Gather of other rows of its table.

    Args:
        site: The node.
        result: The other side's result.
        known: Right values by name: the node's operands, and inputs of the model.
    """
    if site.op_type != "Gather":
        return
    table, own = (
        site.constant(at) if site.constant(at) is not None else known.get(value.name or "") if value else None
        for at, value in enumerate(site.node.inputs[:2])
    )
    if table is None or own is None or not table.ndim or table.dtype != result.dtype or not own.size:
        return
    axis = int(site.attribute("axis") or 0) % table.ndim
    own = np.where(own < 0, own + table.shape[axis], own)
    other = _rows(table, result, axis, own)
    if other is None or np.array_equal(other, own):
        return
    yield Meaning(
        f"its indices were {_words(own, other, known)}",
        operands={1: other.astype(np.int64)},
        cure="compute the indices in the file as the other side does",
    )


def _rows(table: np.ndarray, result: np.ndarray, axis: int, own: np.ndarray) -> np.ndarray | None:
    """Return the index of each row of a result in a table; None where one is not there."""
    rows = np.ascontiguousarray(np.moveaxis(table, axis, 0)).reshape(table.shape[axis], -1)
    if result.ndim != table.ndim - 1 + own.ndim or result.shape[axis : axis + own.ndim] != own.shape:
        return None
    front = np.moveaxis(result, range(axis, axis + own.ndim), range(own.ndim))
    taken = np.ascontiguousarray(front).reshape(own.size, -1)
    if taken.shape[1] != rows.shape[1]:
        return None
    place: dict[bytes, int] = {}
    for index, row in enumerate(rows):
        place.setdefault(row.tobytes(), index)
    found = np.array([place.get(row.tobytes(), -1) for row in taken])
    if (found < 0).any():
        return None
    alike = np.array([rows[index].tobytes() == row.tobytes() for index, row in zip(own.ravel(), taken, strict=True)])
    return np.where(alike, own.ravel(), found).reshape(own.shape)


def _words(own: np.ndarray, other: np.ndarray, known: Mapping[str, np.ndarray]) -> str:
    """Return other indices, the model's, and how the others are made."""
    shown = f"{_shown(other)}, not {_shown(own)}"
    apart = np.unique(other - own)
    if apart.size == 1:
        by = int(apart[0])
        return f"{abs(by)} {'larger' if by > 0 else 'smaller'} ({shown})"
    for name, array in known.items():
        if array.shape != own.shape or not own.ndim or not np.isin(array, (0, 1)).all() or array.all():
            continue
        seen = array.astype(bool)
        count = np.cumsum(seen, -1)
        for numbers, whose in ((other, "it counts"), (own, "the model counts")):
            if seen.any() and np.unique((numbers - count)[seen]).size == 1:
                rest = "the other counts padding as well"
                return f"{shown}: {whose} positions from the first place that '{name}' has on, and {rest}"
    return shown


def _shown(array: np.ndarray) -> str:
    flat = array.ravel()
    told = ", ".join(map(str, flat[:_MOST_SHOWN].tolist()))
    return f"[{told}{', ...' if flat.size > _MOST_SHOWN else ''}]"
