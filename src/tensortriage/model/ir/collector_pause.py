"""Pauses Python's collector of reference cycles while many long-lived objects are made.

It looks through all objects again whenever their number has grown by a quarter, which finds nothing while a model of
50,000 nodes is read or copied, and takes as long as that itself. It goes on afterwards, so what is dropped is found.
"""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the collector from running within the block, or within a function decorated with this."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
