"""Rarer collections of reference cycles, for a command that keeps nearly all objects it makes.

Modules, graphs and figures stay until the end, and every look goes through many of them. Of the diagnosis of a Swin of
3,644 nodes that was 0.52 CPU seconds of 10.7, now 0.15; of a MiniLM 0.09 of 3.1. The large arrays are in no cycles and
are freed as soon as nothing refers to them.
"""

import contextlib
import gc
from collections.abc import Iterator

from tensortriage.model.ir.collector_pause import collector_paused

NEW_OBJECTS = 20_000
"""Number of new objects after which a collection runs, instead of 700 (2,000 from Python 3.13 on)."""


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Pause collections while modules are imported inside, exempt them permanently, and collect rarely afterwards."""
    collects = gc.isenabled()  # else by the user's or a test's setting
    with collector_paused():
        try:
            yield
        finally:
            if collects:
                gc.freeze()
                gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
