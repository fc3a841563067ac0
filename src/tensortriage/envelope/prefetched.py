"""Evaluations side by side: while values of each are compared, the next ones are computed.

numpy lets other threads work while it computes, so evaluations that are compared value by value need not wait for one
another. Each computes ahead of its reader until the unread values reach their size limit: a product takes long to
compute and long to compare, and the reshapes behind it neither, so that one value ahead would seldom be enough. A value
that is larger than that is computed ahead alone.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")

MOST_AHEAD = 16 << 20
"""Bytes that each evaluation may have waiting."""


@contextlib.contextmanager
def prefetched(
    sources: Sequence[Iterator[Item]], *, size: Callable[[Item], int], room: int = MOST_AHEAD
) -> Iterator[list[Iterator[Item]]]:
    """Yield iterators over the items of others, each of which computes its next items in a thread.

    The first item of each is computed by the caller's thread: several evaluations share their preparation.

    Args:
        sources: Iterators without another reader; an exception of one is raised where its item is read.
        size: Returns the bytes of an item.
        room: Bytes of items that may wait to be read, of each source; the next one is computed while there are fewer.
    """
    shelves = [_Shelf(size, room) for _ in sources]
    with ThreadPoolExecutor(max(1, len(sources)), thread_name_prefix="evaluation") as pool:
        try:
            yield [_ahead(source, shelf, pool) for source, shelf in zip(sources, shelves, strict=True)]
        finally:
            for shelf in shelves:
                shelf.close()


def _ahead(source: Iterator[Item], shelf: "_Shelf[Item]", pool: ThreadPoolExecutor) -> Iterator[Item]:
    for first in source:
        filled = pool.submit(shelf.fill, source)
        yield first
        yield from shelf.items()
        filled.result()


class _Shelf(Generic[Item]):
    """Items between the thread that computes them and the one that reads them."""

    def __init__(self, size: Callable[[Item], int], room: int) -> None:
        self._size, self._room = size, room
        self._items: deque[Item] = deque()
        self._held = 0
        self._ended = self._closed = False
        self._changed = threading.Condition()

    def fill(self, source: Iterator[Item]) -> None:
        """Compute items until there are none left, or no reader needs them."""
        try:
            while self._has_room():
                try:
                    item = next(source)
                except StopIteration:
                    return
                with self._changed:
                    self._items.append(item)
                    self._held += self._size(item)
                    self._changed.notify_all()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def items(self) -> Iterator[Item]:
        """Yield the items, each when it is there."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._ended)
                if not self._items:
                    return
                item = self._items.popleft()
                self._held -= self._size(item)
                self._changed.notify_all()
            yield item

    def close(self) -> None:
        """End the reading: no more items are computed."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _has_room(self) -> bool:
        """Wait until there is; False when no reader needs more."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._items or self._held < self._room)
            return not self._closed
