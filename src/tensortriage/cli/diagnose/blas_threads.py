"""Number of threads of a numpy matrix product while several evaluations of a model run in parallel.

Threads of OpenBLAS wait for one another by spinning, which costs more than it saves where they have no processor each:
at a load of 13 on two, the three evaluations of a MiniLM took 5.2 CPU seconds in 21 with two threads a product, and 0.9
in 2 with one. Engines in processes of their own are started with the environment as it was.
"""

import contextlib
import os
from collections.abc import Iterator

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
"""Variables that OpenBLAS reads as it is loaded, the first before the second."""

EVALUATIONS = 3
"""Run side by side at most, as a rule: the types of the model, ten times the noise of fp32, the target's format."""


@contextlib.contextmanager
def few_blas_threads() -> Iterator[None]:
    """Divide the processors among evaluations, if numpy is first imported inside; the user's setting has priority."""
    if any(name in os.environ for name in VARIABLES):
        yield
        return
    os.environ[VARIABLES[0]] = str(max(1, processors() // EVALUATIONS))
    try:
        yield
    finally:
        del os.environ[VARIABLES[0]]


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
