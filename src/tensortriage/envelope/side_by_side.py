"""Evaluations side by side: while one value of each is compared, the next ones are computed.

numpy lets other threads work while it computes, so evaluations that are compared value by value need not wait for one
another. Each is one value ahead of who reads it, no more: values are large.
"""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


@contextlib.contextmanager
def side_by_side(sources: Sequence[Iterator[Item]]) -> Iterator[list[Iterator[Item]]]:
    """Yield iterators over the items of others, each of which computes its next item in a thread.

    The first item of each is asked for by the caller's thread: what an evaluation prepares, several share.

    Args:
        sources: Iterators that nobody else reads; what one raises is raised where its item is read.
    """
    with ThreadPoolExecutor(max(1, len(sources)), thread_name_prefix="evaluation") as pool:
        yield [_ahead(source, pool) for source in sources]


def _ahead(source: Iterator[Item], pool: ThreadPoolExecutor) -> Iterator[Item]:
    for first in source:
        pending: Future[list[Item]] = pool.submit(_next, source)
        yield first
        while made := pending.result():
            pending = pool.submit(_next, source)
            yield made[0]


def _next(source: Iterator[Item]) -> list[Item]:
    """Return the next item alone in a list; an empty list at the end."""
    return list(itertools.islice(source, 1))
